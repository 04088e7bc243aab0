//! Weights of many ranks from the times of successive partial runs.
//!
//! First w ← w/T, twice: the weights with which all ranks would take the same time. Then single blocks are moved from the
//! slowest rank to the fastest as long as this shortens the run. The best weights so far are kept.

/// Number of multiplicative updates.
const UPDATES: usize = 2;
/// Consecutive moves without improvement after which the search ends.
const MAX_FAILED: usize = 2;
/// Largest factor of an update, also for a rank that was too fast to be timed.
const LARGEST_FACTOR: f64 = 4.0;

/// The search for the weights of one axis.
#[derive(Debug, Clone)]
pub struct WeightSearch {
    weights: Vec<f64>,
    /// Total number of blocks; a move changes the weights by one block.
    blocks: f64,
    runs: usize,
    failed_moves: usize,
    best: Option<(f64, Vec<f64>)>,
    /// The times at the best weights.
    best_times: Vec<f64>,
}

impl WeightSearch {
    /// Starts with these weights, together 1, for so many blocks.
    pub fn new(weights: Vec<f64>, blocks: usize) -> Self {
        let best_times = vec![0.0; weights.len()];
        Self { weights, blocks: blocks as f64, runs: 0, failed_moves: 0, best: None, best_times }
    }

    /// The weights to try next; at the end, the best ones.
    pub fn weights(&self) -> &[f64] {
        match &self.best {
            Some((_, best)) if self.is_final() => best,
            _ => &self.weights,
        }
    }

    /// The weights with the shortest run so far; before any run, the initial ones.
    pub fn best(&self) -> &[f64] {
        self.best.as_ref().map_or(&self.weights, |(_, best)| best)
    }

    /// Whether the search has ended.
    pub fn is_final(&self) -> bool {
        self.failed_moves >= MAX_FAILED
    }

    /// Adds the times of a run with [`weights`](Self::weights): computing time of each rank and the time of the whole, in
    /// seconds.
    ///
    /// # Panics
    /// When the number of times differs from the number of weights.
    pub fn observe(&mut self, compute_s: &[f64], whole_s: f64) {
        assert_eq!(compute_s.len(), self.weights.len(), "one time per rank");
        if self.is_final() {
            return;
        }
        let better = self.best.as_ref().is_none_or(|(best_s, _)| whole_s < *best_s);
        if better {
            self.best = Some((whole_s, self.weights.clone()));
            self.best_times = compute_s.to_vec();
        }
        self.runs += 1;
        if self.runs <= UPDATES {
            self.weights = updated(&self.weights, compute_s);
            return;
        }
        // The run after the last update is not the result of a move.
        if self.runs > UPDATES + 1 {
            self.failed_moves = if better { 0 } else { self.failed_moves + 1 };
        }
        self.move_block();
    }

    /// Moves one block of the best weights from the slowest rank to the fastest; after a failed move to the next fastest.
    fn move_block(&mut self) {
        let Some((_, best)) = &self.best else { return };
        let mut order: Vec<usize> = (0..best.len()).collect();
        order.sort_by(|&i, &j| self.best_times[i].total_cmp(&self.best_times[j]));
        let (Some(&slowest), Some(&fastest)) = (order.last(), order.get(self.failed_moves.min(order.len() - 1))) else {
            return;
        };
        let block = (1.0 / self.blocks).min(best[slowest]);
        self.weights = best.clone();
        if slowest == fastest {
            self.failed_moves = MAX_FAILED;
            return;
        }
        self.weights[slowest] -= block;
        self.weights[fastest] += block;
    }
}

/// w/T, normalised. A rank without work keeps its weight.
fn updated(weights: &[f64], compute_s: &[f64]) -> Vec<f64> {
    let busy: Vec<f64> = compute_s.iter().zip(weights).filter(|(_, w)| **w > 0.0).map(|(t, _)| *t).collect();
    let mean = busy.iter().sum::<f64>() / busy.len().max(1) as f64;
    let factor = |time_s: f64| if time_s > 0.0 { (mean / time_s).min(LARGEST_FACTOR) } else { LARGEST_FACTOR };
    let raw: Vec<f64> =
        weights.iter().zip(compute_s).map(|(w, &time_s)| if mean > 0.0 { w * factor(time_s) } else { *w }).collect();
    let sum: f64 = raw.iter().sum();
    raw.into_iter().map(|w| w / sum).collect()
}
