//! The progress of a run, and its comparison with the best run.

use super::output::number;
use super::profile::Foreign;

/// One line of progress.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProgressPoint {
    /// Fraction of all flops that is done, 0 to 1.
    pub flops: f64,
    /// Mean GFLOP/s since the start.
    pub rate_gflops: f64,
}

impl Foreign {
    /// The progress that the text reports, rising; empty when the profile has no pattern for it.
    pub fn progress(&self, text: &str) -> Vec<ProgressPoint> {
        let mut trace = Vec::new();
        text.lines().for_each(|line| self.take_in(line, &mut trace));
        trace
    }

    /// Adds one more line to the progress of the lines before it.
    pub(crate) fn take_in(&self, line: &str, trace: &mut Vec<ProgressPoint>) {
        let Some(found) = self.patterns.progress.as_ref().and_then(|pattern| pattern.captures(line)) else { return };
        let percent = |group| number(&found, group).filter(|percent| (0.0..=100.0).contains(percent));
        // Columns c of N leave (1 − c)³ of the flops: 19 % of the columns are 47 % of the work.
        let columns = percent("columns").map(|percent| 1.0 - (1.0 - percent / 100.0).powi(3));
        let flops = columns.or_else(|| percent("flops").map(|percent| percent / 100.0));
        let rate = number(&found, "gflops").filter(|rate| rate.is_finite() && *rate > 0.0);
        let (Some(flops), Some(rate_gflops)) = (flops, rate) else { return };
        // A repeated run starts at 0 again.
        if trace.last().is_some_and(|last| last.flops > flops) {
            trace.clear();
        }
        trace.push(ProgressPoint { flops, rate_gflops });
    }

    /// Whether the profile has a pattern for progress.
    pub(crate) fn reports_progress(&self) -> bool {
        self.patterns.progress.is_some()
    }
}

/// Mean rate of an active run divided by that of another run at the same share of the work, with the share; `None` until
/// both have reached it. Rates of HPL fall towards the end, so only rates at equal shares are comparable.
pub fn ratio(running: &[ProgressPoint], other: &[ProgressPoint]) -> Option<(f64, f64)> {
    let now = running.last()?;
    let after = other.iter().position(|at| at.flops >= now.flops)?;
    let (a, b) = (other[after.checked_sub(1)?], other[after]);
    let part = if b.flops > a.flops { (now.flops - a.flops) / (b.flops - a.flops) } else { 1.0 };
    Some((now.rate_gflops / (a.rate_gflops + part * (b.rate_gflops - a.rate_gflops)), now.flops))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(points: &[(f64, f64)]) -> Vec<ProgressPoint> {
        points.iter().map(|&(flops, rate_gflops)| ProgressPoint { flops, rate_gflops }).collect()
    }

    #[test]
    fn rates_compare_at_the_same_share_of_the_work() {
        let best = trace(&[(0.1, 120.0), (0.5, 110.0), (0.9, 100.0)]);
        let (ratio_now, share) = ratio(&trace(&[(0.1, 90.0), (0.3, 92.0)]), &best).unwrap();
        assert!((ratio_now - 92.0 / 115.0).abs() < 1e-12 && share == 0.3);
        assert_eq!(ratio(&trace(&[(0.95, 90.0)]), &best), None, "beyond what the other tells");
        assert_eq!(ratio(&trace(&[(0.05, 90.0)]), &best), None, "before what the other tells");
        assert_eq!(ratio(&[], &best), None);
    }
}
