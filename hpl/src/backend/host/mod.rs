//! The host as a backend: the matrix lies in main memory, the threads of the rank compute.
//!
//! [`team`] starts the threads, [`kernels`] are their DGEMM, DTRSM and vector operations (ours, or those of a BLAS). `fact`
//! deals the rows of a panel to them, `update` the columns of the trailing matrix, `rows` copies rows between matrix and
//! messages.

mod beside;
pub(crate) mod fact;
pub mod kernels;
mod rank;
mod rows;
pub(crate) mod scratch;
pub mod team;
pub(crate) mod update;

pub(crate) use self::rank::{Host, Workspace};
pub use self::update::slab_count;
