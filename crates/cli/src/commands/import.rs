//! `softfabric import`: another program's files become a scenario.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use softfabric_fabric::headroom::CableLength;
use softfabric_fabric::import::htsim::{HtsimOptions, StartUnit};
use softfabric_fabric::import::sonic::SonicFiles;
use softfabric_fabric::import::{hpcc, htsim, simai, sonic};
use softfabric_fabric::plan::Plan;
use softfabric_fabric::scenario::Scenario;
use softfabric_units::Rate;

use crate::arguments::{ImportArguments, ImportKind, StartUnitName};
use crate::failure::Failure;
use crate::terminal;

/// A plan, and what to tell before it is used.
type Imported = (Plan, Vec<String>);

/// What SONiC's files do not say, where the command line does not either.
const PORT_RATE: Rate = Rate::gbps(100);
const CABLE: CableLength = CableLength::metres(40);
const HOSTS: u32 = 8;

/// Reads the files and writes the scenario.
///
/// # Errors
/// If a file is wrong, or says what no scenario can say.
pub(crate) fn import(arguments: &ImportArguments) -> Result<ExitCode, Failure> {
    refuse_options_of_other_kinds(arguments)?;
    let (plan, notes) = match arguments.kind {
        ImportKind::Hpcc => import_hpcc(arguments)?,
        ImportKind::Htsim => import_htsim(arguments)?,
        ImportKind::Simai => import_simai(arguments)?,
        ImportKind::Sonic => import_sonic(arguments)?,
    };
    for note in &notes {
        terminal::warn(note);
    }
    if plan.flows.is_empty() {
        terminal::warn("the files have no traffic: add a [[workload]] to the scenario");
    }
    let scenario = Scenario::from_plan(&plan).map_err(|problem| Failure::Arguments {
        problem: format!("no scenario can say what these files say: {problem}"),
        help: None,
    })?;
    crate::run::write_text(&arguments.output, &scenario.to_toml())?;
    Ok(ExitCode::SUCCESS)
}

fn import_hpcc(arguments: &ImportArguments) -> Result<Imported, Failure> {
    let config = only_file(
        arguments,
        "a config file, which names the topology and the flows",
    )?;
    let run = hpcc::load_config(config)?;
    Ok((run.plan, run.notes))
}

fn import_htsim(arguments: &ImportArguments) -> Result<Imported, Failure> {
    let has_extension = |extension: &'static str| {
        move |path: &&PathBuf| path.extension().is_some_and(|found| found == extension)
    };
    let matrices: Vec<&PathBuf> = arguments.files.iter().filter(has_extension("cm")).collect();
    let topologies: Vec<&PathBuf> = arguments
        .files
        .iter()
        .filter(has_extension("topo"))
        .collect();
    let known = matrices.len() + topologies.len();
    let ([matrix], [] | [_], true) = (
        matrices.as_slice(),
        topologies.as_slice(),
        known == arguments.files.len(),
    ) else {
        return Err(wrong_files(
            arguments,
            "one connection matrix (.cm), and at most one topology (.topo)",
        ));
    };
    let mut options = HtsimOptions::default();
    options.rate = arguments.rate.unwrap_or(options.rate);
    options.delay = arguments.delay.unwrap_or(options.delay);
    if arguments.start_unit == Some(StartUnitName::Us) {
        options.start = StartUnit::Microseconds;
    }
    let topology = topologies.first().map(|path| path.as_path());
    let run = htsim::load(matrix, topology, options)?;
    Ok((run.plan, run.notes))
}

fn import_simai(arguments: &ImportArguments) -> Result<Imported, Failure> {
    let topology = only_file(arguments, "a topology")?;
    Ok((simai::load(topology)?, Vec::new()))
}

fn import_sonic(arguments: &ImportArguments) -> Result<Imported, Failure> {
    let mut files = SonicFiles {
        headroom: None,
        buffers: None,
        qos: None,
        port: arguments.port.as_deref(),
        speed: arguments.rate.unwrap_or(PORT_RATE),
        cable: arguments.cable.unwrap_or(CABLE),
    };
    for path in &arguments.files {
        let kind = sonic_kind(path)?;
        let places = [
            (kind.headroom, &mut files.headroom),
            (kind.buffers, &mut files.buffers),
            (kind.qos, &mut files.qos),
        ];
        for (wanted, place) in places {
            if wanted && place.replace(path).is_some() {
                return Err(wrong_files(arguments, "each kind of file once"));
            }
        }
    }
    let name = arguments.files[0]
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy();
    Ok(sonic::load_plan(
        &files,
        &name,
        arguments.hosts.unwrap_or(HOSTS),
    )?)
}

