//! Several nodes: the job that a session runs in, where its ranks run, and what the nodes reach.
//!
//! [`allocation`] reads the job of the resource manager and [`sbatch`] writes a script for one. `launched` starts short MPI
//! jobs of `xhpl` that find the nodes, the bindings and the rates; `acceptance` judges these, and [`placement`] finds the
//! bindings of another engine. [`clock`] sees to it that Slurm sets the clock of the nodes. [`simulated`] answers in the
//! place of `xhpl` on a simulated cluster.

pub(crate) mod acceptance;
pub mod allocation;
pub mod clock;
pub(crate) mod launched;
pub mod placement;
pub mod sbatch;
pub mod simulated;
