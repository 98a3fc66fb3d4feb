//! A C program, compiled against the real headers, checks what the library promises and what it answers to mistakes.

mod support;

use std::path::Path;
use std::process::Command;

#[test]
fn the_library_keeps_its_promises() {
    let test = "the_library_keeps_its_promises";
    let Some(program) = support::compile(test, "contract", include_str!("c/contract.c")) else {
        return;
    };
    let output = Command::new(program)
        .env("LD_LIBRARY_PATH", support::library_folder())
        .output()
        .expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let wrong: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("NOT OK"))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    let complete = text.lines().last() == Some("done");
    assert!(
        output.status.success() && complete,
        "it ended early: {}\n{}\n{text}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    let checks = text.lines().filter(|line| line.starts_with("ok ")).count();
    assert!(checks >= 140, "{checks} checks");
}

#[test]
fn threads_make_use_and_end_objects_at_once() {
    let test = "threads_make_use_and_end_objects_at_once";
    let Some(program) = support::compile(test, "threads", include_str!("c/threads.c")) else {
        return;
    };
    assert_eq!(said(&program, 120).trim(), "done");
}

/// What a program says that ends well, within so many seconds.
fn said(program: &Path, seconds: u32) -> String {
    let output = Command::new("timeout")
        .arg(seconds.to_string())
        .arg(program)
        .env("LD_LIBRARY_PATH", support::library_folder())
        .output()
        .expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{}: {text}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

#[test]
fn threads_that_wait_may_be_cancelled() {
    let test = "threads_that_wait_may_be_cancelled";
    let Some(program) = support::compile(test, "cancel", include_str!("c/cancel.c")) else {
        return;
    };
    let text = said(&program, 60);
    assert!(text.ends_with("done\n"), "{text}");
}
