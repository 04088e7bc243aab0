//! Which trial is next, and the loop that runs it.
//!
//! [`drive`] is the loop. It asks [`schedule`] what is due, a pure function of the record and the [`budget`]: the baseline,
//! what a [`strategy`] proposes, the final run, and the [`rounds`] after it. A strategy sees the trials as a [`history`] and
//! the predictions of the session's [`model`] as a prior ([`model_prior`]). [`nodes`] is the search on
//! groups of nodes before that. [`cost`] says how long a trial will take, `near` which point is nearest to a run. [`progress`]
//! prints for the user, [`interrupt`] listens for signals.

pub mod budget;
pub mod cost;
pub mod doubts;
pub mod drive;
pub(crate) mod hashed;
pub mod history;
pub mod interrupt;
pub mod model;
pub mod model_prior;
pub(crate) mod near;
pub mod nodes;
pub mod progress;
pub mod rounds;
pub mod schedule;
pub mod strategy;
