//! `libibumad.so.3` in software: OpenSM, infiniband-diags and other management programs, unmodified, on an emulated fabric.
//!
//! ```text
//! program ── umad_… symbols ──► exports ─┬─► adapters   what there is: one adapter, its ports
//!                                        ├─► ports      streams to the server, agents, datagrams in and out
//!                                        ├─► datagram   fields of a buffer
//!                                        └─► words      names of classes, methods, attributes, states
//! ```
//!
//! The built file is `libsoftfabric_umad.so`; its name inside (SONAME) is `libibumad.so.3`. A launcher puts it into a folder
//! under that name and the folder first into `LD_LIBRARY_PATH`; nothing has to be preloaded. The server is
//! `softfabric ib serve`. Which one, and at which node the program is, two variables say that ibsim's users know:
//! `IBSIM_SOCKNAME` (default `sim`) and `SIM_HOST` (default: the first adapter).

mod adapters;
mod datagram;
mod errno;
mod exports;
mod ports;
mod stream;
mod words;
