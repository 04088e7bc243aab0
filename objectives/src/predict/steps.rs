//! A run as its steps: local shapes, messages and overlap.

use space::Candidate;
use space::machine::RateKernel;

use super::rates::RankRates;
use crate::mcl::{McLayer, inner_grid};
use crate::netlib::Problem;

/// Predicted time of a run, term by term, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Terms {
    /// Panel factorization, without its messages.
    pub fact_s: f64,
    /// Pivot exchanges over the process column.
    pub pivot_s: f64,
    /// Panel broadcast over the process row.
    pub lbcast_s: f64,
    /// Row swaps and their exchange.
    pub rs_s: f64,
    /// Triangular solves of the update.
    pub trsm_s: f64,
    /// Matrix products of the update.
    pub gemm_s: f64,
    /// Backward substitution.
    pub trsv_s: f64,
    /// Part of the above that DEPTH hides; subtract it.
    pub hidden_s: f64,
}

impl Terms {
    /// Time of the run in seconds.
    pub fn total_s(&self) -> f64 {
        self.fact_s + self.pivot_s + self.lbcast_s + self.rs_s + self.trsm_s + self.gemm_s + self.trsv_s - self.hidden_s
    }
}

/// The parameters on which the prediction depends; equal keys have equal times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct StepsKey {
    pub(super) n: usize,
    pub(super) nb: usize,
    pub(super) p: usize,
    pub(super) q: usize,
    pub(super) threads: usize,
    pub(super) look_ahead: bool,
}

impl StepsKey {
    pub(super) fn new(c: &Candidate) -> Self {
        let h = &c.hpl;
        Self { n: h.n, nb: h.nb, p: h.p, q: h.q, threads: c.engine.threads, look_ahead: h.depth > 0 }
    }

    /// Ranks of this run where a description has so many of one thread.
    pub(super) fn joined(&self, ranks: usize) -> usize {
        (ranks / self.threads.max(1)).clamp(1, (self.p * self.q).max(1))
    }
}

/// Costs of a step's messages on one grid.
///
/// Each layer inside the grid is charged on its own full extent (m_x, n_x), as in MCL's cumulative reading:
/// a share m_x/N of the panels with a share m_x/N of their words. The sums below are over layers.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Messages {
    log_p: f64,
    p: f64,
    /// Pivot exchange: seconds per message and per word.
    pivot: [f64; 2],
    /// Broadcast along the row.
    row: [f64; 2],
    /// Row exchange over the column.
    column: [f64; 2],
    /// How often a row exchange sends each word.
    exchanged: f64,
}

impl Messages {
    /// `layers` are in ranks of this run; `coefficient` multiplies the words of the row exchange.
    pub(super) fn new(layers: &[McLayer], key: &StepsKey, coefficient: f64) -> Self {
        let grid = Problem::new(key.n, key.nb, key.p, key.q);
        let ranks = key.p * key.q;
        let spanning = layers.iter().position(|layer| layer.ranks >= ranks).unwrap_or(layers.len().saturating_sub(1));
        let mut messages = Self { log_p: grid.log_p(), p: grid.p, exchanged: coefficient, ..Self::default() };
        for (index, layer) in layers.iter().enumerate().take(spanning + 1) {
            let joined = if index == spanning { ranks } else { layer.ranks };
            // Within a process no message is sent.
            if joined == 1 {
                continue;
            }
            let (p, q) = if index == spanning { (grid.p, grid.q) } else { inner_grid(joined, &grid) };
            let (rows, columns) = (p / grid.p, q / grid.q);
            let mut add = |to: fn(&mut Self) -> &mut [f64; 2], alpha: f64, beta: f64| {
                let costs = to(&mut messages);
                costs[0] += alpha * layer.alpha_s;
                costs[1] += beta * layer.beta_s;
            };
            if key.p > 1 {
                add(|m| &mut m.pivot, rows, rows);
                add(|m| &mut m.column, columns, columns * columns);
            }
            if key.q > 1 {
                add(|m| &mut m.row, rows, rows * rows);
            }
        }
        messages
    }

