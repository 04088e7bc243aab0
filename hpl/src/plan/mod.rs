//! What is done, as plain values: nothing here moves data or asks the host.
//!
//! [`layout`] says which rank owns which block, [`steps`] which tasks a step consists of, [`recursion`] how a panel is cut
//! on the way to its columns, [`windows`] which steps stand for a whole run. The engine runs these values
//! ([`lu`](crate::lu)); the models of the crate `objectives` walk the same ones.

pub mod layout;
pub mod recursion;
pub mod steps;
pub mod windows;

pub use self::steps::{PanelShape, Part, Plan, Section, Step, Task, fact_threads};
