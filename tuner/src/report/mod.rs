//! What a session found, for people and for programs.
//!
//! [`summary`] computes it once from the record; [`table`], [`html`] and JSON print it, [`closing`] says what was won; [`export`] writes the
//! files that repeat the best run.

pub mod closing;
pub mod export;
pub(crate) mod folded;
mod format;
pub mod html;
pub mod importance;
pub mod nodes;
pub mod owners;
pub(crate) mod sentences;
pub mod stats;
pub mod summary;
pub mod table;
pub mod weights;

pub use export::Exports;
pub(crate) use format::{OURS_ALONE, counted, digits, ratio_in_words, words};
pub use summary::{Comparison, Estimate, FinalByEstimate, Score, Summary};
