//! Where a server and a client run.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use super::namespace::Cable;

/// Two ends of a connection.
pub(crate) enum Place {
    /// Two processes of the network namespace that the test itself is in. It takes no root.
    Here,
    /// Two processes of one network namespace of their own.
    OneHost(Cable),
    /// Two namespaces, joined by a cable: they share no memory.
    TwoHosts(Cable),
}

/// Which end a program is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Server,
    Client,
}

impl Place {
    /// The server's IPv4 address in namespaces of our own.
    pub(crate) const SERVER: &str = "10.8.0.1";
    /// The server's IPv6 address there.
    pub(crate) const SERVER_6: &str = "fd08::1";

    /// Both places of our own, as far as the machine has them.
    pub(crate) fn both(test: &str) -> Vec<Self> {
        let mut places: Vec<_> = Self::one_host(test).into_iter().collect();
        places.extend(Self::two_hosts(test));
        places
    }

    pub(crate) fn one_host(test: &str) -> Option<Self> {
        Cable::lay(test).map(Self::OneHost)
    }

    pub(crate) fn two_hosts(test: &str) -> Option<Self> {
        Cable::lay(test).map(Self::TwoHosts)
    }

    /// What a client calls the server.
    pub(crate) const fn server(&self) -> &'static str {
        match self {
            Self::Here => "127.0.0.1",
            Self::OneHost(_) | Self::TwoHosts(_) => Self::SERVER,
        }
    }

    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Here => "here",
            Self::OneHost(_) => "on one host",
            Self::TwoHosts(_) => "across two hosts",
        }
    }

    fn namespace(&self, end: End) -> Option<&str> {
        match (self, end) {
            (Self::Here, _) => None,
            (Self::TwoHosts(cable), End::Client) => Some(&cable.names[1]),
            (Self::OneHost(cable) | Self::TwoHosts(cable), _) => Some(&cable.names[0]),
        }
    }

    /// A program at one end, with the library; `words` are the program and its arguments.
    pub(crate) fn command(&self, end: End, words: &[&str], variables: &[(&str, &str)]) -> Command {
        let library = format!("LD_LIBRARY_PATH={}", super::library_folder().display());
        let variables = variables
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        // The library is for the program only, not for `ip`.
        let mut command = match self.namespace(end) {
            None => Command::new("env"),
            Some(namespace) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", namespace, "env"]);
                command
            }
        };
        command
            .arg(library)
            .args(variables)
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // So that it ends with what it has started.
            .process_group(0);
        command
    }
}
