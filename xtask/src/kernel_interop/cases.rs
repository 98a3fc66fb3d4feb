//! The cases: what is tried, over which addresses, in which direction.

use std::fmt;
use std::time::Duration;

use super::guest::Place;

/// Which addresses the traffic has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Family {
    V4,
    V6,
}

/// What is done in a case.
#[derive(Clone, Debug)]
pub(super) enum Work {
    /// A case of `traffic.py`, with options of its own.
    Traffic {
        script: &'static str,
        options: &'static str,
    },
    /// A server and a client of Debian's packages. `{server}` stands for the server's address, `{device}` for the device
    /// and its GID.
    Programs {
        server: String,
        client: String,
        /// Whether the server waits for the next client.
        stays: bool,
    },
}

/// One row of the table.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) work: Work,
    pub(super) families: &'static [Family],
    /// Of the network: 1500 makes an RDMA MTU of 1024, 9000 one of 4096.
    pub(super) mtu: u32,
    /// What packets of softfabric's meet, see `softfabric exec --faults`.
    pub(super) faults: &'static [&'static str],
    pub(super) limit: Duration,
    /// Only `--full` runs it.
    pub(super) full_only: bool,
    /// What both ends say when all went well, where their exit status does not tell: the threads of `rping` race at its end.
    pub(super) says: Option<&'static str>,
    /// With `-R`, a server of perftest says that it is ready a moment before it listens, and a client that is refused
    /// crashes in its clean-up: such a pair is started again.
    pub(super) races: bool,
    /// What shows that a known fault of the kernel's own has struck: such a case is tried more often.
    pub(super) kernel_fault: &'static [&'static str],
    /// Whether the kernel may say that it cannot do this at all.
    pub(super) may_lack: bool,
}

/// A case, with one direction and one family of addresses.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) case: Case,
    pub(super) family: Family,
    /// Who is requester or client.
    pub(super) active: Place,
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let family = match self.family {
            Family::V4 => "IPv4",
            Family::V6 => "IPv6",
        };
        let direction = format!("{} → {}", self.active.name(), self.active.other().name());
        let name = &self.case.name;
        write!(f, "{name:<32} {family}  {direction:<24}")
    }
}

/// All that is to be run, in its order.
pub(super) fn runs(full: bool, names: &[String]) -> Vec<Run> {
    let cases = table().into_iter();
    let wanted = cases.filter(|case| {
        // Who names a case wants it.
        let named = names.iter().any(|name| case.name.contains(name.as_str()));
        named || (names.is_empty() && (full || !case.full_only))
    });
    let mut runs = Vec::new();
    for case in wanted {
        for family in case.families {
            for active in [Place::Host, Place::Guest] {
                runs.push(Run {
                    case: case.clone(),
                    family: *family,
                    active,
                });
            }
        }
    }
    // The network's MTU changes once.
    runs.sort_by_key(|run| run.case.mtu);
    runs
}

const BOTH: &[Family] = &[Family::V4, Family::V6];
const V4: &[Family] = &[Family::V4];

impl Case {
    fn new(name: impl Into<String>, work: Work) -> Self {
        Self {
            name: name.into(),
            work,
            families: V4,
            mtu: 1500,
            faults: &[],
            limit: Duration::from_secs(45),
            full_only: false,
            says: None,
            races: false,
            kernel_fault: &[],
            may_lack: false,
        }
    }

    /// How often the case may be started, once an attempt has `found` this. An emulated guest on a busy machine is late now and
    /// then, and programs give up: those get a second attempt. A fault of the kernel's own may strike several times in a row.
    /// Traffic of our own waits as long as it must, and gets one.
    pub(super) fn attempts(&self, found: &str) -> usize {
        // What both ends said is one text, the client's first.
        let (_, kernel) = found.split_once("the kernel:").unwrap_or_default();
        let (kernel, _) = kernel
            .split_once("server, softfabric:")
            .unwrap_or((kernel, ""));
        match &self.work {
            Work::Traffic { .. } => 1,
            Work::Programs { .. } if self.kernel_fault.iter().any(|text| kernel.contains(text)) => {
                8
            }
            Work::Programs { .. } => 2,
        }
    }

    fn traffic(script: &'static str) -> Self {
        let options = "";
        Self::new(script, Work::Traffic { script, options })
    }

    /// The same script with options, under another name.
    fn named(name: &'static str, script: &'static str, options: &'static str) -> Self {
        Self::new(name, Work::Traffic { script, options })
    }

