//! The progress of a run, and its comparison with the best run.

/// One line of progress.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProgressPoint {
    /// Fraction of all flops that is done, 0 to 1.
    pub flops: f64,
    /// Mean GFLOP/s since the start.
    pub rate_gflops: f64,
}

impl ProgressPoint {
    /// After `percent` of the columns at this mean rate; `None` where that is not possible.
    pub(crate) fn of_columns(percent: f64, rate_gflops: f64) -> Option<Self> {
        // Columns c of N leave (1 − c)³ of the flops: 19 % of the columns are 47 % of the work.
        Self::of_flops(100.0 - 100.0 * (1.0 - percent / 100.0).powi(3), rate_gflops)
    }

    /// After `percent` of the flops at this mean rate; `None` where that is not possible.
    pub(crate) fn of_flops(percent: f64, rate_gflops: f64) -> Option<Self> {
        let possible = (0.0..=100.0).contains(&percent) && rate_gflops.is_finite() && rate_gflops > 0.0;
        possible.then_some(Self { flops: percent / 100.0, rate_gflops })
    }

    /// What our engine reports in `line`, see [`space::out::progress`].
    pub(crate) fn of_our_line(line: &str) -> Option<Self> {
        let (columns, rate) = space::out::read_progress(line)?;
        Self::of_columns(columns, rate)
    }
}

/// The progress that the lines of a text report, rising; `of_line` reads one of them.
pub(crate) fn traced(text: &str, of_line: impl Fn(&str) -> Option<ProgressPoint>) -> Vec<ProgressPoint> {
    let mut trace = Vec::new();
    text.lines().filter_map(of_line).for_each(|point| add(&mut trace, point));
    trace
}

/// Adds one more point to the progress before it.
pub(crate) fn add(trace: &mut Vec<ProgressPoint>, point: ProgressPoint) {
    // A repeated run starts at 0 again.
    if trace.last().is_some_and(|last| last.flops > point.flops) {
        trace.clear();
    }
    trace.push(point);
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
    fn our_lines_are_read_back() {
        let text = format!(
            "{}\nnoise\n{}\n",
            space::out::progress(1900, 10_000, 97.3),
            space::out::progress(10_000, 10_000, 90.0)
        );
        let read = traced(&text, ProgressPoint::of_our_line);
        assert!((read[0].flops - 0.4686).abs() < 1e-4 && (read[0].rate_gflops - 97.3).abs() < 0.01, "{read:?}");
        assert_eq!(read[1], ProgressPoint { flops: 1.0, rate_gflops: 90.0 });
        for impossible in ["Column=1 Fraction=101% Gflops=1", "Column=1 Fraction=5% Gflops=-1", "Fraction=% Gflops=1"] {
            assert_eq!(ProgressPoint::of_our_line(impossible), None, "{impossible}");
        }
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