/// What a file of SONiC has; a whole `config_db.json` has buffers and QoS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct SonicKind {
    headroom: bool,
    buffers: bool,
    qos: bool,
}

fn sonic_kind(path: &Path) -> Result<SonicKind, Failure> {
    let text = fs::read_to_string(path).map_err(|error| Failure::unreadable(path, error))?;
    let kind = sonic_kind_of(path, &text);
    if kind == SonicKind::default() {
        return Err(Failure::WrongKind {
            path: path.to_owned(),
            problem: "this is no file of SONiC that I know".to_owned(),
            help: "Known are pg_profile_lookup.ini, and buffers.json, qos.json or config_db.json (tables BUFFER_… and \
                   …_QOS_MAP, DSCP_TO_TC_MAP, WRED_PROFILE)."
                .to_owned(),
        });
    }
    Ok(kind)
}

fn sonic_kind_of(path: &Path, text: &str) -> SonicKind {
    if path.extension().is_some_and(|extension| extension == "ini") {
        return SonicKind {
            headroom: true,
            ..SonicKind::default()
        };
    }
    let has = |tables: &[&str]| tables.iter().any(|table| text.contains(table));
    SonicKind {
        headroom: false,
        buffers: has(&["\"BUFFER_POOL", "\"BUFFER_PROFILE", "\"BUFFER_PG"]),
        qos: has(&["\"PORT_QOS_MAP", "\"DSCP_TO_TC_MAP", "\"WRED_PROFILE"]),
    }
}

fn only_file<'a>(arguments: &'a ImportArguments, what: &str) -> Result<&'a Path, Failure> {
    match arguments.files.as_slice() {
        [file] => Ok(file),
        _ => Err(wrong_files(arguments, &format!("one file: {what}"))),
    }
}

fn wrong_files(arguments: &ImportArguments, needed: &str) -> Failure {
    let files: Vec<String> = arguments
        .files
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    Failure::Arguments {
        problem: format!(
            "found {}; {} needs {needed}",
            files.join(", "),
            kind_name(arguments.kind)
        ),
        help: None,
    }
}

/// A setting without effect would be a silent mistake.
fn refuse_options_of_other_kinds(arguments: &ImportArguments) -> Result<(), Failure> {
    use ImportKind::{Htsim, Sonic};
    let options: [(&str, bool, &[ImportKind]); 6] = [
        ("--rate", arguments.rate.is_some(), &[Htsim, Sonic]),
        ("--delay", arguments.delay.is_some(), &[Htsim]),
        ("--start-unit", arguments.start_unit.is_some(), &[Htsim]),
        ("--cable", arguments.cable.is_some(), &[Sonic]),
        ("--port", arguments.port.is_some(), &[Sonic]),
        ("--hosts", arguments.hosts.is_some(), &[Sonic]),
    ];
    for (option, given, kinds) in options {
        if given && !kinds.contains(&arguments.kind) {
            let kinds: Vec<&str> = kinds.iter().map(|kind| kind_name(*kind)).collect();
            return Err(Failure::Arguments {
                problem: format!(
                    "{option} has no effect on files of {}",
                    kind_name(arguments.kind)
                ),
                help: Some(format!("It is for {}.", kinds.join(" and "))),
            });
        }
    }
    Ok(())
}

fn kind_name(kind: ImportKind) -> &'static str {
    match kind {
        ImportKind::Hpcc => "hpcc",
        ImportKind::Htsim => "htsim",
        ImportKind::Simai => "simai",
        ImportKind::Sonic => "sonic",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_sonic_are_told_apart() {
        let kind = |name: &str, text: &str| sonic_kind_of(Path::new(name), text);
        assert!(kind("pg_profile_lookup.ini", "").headroom);
        let whole = kind("config_db.json", r#"{"BUFFER_PG": {}, "PORT_QOS_MAP": {}}"#);
        assert!(whole.buffers && whole.qos && !whole.headroom);
        assert_eq!(kind("x.json", "{}"), SonicKind::default());
    }
}
