//! Which crate may depend on which: the arrows of `docs/architecture.md`, checked against `cargo metadata`.
//!
//! ```text
//! units ◄─ telemetry ◄─┬─ transport ◄─┬─ fabric ◄──┐
//!   ▲──── wire ◄───────┘              └─ adapter ◄─┼─ cli
//!          ▲── subnet ◄─┬────── fabric     ▲       │
//!                       └─ umad          verbs   operations
//! ```
//!
//! `fabric` and `adapter` never see each other. `lint` stands between `fabric` and `cli`.

use anyhow::{Context, Result};
use cargo_metadata::{DependencyKind, MetadataCommand};

use crate::process::workspace_root;

const PREFIX: &str = "softfabric-";

/// A crate, without the common prefix, and what it may import.
const ALLOWED: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("telemetry", &["units"]),
    ("wire", &["units"]),
    ("transport", &["units", "telemetry", "wire"]),
    ("subnet", &["units", "wire"]),
    (
        "fabric",
        &["units", "telemetry", "wire", "transport", "subnet"],
    ),
    ("adapter", &["units", "telemetry", "wire", "transport"]),
    (
        "verbs",
        &["units", "telemetry", "wire", "transport", "adapter", "cabi"],
    ),
    ("cabi", &[]),
    ("umad", &["units", "wire", "subnet", "cabi"]),
    ("operations", &["units", "telemetry"]),
    ("store", &["units", "telemetry", "operations"]),
    (
        "lint",
        &[
            "units",
            "telemetry",
            "wire",
            "transport",
            "subnet",
            "fabric",
        ],
    ),
    (
        "softfabric",
        &[
            "units",
            "telemetry",
            "wire",
            "transport",
            "subnet",
            "fabric",
            "adapter",
            "operations",
            "store",
            "lint",
        ],
    ),
    ("testkit", &["units", "telemetry", "wire", "transport"]),
    ("xtask", &[]),
];

/// Only tests import it.
const FOR_TESTS: &str = "testkit";

/// `importer` depends on `imported`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Edge {
    importer: String,
    imported: String,
    for_tests: bool,
}

/// Reads the workspace and prints each forbidden edge; says whether there is none.
pub(crate) fn run() -> Result<bool> {
    let (crates, edges) = read()?;
    let complaints = judge(&crates, &edges);
    for complaint in &complaints {
        println!("{complaint}");
    }
    if complaints.is_empty() {
        println!(
            "{} crates, {} edges, all allowed",
            crates.len(),
            edges.len()
        );
    }
    Ok(complaints.is_empty())
}

fn read() -> Result<(Vec<String>, Vec<Edge>)> {
    let metadata = MetadataCommand::new()
        .manifest_path(workspace_root().join("Cargo.toml"))
        .no_deps()
        .exec()
        .context("cargo metadata")?;
    let short = |name: &str| name.strip_prefix(PREFIX).unwrap_or(name).to_owned();
    let crates: Vec<String> = metadata
        .packages
        .iter()
        .map(|package| short(package.name.as_str()))
        .collect();
    let mut edges = Vec::new();
    for package in &metadata.packages {
        for dependency in &package.dependencies {
            let imported = short(&dependency.name);
            if dependency.path.is_some() && crates.contains(&imported) {
                edges.push(Edge {
                    importer: short(package.name.as_str()),
                    imported,
                    for_tests: dependency.kind == DependencyKind::Development,
                });
            }
        }
    }
    Ok((crates, edges))
}

/// What is wrong, one sentence each.
fn judge(crates: &[String], edges: &[Edge]) -> Vec<String> {
    let mut complaints = Vec::new();
    let allowed = |name: &str| ALLOWED.iter().find(|(known, _)| *known == name);
    for name in crates {
        if allowed(name).is_none() {
            complaints.push(format!(
                "crate `{name}` is not in the table: say in xtask/src/dependencies.rs what it may import"
            ));
        }
    }
    for edge in edges {
        let Some((_, may_import)) = allowed(&edge.importer) else {
            continue;
        };
        let fine = if edge.imported == FOR_TESTS {
            edge.for_tests
        } else {
            may_import.contains(&edge.imported.as_str())
        };
        if !fine {
            complaints.push(format!(
                "`{}` must not depend on `{}`{} (it may import: {})",
                edge.importer,
                edge.imported,
                if edge.imported == FOR_TESTS {
                    " outside tests"
                } else {
                    ""
                },
                if may_import.is_empty() {
                    "nothing of ours".to_owned()
                } else {
                    may_import.join(", ")
                }
            ));
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(importer: &str, imported: &str, for_tests: bool) -> Edge {
        Edge {
            importer: importer.to_owned(),
            imported: imported.to_owned(),
            for_tests,
        }
    }

    #[test]
    fn the_workspace_is_as_drawn() {
        let (crates, edges) = read().unwrap();
        assert!(
            edges.contains(&edge("fabric", "transport", false)),
            "the reader sees no edges: {edges:?}"
        );
        assert_eq!(judge(&crates, &edges), Vec::<String>::new());
    }

    #[test]
    fn forbidden_edges_are_named() {
        for (importer, imported) in [
            ("units", "telemetry"),
            ("wire", "telemetry"),
            ("subnet", "fabric"),
            ("subnet", "transport"),
            ("transport", "fabric"),
            ("fabric", "adapter"),
            ("adapter", "fabric"),
            ("operations", "fabric"),
            ("softfabric", "verbs"),
        ] {
            for for_tests in [false, true] {
                let complaints = judge(&[], &[edge(importer, imported, for_tests)]);
                assert_eq!(complaints.len(), 1, "{importer} → {imported}");
                assert!(complaints[0].contains(importer) && complaints[0].contains(imported));
            }
        }
        assert!(judge(&[], &[edge("fabric", "transport", false)]).is_empty());
    }

    #[test]
    fn the_testkit_is_for_tests() {
        assert!(judge(&[], &[edge("transport", "testkit", true)]).is_empty());
        assert_eq!(judge(&[], &[edge("transport", "testkit", false)]).len(), 1);
    }

    #[test]
    fn a_new_crate_needs_a_row() {
        let complaints = judge(&["teleport".to_owned()], &[]);
        assert!(complaints[0].contains("teleport"), "{complaints:?}");
    }
}
