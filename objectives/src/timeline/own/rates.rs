//! Cost of a unit of work on a rank: the coefficients of each phase, by number of threads.

use space::machine::{EnginePhase, Machine, PhaseRate};

use super::forms::{EXCHANGED, FACT, HERE, TRSV, UPDATE};

/// Coefficients for one number of threads per rank, in seconds per unit.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PhaseRates {
    pub(super) threads: usize,
    pub(super) fact: [f64; FACT],
    pub(super) here: [f64; HERE],
    pub(super) exchanged: [f64; EXCHANGED],
    pub(super) update: [f64; UPDATE],
    pub(super) trsv: [f64; TRSV],
    /// Whether row exchanges over a process column were measured; otherwise they are derived from swaps in place.
    pub(super) exchange_measured: bool,
}

/// Rates by number of threads, rising.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RateBook(Vec<PhaseRates>);

impl RateBook {
    /// The phases of a machine; `None` unless factorization, update and substitution are known for some threads.
    pub(super) fn new(machine: &Machine) -> Option<Self> {
        let mut threads: Vec<usize> = machine.phases.iter().map(|rate| rate.threads).collect();
        threads.sort_unstable();
        threads.dedup();
        let book: Vec<PhaseRates> = threads.into_iter().filter_map(|t| of_threads(&machine.phases, t)).collect();
        (!book.is_empty()).then_some(Self(book))
    }

    /// Rates of ranks with `threads` threads: those measured with as many, or with the nearest lower number.
    pub(super) fn of(&self, threads: usize) -> &PhaseRates {
        let after = self.0.partition_point(|rates| rates.threads <= threads);
        &self.0[after.saturating_sub(1)]
    }
}

fn of_threads(list: &[PhaseRate], threads: usize) -> Option<PhaseRates> {
    fn find<const LEN: usize>(list: &[PhaseRate], threads: usize, phase: EnginePhase) -> Option<[f64; LEN]> {
        let rate = list.iter().find(|rate| rate.threads == threads && rate.phase == phase)?;
        rate.coefficients.as_slice().try_into().ok()
    }
    let here: Option<[f64; HERE]> = find(list, threads, EnginePhase::RowsHere);
    let exchanged: Option<[f64; EXCHANGED]> = find(list, threads, EnginePhase::RowsExchanged);
    let (derived_here, derived_exchanged) = match (here, exchanged) {
        // An exchanged row is copied twice; a row within the rank is swapped once.
        (Some(h), None) => (h, [2.0 * h[0], 2.0 * h[1], h[1], h[1], 0.0, 0.0, 0.0, 2.0 * h[3]]),
        (None, Some(e)) => ([e[0], e[1].max(e[2]), 0.0, e[7]], e),
        (Some(h), Some(e)) => (h, e),
        (None, None) => return None,
    };
    Some(PhaseRates {
        threads,
        fact: find(list, threads, EnginePhase::Fact)?,
        here: derived_here,
        exchanged: derived_exchanged,
        update: find(list, threads, EnginePhase::Update)?,
        trsv: find(list, threads, EnginePhase::Trsv)?,
        exchange_measured: exchanged.is_some(),
    })
}
