//! Who has a socket's name: `/proc/net/unix` knows its inode, `/proc/<process>/fd` who has that open.

use std::fs;

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
