//! The text of a scenario file: sections as tables, long lists with a line for each entry.

use std::fmt::Write;

use toml::{Table, Value};

use crate::scenario::Scenario;

pub(in crate::scenario) fn toml(scenario: &Scenario) -> String {
    let table = Table::try_from(scenario).expect("a scenario is made of tables, lists and texts");
    let mut text = String::new();
    section("", &table, &mut text);
    text
}

/// One table of a file, with its path.
pub(in crate::scenario) fn table(path: &str, value: &impl serde::Serialize) -> String {
    let table = Table::try_from(value).expect("settings are made of tables, lists and texts");
    let mut text = format!("[{path}]\n");
    section(path, &table, &mut text);
    text
}

/// Values first, then tables below, so that every value belongs to the header above it.
fn section(path: &str, table: &Table, text: &mut String) {
    for (key, value) in table {
        match value {
            Value::Table(_) => {}
            Value::Array(items) if is_list_of_tables(items) => {
                if !path.is_empty() {
                    let _ = writeln!(text, "{} = [", key_text(key));
                    for item in items {
                        let _ = writeln!(text, "    {item},");
                    }
                    text.push_str("]\n");
                }
            }
            value => {
                let _ = writeln!(text, "{} = {value}", key_text(key));
            }
        }
    }
    for (key, value) in table {
        let below = if path.is_empty() {
            key_text(key)
        } else {
            format!("{path}.{}", key_text(key))
        };
        match value {
            Value::Table(table) => {
                let _ = writeln!(text, "\n[{below}]");
                section(&below, table, text);
            }
            Value::Array(items) if is_list_of_tables(items) && path.is_empty() => {
                for item in items {
                    let _ = writeln!(text, "\n[[{below}]]");
                    if let Value::Table(table) = item {
                        section(&below, table, text);
                    }
                }
            }
            _ => {}
        }
    }
}

fn is_list_of_tables(items: &[Value]) -> bool {
    items.first().is_some_and(Value::is_table)
}

fn key_text(key: &str) -> String {
    let is_bare = !key.is_empty()
        && (key.bytes()).all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    if is_bare {
        key.to_owned()
    } else {
        Value::String(key.to_owned()).to_string()
    }
}
