//! What a session makes as large as possible.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::Row;

/// What a session makes as large as possible.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Objective {
    /// The rate in GFLOP/s
    #[default]
    Gflops,
    /// The rate by the mean power of the whole run, in GFLOPS/W
    GflopsPerWatt,
}

impl Objective {
    /// Whether it is the rate.
    pub fn is_rate(&self) -> bool {
        *self == Self::Gflops
    }

    /// Its unit.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Gflops => "GFLOP/s",
            Self::GflopsPerWatt => "GFLOPS/W",
        }
    }

    /// Its value of a passed run; `None` where the run did not pass, or its power was not read.
    pub fn value(self, row: &Row) -> Option<f64> {
        let rate = row.comparable_rate_gflops()?;
        match self {
            Self::Gflops => Some(rate),
            Self::GflopsPerWatt => row.run_power_w.filter(|watts| *watts > 0.0).map(|watts| rate / watts),
        }
    }
}
