//! The project's own tasks: `cargo xtask test` runs every check, `cargo xtask docs` writes the generated documentation.

mod counts;
mod dependencies;
mod documentation;
mod kernel_interop;
mod library;
mod packages;
mod process;
mod rdma_core_tests;
mod readme;
mod rust_programs;
mod steps;
mod test;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The project's own tasks")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run every check: format, lints, documentation, all tests, dependencies, the README's command.
    Test {
        /// Also the long tests (those marked `#[ignore]`), and each benchmark once.
        #[arg(long)]
        full: bool,
    },
    /// Write the documentation that is generated from the program itself.
    Docs {
        /// Only say what is out of date.
        #[arg(long)]
        check: bool,
    },
    /// Check which crate depends on which.
    Dependencies,
    /// Run the tests that rdma-core ships against our libibverbs, and compare with what has to pass.
    RdmaCoreTests(rdma_core_tests::Options),
    /// Build and run the examples of published Rust crates against our libibverbs.
    RustPrograms,
    /// Let the Linux kernel's soft-RoCE, in a virtual machine, and softfabric work with each other.
    KernelInterop(kernel_interop::Options),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().task {
        Task::Test { full } => test::run(full),
        Task::Docs { check } => documentation::run(check),
        Task::Dependencies => dependencies::run(),
        Task::RdmaCoreTests(options) => rdma_core_tests::run(&options),
        Task::RustPrograms => rust_programs::run(),
        Task::KernelInterop(options) => kernel_interop::run(&options),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
