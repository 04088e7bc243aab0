//! What an HPL run *is*.
//!
//! Parameters, their named dimensions, the formats that carry them (HPL.dat, HPL.out, `machine.toml`),
//! the domain that a search explores and the rules that keep it valid. Pure: no clock, no I/O.
//!
//! Start at [`HplParams`], then [`Candidate`], then [`dims`].

#![forbid(unsafe_code)]

pub mod candidate;
mod counted;
pub mod dat;
mod deal;
pub mod dims;
pub mod domain;
pub mod draw;
mod effects;
pub mod engine;
pub mod flops;
pub mod guide;
pub mod least_squares;
pub mod listed;
pub mod machine;
pub mod nearest;
pub mod order;
pub mod out;
pub mod params;
pub mod result;
pub mod rules;
pub mod settings;
pub mod share;
pub mod stats;
pub mod unequal;
pub mod weights_file;
pub mod windows;
pub mod workspace;

pub use candidate::Candidate;
pub use counted::counted;
pub use deal::deal;
pub use domain::Candidates;
pub use engine::{DeviceChoice, DeviceRequest, EngineFile, EngineParams, KernelChoice};
pub use params::{Bcast, Form, HplParams, Looking, Pmap, Swap};
pub use result::RunResult;
pub use settings::{NodeSettings, SettingLevels};
pub use share::{Share, Weights};
pub use unequal::Unequal;
pub use windows::WindowsResult;
