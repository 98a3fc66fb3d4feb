//! Help, errors and small commands, as text files: each shows a command, what it prints and its exit code.
//!
//! `TRYCMD=overwrite cargo test -p softfabric --test command_line` writes them anew.

#[test]
fn cases() {
    trycmd::TestCases::new()
        .env("NO_COLOR", "1")
        .env("COLUMNS", "80")
        .case("tests/cases/*.trycmd");
}
