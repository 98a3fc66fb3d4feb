//! Names of servers' sockets: which one is meant, and who has it. `/proc/net/unix` knows a socket's inode, `/proc/<process>/fd`
//! who has that open.

use std::fs;

use softfabric_subnet::ibsim::{DEFAULT_NAME, NAME_VARIABLE, NODE_VARIABLE};

/// The name that is given, else the one in the environment, else the usual one.
pub(crate) fn of_server(given: Option<&str>) -> String {
    named(given, NAME_VARIABLE).unwrap_or_else(|| DEFAULT_NAME.to_owned())
}

/// The node that is given, else the one in the environment; empty: the server's choice.
pub(crate) fn of_node(given: Option<&str>) -> String {
    named(given, NODE_VARIABLE).unwrap_or_default()
}

fn named(given: Option<&str>, variable: &str) -> Option<String> {
    let some = |name: &String| !name.is_empty();
    let given = given.map(str::to_owned).filter(some);
    given.or_else(|| std::env::var(variable).ok().filter(some))
}

/// The process that has bound the abstract name, as "4711 (ibsim)"; `None` where that cannot be seen.
pub(super) fn owner(name: &str) -> Option<String> {
    let sockets = fs::read_to_string("/proc/net/unix").ok()?;
    let inode = inode_of(&sockets, name)?;
    let wanted = format!("socket:[{inode}]");
    for process in fs::read_dir("/proc").ok()?.flatten() {
        let Ok(files) = fs::read_dir(process.path().join("fd")) else {
            continue;
        };
        let has_it = files.flatten().any(|file| {
            fs::read_link(file.path()).is_ok_and(|target| target.as_os_str() == &*wanted)
        });
        if has_it {
            let number = process.file_name().to_string_lossy().into_owned();
            let program = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            return Some(format!("{number} ({})", program.trim_end()));
        }
    }
    None
}

/// The inode of a name in the text of `/proc/net/unix`, which has `@` for zeros.
fn inode_of(sockets: &str, name: &str) -> Option<u64> {
    let written = format!("@{name}@");
    sockets.lines().find_map(|line| {
        let mut columns = line.split_whitespace().skip(6);
        let inode = columns.next()?.parse().ok()?;
        (columns.next()? == written).then_some(inode)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_among_others() {
        let text = "Num RefCount Protocol Flags Type St Inode Path\n\
            00000000: 00000002 00000000 00000000 0002 01 11 @sim:ctl2@\n\
            00000000: 00000002 00000000 00000000 0002 01 12 @sim:ctl@\n\
            00000000: 00000002 00000000 00000000 0002 01 13\n";
        assert_eq!(inode_of(text, "sim:ctl"), Some(12));
        assert_eq!(inode_of(text, "sim:out0"), None);
    }
}
