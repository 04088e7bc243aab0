//! The operands of the measurements, each in the memory of the core that works on it.

use parking_lot::{Mutex, RwLock};

use super::sample::ProbeOptions;
use crate::comm::threads::{ThreadComm, world};
use crate::mat::{Buffer, NoMemory};

/// Widest panel that is measured.
pub(super) const MAX_K: usize = 512;

/// Most words of a core's part of the trailing matrix: 128 MB are far outside the caches of one core.
const MAX_TRAILING: usize = 1 << 24;

/// Such words per second of budget and thread count: a round then takes about a quarter of the budget at
/// 20 GFLOP/s per core.
const WORDS_PER_S: f64 = 1.4e6;

/// Operands of all cores.
pub(super) struct Stage {
    /// Order of the matrix that all ranks hold together.
    pub(super) n: usize,
    /// Elements of the trailing matrix on each core.
    pub(super) trailing: usize,
    places: Vec<Place>,
}

/// Operands of one core. No lock is contended while the clock runs.
pub(super) struct Place {
    /// Part of the trailing matrix.
    pub(super) trailing: Mutex<Buffer>,
    /// Columns of U.
    pub(super) upper: Mutex<Buffer>,
    /// The rank's panel, on the rank's first core.
    pub(super) panel: RwLock<Buffer>,
    /// The core as a rank of its own.
    pub(super) comm: Mutex<ThreadComm>,
}

/// Thread counts that split `cores` cores into equal ranks.
pub(super) fn thread_counts(cores: usize) -> impl Iterator<Item = usize> {
    (1..=cores).filter(move |&threads| cores.is_multiple_of(threads))
}

/// The most square grid p ≤ q of `ranks`.
pub(super) fn grid(ranks: usize) -> (usize, usize) {
    let p = (1..=ranks.isqrt()).rev().find(|&p| ranks.is_multiple_of(p)).unwrap_or(1);
    (p, ranks / p)
}

/// Leading dimension for `rows` rows: never a power of two.
pub(super) fn ld(rows: usize) -> usize {
    let ld = rows.next_multiple_of(8) + 8;
    if ld.is_power_of_two() { ld + 8 } else { ld }
}

/// Words that core `core` of `cores` needs for its rank's panel and its columns of U at order `n`.
fn operands(n: usize, cores: usize, core: usize) -> (usize, usize) {
    let shapes = thread_counts(cores).map(|threads| (threads, n.div_ceil(grid(cores / threads).0)));
    shapes.fold((0, 0), |(panel, upper), (threads, longest)| {
        let first = core.is_multiple_of(threads);
        let rows = if first { ld(longest) * MAX_K } else { 0 };
        (panel.max(rows), upper.max(ld(MAX_K) * longest.div_ceil(threads)))
    })
}

/// Words of each core's part of an n×n matrix, whatever its shape: padding and rounding are below n + 1 times 24.
fn part(n: usize, cores: usize) -> usize {
    n * n / cores + 24 * (n + 1)
}

/// Words of all operands at order `n`.
fn words(n: usize, cores: usize) -> usize {
    let each = (0..cores).map(|core| operands(n, cores, core)).map(|(panel, upper)| panel + upper);
    cores * part(n, cores) + each.sum::<usize>()
}

/// The largest order that `options` allow: within memory, and with rounds that are short against the budget.
pub(super) fn order(options: &ProbeOptions) -> usize {
    let cores = options.cores.len();
    let trailing = (WORDS_PER_S * options.budget_s / thread_counts(cores).count() as f64) as usize;
    let mut n = options.max_n.min((trailing.min(MAX_TRAILING) * cores).isqrt()).max(1);
    let allowed = usize::try_from(options.memory_bytes / 8).unwrap_or(usize::MAX);
    while words(n, cores) > allowed && n > 1 {
        n = n * 3 / 4;
    }
    n
}

impl Stage {
    /// Operands for `cores` cores, at least 1, of order `n`, at least 1.
    pub(super) fn new(cores: usize, n: usize) -> Result<Self, NoMemory> {
        let trailing = part(n, cores);
        let comms = world(cores, true);
        let place = |(core, comm)| -> Result<Place, NoMemory> {
            let (panel, upper) = operands(n, cores, core);
            Ok(Place {
                trailing: Mutex::new(Buffer::zeroed(trailing, true)?),
                upper: Mutex::new(Buffer::zeroed(upper, true)?),
                panel: RwLock::new(Buffer::zeroed(panel, true)?),
                comm: Mutex::new(comm),
            })
        };
        let places = comms.into_iter().enumerate().map(place).collect::<Result<_, _>>()?;
        Ok(Self { n, trailing, places })
    }

    /// Operands of core `core`.
    pub(super) fn place(&self, core: usize) -> &Place {
        &self.places[core]
    }

    /// Gives core `core` its numbers, from the thread that runs there, so that the pages lie near it.
    pub(super) fn fill(&self, core: usize) {
        let place = self.place(core);
        // A panicked measurement ends the probe, so nobody works with what it left behind.
        fill(&mut place.trailing.lock(), core);
        fill(&mut place.upper.lock(), core);
        fill(&mut place.panel.write(), core);
    }
}

/// Small numbers: their products, and the inverse of a unit triangle of them, stay near what they meet.
fn fill(values: &mut [f64], core: usize) {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64.wrapping_add(core as u64);
    for value in values {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        *value = ((state >> 11) as f64 / (1_u64 << 53) as f64 - 0.5) * 1e-3;
    }
}
