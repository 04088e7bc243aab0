//! The operands of the measurements, each in memory near the core that works on it.

use parking_lot::{Mutex, RwLock};
use space::domain::squarest;

use super::sample::ProbeOptions;
use crate::comm::threads::{ThreadComm, world};
use crate::mat::{Buffer, NoMemory};

/// Widest measured panel.
pub(super) const MAX_K: usize = 512;

/// Maximum words of a core's part of the trailing matrix: 128 MB, much larger than the caches of one core.
const MAX_TRAILING: usize = 1 << 24;

/// Words of a core's part per second of budget and thread count: a round then takes about a quarter of the budget at
/// 20 GFLOP/s per core.
const WORDS_PER_S: f64 = 1.4e6;

/// Operands of all cores.
pub(super) struct OperandsByCore {
    /// Order of the matrix that is distributed over all ranks.
    pub(super) n: usize,
    /// Elements of the trailing matrix on each core.
    pub(super) trailing: usize,
    by_core: Vec<Operands>,
}

/// Operands of one core. During a measurement each lock is used by one thread only.
pub(super) struct Operands {
    /// Part of the trailing matrix.
    pub(super) trailing: Mutex<Buffer>,
    /// Columns of U.
    pub(super) upper: Mutex<Buffer>,
    /// The rank's panel, on the rank's first core.
    pub(super) panel: RwLock<Buffer>,
    /// The core as a separate rank.
    pub(super) comm: Mutex<ThreadComm>,
}

/// Thread counts that split `cores` cores into equal ranks.
pub(super) fn thread_counts(cores: usize) -> impl Iterator<Item = usize> {
    (1..=cores).filter(move |&threads| cores.is_multiple_of(threads))
}

/// Leading dimension for `rows` rows: never a power of two.
pub(super) fn ld(rows: usize) -> usize {
    let ld = rows.next_multiple_of(8) + 8;
    if ld.is_power_of_two() { ld + 8 } else { ld }
}

/// Words of core `core` of `cores` for its rank's panel and its columns of U at order `n`.
fn operand_words(n: usize, cores: usize, core: usize) -> (usize, usize) {
    let shapes = thread_counts(cores).map(|threads| (threads, n.div_ceil(squarest(cores / threads).0)));
    shapes.fold((0, 0), |(panel, upper), (threads, longest)| {
        let first = core.is_multiple_of(threads);
        let rows = if first { ld(longest) * MAX_K } else { 0 };
        (panel.max(rows), upper.max(ld(MAX_K) * longest.div_ceil(threads)))
    })
}

/// Words of each core's part of an n×n matrix, for any shape: padding and rounding are below 24·(n + 1).
fn part(n: usize, cores: usize) -> usize {
    n * n / cores + 24 * (n + 1)
}

/// Words of all operands at order `n`.
fn words(n: usize, cores: usize) -> usize {
    let each = (0..cores).map(|core| operand_words(n, cores, core)).map(|(panel, upper)| panel + upper);
    cores * part(n, cores) + each.sum::<usize>()
}

/// The largest order that `options` allow: within the memory, and with rounds that are short compared with the budget.
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

impl OperandsByCore {
    /// Operands for `cores` cores, at least 1, of order `n`, at least 1.
    pub(super) fn new(cores: usize, n: usize) -> Result<Self, NoMemory> {
        let trailing = part(n, cores);
        let comms = world(cores, true);
        let of_core = |(core, comm)| -> Result<Operands, NoMemory> {
            let (panel, upper) = operand_words(n, cores, core);
            Ok(Operands {
                trailing: Mutex::new(Buffer::zeroed(trailing, true)?),
                upper: Mutex::new(Buffer::zeroed(upper, true)?),
                panel: RwLock::new(Buffer::zeroed(panel, true)?),
                comm: Mutex::new(comm),
            })
        };
        let by_core = comms.into_iter().enumerate().map(of_core).collect::<Result<_, _>>()?;
        Ok(Self { n, trailing, by_core })
    }

    /// Operands of core `core`.
    pub(super) fn operands(&self, core: usize) -> &Operands {
        &self.by_core[core]
    }

    /// Fills the operands of core `core`. Called by the thread on this core, so that the pages are in memory near it.
    pub(super) fn fill(&self, core: usize) {
        let operands = self.operands(core);
        // A panicked measurement ends the probe, so that its operands are not used again.
        fill(&mut operands.trailing.lock(), core);
        fill(&mut operands.upper.lock(), core);
        fill(&mut operands.panel.write(), core);
    }
}

/// Fills with small numbers: products with them, and with the inverse of a unit triangle of them, change values only little.
fn fill(values: &mut [f64], core: usize) {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64.wrapping_add(core as u64);
    for value in values {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        *value = ((state >> 11) as f64 / (1_u64 << 53) as f64 - 0.5) * 1e-3;
    }
}
