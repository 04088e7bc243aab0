//! Shares in proportion to the last measured rates.

use super::Times;

/// Limits of the share: beyond them a worker has too little work to measure its rate.
const LIMITS: [f64; 2] = [1e-3, 1.0 - 1e-3];
/// A smaller change of the share ends the balance.
const SMALLEST_CHANGE: f64 = 2e-3;
/// Maximum iterations; further changes of the share would be noise.
const MOST: usize = 4;

/// The fixed point of s ← b/(a + b), with a = T_slow/s and b = T_fast/(1 − s), the times that each worker would take for
/// all the work. If the rates do not depend on the share, it is reached in one step; after at most 4 iterations the share
/// of the fastest iteration is final.
#[derive(Debug, Clone)]
pub struct FixedPoint {
    share: f64,
    /// Time of the fastest iteration, with its share.
    best: Option<(f64, f64)>,
    iterations: usize,
    is_final: bool,
}

impl FixedPoint {
    /// Starts with this share of the slower worker; 1/2 if nothing is known.
    pub fn new(share: f64) -> Self {
        Self { share: share.clamp(LIMITS[0], LIMITS[1]), best: None, iterations: 0, is_final: false }
    }

    pub(super) fn share(&self) -> f64 {
        self.share
    }

    pub(super) fn is_final(&self) -> bool {
        self.is_final
    }

    pub(super) fn observe(&mut self, times: &Times) {
        if self.is_final {
            return;
        }
        self.iterations += 1;
        if self.best.is_none_or(|(best_s, _)| times.whole_s < best_s) {
            self.best = Some((times.whole_s, self.share));
        }
        let (a, b) = (times.slow_s / self.share, times.fast_s / (1.0 - self.share));
        // Two times of 0 leave the share unchanged.
        let next = if a + b > 0.0 { (b / (a + b)).clamp(LIMITS[0], LIMITS[1]) } else { self.share };
        self.is_final = (next - self.share).abs() < SMALLEST_CHANGE || self.iterations == MOST;
        self.share = if self.is_final { self.best.map_or(next, |(_, share)| share) } else { next };
    }
}
