//! Power of a run: a meter's readings, what they say of the core phase, and which level of the methodology they reach.
//!
//! Source: \[Green500\], aspects 1 to 4.

pub mod level;

use std::path::Path;

use serde::{Deserialize, Serialize};

pub use level::{Judged, Statement};

use super::error::PackError;
use crate::power::log::{self, LogError};
use crate::power::stamps::{Stamps, TimeSpan};
use crate::power::window::{self, Mean};

/// Version of `power.json`.
pub const POWER_SCHEMA: u32 = 1;

/// `power.json`: what the readings of `power.csv` say of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Power {
    /// [`POWER_SCHEMA`].
    pub schema_version: u32,
    /// Seconds that were added to the times of the meter.
    pub offset_s: f64,
    /// Readings of the file.
    pub readings: usize,
    /// Usual distance of two readings, in seconds.
    pub interval_s: f64,
    /// Of the core phase; `None` where no reading lies in it.
    pub core: Option<Mean>,
    /// Of the whole run.
    pub run: Option<Mean>,
    /// Highest reading during the run, in watts.
    pub peak_watts: Option<f64>,
}

impl Power {
    /// What the `text` of a meter's file says of the run with these stamps.
    ///
    /// # Errors
    /// [`LogError`] with the line.
    pub fn new(text: &str, offset_s: f64, stamps: &Stamps) -> Result<Self, LogError> {
        let readings = log::parse(text, offset_s)?;
        let interval_s = log::interval_s(&readings);
        let mean = |span: &Option<TimeSpan>| window::mean(&readings, interval_s, span.as_ref()?.unix_s());
        let run = mean(&stamps.job);
        Ok(Self {
            schema_version: POWER_SCHEMA,
            offset_s,
            readings: readings.len(),
            interval_s,
            core: mean(&stamps.core),
            peak_watts: run.as_ref().map(|run| run.highest_watts),
            run,
        })
    }

    /// What the meter's file at `path` says of the run with these stamps, and the bytes of the file.
    ///
    /// # Errors
    /// [`PackError::PowerLog`].
    pub fn read(path: &Path, offset_s: f64, stamps: &Stamps) -> Result<(Self, Vec<u8>), PackError> {
        let wrong = |cause| PackError::PowerLog { file: path.to_path_buf(), cause };
        let bytes = std::fs::read(path).map_err(|error| wrong(LogError::Unreadable(error.to_string())))?;
        let power = Self::new(&String::from_utf8_lossy(&bytes), offset_s, stamps).map_err(wrong)?;
        Ok((power, bytes))
    }
}
