use super::*;

#[test]
fn the_smallest_scenario() {
    let text = "[topology]\nkind = \"star\"\nhosts = 3\n[[workload]]\nkind = \"incast\"\nbytes = \"1MB\"\n";
    let scenario = Scenario::from_toml(text, "a/small.toml").unwrap_or_else(|e| panic!("{e}"));
    let plan = scenario.plan().unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(plan.name, "small");
    assert_eq!(plan.flows.len(), 2);
    assert_eq!(plan.check(), []);
}
