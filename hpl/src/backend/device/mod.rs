//! A device as a backend: the matrix is in the memory of the device, which does the updates; the threads of the rank (`panel`) or
//! the device (`fact`) factor the panels.
//!
//! `Device` lists what a device does (`api`): memory, copies, kernels, and streams on which all of these are queued. `OnDevice`
//! (`rank`) is the backend on top of it. It has three streams:
//!
//! | stream | operations |
//! |---|---|
//! | `Main` | DGEMM of the updates; with several process rows also their row swaps and TRSM; generation, back substitution, check |
//! | `Fact` | panels: to the host, their L and U to the device; or their factorization |
//! | `Copy` | rows of exchanges: gathered and copied to the host, received and copied to the device; with one process row the row swaps and the solves of the updates, ahead of the products |
//!
//! Operations of one stream are executed in order. Between streams, and between a stream and the host, there is no order but
//! that of the waits (`waits`). During an update the host has only to queue it: it factors the next panel (`panel`), starts row
//! exchanges (`rows`) and forwards messages, and runs ahead of the device by at most one panel.
//!
//! There are two: the `reference` executes on the host, late and in random order, so that a missing wait shows on any machine; `gpu` is
//! a device of NVIDIA or AMD, whose libraries are opened at run time.

mod api;
mod error;
mod fact;
mod fact_memory;
pub(crate) mod gpu;
mod inverse;
mod memory;
mod moves;
mod panel;
mod parts;
mod rank;
pub(crate) mod reference;
mod rows;
mod spans;
mod storage;
mod waits;

pub(crate) use self::api::{Block, Device, FactorMemory, HostBlock, Stream};
pub use self::error::DeviceError;
pub use self::gpu::{FoundGpus, GpuFacts};
pub(crate) use self::rank::{DeviceParams, OnDevice};
pub(crate) use self::waits::Wait;