    /// A server that ends with its client. The client is told the server's address.
    fn programs(name: &str, server: &str, client: &str) -> Self {
        let work = Work::Programs {
            server: server.to_owned(),
            client: client.to_owned(),
            stays: false,
        };
        Self::new(name, work)
    }

    /// A server that waits for the next client.
    fn stays(mut self) -> Self {
        if let Work::Programs { stays, .. } = &mut self.work {
            *stays = true;
        }
        self
    }

    const fn over_both(mut self) -> Self {
        self.families = BOTH;
        self
    }

    const fn with_mtu(mut self, mtu: u32) -> Self {
        self.mtu = mtu;
        self
    }

    const fn with_faults(mut self, faults: &'static [&'static str]) -> Self {
        self.faults = faults;
        self
    }

    const fn full_only(mut self) -> Self {
        self.full_only = true;
        self
    }

    const fn may_lack(mut self) -> Self {
        self.may_lack = true;
        self
    }
}

fn table() -> Vec<Case> {
    let mut table = operations();
    table.extend(reliability());
    table.extend(connections());
    table.extend(perftest());
    table
}

/// Each operation of each transport, of all sizes from none to several packets.
fn operations() -> Vec<Case> {
    let scripts = [
        "rc-send",
        "rc-send-imm",
        "rc-write",
        "rc-write-imm",
        "rc-read",
        "rc-atomic",
        "rc-send-invalidate",
        "uc-send",
        "uc-send-imm",
        "uc-write",
        "uc-write-imm",
        "ud-send",
        "ud-send-imm",
    ];
    let mut table: Vec<Case> = scripts
        .iter()
        .map(|script| Case::traffic(script).over_both())
        .collect();
    table.extend(
        [
            "rc-srq",
            "rc-solicited",
            "rc-window-1",
            "rc-window-2",
            "rc-local-invalidate",
        ]
        .map(Case::traffic),
    );
    table.push(Case::traffic("xrc").may_lack());
    table.extend([
        Case::named("mtu 256, rc-mixed", "rc-mixed", "mtu=256"),
        Case::named("mtu 4096, rc-mixed", "rc-mixed", "mtu=4096")
            .with_mtu(9000)
            .over_both(),
        Case::named("mtu 4096, rc-send", "rc-send", "mtu=4096").with_mtu(9000),
        Case::named("mtu 4096, rc-read", "rc-read", "mtu=4096").with_mtu(9000),
        Case::named("mtu 4096, ud-send", "ud-send", "mtu=4096").with_mtu(9000),
        Case::named("mtu 512, rc-mixed", "rc-mixed", "mtu=512").full_only(),
        Case::named("mtu 2048, rc-mixed", "rc-mixed", "mtu=2048")
            .with_mtu(9000)
            .full_only(),
    ]);
    table
}

/// Refusals, waiting, losses.
fn reliability() -> Vec<Case> {
    let mixed = |name, faults| Case::named(name, "rc-mixed", "").with_faults(faults);
    let mut table: Vec<Case> = ["rc-psn-wrap", "rc-not-ready", "rc-refused", "rc-gone"]
        .map(Case::traffic)
        .into();
    table.extend([
        Case::traffic("rc-mixed").over_both(),
        mixed("loss 3 %, rc-mixed", &["drop:p=3%", "drop:p=3%:at=receive"]).over_both(),
        mixed(
            "corruption 3 %, rc-mixed",
            &["corrupt:p=3%", "corrupt:p=3%:at=receive"],
        )
        .over_both(),
        mixed(
            "duplicates 10 %, rc-mixed",
            &["duplicate:p=10%", "duplicate:p=10%:at=receive"],
        ),
        mixed(
            "reordering 5 %, rc-mixed",
            &["reorder:p=5%", "reorder:p=5%:at=receive"],
        ),
        mixed(
            "lost acknowledgements, rc-mixed",
            &["drop:p=30%:opcode=RC_ACKNOWLEDGE"],
        ),
        mixed(
            "loss 10 %, rc-mixed",
            &["drop:p=10%", "drop:p=10%:at=receive"],
        )
        .full_only(),
        Case::named("long, rc-mixed", "rc-mixed", "count=200").full_only(),
    ]);
    table
}