    /// NB pivot exchanges of 2NB + 4 words in log P rounds.
    fn pivot_s(&self, jb: f64) -> f64 {
        jb * self.log_p * (self.pivot[0] + self.pivot[1] * (2.0 * jb + 4.0))
    }

    /// One panel of `mp` local rows to the next process column.
    fn broadcast_s(&self, mp: f64, jb: f64) -> f64 {
        self.row[0] + self.row[1] * mp * jb
    }

    /// Exchange of `jb` rows over `nq` local columns.
    fn exchange_s(&self, jb: f64, nq: f64) -> f64 {
        self.column[0] * (self.log_p + self.p - 1.0) + self.exchanged * self.column[1] * jb * nq
    }
}

/// Sizes of one step on the fullest process.
#[derive(Debug, Clone, Copy)]
struct StepSizes {
    /// Columns of the panel.
    jb: f64,
    /// Local rows of the panel as a message.
    mp: f64,
    /// Rows that a process factors: those below the diagonal block and, as every process row holds L1, that block.
    mf: f64,
    /// Local rows below the panel.
    mt: f64,
    /// Local columns right of the panel, b included.
    nq: f64,
}

/// The steps of one candidate.
#[derive(Debug, Clone, Copy)]
pub(super) struct CandidateSteps<'a> {
    key: &'a StepsKey,
}

/// Largest local length over `procs` processes of `len` indices dealt in blocks of `nb`.
fn fullest(len: usize, nb: usize, procs: usize) -> f64 {
    let blocks = len.div_ceil(nb);
    let full = blocks.div_ceil(procs) * nb;
    // The last block may be short; it counts only when no other process has as many blocks.
    let short = if procs == 1 || blocks % procs == 1 { blocks * nb - len } else { 0 };
    (full - short) as f64
}

impl<'a> CandidateSteps<'a> {
    pub(super) fn new(key: &'a StepsKey) -> Self {
        Self { key }
    }

    fn step(&self, step: usize) -> StepSizes {
        let StepsKey { n, nb, p, q, .. } = *self.key;
        let rows = n - step * nb;
        let jb = nb.min(rows);
        let mt = fullest(rows - jb, nb, p);
        StepSizes { jb: jb as f64, mp: fullest(rows, nb, p), mf: mt + jb as f64, mt, nq: fullest(rows - jb + 1, nb, q) }
    }

    /// Largest sizes of each kernel in the run.
    pub(super) fn largest(&self) -> Vec<(RateKernel, Vec<f64>)> {
        if self.key.n == 0 {
            return Vec::new();
        }
        let s = self.step(0);
        vec![
            (RateKernel::Dgemm, vec![s.mt, s.nq, s.jb]),
            (RateKernel::Dtrsm, vec![s.jb, s.nq]),
            (RateKernel::Panel, vec![s.mf, s.jb]),
            (RateKernel::Swap, vec![s.jb, s.nq]),
        ]
    }

