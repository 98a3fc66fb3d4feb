mod documentation;
mod errors;
mod meaning;
mod round_trip;
mod tcp;

use super::*;

fn plan(text: &str) -> Plan {
    let scenario = Scenario::from_toml(text, "test.toml").unwrap_or_else(|error| panic!("{error}"));
    scenario.plan().unwrap_or_else(|error| panic!("{error}"))
}

/// A star with a switch and a flow, to which tests add what they are about.
const STAR: &str = "[topology]\nkind = \"star\"\nhosts = 4\n";
