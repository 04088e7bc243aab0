//! The host as a backend: threads, kernels, the update of the trailing matrix.
//!
//! [`team`] starts the threads of a rank, [`kernels`] are their DGEMM, DTRSM and vector operations (ours, or those of a
//! BLAS), `update` deals the columns of the trailing matrix to the threads.

pub mod kernels;
pub mod team;
pub(crate) mod update;

pub use self::update::slab_count;
