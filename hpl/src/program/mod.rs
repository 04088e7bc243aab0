//! Runs of the engine: the common code of `xhpl` and `hpl-tune run`.
//!
//! A [`Runner`] has loaded kernels and executes runs ([`CompletedRun`]), windows, pairs and surveys of candidates on [`Ranks`]: threads
//! of this process (`rank_threads`) or the processes of an MPI job (`processes`, with cores assigned by `nodes`). The work of
//! the ranks is a `job`; their reports are combined into one [`RunResult`](space::RunResult). A rank that fails or panics ends
//! the run with a [`RunError`] that names it. [`xhpl`] is the command line of Netlib's program.

mod emulation;
mod error;
pub mod files;
pub mod freed;
mod job;
mod local_time;
mod memory;
mod mpi;
mod nodes;
mod pair;
mod processes;
mod progress;
mod rank_threads;
mod ranks;
mod runner;
mod survey;
#[cfg(test)]
mod tests;
mod version;
mod windows;
pub mod xhpl;

pub use self::emulation::{Emulated, refuse_emulation};
pub use self::error::RunError;
pub use self::local_time::local_offset_s;
pub use self::mpi::{UnderMpi, refuse_mpi};
pub use self::pair::{measure_pair, pair_of, write_pair};
pub use self::progress::ProgressLines;
pub use self::ranks::{Ranks, enter};
pub use self::runner::{CompletedRun, RunOptions, Runner, run_candidate, write_result};
pub use self::version::long_version;
pub use self::windows::{measure_candidate, result_of, write_windows};
