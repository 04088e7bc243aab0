//! What a user sees, run against the real programs.
//!
//! `needs_*` modules and tests drive other programs; they are ignored here and run by `tests/run` where those programs are. `released_*` are run by
//! `tests/run --release-builds`.

mod circles;
mod cli;
mod compare;
mod docs;
mod efficiency;
mod engine;
mod first_minute;
mod frozen_node;
mod fuzz_corpora;
mod gpu;
mod gpu_settings;
mod hostile;
mod installs;
mod kill;
mod long;
mod long_term;
mod lost_nodes;
mod machines;
mod matrix_mpi;
mod mpi;
mod needs_chromium;
mod needs_hpcc;
mod needs_mpi;
mod needs_readers;
mod needs_slurm;
mod needs_tmux;
mod other_host;
mod pack;
mod packages;
mod pairs;
mod power;
mod power_loss;
mod predict;
mod program;
mod run;
mod settings;
mod simulated;
mod size;
mod skips;
mod slurm_clock;
mod supply;
mod table;
mod tune;
mod unequal;
mod untrusted;
mod watch;
