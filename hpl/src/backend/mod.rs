//! Where the matrix lies and who computes on it.
//!
//! There is one backend, the [`host`]: the matrix lies in main memory and the threads of a rank compute.

pub mod host;
