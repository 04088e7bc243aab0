//! The work of a run as plain values: this module moves no data and depends only on parameters.
//!
//! [`layout`]: which rank owns which block; [`steps`]: the tasks of each step; [`recursion`]: the operations of a panel
//! factorization; [`windows`]: samples of steps from which the time of a whole run is predicted. The engine
//! ([`lu`](crate::lu)) executes these values; the models of the crate `objectives` iterate over the same ones.

pub mod layout;
pub mod recursion;
pub mod steps;
pub mod windows;

pub use self::steps::{ColumnStrips, PanelShape, Part, Plan, Section, Step, Task, fact_threads};
