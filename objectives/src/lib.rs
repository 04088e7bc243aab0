//! What a run *costs*: models, calibration, guarded real runs.
//!
//! Start at [`real::RealRuns`]: a candidate goes in, an [`Observation`] or a typed [`Failure`] comes out. Both are
//! data for the record. The engine runs there as another process; [`mcl`], [`netlib`], [`overlap`], [`device`] and
//! [`timeline`] predict, [`scenario`] makes the inputs of the closed forms from a machine description and a run.

#![forbid(unsafe_code)]

pub mod calibration;
pub mod device;
pub mod energy;
mod failure;
pub mod fit;
pub mod foreign;
pub mod launcher;
pub mod links;
pub mod mcl;
mod measurement;
pub mod netlib;
pub mod outliers;
pub mod overlap;
pub mod predict;
pub mod progress;
pub mod real;
pub mod runs;
pub mod scenario;
pub mod settings;
pub mod simulated;
pub mod slurm_clock;
pub mod timeline;
pub mod weights;
pub mod whole;

pub use failure::{Exit, Failure};
pub use measurement::{Measurement, Observation, PairMeasurement, WindowsMeasurement};
