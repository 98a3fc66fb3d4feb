//! One setting of a scenario's text, changed by its path: `host.mtu`, `workload[0].bytes`.
//!
//! The text is edited and not the parsed scenario, so that what is wrong with the new value is found and shown as if it had
//! been written into the file.

use thiserror::Error;
use toml_edit::{DocumentMut, Item, Table, Value};

/// Why a setting cannot be changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EditError {
    /// The text is no TOML.
    #[error("the scenario is no TOML: {0}")]
    Text(String),
    /// The path is none.
    #[error("`{path}`: found {found}; allowed: {allowed}")]
    Path {
        /// The path.
        path: String,
        /// What was found in it.
        found: String,
        /// What is allowed there.
        allowed: String,
    },
}

/// The text with one setting changed. What can be read as a number, true, false, a list or a quoted text is that, anything else
/// is a text: `100Gb/s` needs no quotes.
///
/// # Errors
/// If the path leads through something that has no fields, or to an entry of a list that is not there.
pub fn set(text: &str, path: &str, value: &str) -> Result<String, EditError> {
    let mut document: DocumentMut = text
        .parse()
        .map_err(|error: toml_edit::TomlError| EditError::Text(error.message().to_owned()))?;
    let steps = steps(path)?;
    let wrong = |found: String, allowed: &str| EditError::Path {
        path: path.to_owned(),
        found,
        allowed: allowed.to_owned(),
    };
    let no_table = |key: &str| {
        wrong(
            format!("`{key}` below something that is no table"),
            "fields of tables; entries of lists as `workload[0]`",
        )
    };
    let Some((last, before)) = steps.split_last() else {
        return Err(wrong("nothing".to_owned(), "a field, such as host.mtu"));
    };
    let mut item = document.as_item_mut();
    for step in before {
        item = match step {
            Step::Key(key) => {
                if item.as_table_like().is_none() {
                    return Err(no_table(key));
                }
                let table = &mut item[key.as_str()];
                if table.is_none() {
                    *table = Item::Table(Table::new());
                }
                table
            }
            Step::Place(place) => entry(item, *place).ok_or_else(|| no_entry(path, *place))?,
        };
    }
    let value: Value = value
        .parse()
        .unwrap_or_else(|_| Value::from(value.to_owned()));
    match last {
        Step::Key(key) if item.as_table_like().is_some() => {
            item[key.as_str()] = Item::Value(value);
        }
        Step::Key(key) => return Err(no_table(key)),
        Step::Place(place) => {
            let list = item.as_array_mut().ok_or_else(|| no_entry(path, *place))?;
            if *place >= list.len() {
                return Err(no_entry(path, *place));
            }
            list.replace(*place, value);
        }
    }
    Ok(document.to_string())
}

fn no_entry(path: &str, place: usize) -> EditError {
    EditError::Path {
        path: path.to_owned(),
        found: format!("entry {place} of something that has none of that number"),
        allowed: "entries of lists that the scenario has, from 0".to_owned(),
    }
}

fn entry(item: &mut Item, place: usize) -> Option<&mut Item> {
    match item {
        Item::ArrayOfTables(tables) if place < tables.len() => Some(&mut item[place]),
        Item::Value(Value::Array(list)) if place < list.len() => Some(&mut item[place]),
        _ => None,
    }
}

enum Step {
    Key(String),
    Place(usize),
}

/// `workload[0].bytes` as its steps.
fn steps(path: &str) -> Result<Vec<Step>, EditError> {
    let wrong = || EditError::Path {
        path: path.to_owned(),
        found: "no path".to_owned(),
        allowed: "fields with dots between them, such as host.mtu or workload[0].bytes".to_owned(),
    };
    let mut steps = Vec::new();
    for part in path.split('.') {
        let (key, mut rest) = match part.find('[') {
            Some(at) => part.split_at(at),
            None => (part, ""),
        };
        if key.is_empty() {
            return Err(wrong());
        }
        steps.push(Step::Key(key.to_owned()));
        while let Some(inner) = rest.strip_prefix('[') {
            let (place, after) = inner.split_once(']').ok_or_else(wrong)?;
            steps.push(Step::Place(place.parse().map_err(|_| wrong())?));
            rest = after;
        }
        if !rest.is_empty() {
            return Err(wrong());
        }
    }
    Ok(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "name = \"a\" # kept\n\n[host]\nmtu = \"1024B\"\n\n[[workload]]\nkind = \"incast\"\nbytes = \"1MB\"\n";

    #[test]
    fn a_value_takes_the_place_of_the_one_before() {
        let text = set(TEXT, "host.mtu", "4096B").unwrap();
        assert!(text.contains("mtu = \"4096B\""), "{text}");
        assert!(text.contains("# kept"), "{text}");
        let text = set(TEXT, "workload[0].bytes", "2MB").unwrap();
        assert!(
            text.contains("bytes = \"2MB\"") && !text.contains("1MB"),
            "{text}"
        );
    }

    #[test]
    fn tables_are_made_where_there_are_none() {
        let text = set(TEXT, "host.congestion_control.kind", "none").unwrap();
        let text = set(&text, "switch.lossless", "[3, 4]").unwrap();
        let text = set(&text, "fabric.kind", "tcp").unwrap();
        let table: toml::Table = text.parse().unwrap();
        assert_eq!(
            table["host"]["congestion_control"]["kind"].as_str(),
            Some("none")
        );
        assert_eq!(
            table["switch"]["lossless"].as_array().map(Vec::len),
            Some(2)
        );
        assert_eq!(table["fabric"]["kind"].as_str(), Some("tcp"));
    }

    #[test]
    fn paths_that_lead_nowhere_are_named() {
        for (path, word) in [
            ("workload[1].bytes", "entry 1"),
            ("name.mtu", "no table"),
            ("host..mtu", "no path"),
            ("workload[x].bytes", "no path"),
            ("workload.bytes", "no table"),
        ] {
            let error = set(TEXT, path, "1").unwrap_err().to_string();
            assert!(error.contains(word), "{path}: {error}");
        }
    }
}
