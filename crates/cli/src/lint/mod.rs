//! `softfabric lint`: settings that do not fit together.

pub(crate) mod arguments;

use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use serde::Serialize;
use softfabric_fabric::headroom::HeadroomProfile;
use softfabric_fabric::preset::{self, HeadroomSource};
use softfabric_lint::{Fabric, Finding, Severity};
use softfabric_operations::recording::Skipped;

use self::arguments::{DeviceFile, LintArguments};
use crate::diagnose;
use crate::failure::{self, Failure};
use crate::terminal::{self, BAD, DOUBTFUL, Stream};

/// What `--json` prints.
#[derive(Serialize)]
struct Document<'a> {
    findings: &'a [Finding],
    /// Lines of cables that were left out.
    skipped: &'a [String],
}

/// Reads all files and says what does not fit.
///
/// # Errors
/// If a file cannot be read, or is of no kind that is known.
pub(crate) fn run(arguments: &LintArguments) -> Result<ExitCode, Failure> {
    let platform = arguments.platform.as_deref().map(platform).transpose()?;
    let mut fabric = Fabric::new(platform);
    for file in &arguments.files {
        add(&mut fabric, file)?;
    }
    let mut skipped = Skipped::default();
    let (lists, tables) = (&arguments.cables, &arguments.lldp);
    let cables = diagnose::read_cables(lists, tables, &fabric.ports(), &mut skipped)?;
    fabric.cables.extend(cables);
    let findings = fabric.check();
    let errors = findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error);
    let errors = errors.count();
    if arguments.json {
        let document = Document {
            findings: &findings,
            skipped: &skipped.first,
        };
        terminal::print_json(&document)?;
    } else {
        for reason in &skipped.first {
            terminal::warn(reason);
        }
        terminal::print(&render(&findings, errors))?;
    }
    Ok(match errors {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(failure::FINDING),
    })
}

fn platform(name: &str) -> Result<HeadroomProfile, Failure> {
    let of_preset = preset::switch(name).and_then(|preset| match preset.headroom.value {
        HeadroomSource::Formula(profile) => Some(profile),
        _ => None,
    });
    of_preset
        .or_else(|| HeadroomProfile::by_name(name))
        .ok_or_else(|| {
            let profiles = HeadroomProfile::NAMES.iter().map(|(name, _)| *name);
            let presets = preset::switch_names().filter(|&name| {
                preset::switch(name).is_some_and(|preset| {
                    matches!(preset.headroom.value, HeadroomSource::Formula(_))
                })
            });
            let known: Vec<&str> = presets.chain(profiles).collect();
            Failure::Arguments {
                problem: format!("no formula of headrooms is known for the platform `{name}`"),
                help: Some(format!("Known are: {}", known.join(", "))),
            }
        })
}

/// Adds a file by its kind.
fn add(fabric: &mut Fabric, DeviceFile { device, file }: &DeviceFile) -> Result<(), Failure> {
    let shown = file.display().to_string();
    let needs_device = || {
        device.as_deref().ok_or_else(|| Failure::Arguments {
            problem: format!("{shown} does not say of which host's port it is"),
            help: Some(format!("Say so before it: HOST:INTERFACE={shown}")),
        })
    };
    if file.is_dir() {
        return add_ecn(fabric, needs_device()?, file);
    }
    let text = fs::read_to_string(file).map_err(|error| Failure::unreadable(file, error))?;
    if file.extension().is_some_and(|extension| extension == "ini") {
        fabric.add_headroom_table(device.as_deref().unwrap_or(&shown), &shown, &text);
    } else if text.trim_start().starts_with('{') {
        fabric.add_sonic(device.as_deref(), &shown, &text);
    } else if text.contains("Priority trust state") || text.contains("PFC configuration") {
        fabric.add_mlnx_qos(needs_device()?, &shown, &text);
    } else {
        return Err(Failure::WrongKind {
            path: file.clone(),
            problem: "this is none of the files that can be checked".to_owned(),
            help: "These are SONiC's JSON, pg_profile_lookup.ini, what mlnx_qos -i prints, and folders \
                   /sys/class/net/INTERFACE/ecn."
                .to_owned(),
        });
    }
    Ok(())
}

/// Adds the files of a folder `ecn`: two roles, each with settings, some of them by priority.
fn add_ecn(fabric: &mut Fabric, device: &str, folder: &Path) -> Result<(), Failure> {
    let mut found = false;
    for role in ["roce_np", "roce_rp"] {
        let mut folders = vec![folder.join(role)];
        while let Some(inner) = folders.pop() {
            let Ok(entries) = fs::read_dir(&inner) else {
                continue;
            };
            let entries: io::Result<Vec<_>> = entries.collect();
            let mut entries = entries.map_err(|error| Failure::unreadable(&inner, error))?;
            entries.sort_by_key(fs::DirEntry::file_name);
            for entry in entries {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let below = path.strip_prefix(folder).unwrap_or(&path);
                // Some files can only be written.
                if let Ok(text) = fs::read_to_string(&path) {
                    found = true;
                    let shown = path.display().to_string();
                    fabric.add_ecn_setting(device, &shown, &below.display().to_string(), &text);
                }
            }
        }
    }
    if found {
        return Ok(());
    }
    Err(Failure::WrongKind {
        path: folder.to_owned(),
        problem: "there is neither roce_np nor roce_rp in this folder".to_owned(),
        help: "Of a NIC of NVIDIA's it is /sys/class/net/INTERFACE/ecn.".to_owned(),
    })
}

fn render(findings: &[Finding], errors: usize) -> String {
    let mut text = String::new();
    let width = Stream::Output.width();
    for finding in findings {
        let style = match finding.severity {
            Severity::Error => BAD,
            Severity::Warning => DOUBTFUL,
        };
        for (number, line) in finding.to_string().lines().enumerate() {
            match number {
                0 => text.push_str(&format!("{style}{line}{style:#}\n")),
                _ => text.push_str(&format!(
                    "  {}\n",
                    crate::summary::wrap(line.trim_start(), width, 4)
                )),
            }
        }
        text.push('\n');
    }
    text.push_str(&match (findings.len(), errors) {
        (0, _) => "nothing found\n".to_owned(),
        (all, errors) => format!("{errors} errors, {} warnings\n", all - errors),
    });
    text
}
