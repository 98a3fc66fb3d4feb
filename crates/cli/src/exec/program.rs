//! Finding the program, as a shell does, and saying why it cannot run before anything is set up.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// The path of a program: as it is with a slash in it, or in the folders of `PATH`.
///
/// # Errors
/// If there is none, or it may not be executed.
pub(super) fn find(name: &OsStr) -> Result<PathBuf, Failure> {
    let path = Path::new(name);
    if path.components().count() > 1 {
        return check(path).map(|()| path.to_owned());
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let candidates = std::env::split_paths(&folders).map(|folder| folder.join(name));
    let mut refused = None;
    for candidate in candidates.filter(|candidate| candidate.is_file()) {
        match check(&candidate) {
            Ok(()) => return Ok(candidate),
            Err(failure) => refused = refused.or(Some(failure)),
        }
    }
    Err(refused.unwrap_or_else(|| Failure::Arguments {
        problem: format!("{} is in none of the folders of PATH", path.display()),
        help: Some(
            "Is it installed? A program of this folder is named with ./ before it.".to_owned(),
        ),
    }))
}

fn check(path: &Path) -> Result<(), Failure> {
    let found = path
        .metadata()
        .map_err(|error| Failure::unreadable(path, error))?;
    if found.is_dir() {
        return Err(Failure::Arguments {
            problem: format!("{} is a folder, not a program", path.display()),
            help: None,
        });
    }
    if found.permissions().mode() & 0o111 == 0 {
        return Err(Failure::Arguments {
            problem: format!("{} may not be executed", path.display()),
            help: Some(format!("chmod +x {}", path.display())),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_and_refused_as_a_shell_does() {
        assert!(find("sh".as_ref()).unwrap().ends_with("sh"));
        let problem = |name: &str| find(name.as_ref()).unwrap_err().to_string();
        assert!(problem("no-such-program").contains("PATH"));
        assert!(problem("./no-such-program").contains("cannot read"));
        assert!(problem("/usr").contains("folder"));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("text");
        std::fs::write(&file, "no program").unwrap();
        assert!(problem(file.to_str().unwrap()).contains("may not be executed"));
    }
}
