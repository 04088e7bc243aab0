//! The multi-communication-layer model: one set of α and β per layer of the machine.
//!
//! Source: \[MCL\]; equation numbers in parentheses are that paper's. Equations (1) and (2) are missing from
//! the text we hold; ours were recovered by requiring that their sums give the printed (25) and (27)–(29),
//! which a test repeats. (17)–(21), the sizes of the layers, are inferred. Every free choice of this
//! reconstruction is a field of [`Mcl`]. The model depends on N, NB, P, Q and the layers only:
//! PFACT, RFACT, NBMIN, NDIV, BCAST, DEPTH and SWAP do not change its result.

use num_integer::lcm;
use space::machine::{Accelerator, Layer};

use crate::netlib::Problem;
use crate::timeline::{StepTimes, Timeline};

/// The extent for which a layer is charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LayerExtent {
    /// The difference to the layer inside it, m_j − m_{j−1} and n_j − n_{j−1}, as (27)–(29) are
    /// printed. A layer whose m or n does not grow then costs nothing, unlike on any real machine.
    Printed,
    /// Its own full extent. This reproduces the paper's numbers.
    #[default]
    Cumulative,
}

/// Placement of the ranks of a layer in the grid; (17)–(21) are missing from the text we have, both are inferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InnerGrid {
    /// p_x × q_x as square as possible with p_x ≤ q_x.
    #[default]
    Square,
    /// As [`Square`](Self::Square), but row after row of the run's own grid where p_x or q_x would be prime.
    PrimesKeepGrid,
}

/// Bandwidth of the accelerator's memory, which determines β₁.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MemoryBandwidth {
    /// BW_eq = BW_core·M·W, equation (7).
    #[default]
    Equivalent,
    /// All memory controllers at once, the paper's "simple sum".
    SimpleSum,
}

/// One layer with the costs of its messages.
#[derive(Debug, Clone, PartialEq)]
pub struct McLayer {
    /// Name, as in `machine.toml`.
    pub name: String,
    /// Ranks that it joins, 1 for the memory inside a rank.
    pub ranks: usize,
    /// α_j: seconds per message.
    pub alpha_s: f64,
    /// β_j: seconds per 8-byte word.
    pub beta_s: f64,
}

impl McLayer {
    /// A layer of a description with latency `alpha_s`, of which `senders` ranks of a run have one link. β is multiplied by the
    /// number of them that share its bandwidth.
    pub fn of(layer: &Layer, alpha_s: f64, senders: usize) -> Self {
        let sharing = layer.shared_by.min(senders).max(1);
        let beta_s = layer.beta_s_per_word * sharing as f64;
        Self { name: layer.name.clone(), ranks: layer.ranks, alpha_s, beta_s }
    }
}

/// The model with its choices.
#[derive(Debug, Clone, PartialEq)]
pub struct Mcl {
    /// γ: seconds per flop of one rank.
    pub gamma_s: f64,
    /// Layers, innermost first; the last one joins the whole grid, independent of its `ranks`.
    pub layers: Vec<McLayer>,
    /// The extent for which a layer is charged.
    pub reading: LayerExtent,
    /// Factor of βn·NB/Q in the update: 3 as printed; 2 for full-duplex links, which fits the paper's numbers.
    pub update_coefficient: f64,
    /// Paper reproduction only: round N up to a multiple of NB·lcm(P, Q), equation (17). It would inflate
    /// the time of a 1×960 grid 3.2 times and make a ranking of grids useless.
    pub round_n: bool,
    /// Placement of the ranks of an inner layer in the grid.
    pub inner: InnerGrid,
}

/// Time of one layer, term by term, in seconds.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerTime {
    /// Name of the layer.
    pub name: String,
    /// Pivot exchanges (27).
    pub pivot_s: f64,
    /// Panel broadcast (28).
    pub broadcast_s: f64,
    /// Row exchange of the update (29).
    pub update_s: f64,
}

impl LayerTime {
    /// All terms of the layer, in seconds.
    pub fn total_s(&self) -> f64 {
        self.pivot_s + self.broadcast_s + self.update_s
    }
}

/// Predicted time of a run, term by term.
#[derive(Debug, Clone, PartialEq)]
pub struct Breakdown {
    /// Computation (25), in seconds.
    pub calc_s: f64,
    /// Communication of each layer, innermost first.
    pub layers: Vec<LayerTime>,
}

impl Breakdown {
    /// Time of the run in seconds.
    pub fn total_s(&self) -> f64 {
        self.calc_s + self.layers.iter().map(LayerTime::total_s).sum::<f64>()
    }
}