/// Connection management. `udpong` is not among them: it does not run between two kernels either.
fn connections() -> Vec<Case> {
    let same = |name: &str, program: &str, options: &str| {
        let server = format!("{program} {options}");
        Case::programs(name, &server, &format!("{server} -s {{server}}"))
    };
    let bound = |program: &str, options: &str| {
        let server = format!("{program} {options} -b {{server}}");
        Case::programs(
            program,
            &server,
            &format!("{program} {options} -s {{server}}"),
        )
    };
    let rping = |mode: &str| format!("rping {mode} -a {{server}} -C 10 -S 1000 -v -V");
    vec![
        Case {
            says: Some("rdma-ping-9"),
            ..Case::programs("rping", &rping("-s"), &rping("-c")).over_both()
        },
        bound("ucmatose", "-c 4 -C 10 -S 500").over_both(),
        bound("udaddy", "-c 3 -C 10 -S 500").over_both(),
        Case::programs(
            "rdma_server, rdma_client",
            "rdma_server",
            "rdma_client -s {server}",
        ),
        same("cmtime", "cmtime", "-c 20").stays(),
        same("rstream", "rstream", "-S 4096 -C 20"),
        same("rstream, long", "rstream", "-S 1000000 -C 5"),
        same("riostream", "riostream", "-S 65536 -C 10"),
    ]
}

/// Small runs of perftest, joined over TCP and by connection management.
fn perftest() -> Vec<Case> {
    let small = |options: &str, program: &str, more: &str| {
        let server = format!("{program} {options} -F -n 20 {more}");
        let joined = options == "-R";
        let words = [program, more, if joined { options } else { "" }];
        let words = words.into_iter().filter(|word| !word.is_empty());
        let name = words.collect::<Vec<_>>().join(" ");
        let client = format!("{} {{server}}", server.trim());
        Case {
            races: joined,
            // Each of these may have to be started many times: two stand for all.
            full_only: joined && !["ib_send_bw", "ib_write_lat"].contains(&program),
            ..Case::programs(&name, server.trim(), &client)
        }
    };
    let programs = ["send", "write", "read", "atomic"]
        .into_iter()
        .flat_map(|what| [format!("ib_{what}_bw"), format!("ib_{what}_lat")]);
    let mut table: Vec<Case> = programs
        .flat_map(|program| ["{device}", "-R"].map(|options| small(options, &program, "")))
        .collect();
    table.extend([
        small("{device}", "ib_send_bw", "-c UC -s 2048"),
        small("{device}", "ib_send_lat", "-c UD"),
        Case {
            // A packet too many from the kernel's requester (docs/compatibility.md): NAK, or no answer to what comes after.
            kernel_fault: &["Failed status 9", "Failed status 12"],
            ..small("{device}", "ib_write_bw", "-b -q 4")
        },
        small("{device}", "ib_write_bw", "-a").full_only(),
        small("{device}", "ib_read_bw", "-s 200000").full_only(),
        small("{device}", "ib_send_bw", "-a -e").full_only(),
        small("{device}", "ib_write_lat", "-c UC").full_only(),
        small("-R", "ib_send_bw", "-c UD").full_only(),
        small("-R", "ib_write_bw", "-q 4").full_only(),
    ]);
    table.extend([small("{device}", "ib_write_bw", "-s 1000000").with_mtu(9000)]);
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_go_by_what_was_found() {
        let table = table();
        let case = |name: &str| table.iter().find(|case| case.name == name).unwrap();
        let many_writes = case("ib_write_bw -b -q 4");
        assert_eq!(
            many_writes.attempts("server, the kernel:\n Failed status 9: wr_id 2"),
            8
        );
        assert_eq!(
            many_writes.attempts("server, the kernel:\n Failed status 4: wr_id 2"),
            2
        );
        let ours = "client, the kernel:\n ok\nserver, softfabric:\n Failed status 9";
        assert_eq!(many_writes.attempts(ours), 2);
        assert_eq!(case("ib_write_bw").attempts("Failed status 9"), 2);
        assert_eq!(case("rc-mixed").attempts("Failed status 9"), 1);
    }

    #[test]
    fn names_are_different() {
        let mut names: Vec<String> = table().into_iter().map(|case| case.name).collect();
        names.sort();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn each_case_has_both_directions() {
        let runs = runs(true, &[]);
        let from = |place| runs.iter().filter(|run| run.active == place).count();
        assert_eq!(from(Place::Host), from(Place::Guest));
        assert!(runs.iter().any(|run| run.family == Family::V6));
    }

    #[test]
    fn pairs_joined_by_connection_management_may_race() {
        let runs = runs(true, &["_bw -R".to_owned()]);
        assert_eq!(runs.len(), 8);
        assert!(runs.iter().all(|run| run.case.races));
    }

    #[test]
    fn a_name_picks_cases() {
        let picked = runs(false, &["rping".to_owned()]);
        assert_eq!(picked.len(), 4);
        assert!(runs(false, &["no such".to_owned()]).is_empty());
    }
}
