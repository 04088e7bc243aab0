//! Predictions on request: which run is meant, what a model says of it, and how that is shown.
//!
//! [`question`] settles the run, [`model`] answers, [`text`] and [`plot`] show, [`compare`] compares measured runs with their
//! predictions.

mod chart;
mod columns;
pub mod compare;
mod device;
pub mod model;
pub mod parts;
pub mod plot;
pub mod question;
mod steps;
pub mod text;

pub(crate) use model::MODELS;
pub use model::{Answer, Model, Term};
pub use question::{Question, WantedRun};
