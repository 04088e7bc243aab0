//! Losses on a scale that levels off: how bad a bad point is says little about where the best one lies.
//!
//! A log rate y becomes y − best where it is at least the best known, and −S ln(1 + (best − y) / S) below it, after
//! \[Snelson\]: near the best nothing changes, and a point eleven times slower is not eleven times as interesting as one
//! that is 20 % slower. Without it the worst grids of an HPL run decide how rough the process takes the landscape to be.

use super::gp::posterior::Marginal;

/// How far candidates differ where nothing is known of them, as a difference of logarithms; the loss at which the scale is half as fine
/// as at the best.
pub(super) const USUAL_LOSS: f64 = 0.2;

/// The scale below one best log rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Warp {
    pub(crate) best: f64,
}

impl Warp {
    /// A log rate on the levelled scale: 0 for the best.
    pub(crate) fn level(self, log_rate: f64) -> f64 {
        let lead = log_rate - self.best;
        if lead >= 0.0 { lead } else { -USUAL_LOSS * (1.0 - lead / USUAL_LOSS).ln() }
    }

    /// The log rate of a value on the levelled scale; the standard deviation is stretched as the scale is there.
    pub(crate) fn log_rate(self, at: Marginal) -> Marginal {
        let stretch = (-at.mean / USUAL_LOSS).max(0.0).exp();
        let lead = if at.mean >= 0.0 { at.mean } else { USUAL_LOSS * (1.0 - stretch) };
        Marginal { mean: self.best + lead, sd: at.sd * stretch }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_rise_with_the_rate_and_come_back() {
        let warp = Warp { best: 3.0 };
        let mut before = f64::NEG_INFINITY;
        for i in -400..100 {
            let log = 3.0 + 0.01 * f64::from(i);
            let mean = warp.level(log);
            assert!(mean > before);
            before = mean;
            let back = warp.log_rate(Marginal { mean, sd: 0.01 });
            assert!((back.mean - log).abs() < 1e-9 && back.sd >= 0.01, "{log} {back:?}");
        }
        assert_eq!(warp.level(3.1) - warp.level(3.0), 3.1 - 3.0);
        assert!(warp.level(3.0 - 11_f64.ln()) > -0.6);
    }
}