/// γ of an accelerator in seconds per flop, R_peak = C·F·S (10), and its memory as the first layer:
/// BW_core = 8·M·W·H/C bytes/s (6), BW_eq = BW_core·M·W, α₁ the latency and β₁ = 8/BW_eq (7)–(9).
pub fn accelerator(a: &Accelerator, memory: MemoryBandwidth) -> (f64, McLayer) {
    let words = a.memory_controllers * a.words_per_controller;
    let core_bytes_per_s = 8.0 * words * a.memory_rate_hz / a.cores;
    let bytes_per_s = match memory {
        MemoryBandwidth::Equivalent => core_bytes_per_s * words,
        MemoryBandwidth::SimpleSum => core_bytes_per_s * a.cores,
    };
    let memory = McLayer { name: "device memory".into(), ranks: 1, alpha_s: a.latency_s, beta_s: 8.0 / bytes_per_s };
    (1.0 / (a.cores * a.flops_per_cycle * a.clock_hz), memory)
}

impl Mcl {
    /// The model with our defaults: cumulative layers, update coefficient 2, N as it is.
    pub fn new(gamma_s: f64, layers: Vec<McLayer>) -> Self {
        let (reading, inner) = (LayerExtent::default(), InnerGrid::default());
        Self { gamma_s, layers, reading, update_coefficient: 2.0, round_n: false, inner }
    }

    /// Time of a run in seconds.
    pub fn time_s(&self, problem: &Problem) -> f64 {
        let problem = self.sized(problem);
        let mut time_s = calc_s(self.gamma_s, &problem);
        self.each_layer(&problem, |layer, dm, dn| time_s += self.terms_s(layer, &problem, dm, dn).iter().sum::<f64>());
        time_s
    }

    /// Pivoting, broadcast and update of a layer, in seconds.
    fn terms_s(&self, layer: &McLayer, problem: &Problem, dm: f64, dn: f64) -> [f64; 3] {
        let update_s = update_s(layer, problem, dn, self.update_coefficient);
        [pivot_s(layer, problem, dm), broadcast_s(layer, problem, dm), update_s]
    }

    /// The time of a run, per layer and term.
    pub fn breakdown(&self, problem: &Problem) -> Breakdown {
        let problem = self.sized(problem);
        let mut layers = Vec::with_capacity(self.layers.len());
        self.each_layer(&problem, |layer, dm, dn| {
            let [pivot_s, broadcast_s, update_s] = self.terms_s(layer, &problem, dm, dn);
            layers.push(LayerTime { name: layer.name.clone(), pivot_s, broadcast_s, update_s });
        });
        Breakdown { calc_s: calc_s(self.gamma_s, &problem), layers }
    }

    /// The breakdown distributed over the panels: every term keeps its total. Pivot exchanges are equal in all panels; broadcast
    /// and row exchange are proportional to the rows left; computation follows (1) and (2), at least 0.
    pub fn timeline(&self, problem: &Problem) -> Timeline {
        let g = self.sized(problem);
        let total = self.breakdown(problem);
        let sum = |term: fn(&LayerTime) -> f64| total.layers.iter().map(term).sum::<f64>();
        let [pivot_s, broadcast_s, exchange_s] =
            [sum(|layer| layer.pivot_s), sum(|layer| layer.broadcast_s), sum(|layer| layer.update_s)];
        let panels = (g.n / g.nb).ceil();
        let no_messages = McLayer { name: String::new(), ranks: 1, alpha_s: 0.0, beta_s: 0.0 };
        let flops = |step: usize| {
            let rows = g.n - step as f64 * g.nb;
            let panel = rows.max(g.nb / 3.0 * g.p) / g.p - g.nb / 3.0;
            [panel * g.nb * g.nb, update_step_s(1.0, &no_messages, &g, step + 1, 0.0)]
        };
        let all: f64 = (0..panels as usize).flat_map(flops).sum();
        let mut end_s = 0.0;
        let steps = (0..panels as usize).map(|step| {
            let [fact, update] = flops(step).map(|flops| flops / all * total.calc_s);
            // Rows left of step 0, 1, …, the last: panels, panels − 1, …, 1.
            let left = (panels - step as f64) / (panels * (panels + 1.0) / 2.0);
            let (fact_s, lbcast_s) = (fact + pivot_s / panels, broadcast_s * left);
            let (rs_s, update_s) = (exchange_s * left, update);
            end_s += fact_s + lbcast_s + rs_s + update_s;
            StepTimes { fact_s, lbcast_s, rs_s, update_s, end_s }
        });
        let steps: Vec<StepTimes> = steps.collect();
        Timeline { total_s: end_s, steps, trsv_s: 0.0 }
    }

    /// The problem with N or N_new.
    fn sized(&self, problem: &Problem) -> Problem {
        if self.round_n { Problem { n: rounded_n(problem), ..*problem } } else { *problem }
    }

    /// Calls `charge` with every layer and the rows and columns it is charged for.
    fn each_layer(&self, problem: &Problem, mut charge: impl FnMut(&McLayer, f64, f64)) {
        let (mut inner_m, mut inner_n) = (0.0, 0.0);
        for (index, layer) in self.layers.iter().enumerate() {
            let outermost = index + 1 == self.layers.len();
            let (p, q) = match self.inner {
                _ if outermost => (problem.p, problem.q),
                InnerGrid::Square => inner_grid(layer.ranks, problem),
                InnerGrid::PrimesKeepGrid => prime_keeps_grid(layer.ranks, problem),
            };
            let (m, n) = (p * problem.n / problem.p, q * problem.n / problem.q);
            charge(layer, m - inner_m, n - inner_n);
            if self.reading == LayerExtent::Printed {
                (inner_m, inner_n) = (m, n);
            }
        }
    }
}