    /// Time of the run by terms. `memory_s_per_word`: seconds per matrix entry of the backward substitution.
    pub(super) fn terms(&self, kernels: &RankRates, messages: &Messages, memory_s_per_word: f64) -> Terms {
        let key = self.key;
        let steps = key.n.div_ceil(key.nb);
        let mut terms = Terms::default();
        // With one process column and one thread nothing can overlap with the panel.
        let overlaps = key.look_ahead && (key.q > 1 || key.threads > 1);
        let mut before: Option<(StepSizes, f64)> = None;
        for index in 0..steps {
            let s = self.step(index);
            let (pivot_s, lbcast_s) = (messages.pivot_s(s.jb), messages.broadcast_s(s.mp, s.jb));
            let fact_s = match before {
                Some((previous, update_s)) if overlaps => {
                    let fact_s = kernels.panel_alone_s(s.mf, s.jb);
                    let arrival_s = fact_s + pivot_s + lbcast_s;
                    let ahead = Ahead { previous, panel: s, update_s, fact_s: fact_s + pivot_s, arrival_s };
                    terms.hidden_s += update_s + arrival_s - ahead.time_s(key, kernels, messages);
                    fact_s
                }
                _ => kernels.panel_s(s.mf, s.jb),
            };
            let [rs_s, trsm_s, gemm_s] = update(&s, s.nq, kernels, messages);
            before = Some((s, rs_s + trsm_s + gemm_s));
            terms.fact_s += fact_s;
            terms.pivot_s += pivot_s;
            terms.lbcast_s += lbcast_s;
            terms.rs_s += rs_s;
            terms.trsm_s += trsm_s;
            terms.gemm_s += gemm_s;
        }
        terms.trsv_s = self.trsv_s(messages, memory_s_per_word, steps as f64);
        terms
    }

    /// T_backs of \[HPL\]: half of the matrix read once over all ranks, and x in N/NB pieces of NB words around the ring.
    fn trsv_s(&self, messages: &Messages, memory_s_per_word: f64, steps: f64) -> f64 {
        let (n, ranks) = (self.key.n as f64, (self.key.p * self.key.q) as f64);
        let [alpha_s, beta_s] = [0, 1].map(|index: usize| messages.row[index].max(messages.column[index]));
        memory_s_per_word * n * n / (2.0 * ranks) + steps * alpha_s + 2.0 * n * beta_s
    }
}

/// Row exchange, triangular solve and product over `columns` local columns of a step, in seconds.
fn update(s: &StepSizes, columns: f64, kernels: &RankRates, messages: &Messages) -> [f64; 3] {
    if columns == 0.0 {
        return [0.0; 3];
    }
    let rs_s = kernels.swap_s(s.jb, columns) + messages.exchange_s(s.jb, columns);
    let gemm_s = if s.mt > 0.0 { kernels.dgemm_s(s.mt, columns, s.jb) } else { 0.0 };
    [rs_s, kernels.dtrsm_s(s.jb, columns), gemm_s]
}

/// A panel factored during the update before it.
struct Ahead {
    /// The step of the update.
    previous: StepSizes,
    /// The step of the panel.
    panel: StepSizes,
    /// Time of the update in one piece.
    update_s: f64,
    /// Time of the panel on one thread, pivot exchange included.
    fact_s: f64,
    /// The same with its broadcast.
    arrival_s: f64,
}

impl Ahead {
    /// Time of update and panel together, in seconds.
    ///
    /// The owner updates the panel's columns first, in a separate piece, then one of its threads factors while the
    /// others continue the update. Every process column is the owner in turn, and none waits while it has work: a
    /// step takes the mean work time of a rank, but at least the time of the chain to the next panel.
    fn time_s(&self, key: &StepsKey, kernels: &RankRates, messages: &Messages) -> f64 {
        let rest = (self.previous.nq - self.panel.jb).max(0.0);
        let [first_s, rest_s] =
            [self.panel.jb, rest].map(|columns| update(&self.previous, columns, kernels, messages).iter().sum::<f64>());
        let split_s = first_s + rest_s - self.update_s;
        let work_s = self.update_s + (split_s + self.fact_s / key.threads as f64) / key.q as f64;
        work_s.max(first_s + self.arrival_s)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn fullest_counts_like_the_owner_table(len in 0usize..400, nb in 1usize..40, procs in 1usize..7) {
            let axis = hpl::plan::layout::Distribution::block_cyclic(len, nb, procs);
            let most = (0..procs).map(|proc| axis.local_len(proc)).max().unwrap();
            prop_assert_eq!(fullest(len, nb, procs), most as f64);
        }
    }
}
