//! Real runs: the engine as another process, under a guard that ends all its processes.
//!
//! ```text
//! tuner ── hpl-tune __guard ── hpl-tune __guard --exec, which becomes hpl-tune run …
//! ```
//!
//! Our `xhpl` under a launcher ([`crate::launcher`]) replaces `hpl-tune run`, in the folder of its trial, and writes
//! the same `result.json`. Another HPL ([`crate::foreign`]) replaces it, too; its verdict is read
//! from its output.
//!
//! The [`guard`] is the process between the tuner and the run. It ends every descendant of the run at the deadline,
//! on SIGTERM, and when the tuner is gone, and writes a [`GuardRecord`] to the folder of the trial. The run
//! itself writes `result.json`. Both are written by rename, so [`RealRuns::adopt`] finds the result of a run
//! that finished while the tuner was dead.
//!
//! Processes that can survive: when the guard itself is killed with SIGKILL, the run dies with it (its parent-death
//! signal is SIGKILL), but that signal is not sent to further descendants, which only a launcher such as
//! mpirun has, and the kernel clears it when a set-user-id program is started. The tuner, or the next one
//! that resumes, then finds them by the variable [`TRIAL_VARIABLE`] in their environment. Only a process of
//! another user, or one that cleared its environment, survives both, and only if the guard is dead.

mod answer;
mod capture;
mod followed;
mod full_disk;
pub mod guard;
mod launch;
mod pair_rule;
mod printed;
mod processes;
mod record;
mod run_spec;
mod running;
mod runs;
pub mod slurm;
mod verdict;
mod words;

pub use answer::{ChildOutput, answer, answer_within, output_of};
pub use full_disk::lack_of_room;
pub use pair_rule::{Grids, PairRule};
pub use run_spec::{Extent, RunSpec};

pub use processes::TRIAL_VARIABLE;
pub use record::{EndedBy, GuardRecord, GuardRecordError};
pub use running::Running;
pub use runs::RealRuns;
pub use verdict::RESULT;
pub use words::{printable, quoted, telling_lines};
