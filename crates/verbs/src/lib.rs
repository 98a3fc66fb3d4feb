//! `libibverbs.so.1` in software: unmodified RDMA programs run on it.

pub mod abi;
mod errno;
mod exports;
mod refuse;
