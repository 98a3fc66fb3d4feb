//! `softfabric ib`: emulated InfiniBand subnets for other people's managers and diagnostics.
//!
//! ```text
//! file, or --fat-tree, --torus ─► Subnet ─► Fabric ─► serve ─┬─ sockets: ibsim's protocol ◄─► libumad2sim.so in OpenSM, …
//!                                                             └─ streams ◄─► our libibumad.so.3 in OpenSM, …
//! ```

pub(crate) mod names;
mod serve;
pub(crate) mod sockets;
mod streams;

use std::fs;
use std::process::ExitCode;

use softfabric_subnet::format::read_topology;
use softfabric_subnet::generate::{GenerateError, fat_tree, torus};
use softfabric_subnet::{PortRef, Subnet};

use crate::arguments::{IbArguments, IbCommand, ServeArguments};
use crate::failure::Failure;

/// Runs a command of InfiniBand's.
///
/// # Errors
/// What the command says.
pub(crate) fn ib(arguments: &IbArguments) -> Result<ExitCode, Failure> {
    match &arguments.command {
        IbCommand::Serve(arguments) => serve::serve(arguments),
    }
}

/// The topology that the arguments ask for.
fn topology(arguments: &ServeArguments) -> Result<Subnet, Failure> {
    let generated = |made: Result<Subnet, GenerateError>| {
        made.map_err(|error| Failure::Arguments {
            problem: error.to_string(),
            help: None,
        })
    };
    if let Some(radix) = arguments.fat_tree {
        return generated(fat_tree(radix, 3));
    }
    if let Some(dimensions) = &arguments.torus {
        return generated(torus(&dimensions.0, arguments.hosts));
    }
    let path = arguments.topology.as_deref().unwrap_or("-".as_ref());
    let text = if path.as_os_str() == "-" {
        std::io::read_to_string(std::io::stdin())
    } else {
        fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    };
    let text = text.map_err(|error| Failure::unreadable(path, error))?;
    let subnet =
        read_topology(&text, &path.display().to_string()).map_err(|error| Failure::Arguments {
            problem: error.to_string(),
            help: Some("A topology is a .net file of ibsim, or what ibnetdiscover prints.".into()),
        })?;
    if subnet.nodes().len() == 0 {
        return Err(Failure::Arguments {
            problem: format!("{} has no nodes", path.display()),
            help: Some("A topology is a .net file of ibsim, or what ibnetdiscover prints.".into()),
        });
    }
    Ok(subnet)
}

/// The external port that a text names, such as `L1-00-00:3`: a node by its name, description or GUID, and a number.
///
/// # Errors
/// With what is wrong.
fn find_port(subnet: &Subnet, text: &str) -> Result<PortRef, String> {
    let (name, port) = text.rsplit_once(':').ok_or_else(|| {
        format!("{text:?} is no port: it needs a node and a number, as in switch:3")
    })?;
    let node = subnet
        .find(name)
        .ok_or_else(|| format!("no node is called {name:?}"))?;
    let ports = subnet.node(node).ports;
    match port.parse::<u8>() {
        Ok(port) if (1..=ports).contains(&port) => Ok(PortRef { node, port }),
        _ => Err(format!(
            "{name:?} has no port {port}: its ports are 1 to {ports}"
        )),
    }
}
