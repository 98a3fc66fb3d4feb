//! Debian packages that tests use; installed where that is possible, named where it is not.

use std::process::Command;

use anyhow::Result;

use crate::process::{self, is_installed};
use crate::rust_programs::{LIBCLANG, is_there};
use crate::steps::{Outcome, Steps};

/// A program that tests call, and where Debian has it.
struct Tool {
    /// Its name in the search path, or the whole path of a file.
    program: &'static str,
    package: &'static str,
    /// What is not checked without it.
    purpose: &'static str,
    /// Only `--full` needs it.
    full_only: bool,
}

const TOOLS: &[Tool] = &[
    Tool {
        program: "/usr/include/ns3/core-module.h",
        package: "libns3-dev",
        purpose: "TCP's figures are compared with ns-3's",
        full_only: true,
    },
    Tool {
        program: "tshark",
        package: "tshark",
        purpose: "an independent decoder judges what we write to the wire",
        full_only: false,
    },
    Tool {
        program: "/usr/include/infiniband/verbs.h",
        package: "libibverbs-dev",
        purpose: "a C compiler judges the layout of our structures",
        full_only: false,
    },
    Tool {
        program: "/usr/include/infiniband/mad.h",
        package: "libibmad-dev",
        purpose: "libibmad judges where fields of management datagrams are",
        full_only: false,
    },
    Tool {
        program: "/usr/include/infiniband/iba/ib_types.h",
        package: "libopensm-dev",
        purpose: "a C compiler judges the layout of management records",
        full_only: false,
    },
    Tool {
        program: "/usr/include/infiniband/umad.h",
        package: "libibumad-dev",
        purpose: "a C program that was compiled against it runs on our libibumad",
        full_only: false,
    },
    Tool {
        program: "ibdmchk",
        package: "ibutils",
        purpose: "it judges whether routes can lock up",
        full_only: false,
    },
    Tool {
        program: "opensm",
        package: "opensm",
        purpose: "its routes are compared with ours",
        full_only: false,
    },
    Tool {
        program: "ibsim",
        package: "ibsim-utils",
        purpose: "OpenSM runs on fabrics that it simulates",
        full_only: false,
    },
    Tool {
        program: "iblinkinfo",
        package: "infiniband-diags",
        purpose: "the diagnostics judge fabrics that we emulate, and our manager's work on ibsim's",
        full_only: false,
    },
    Tool {
        program: "ibv_rc_pingpong",
        package: "ibverbs-utils",
        purpose: "its programs run on our libibverbs",
        full_only: false,
    },
    Tool {
        program: "ib_write_bw",
        package: "perftest",
        purpose: "its programs run on our libibverbs",
        full_only: false,
    },
    Tool {
        program: "rping",
        package: "rdmacm-utils",
        purpose: "its programs run on our connection management, and with the kernel's",
        full_only: false,
    },
    Tool {
        program: "qperf",
        package: "qperf",
        purpose: "it runs on our libibverbs",
        full_only: false,
    },
    Tool {
        program: "/usr/share/doc/rdma-core/tests/run_tests.py",
        package: "rdma-core",
        purpose: "its own tests run on our libibverbs",
        full_only: false,
    },
    Tool {
        program: "/usr/lib/python3/dist-packages/pyverbs/__init__.py",
        package: "python3-pyverbs",
        purpose: "rdma-core's own tests are written in it",
        full_only: false,
    },
    Tool {
        program: "/usr/include/rdma/rdma_cma.h",
        package: "librdmacm-dev",
        purpose: "a C program checks what connection management promises",
        full_only: false,
    },
    Tool {
        program: "ip",
        package: "iproute2",
        purpose: "two network namespaces are two hosts",
        full_only: false,
    },
    Tool {
        program: "ucx_perftest",
        package: "ucx-utils",
        purpose: "UCX runs on our libibverbs",
        full_only: false,
    },
    Tool {
        program: "fi_pingpong",
        package: "libfabric-bin",
        purpose: "libfabric runs on our libibverbs",
        full_only: false,
    },
    Tool {
        program: "fio",
        package: "fio",
        purpose: "its engine `rdma` runs on our libibverbs",
        full_only: false,
    },
    Tool {
        program: "mpirun",
        package: "openmpi-bin",
        purpose: "Open MPI runs on our libibverbs",
        full_only: false,
    },
    Tool {
        program: "/usr/lib/x86_64-linux-gnu/openmpi/include/mpi.h",
        package: "libopenmpi-dev",
        purpose: "a C program of ours runs on Open MPI",
        full_only: false,
    },
    Tool {
        program: "prometheus",
        package: "prometheus",
        purpose: "it scrapes `softfabric export`, and an alert fires",
        full_only: false,
    },
    Tool {
        program: "redis-server",
        package: "redis-server",
        purpose: "it is filled as SONiC fills its own, and `softfabric record` reads it",
        full_only: false,
    },
    Tool {
        program: "redis-cli",
        package: "redis-tools",
        purpose: "it fills that server",
        full_only: false,
    },
    Tool {
        program: "cmake",
        package: "cmake",
        purpose: "Rust crates for libibverbs build",
        full_only: false,
    },
    Tool {
        program: LIBCLANG,
        package: "libclang-dev",
        purpose: "Rust crates for libibverbs build",
        full_only: false,
    },
    Tool {
        program: "chromium",
        package: "chromium",
        purpose: "a browser opens the HTML report",
        full_only: true,
    },
];

/// Installs what is missing, if this is Debian and we are root.
pub(crate) fn install(steps: &mut Steps, full: bool) -> Result<Outcome> {
    let wanted = TOOLS.iter().filter(|tool| full || !tool.full_only);
    let missing: Vec<&Tool> = wanted.filter(|tool| !is_there(tool.program)).collect();
    if missing.is_empty() {
        println!("all there");
        return Ok(Outcome::check(true));
    }
    let obstacle = if !is_installed("apt-get") {
        Some("there is no apt-get")
    } else if !is_root() {
        Some("not root")
    } else {
        install_packages(&missing)?
    };
    if let Some(obstacle) = obstacle {
        println!("cannot install: {obstacle}");
    }
    let still_missing: Vec<&&Tool> = missing
        .iter()
        .filter(|tool| !is_there(tool.program))
        .collect();
    if still_missing.is_empty() {
        return Ok(Outcome::check(true));
    }
    for tool in &still_missing {
        steps.note_skipped(format!(
            "{} is missing ({}): {}",
            tool.program,
            obstacle.unwrap_or("the package does not have it"),
            tool.purpose
        ));
    }
    let names: Vec<_> = still_missing.iter().map(|tool| tool.package).collect();
    Ok(Outcome::Skipped(format!(
        "install by hand: apt-get install {}",
        names.join(" ")
    )))
}

/// Says what went wrong, if something did.
fn install_packages(missing: &[&Tool]) -> Result<Option<&'static str>> {
    let update = process::run(apt_get().args(["update", "-qq"]))?;
    if !update.success {
        return Ok(Some("apt-get update failed"));
    }
    let mut install = apt_get();
    install.args(["install", "-y", "-qq", "--no-install-recommends"]);
    install.args(missing.iter().map(|tool| tool.package));
    let installed = process::run(&mut install)?;
    Ok((!installed.success).then_some("apt-get install failed"))
}

fn apt_get() -> Command {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive");
    command
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|id| id.stdout.trim_ascii() == b"0")
}
