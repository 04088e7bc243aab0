//! The host as a backend: the matrix is in main memory, the threads of the rank compute.
//!
//! [`team`] starts the threads, [`kernels`] has their DGEMM, DTRSM and vector operations (built-in, or those of a BLAS). `fact`
//! divides the rows of a panel among the threads, `update` the columns of the trailing matrix; `rows` copies rows from the
//! matrix to messages; `storage` generates the matrix, and has the operations of back substitution and check.

mod earlier_columns;
pub(crate) mod fact;
pub mod kernels;
mod rank;
pub(super) mod rows;
pub(crate) mod scratch;
pub(super) mod storage;
pub mod team;
pub(crate) mod update;

pub(crate) use self::rank::{HostBackend, Workspace};
pub use self::update::slab_count;
