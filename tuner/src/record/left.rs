//! What is left to gain when a search ends.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Share of the draws that do not exceed the bound.
pub const LEVEL: f64 = 0.95;

/// Relative gains over the best known point, noise of runs apart.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct GainLeft {
    /// What is expected.
    pub expected: f64,
    /// What is exceeded with a probability of 1 − [`LEVEL`].
    pub at_most: f64,
}

impl fmt::Display for GainLeft {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        let (most, mean) = (percent(self.at_most), percent(self.expected));
        write!(
            to,
            "better candidates are predicted to gain {mean} over the best of the runs, at most {most} ({:.0} %)",
            100.0 * LEVEL
        )
    }
}
