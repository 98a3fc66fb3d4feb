//! What C libraries written in Rust share: versioned symbols, what a `.map` file says for C; and threads that are cancelled.
//!
//! ```text
//! umad_init@@IBUMAD_1.0 ──► trampoline (one jump, in assembly) ──► ports::nothing (extern "C", private)
//! ```
//!
//! A version belongs to a symbol through a `.symver` directive, which only assembly has; `#[no_mangle]` functions get
//! none, because rustc's own version script is anonymous. `remove` takes the trampoline's own name out again. The nodes
//! themselves are made known to the linker by [`declare`], from the build script.

pub mod cancel;

use std::fmt::Write;
use std::path::PathBuf;

/// Exports functions: `node separator { name => function, … }`, where the separator is `@@` for the version that new
/// programs get, and `@` for one that only old programs ask for.
#[macro_export]
macro_rules! versioned_exports {
    ($($node:literal $separator:literal { $($name:ident => $target:path,)+ })+) => {
        $($(
            ::core::arch::global_asm!(
                ".pushsection .text.softfabric.exports,\"ax\",@progbits",
                ".p2align 4",
                concat!(".globl \"softfabric.", stringify!($name), ".", $node, "\""),
                concat!(".type \"softfabric.", stringify!($name), ".", $node, "\",@function"),
                concat!("\"softfabric.", stringify!($name), ".", $node, "\":"),
                $crate::jump!(),
                concat!(".size \"softfabric.", stringify!($name), ".", $node, "\", . - \"softfabric.", stringify!($name), ".", $node, "\""),
                concat!(".symver \"softfabric.", stringify!($name), ".", $node, "\", ", stringify!($name), $separator, $node, ", remove"),
                ".popsection",
                target = sym $target,
            );
        )+)+
    };
}

/// The jump of a trampoline.
#[doc(hidden)]
#[cfg(target_arch = "x86_64")]
#[macro_export]
macro_rules! jump {
    () => {
        "jmp {target}"
    };
}

/// The jump of a trampoline.
#[doc(hidden)]
#[cfg(target_arch = "aarch64")]
#[macro_export]
macro_rules! jump {
    () => {
        "b {target}"
    };
}

/// Called by a library's build script: gives the shared library its name inside (SONAME) and its version nodes. Nodes of a
/// `chain` inherit each from the one before it.
///
/// The version script holds nothing but the nodes' names. It must not say what is global and what is local: rustc's own
/// script does.
///
/// # Panics
/// If it is called from anything but a build script.
pub fn declare(soname: &str, chains: &[&[&str]]) {
    let mut script = String::new();
    for chain in chains {
        let mut before = String::new();
        for node in *chain {
            writeln!(script, "{node} {{}}{before};").expect("a string takes every line");
            before = format!(" {node}");
        }
    }
    let folder =
        PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo names a folder for output"));
    let path = folder.join("nodes.map");
    std::fs::write(&path, script).expect("cargo's folder for output can be written to");
    println!(
        "cargo:rustc-cdylib-link-arg=-Wl,--version-script={}",
        path.display()
    );
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,{soname}");
    println!("cargo:rerun-if-changed=build.rs");
}
