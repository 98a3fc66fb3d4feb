//! Cables from LLDP tables, as switches print them, and lists of cables.
//!
//! ```text
//! LocalPort    RemoteDevice    RemotePortID       Capability  RemotePortDescr      show lldp table, of SONiC
//! Ethernet0    gpu17           b8:ce:f6:00:00:01  B           eth0
//! Ethernet4    spine1          Ethernet8          BR          fabric
//!
//! leaf0:Ethernet0 gpu17:eth0                                                       a list: both ends, by name
//! ```
//!
//! The other end is called by its port's id, or by its description where that is the name of a known port.

use std::collections::BTreeSet;

use crate::recording::Skipped;

/// Both ends of a cable: names of ports.
pub type Cable = (String, String);

/// Reads the LLDP table of `switch`. `known` says which ports there are; a line whose other end is not among them is named
/// and left out.
pub fn table(
    switch: &str,
    text: &str,
    known: &BTreeSet<String>,
    skipped: &mut Skipped,
) -> Vec<Cable> {
    let mut cables = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let rule = line.trim_start().starts_with('-');
        let ends = line.starts_with("Total") || line.starts_with("Capability codes");
        if words.is_empty() || rule || ends || words[0] == "LocalPort" {
            continue;
        }
        let &[local, device, id, ..] = words.as_slice() else {
            skipped.line(format!(
                "{switch}, line {}: `{line}` is no line of a table",
                number + 1
            ));
            continue;
        };
        let here = format!("{switch}:{local}");
        let description = words.last().copied().unwrap_or(id);
        let there = [
            format!("{device}:{id}"),
            format!("{device}:{description}"),
            device.to_owned(),
        ];
        match there.into_iter().find(|name| known.contains(name)) {
            Some(there) if known.contains(&here) => cables.push((here, there)),
            Some(_) => skipped.line(format!("{switch}, line {}: no port is called `{here}`", number + 1)),
            None => skipped.line(format!(
                "{switch}, line {}: `{here}` leads to {device} ({id}, {description}), which is not among the ports",
                number + 1
            )),
        }
    }
    cables
}

/// Reads a list of cables: two names of ports a line; `#` begins a comment.
pub fn list(text: &str, known: &BTreeSet<String>, skipped: &mut Skipped) -> Vec<Cable> {
    let mut cables = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [] => {}
            [here, there] => match [here, there]
                .iter()
                .find(|name| !known.contains(**name as &str))
            {
                None => cables.push(((*here).to_owned(), (*there).to_owned())),
                Some(name) => {
                    skipped.line(format!("line {}: no port is called `{name}`", number + 1));
                }
            },
            _ => skipped.line(format!(
                "line {}: a cable has two ends, not {}",
                number + 1,
                words.len()
            )),
        }
    }
    cables
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> BTreeSet<String> {
        [
            "leaf0:Ethernet0",
            "leaf0:Ethernet4",
            "spine1:Ethernet8",
            "gpu17:eth0",
        ]
        .map(str::to_owned)
        .into()
    }

    #[test]
    fn a_table_names_the_other_end_by_id_or_description() {
        let text = "\
Capability codes: (R) Router, (B) Bridge, (O) Other
LocalPort    RemoteDevice    RemotePortID       Capability    RemotePortDescr
-----------  --------------  -----------------  ------------  ---------------
Ethernet0    gpu17           b8:ce:f6:00:00:01  B             eth0
Ethernet4    spine1          Ethernet8          BR            fabric
Ethernet8    printer         1                  O             lp0
Ethernet9
--------------------------------------------------
Total entries displayed:  3
";
        let mut skipped = Skipped::default();
        let cables = table("leaf0", text, &known(), &mut skipped);
        let cable = |here: &str, there: &str| (here.to_owned(), there.to_owned());
        assert_eq!(
            cables,
            [
                cable("leaf0:Ethernet0", "gpu17:eth0"),
                cable("leaf0:Ethernet4", "spine1:Ethernet8")
            ]
        );
        assert_eq!(skipped.lines, 2);
        assert!(skipped.first[0].contains("printer"), "{:?}", skipped.first);
        assert!(skipped.first[1].contains("line 7"), "{:?}", skipped.first);
    }

    #[test]
    fn a_list_has_two_ends_a_line() {
        let text = "# cables\nleaf0:Ethernet0 gpu17:eth0\n\nleaf0:Ethernet4 nobody:1\na b c\n";
        let mut skipped = Skipped::default();
        let cables = list(text, &known(), &mut skipped);
        assert_eq!(
            cables,
            [("leaf0:Ethernet0".to_owned(), "gpu17:eth0".to_owned())]
        );
        assert_eq!(skipped.lines, 2);
        assert!(skipped.first[0].contains("nobody:1"), "{:?}", skipped.first);
    }
}