/// N_new = ⌈N/(NB·lcm(P, Q))⌉·NB·lcm(P, Q), equation (17).
pub fn rounded_n(g: &Problem) -> f64 {
    let unit = g.nb * lcm(g.p as u64, g.q as u64) as f64;
    (g.n / unit).ceil() * unit
}

/// Rows and columns of ranks p_x × q_x that share a layer joining `ranks` of the grid: as square as
/// possible with p_x ≤ q_x, inside P×Q (inferred from the text around (18)–(21)). Where no such pair fits,
/// the ranks lie as a row-major grid places them.
pub(crate) fn inner_grid(ranks: usize, g: &Problem) -> (f64, f64) {
    let (p_max, q_max) = (g.p as usize, g.q as usize);
    let ranks = ranks.clamp(1, p_max * q_max);
    let largest = ranks.isqrt();
    let fits = |p: &usize| ranks.is_multiple_of(*p) && *p <= p_max && ranks / p <= q_max;
    match (1..=largest).rev().find(fits) {
        Some(p) => (p as f64, (ranks / p) as f64),
        None => row_after_row(ranks, q_max),
    }
}

/// The same, but row after row where p_x or q_x would be prime, [`InnerGrid::PrimesKeepGrid`].
fn prime_keeps_grid(ranks: usize, g: &Problem) -> (f64, f64) {
    let (p, q) = inner_grid(ranks, g);
    if is_prime(p as usize) || is_prime(q as usize) { row_after_row((p * q) as usize, g.q as usize) } else { (p, q) }
}

/// Rows and columns that the first `ranks` ranks of a row-major grid of `q` columns touch.
fn row_after_row(ranks: usize, q: usize) -> (f64, f64) {
    let columns = ranks.min(q);
    (ranks.div_ceil(columns) as f64, columns as f64)
}

fn is_prime(x: usize) -> bool {
    x > 1 && (2..=x.isqrt()).all(|divisor| !x.is_multiple_of(divisor))
}

/// Time of panel `i` ≥ 1 with its factorization and broadcast, equation (1), over one layer.
pub fn pfact_step_s(gamma_s: f64, layer: &McLayer, g: &Problem, i: usize) -> f64 {
    let rows = g.n - i as f64 * g.nb;
    gamma_s * (rows / g.p - g.nb / 3.0) * g.nb * g.nb
        + g.nb * g.log_p() * (layer.alpha_s + layer.beta_s * (2.0 * g.nb + 4.0))
        + layer.alpha_s
        + layer.beta_s * rows * g.nb / g.p
}

/// Time of the update of panel `i` ≥ 1, equation (2), over one layer; `coefficient` is 3 in print.
pub fn update_step_s(gamma_s: f64, layer: &McLayer, g: &Problem, i: usize, coefficient: f64) -> f64 {
    let n = g.n - (i as f64 - 1.0) * g.nb;
    gamma_s * (n * g.nb * g.nb / g.q + 2.0 * n * n * g.nb / (g.p * g.q))
        + layer.alpha_s * (g.log_p() + g.p - 1.0)
        + coefficient * layer.beta_s * n * g.nb / g.q
}

/// Computation of a run in seconds, equation (25) with its last N², a misprint, read as N.
pub fn calc_s(gamma_s: f64, g: &Problem) -> f64 {
    let Problem { n, nb, p, q } = *g;
    let ranks = p * q;
    gamma_s
        * (2.0 * n * n * n / (3.0 * ranks)
            + nb * (3.0 * q + 3.0 * p + 6.0) * n * n / (6.0 * ranks)
            + nb * nb * ((3.0 * p + 2.0) - (2.0 * p + 3.0) * q) * n / (6.0 * ranks))
}

/// Pivot exchanges of a layer charged for `dm` rows, in seconds, equation (27).
pub fn pivot_s(layer: &McLayer, g: &Problem, dm: f64) -> f64 {
    g.log_p() * (layer.alpha_s + layer.beta_s * (2.0 * g.nb + 4.0)) * dm
}

/// Panel broadcast of a layer charged for `dm` rows, in seconds, equation (28).
pub fn broadcast_s(layer: &McLayer, g: &Problem, dm: f64) -> f64 {
    layer.alpha_s * dm / g.nb + layer.beta_s * (dm * dm - dm * g.nb) / (2.0 * g.p)
}

/// Row exchange of a layer charged for `dn` columns, in seconds, equation (29); `coefficient` is 3 in print.
pub fn update_s(layer: &McLayer, g: &Problem, dn: f64, coefficient: f64) -> f64 {
    layer.alpha_s * (g.log_p() + g.p - 1.0) * dn / g.nb
        + coefficient * layer.beta_s * (dn * dn + dn * g.nb) / (2.0 * g.q)
}

#[cfg(test)]
mod tests;
