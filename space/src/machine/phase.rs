//! `[[phase]]`: times of the phases of our engine's steps, as linear forms of the work in the plan.

use serde::{Deserialize, Serialize};

/// The fitted time of one phase of the engine, for ranks of one number of threads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhaseRate {
    /// Which phase.
    pub phase: EnginePhase,
    /// Threads of each rank in the runs, all cores being busy.
    pub threads: usize,
    /// Seconds per unit of each term of the phase's form, see [`EnginePhase`]; none negative.
    pub coefficients: Vec<f64>,
    /// Smallest and largest order N of the runs.
    pub n: [usize; 2],
    /// Smallest and largest NB of the runs.
    pub nb: [usize; 2],
    /// Runs behind the fit.
    pub runs: usize,
    /// Relative spread of the measured times around the fit: (third − first quartile) / median.
    pub spread: f64,
    /// Mean relative error of the fit, each run's phase summed over its steps.
    pub fit_error: f64,
    /// Date of the runs, `2026-11-20`.
    pub date: String,
    /// Command that it comes from.
    pub origin: String,
}

/// Phases of a step whose time is a linear form. Sizes are local to one rank: m rows below the diagonal block, n
/// columns, k columns of the panel, T threads. Work that all threads of a rank share counts 1/T. What lies beyond a
/// size counts by the part of it that does: 1 − size/all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EnginePhase {
    /// Factorization of a panel, by the operations of its recursion: c₀ elements searched and scaled + c₁ elements of
    /// rank-1 updates + c₂ elements of products with a vector + c₃ multiply–adds of other products + c₄ elements that
    /// those update + c₅ multiply–adds of products in panels, beyond 2^18 words of them + c₆ words copied +
    /// c₇ multiply–adds within L1 + c₈ words of exchanged rows + c₉ columns + c₁₀ pivot exchanges, one per column and
    /// round over the process column.
    Fact,
    /// Rows swapped in place, at P = 1: c₀ cache lines touched below the diagonal block + c₁ kn + c₂ n + c₃ of those
    /// lines, beyond 2^21 words of mn.
    RowsHere,
    /// Rows exchanged over the process column: c₀ cache lines touched + c₁ rows of this rank · n + c₂ kn of U put
    /// together + c₃ kn on the owner of the diagonal block + c₄ kn/P by SWAP long + c₅ exchanges + c₆ k + c₇ of those
    /// lines, beyond 2^21 words of mn.
    RowsExchanged,
    /// U ← L1⁻¹U, C ← C − L2·U: c₀ mnk + c₁ mn + c₂ mn for each further 256 of k + c₃ mn at k < 32 + c₄ k²n + c₅ kn +
    /// c₆ slabs + c₇ mk packed + c₈ mn, beyond 2^21 words of it.
    Update,
    /// Back substitution: c₀ elements of U on a rank + c₁ blocks.
    Trsv,
}

impl EnginePhase {
    /// All phases.
    pub const ALL: [Self; 5] = [Self::Fact, Self::RowsHere, Self::RowsExchanged, Self::Update, Self::Trsv];

    /// Number of coefficients in the phase's form.
    pub fn coefficient_count(self) -> usize {
        match self {
            Self::Fact => 11,
            Self::RowsHere => 4,
            Self::RowsExchanged => 8,
            Self::Update => 9,
            Self::Trsv => 2,
        }
    }
}
