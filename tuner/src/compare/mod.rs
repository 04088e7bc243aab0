//! Two sets of runs compared: has the second become slower?
//!
//! [`source`] reads a run folder, [`files`] an HPL.out or the JSON of runs; both give a list of [`run::Run`]. [`sides`] finds what
//! compares: passed runs of one configuration each, at the same N and extent. [`verdict`] makes of these a ratio with its
//! interval and judges it by the tolerance, [`report`] is what is said of it, as JSON, and [`text`] the same for people.

pub mod files;
pub mod report;
pub mod run;
pub mod sides;
pub mod source;
pub mod text;
pub mod verdict;
