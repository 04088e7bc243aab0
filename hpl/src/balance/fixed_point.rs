//! Shares in proportion to the rates seen last.

use super::Times;

/// Shares beyond which a worker's rate would be guessed from next to nothing.
const LIMITS: [f64; 2] = [1e-3, 1.0 - 1e-3];
/// A change of the share below this is none.
const SETTLED: f64 = 2e-3;
/// Iterations after which noise alone moves the share.
const MOST: usize = 4;

/// The fixed point of s ← b/(a + b), with a = T_slow/s and b = T_fast/(1 − s) the times that each worker would take for
/// everything. Where the rates do not depend on the share it is there in one step; after at most 4 iterations the share
/// of the fastest of them is kept.
#[derive(Debug, Clone)]
pub struct FixedPoint {
    share: f64,
    /// Time of the fastest iteration, with its share.
    best: Option<(f64, f64)>,
    iterations: usize,
    settled: bool,
}

impl FixedPoint {
    /// Starts with this share of the slower worker; for nothing known 1/2.
    pub fn new(share: f64) -> Self {
        Self { share: share.clamp(LIMITS[0], LIMITS[1]), best: None, iterations: 0, settled: false }
    }

    pub(super) fn share(&self) -> f64 {
        self.share
    }

    pub(super) fn settled(&self) -> bool {
        self.settled
    }

    pub(super) fn observe(&mut self, times: &Times) {
        if self.settled {
            return;
        }
        self.iterations += 1;
        if self.best.is_none_or(|(best_s, _)| times.whole_s < best_s) {
            self.best = Some((times.whole_s, self.share));
        }
        let (a, b) = (times.slow_s / self.share, times.fast_s / (1.0 - self.share));
        // Two times of 0 say nothing.
        let next = if a + b > 0.0 { (b / (a + b)).clamp(LIMITS[0], LIMITS[1]) } else { self.share };
        self.settled = (next - self.share).abs() < SETTLED || self.iterations == MOST;
        self.share = if self.settled { self.best.map_or(next, |(_, share)| share) } else { next };
    }
}
