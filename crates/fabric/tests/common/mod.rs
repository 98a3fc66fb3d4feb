//! What tests of scenarios share: the scenario files of the repository, and runs whose books are right.

use std::path::Path;

use softfabric_fabric::engine::{RunOptions, run};
use softfabric_fabric::plan::Plan;
use softfabric_fabric::results::Results;
use softfabric_fabric::scenario::Scenario;

/// The plan of a scenario of the repository.
pub(crate) fn scenario(name: &str) -> Plan {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../scenarios/{name}.toml"));
    let text = std::fs::read_to_string(&file).expect("the scenario is in the repository");
    // Files that it names are beside it.
    let scenario = Scenario::from_toml(&text, &file.display().to_string())
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    scenario
        .plan()
        .unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// What becomes of a plan.
pub(crate) fn simulate(plan: &Plan) -> Results {
    let results = run(plan, &mut RunOptions::default()).expect("the plan makes sense");
    assert_eq!(
        results.conservation.violations,
        Vec::<String>::new(),
        "{}",
        plan.name
    );
    results
}
