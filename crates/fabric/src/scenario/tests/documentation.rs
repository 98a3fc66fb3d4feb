//! The schema documents every field, and the reference shows all of it.

use serde_json::Value as Json;

use super::*;

/// Calls `see` with each field of each table of the schema.
fn fields<'s>(schema: &'s Json, place: &str, see: &mut impl FnMut(&str, &'s str, &'s Json)) {
    if let Some(properties) = schema.get("properties").and_then(Json::as_object) {
        for (name, field) in properties {
            see(place, name, field);
        }
    }
    let below = schema.as_object().into_iter().flatten();
    let below = below.chain(
        schema
            .as_array()
            .into_iter()
            .flatten()
            .map(|item| (&EMPTY, item)),
    );
    for (name, child) in below {
        fields(child, &format!("{place}/{name}"), see);
    }
}

static EMPTY: String = String::new();

#[test]
fn every_field_is_documented() {
    let schema = schema();
    let reference = reference_markdown();
    let mut count = 0;
    fields(&schema, "", &mut |place, name, field| {
        if name == "kind" && field.get("const").is_some() {
            return;
        }
        count += 1;
        let text = field
            .get("description")
            .and_then(Json::as_str)
            .unwrap_or("");
        assert!(text.len() > 3, "{place}: `{name}` is not documented");
        assert!(
            reference.contains(&format!("| `{name}` |")),
            "{place}: `{name}` is not in the reference"
        );
    });
    assert!(count > 150, "{count}");
}

#[test]
fn the_reference_reads_well() {
    let reference = reference_markdown();
    for part in [
        "## `[topology]`\n",
        "### `[topology]` with `kind = \"fat_tree\"`\n",
        "| `k` | a whole number from 2 to 256 | Ports of a switch: an even number. **Needed.** |\n",
        "### `[switch.class.N]`\n",
        "The fields are those of `[switch]`.\n",
        "`go_back_n`: All packets from the lost one on are sent again.",
    ] {
        assert!(reference.contains(part), "{part}");
    }
    assert!(!reference.contains("\n\n\n"));
}
