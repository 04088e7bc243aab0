//! How far the best is ahead of the default.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Natural logarithm of the best's objective by the default's, noise of runs apart.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Lead {
    /// What is expected.
    pub mean: f64,
    /// Standard deviation of that.
    pub sd: f64,
    /// Standard deviation of the logarithm of one pair's ratio.
    pub pair_sd: f64,
}

impl Lead {
    /// Whether the default is ahead.
    pub fn is_behind(&self) -> bool {
        self.mean < 0.0
    }
}

impl fmt::Display for Lead {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = if self.is_behind() { "behind" } else { "ahead" };
        write!(to, "{:.1} % {side} (standard deviation {:.1} %)", 100.0 * self.mean.exp_m1().abs(), 100.0 * self.sd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_name_the_side() {
        let lead = Lead { mean: 0.012, sd: 0.01, pair_sd: 0.01 };
        assert_eq!(lead.to_string(), "1.2 % ahead (standard deviation 1.0 %)");
        assert_eq!(Lead { mean: -0.034, ..lead }.to_string(), "3.3 % behind (standard deviation 1.0 %)");
    }
}
