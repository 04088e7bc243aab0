//! GPUs of NVIDIA and AMD as devices.
//!
//! Nothing of CUDA or ROCm is needed to build: the vendor's libraries ([`library`]) for memory, streams and [`copies`] ([`driver`], [`errors`]), for DGEMM and DTRSM
//! ([`blas`]) and for the compilation of kernels ([`compiler`]) are opened at run time. Both platforms have the same functions under
//! two names, so that there is one table of each, and one device ([`device`]) with one set of [`operations`]. What the BLAS lacks is in
//! `kernels.c`, which is compiled for the device found ([`kernels`], for panels [`leaves`]) and kept on disk ([`code_cache`]); the lists and tables that kernels read ([`generator`])
//! travel with them ([`lists`]).
//!
//! All calls of their functions are in this folder. Their pointers are inside memory that [`memory`] owns or that a message
//! keeps; the device has executed what it was given before any of it is freed.
//!
//! [`found`] tells which devices there are, [`free_memory`] what of their memory is free, [`nearby`] which cores are beside each, [`compute_units`] how much an AMD device computes at a time.

mod blas;
mod code_cache;
mod compiler;
mod compute_units;
mod copies;
mod device;
mod driver;
mod errors;
mod found;
mod free_memory;
mod generator;
mod kernels;
mod leaves;
mod library;
mod lists;
mod memory;
mod nearby;
mod operations;

pub(crate) use self::device::GpuDevice;
pub use self::found::{FoundGpus, GpuFacts};
pub(crate) use self::library::GpuPlatform;
pub(crate) use self::nearby::nearby_cores;
