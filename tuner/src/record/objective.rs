//! What a session makes as large as possible.

use objectives::real::Extent;
use serde::{Deserialize, Serialize};

use super::Finished;

/// What a session makes as large as possible.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Objective {
    /// The rate in GFLOP/s.
    #[default]
    Gflops,
    /// The rate by the mean power of the whole run, in GFLOPS/W.
    GflopsPerWatt,
    /// The rate in GFLOP/s among the candidates whose power is at most this.
    GflopsWithin {
        /// Mean power of the core phase, in watts.
        power_limit_w: u64,
    },
}

impl Objective {
    /// Whether it is the rate alone.
    pub fn is_rate(&self) -> bool {
        *self == Self::Gflops
    }

    /// Its unit.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Gflops | Self::GflopsWithin { .. } => "GFLOP/s",
            Self::GflopsPerWatt => "GFLOPS/W",
        }
    }

    /// The power limit in watts, where it has one.
    pub fn power_limit_w(self) -> Option<u64> {
        match self {
            Self::GflopsWithin { power_limit_w } => Some(power_limit_w),
            Self::Gflops | Self::GflopsPerWatt => None,
        }
    }

    /// Whether a power keeps its limit; any does where it has none.
    pub fn allows(self, watts: f64) -> bool {
        self.power_limit_w().is_none_or(|limit| watts <= limit as f64)
    }

    /// This objective without its power limit.
    pub fn unlimited(self) -> Self {
        if self.power_limit_w().is_some() { Self::Gflops } else { self }
    }

    /// Its value of a passed run; `None` where the run did not pass, its power was not read, or is above the limit.
    pub fn value<R: Finished>(self, row: &R) -> Option<f64> {
        let rate = row.comparable_rate_gflops()?;
        match self {
            Self::Gflops => Some(rate),
            Self::GflopsPerWatt => mean_power_w(row).map(|watts| rate / watts),
            Self::GflopsWithin { .. } => limited_power_w(row).filter(|watts| self.allows(*watts)).map(|_| rate),
        }
    }
}

/// The power by which a rate is divided: that of the whole run, of windows that which they predict for the core phase. It is compared among
/// runs of one extent.
pub fn mean_power_w<R: Finished>(row: &R) -> Option<f64> {
    let watts = match row.extent() {
        Extent::Whole => row.run_power_w(),
        Extent::Windows => row.estimated_power_w(),
    };
    watts.filter(|watts| *watts > 0.0)
}

/// The power of a run that is compared with a limit: that of its core phase, of a program that does not say when that was the power of the
/// whole run. Windows predict it.
pub fn limited_power_w<R: Finished>(row: &R) -> Option<f64> {
    let watts = match row.extent() {
        Extent::Whole => row.power_w().or_else(|| row.run_power_w()),
        Extent::Windows => row.estimated_power_w(),
    };
    watts.filter(|watts| *watts > 0.0)
}
