//! The record of one trial: a flat row, the same in the journal and in Parquet.
//!
//! Column names are HPL's words in lower case, units are in the names, and what was measured never shares a
//! column with what was predicted. An absent value is null, never a number that stands for "none".

use serde::{Deserialize, Serialize};
use space::{Bcast, Candidate, EngineParams, Form, HplParams, KernelChoice, Looking, Pmap, Swap};

#[cfg(test)]
pub(crate) mod arbitrary;

/// Version of the row's schema; raised whenever a column is added, renamed or changes its meaning.
pub const ROW_SCHEMA: u32 = 1;

/// One finished trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// [`ROW_SCHEMA`] of the writer.
    pub schema_version: u32,
    /// Name of the session.
    pub session: String,
    /// Number of the trial in its session, from 0.
    pub trial: u64,
    /// The trial whose candidate is measured again here.
    pub repeat_of: Option<u64>,
    /// The trial measured just before, to compare this one with under the same conditions.
    pub paired_with: Option<u64>,
    /// What chose the candidate: a strategy's name, [`Identity::BASELINE`] or [`Identity::FINAL`].
    pub strategy: String,
    /// Why, in one clause.
    pub why: String,
    /// How much of the run was done.
    pub fidelity: Fidelity,
    /// Name of the engine that ran.
    pub engine: String,

    /// Order N.
    pub n: usize,
    /// Blocking factor NB.
    pub nb: usize,
    /// Process rows P.
    pub p: usize,
    /// Process columns Q.
    pub q: usize,
    /// NBMIN.
    pub nbmin: usize,
    /// NDIV.
    pub ndiv: usize,
    /// DEPTH.
    pub depth: usize,
    /// ALIGN, in doubles.
    pub align: usize,
    /// PMAP.
    pub pmap: Pmap,
    /// PFACT.
    pub pfact: Looking,
    /// RFACT.
    pub rfact: Looking,
    /// BCAST.
    pub bcast: Bcast,
    /// SWAP.
    pub swap: SwapName,
    /// The swapping threshold as HPL.dat has it; it acts when SWAP is mix.
    pub swap_threshold: usize,
    /// L1.
    pub l1: Form,
    /// U.
    pub u: Form,
    /// EQUIL.
    pub equil: bool,
    /// Threads of each rank.
    pub threads: usize,
    /// Whether huge pages were asked for.
    pub huge_pages: bool,
    /// Kernels: `builtin` or the path of a BLAS.
    pub kernels: KernelChoice,
    /// Dimensions that only this engine has, as a JSON object.
    pub extra: Option<String>,

    /// GFLOP/s that was expected before the run.
    pub predicted_rate_gflops: Option<f64>,
    /// Standard deviation of the logarithm of that rate.
    pub predicted_sd: Option<f64>,

    /// What came of the run.
    pub outcome: Outcome,
    /// The failure in words.
    pub failure_detail: Option<String>,
    /// Time of factorization and back substitution, in seconds.
    pub time_s: Option<f64>,
    /// GFLOP/s that HPL credits for it.
    pub rate_gflops: Option<f64>,
    /// Scaled residual.
    pub residual: Option<f64>,
    /// Whether the residual is below the threshold. Only such rows have a score.
    pub passed: bool,

    /// Wall-clock seconds that the trial took, start and end of the process included.
    pub wall_s: f64,
    /// Share of a full run's work that was done; 1 for a full run.
    pub cost_fraction: f64,
    /// Wall-clock seconds of the budget left after the trial.
    pub budget_left_s: f64,
    /// Start in UTC, RFC 3339.
    pub started_utc: String,

    /// Seed of the session.
    pub seed: u64,
    /// The command that ran, quoted for a shell.
    pub command: String,
    /// Host name.
    pub host: String,
    /// Kernels with their version, as the run reported them.
    pub kernel: String,
    /// Programs and their versions.
    pub versions: String,
}

impl Row {
    /// The candidate that was run.
    pub fn candidate(&self) -> Candidate {
        Candidate {
            hpl: HplParams {
                n: self.n,
                nb: self.nb,
                p: self.p,
                q: self.q,
                nbmin: self.nbmin,
                ndiv: self.ndiv,
                depth: self.depth,
                align: self.align,
                pmap: self.pmap,
                pfact: self.pfact,
                rfact: self.rfact,
                bcast: self.bcast,
                swap: match self.swap {
                    SwapName::BinExch => Swap::BinExch,
                    SwapName::Long => Swap::Long,
                    SwapName::Mix => Swap::Mix { threshold: self.swap_threshold },
                },
                l1: self.l1,
                u: self.u,
                equil: self.equil,
            },
            engine: EngineParams { threads: self.threads, huge_pages: self.huge_pages, kernels: self.kernels.clone() },
        }
    }

    /// The measured score: GFLOP/s of a full run whose residual passed.
    pub fn score_gflops(&self) -> Option<f64> {
        self.rate_gflops.filter(|_| self.passed && self.fidelity == Fidelity::Full)
    }
}

/// Who a trial is.
#[derive(Debug, Clone, PartialEq)]
pub struct Identity {
    /// Name of the session.
    pub session: String,
    /// Number of the trial in its session, from 0.
    pub trial: u64,
    /// The trial whose candidate is measured again.
    pub repeat_of: Option<u64>,
    /// The trial measured just before, to compare with.
    pub paired_with: Option<u64>,
    /// What chose the candidate.
    pub strategy: String,
    /// Why, in one clause.
    pub why: String,
    /// How much of the run is done.
    pub fidelity: Fidelity,
    /// Name of the engine.
    pub engine: String,
}

impl Identity {
    /// [`Row::strategy`] of a run of the baseline configuration.
    pub const BASELINE: &str = "baseline";
    /// [`Row::strategy`] of the final, verified run.
    pub const FINAL: &str = "final";
}

/// How much of a run a trial did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fidelity {
    /// Nothing ran; a simulated time line.
    Timeline,
    /// Some steps of the full-size run.
    Window,
    /// The whole run with its residual.
    Full,
}

/// SWAP without its threshold, which has its own column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SwapName {
    /// Binary exchange.
    BinExch,
    /// Spread and roll.
    Long,
    /// Binary exchange up to the threshold, spread and roll above.
    Mix,
}

impl From<Swap> for SwapName {
    fn from(swap: Swap) -> Self {
        match swap {
            Swap::BinExch => Self::BinExch,
            Swap::Long => Self::Long,
            Swap::Mix { .. } => Self::Mix,
        }
    }
}

/// What came of a run; all but the first are failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It ended and the residual passed.
    Passed,
    /// It cannot run on this machine.
    Infeasible,
    /// It did not start.
    Launch,
    /// It was ended at its time limit.
    TimedOut,
    /// It ended by itself with an error.
    Crashed,
    /// It was ended by a signal from outside.
    Killed,
    /// It was ended for its use of memory.
    OutOfMemory,
    /// It ended, but its residual failed.
    Residual,
    /// It was not run.
    Skipped,
    /// Its output could not be understood.
    Output,
}
