//! What perftest's programs print: the last table of bandwidth or latency, and what they say of the connection.
//!
//! ```text
//!  Mtu             : 1024[B]
//!  #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
//!  65536      5000             92.34              92.31              0.176
//!  #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    …
//! ```

use std::collections::BTreeMap;

/// Bandwidth of the last row in bits a second. Without --report_gbits a MB is 2^20 bytes there.
///
/// # Errors
/// If there is no such table.
pub(super) fn bandwidth(output: &str) -> Result<f64, String> {
    let (unit, value) = column(output, "BW average")?;
    let factor = match unit.as_str() {
        "Gb/sec" => 1e9,
        "MB/sec" => 8.0 * 1_048_576.0,
        other => return Err(format!("`BW average[{other}]` is in no unit of perftest's")),
    };
    Ok(value * factor)
}

/// The typical latency of the last row in nanoseconds.
///
/// # Errors
/// If there is no such table.
pub(super) fn latency(output: &str) -> Result<f64, String> {
    // With a given duration there is no typical one.
    let (unit, value) = column(output, "t_typical").or_else(|_| column(output, "t_avg"))?;
    match unit.as_str() {
        "usec" => Ok(value * 1e3),
        other => Err(format!("`t_typical[{other}]` is in no unit of perftest's")),
    }
}

/// The unit and the last value of a column.
fn column(output: &str, name: &str) -> Result<(String, f64), String> {
    let head = |line: &str| line.trim_start().starts_with("#bytes") && line.contains(name);
    let lines: Vec<&str> = output.lines().collect();
    let Some(place) = lines.iter().rposition(|line| head(line)) else {
        let last = lines.iter().rev().find(|line| !line.trim().is_empty());
        return Err(match last {
            Some(last) => format!(
                "no table with `{name}` was printed; the last line is `{}`",
                last.trim()
            ),
            None => "nothing was printed".to_owned(),
        });
    };
    // Names of columns have spaces in them; every one but the first begins behind a gap, and all but two end with a unit.
    let names = columns(lines[place]);
    let index = names.iter().position(|column| column.starts_with(name));
    let index = index.ok_or_else(|| format!("no column `{name}`"))?;
    let unit = names[index]
        .split_once('[')
        .and_then(|(_, unit)| unit.split_once(']'));
    let unit = unit.map_or("", |(unit, _)| unit).to_owned();
    let row = lines[place + 1..].iter().rev().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let first = words.first()?.parse::<u64>();
        first.ok()?;
        words.get(index)?.parse::<f64>().ok()
    });
    match row {
        Some(value) if value.is_finite() && value >= 0.0 => Ok((unit, value)),
        _ => Err(format!("the table with `{name}` has no row")),
    }
}

/// Names of columns: `#bytes`, `#iterations`, then those with a unit in brackets.
fn columns(head: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut name = String::new();
    for word in head.split_whitespace() {
        if !name.is_empty() {
            name.push(' ');
        }
        name.push_str(word);
        if word.starts_with('#') || word.contains('[') && word.contains(']') {
            names.push(std::mem::take(&mut name));
        }
    }
    names
}

/// What it says of the connection: device, MTU, link type.
pub(super) fn settings(output: &str) -> BTreeMap<String, String> {
    const TOLD: &[&str] = &[
        "Dual-port",
        "Device",
        "Number of qps",
        "Transport type",
        "Connection type",
        "Mtu",
        "Link type",
        "GID index",
        "TX depth",
        "Max inline data",
    ];
    let mut settings = BTreeMap::new();
    for line in output.lines() {
        for name in TOLD {
            // Two of them may stand in one line, with a tab between.
            let Some((_, rest)) = line.split_once(name) else {
                continue;
            };
            if let Some(value) = rest.trim_start().strip_prefix(':') {
                let value = value.split('\t').next().unwrap_or(value).trim();
                if !value.is_empty() {
                    settings.insert((*name).to_owned(), value.to_owned());
                }
            }
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    const BANDWIDTH: &str = "\
************************************
* Waiting for client to connect... *
************************************
---------------------------------------------------------------------------------------
                    RDMA_Write BW Test
 Dual-port       : OFF\t\tDevice         : softroce0
 Number of qps   : 1\t\tTransport type : IB
 Connection type : RC\t\tUsing SRQ      : OFF
 TX depth        : 128
 Mtu             : 1024[B]
 Link type       : Ethernet
---------------------------------------------------------------------------------------
 local address: LID 0000 QPN 0x0011 PSN 0x3ed2c1
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      5000             92.34              91.25  \t\t   0.174046
---------------------------------------------------------------------------------------
";

    #[test]
    fn tables_of_bandwidth_are_read() {
        assert!((bandwidth(BANDWIDTH).unwrap() - 91.25e9).abs() < 1.0);
        let megabytes = BANDWIDTH.replace("Gb/sec", "MB/sec");
        assert!((bandwidth(&megabytes).unwrap() - 91.25 * 8_388_608.0).abs() < 1.0);
        let newer = BANDWIDTH.replace("MsgRate[Mpps]", "MsgRate[Mpps]   CPU_Util[%]");
        assert!((bandwidth(&newer).unwrap() - 91.25e9).abs() < 1.0);
        let settings = settings(BANDWIDTH);
        assert_eq!(settings["Mtu"], "1024[B]");
        assert_eq!(settings["Device"], "softroce0");
        assert_eq!(settings["Number of qps"], "1");
    }

    #[test]
    fn tables_of_latency_are_read() {
        let table = " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] \n \
                     2       1000          1.79           6.31         1.84     \t       1.85        \t0.12   \t\t2.10    \t\t6.31   \n";
        assert!((latency(table).unwrap() - 1_840.0).abs() < 1e-6);
        let duration = " #bytes        #iterations       t_avg[usec]    tps average\n 2             403218          2.48           403218.00\n";
        assert!((latency(duration).unwrap() - 2_480.0).abs() < 1e-6);
    }

    #[test]
    fn what_is_no_table_is_said() {
        assert!(bandwidth("").unwrap_err().contains("nothing was printed"));
        let said = bandwidth("Couldn't connect to gpu7:18515\n").unwrap_err();
        assert!(said.contains("Couldn't connect to gpu7"), "{said}");
        let broken_off = BANDWIDTH.lines().take(14).collect::<Vec<_>>().join("\n");
        assert!(bandwidth(&broken_off).unwrap_err().contains("no row"));
    }
}
