//! The list of measurements: each kernel for the shapes that occur on ranks of this machine.

use space::domain::squarest;
use space::machine::RateKernel;
use space::stats::{MedianSpread, summary};

use super::clock::Round;
use super::messages;
use super::sample::{Quantity, Sample};
use super::stage::{MAX_K, OperandsByCore, thread_counts};
use super::work::{self, panel_words};
use crate::backend::host::kernels::Kernels;
use crate::backend::host::team::{HelperPanicked, Team};

/// Words of the copy on each core; source and target are much larger than the caches.
const COPY_WORDS: usize = 1 << 21;

/// Widths of panels at the largest local matrix.
const K_ALL: [usize; 9] = [16, 32, 64, 96, 128, 192, 256, 384, 512];
/// Widths at the other shapes.
const K_FEW: [usize; 3] = [32, 64, 192];
/// Widths of triangles, panels and swaps.
const K_SIDE: [usize; 7] = [16, 32, 64, 128, 192, 256, 512];
/// Widths of the panels whose pivot exchange is measured.
const K_PIVOTS: [usize; 2] = [32, 128];

/// One point to measure, with its times so far.
pub(super) struct ProbePoint {
    quantity: Quantity,
    threads: usize,
    sizes: Vec<usize>,
    pub(super) rounds: Vec<Round>,
}

/// All points of a machine of `cores` cores.
pub(super) fn plan(cores: usize, stage: &OperandsByCore) -> Vec<ProbePoint> {
    let mut points = Vec::new();
    for threads in thread_counts(cores) {
        let (p, q) = squarest(cores / threads);
        let (m, n) = (stage.n / p, stage.n / q);
        kernel_points(&mut points, stage, threads, (m, n));
    }
    add(&mut points, Quantity::Copy, 1, &[COPY_WORDS.min(stage.trailing / 2)]);
    if cores > 1 {
        for words in messages::SIZES.into_iter().filter(|&words| words <= stage.trailing) {
            add(&mut points, Quantity::Message, 1, &[words]);
        }
        let m = stage.n / squarest(cores).1;
        for k in K_PIVOTS.into_iter().filter(|&k| k <= m && panel_words(m, k) <= stage.trailing) {
            add(&mut points, Quantity::Pivot, 1, &[m, k]);
        }
    }
    points
}

/// Adds a point, unless one of its sizes is 0 or the same point is already in the list, as happens for small matrices.
fn add(points: &mut Vec<ProbePoint>, quantity: Quantity, threads: usize, sizes: &[usize]) {
    let known = |point: &ProbePoint| point.quantity == quantity && point.threads == threads && point.sizes == sizes;
    if sizes.iter().all(|&size| size > 0) && !points.iter().any(known) {
        points.push(ProbePoint { quantity, threads, sizes: sizes.to_vec(), rounds: Vec::new() });
    }
}

/// Points for ranks of `threads` threads whose part of the largest matrix is m×n, m ≥ n.
fn kernel_points(points: &mut Vec<ProbePoint>, stage: &OperandsByCore, threads: usize, (m, n): (usize, usize)) {
    let mut rate = |kernel, sizes: &[usize]| add(points, Quantity::Rate(kernel), threads, sizes);
    let narrow = |k: &usize| (*k).min(MAX_K).min(n);
    for k in K_ALL.iter().map(narrow) {
        rate(RateKernel::Dgemm, &[m, n, k]);
    }
    for k in K_FEW.iter().map(narrow) {
        // The transposed grid, later steps of the run, and the columns of the next panel.
        for (m, n) in [(n, m), (m / 2, n / 2), (m / 4, n / 4), (m, k), (m / 4, k)] {
            rate(RateKernel::Dgemm, &[m, n, k]);
        }
    }
    for k in K_SIDE.iter().map(narrow) {
        for n in [n, m, n / 4] {
            rate(RateKernel::Dtrsm, &[k, n]);
        }
        // A quarter would stay in cache, which the rows of a run do only near its end.
        for n in [n, m, n / 2] {
            rate(RateKernel::Swap, &[k, n]);
        }
        for m in [m, n, m / 4, m / 10] {
            if m >= k && panel_words(m, k) <= stage.trailing {
                rate(RateKernel::Panel, &[m, k]);
            }
        }
    }
}

impl ProbePoint {
    /// Runs the point once on all cores.
    pub(super) fn round(
        &self,
        kernels: &dyn Kernels,
        stage: &OperandsByCore,
        team: &mut Team<'_>,
    ) -> Result<Round, HelperPanicked> {
        match (self.quantity, self.sizes.as_slice()) {
            (Quantity::Rate(RateKernel::Dgemm), &[m, n, k]) => {
                work::gemm(kernels, stage, team, self.threads, (m, n, k))
            }
            (Quantity::Rate(RateKernel::Dtrsm), &[k, n]) => work::trsm(kernels, stage, team, self.threads, (k, n)),
            (Quantity::Rate(RateKernel::Panel), &[m, k]) => work::panel(kernels, stage, team, self.threads, (m, k)),
            (Quantity::Rate(RateKernel::Swap), &[k, n]) => work::swap(stage, team, self.threads, (k, n)),
            (Quantity::Copy, &[words]) => work::copy(stage, team, words),
            (Quantity::Pivot, &[m, k]) => work::pivots(kernels, stage, team, (m, k)),
            (Quantity::Message, &[words]) => messages::ping_pong(stage, team, words),
            _ => unreachable!("planned above with its sizes"),
        }
    }

    /// The median of the rounds. `None` without a round, and for a difference of two times that is below the noise.
    pub(super) fn sample(&self) -> Option<Sample> {
        let times_s: Vec<f64> = self.rounds.iter().map(|round| round.time_s).collect();
        let MedianSpread { median, spread } = summary(&times_s);
        (median > 0.0).then(|| Sample {
            quantity: self.quantity,
            threads: self.threads,
            sizes: self.sizes.clone(),
            time_s: median,
            spread,
            rounds: self.rounds.len(),
            disturbed: self.rounds.iter().filter(|round| round.disturbed).count(),
        })
    }
}
