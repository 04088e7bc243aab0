//! One file per verb.

pub mod balance;
pub mod calibrate;
pub mod compare;
pub mod completions;
pub mod doctor;
pub mod machines;
pub mod man;
pub mod measured;
pub mod mpi_setup;
pub mod nodes;
pub mod pack;
pub mod predict;
pub mod replay;
pub mod report;
pub mod run;
pub mod space;
pub mod survey;
pub mod tune;
pub mod verify;
pub mod watch;
pub mod weights;
