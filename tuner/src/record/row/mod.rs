//! The record of one trial: a flat row, the same in the journal and in Parquet.
//!
//! Column names are HPL's words in lower case, units are in the names, and what was measured never shares a
//! column with what was predicted. An absent value is null, never a number that stands for "none".

use std::collections::BTreeMap;

use objectives::real::Extent;
use serde::{Deserialize, Serialize};
use space::{
    Bcast, Candidate, EngineParams, Form, HplParams, KernelChoice, Looking, NodeSettings, Pmap, Share, Swap, Weights,
};

#[cfg(test)]
pub(crate) mod arbitrary;
mod identity;
mod outcome;

pub use identity::{Circumstances, Identity, Prediction};
pub use outcome::Outcome;
pub(super) use outcome::{KILLED_WITH_SESSION, comparable_rate_gflops, score_gflops};

/// Version of the row's schema; raised by every release that adds, renames or redefines a column.
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
    /// The trial measured just before, or first in the same round, to compare this one with under the same conditions.
    pub paired_with: Option<u64>,
    /// What chose the candidate: a strategy's name, or one of the words of [`Identity`].
    pub strategy: String,
    /// Why, in one clause.
    pub why: String,
    /// How much of the run was done.
    pub extent: Extent,
    /// Name of the engine that ran, or [`Row::SIMULATED`].
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
    /// Whether huge pages were asked for; null for another engine, which does not take it.
    pub huge_pages: Option<bool>,
    /// Kernels: `builtin` or the path of a BLAS; null for another engine, which has its own.
    pub kernels: Option<KernelChoice>,
    /// Kernels of each rank as JSON text where they differ; null where all have the above.
    #[serde(with = "text")]
    pub rank_kernels: Vec<KernelChoice>,
    /// Part of the local columns in the right section of the split update; 0 for no split, null another engine.
    pub split: Option<Share>,
    /// Relative speeds of process rows and columns as JSON text; null when they are equal.
    #[serde(with = "text")]
    pub weights: Weights,
    /// Dimensions that only this engine has, as a JSON object.
    pub extra: Option<String>,
    /// Highest clock that the processors were set to, in MHz; null where the session leaves it alone.
    pub max_clock_mhz: Option<u32>,
    /// Power limit that every processor package was set to, in watts; null where the session leaves it alone.
    pub package_limit_w: Option<u32>,
    /// Power limit that every accelerator was set to, in watts; null where the session leaves it alone.
    pub gpu_limit_w: Option<u32>,

    /// GFLOP/s that was expected before the run; null where nothing was, and where the objective is GFLOPS/W.
    pub predicted_rate_gflops: Option<f64>,
    /// Standard deviation of the logarithm of that rate.
    pub predicted_sd: Option<f64>,

    /// GFLOP/s of the whole run as estimated from the part of it that was measured: from windows, or from the progress of
    /// a run that was ended early. Null for whole runs.
    pub estimated_rate_gflops: Option<f64>,
    /// Standard deviation of the logarithm of that estimate, by what the windows leave open.
    pub estimated_sd: Option<f64>,
    /// The trial whose candidate was measured in turn with this one, by windows in one process; null where it was measured alone.
    pub reference_trial: Option<u64>,
    /// GFLOP/s of the whole run of that candidate, estimated from its windows here.
    pub reference_rate_gflops: Option<f64>,
    /// Natural logarithm of this candidate's rate divided by the reference's, estimated for whole runs.
    pub log_ratio: Option<f64>,
    /// One standard error of it, by the differences between repeated windows.
    pub log_ratio_sd: Option<f64>,

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
    /// Share of a full run's work that was done; 1 for a full run, also for one that failed but was not beaten, 0 for failed windows.
    pub cost_fraction: f64,
    /// Wall-clock seconds of the budget left after the trial.
    pub budget_left_s: f64,
    /// Share of the processor time that the hypervisor gave to others meanwhile; null where the system does not say, or no rank was on
    /// this node.
    pub steal_share: Option<f64>,
    /// Clock of the first core during the trial, in Hz; null where the system does not say, the trial was too short, or no rank was
    /// on this node.
    pub clock_hz: Option<f64>,
    /// Clock of the multiprocessors of the slowest of the node's NVIDIA GPUs in Hz, at a time in the second half of the trial; null where the
    /// run was not on all of them.
    pub gpu_clock_hz: Option<f64>,
    /// Temperature of the hottest of these, in °C: the highest seen.
    pub gpu_temperature_c: Option<f64>,
    /// The nodes of the run that stood apart from its others by their clock, heat or other work, and how; null where none did, or none
    /// was watched.
    pub nodes_apart: Option<String>,
    /// Energy of the core phase (factorization and back substitution) in joules, of the part of it that readings cover; null where none
    /// was read.
    pub energy_j: Option<f64>,
    /// Mean power of that part, in watts.
    pub power_w: Option<f64>,
    /// GFLOP/s of the run by the mean power of its core phase; null where readings cover less than
    /// [`LEAST_COVERAGE`](crate::power::record::LEAST_COVERAGE) of it, or not all nodes of the run.
    pub gflops_per_w: Option<f64>,
    /// Share of the core phase that readings cover, times the share of the nodes that are read.
    pub power_coverage: Option<f64>,
    /// Energy of the whole run in joules, of the part of it that readings cover.
    pub run_energy_j: Option<f64>,
    /// Mean power of that part, in watts.
    pub run_power_w: Option<f64>,
    /// Share of the whole run that readings cover, times the share of the nodes that are read.
    pub run_power_coverage: Option<f64>,
    /// Energy in joules that the core phase of the whole run is predicted to take, by its windows; null for whole runs.
    pub estimated_energy_j: Option<f64>,
    /// Mean power of that, in watts; predicted as well.
    pub estimated_power_w: Option<f64>,
    /// The power limit of the session in watts; null where it has none.
    pub power_limit_w: Option<u64>,
    /// What was read, and what that is worth.
    pub power_source: Option<String>,
    /// Start in UTC, RFC 3339.
    pub started_utc: String,

    /// Seed of the session.
    pub seed: u64,
    /// The command that ran, quoted for a shell.
    pub command: String,
    /// Host name, of rank 0 where a job has several.
    pub host: String,
    /// Names of the nodes of its job in alphabetical order, with spaces between them; null where they were not looked for.
    pub nodes: Option<String>,
    /// Kernels with their version, as the run reported them.
    pub kernel: Option<String>,
    /// Programs and their versions.
    pub versions: String,
    /// SHA-256 of the file with the results as the engine wrote them, taken when the run had ended; null where there was none.
    pub output_sha256: Option<String>,
}

impl Row {
    /// [`Row::engine`] of our engine's simulated runs: nothing in their rows is measured.
    pub const SIMULATED: &str = "hpl, simulated";

    /// The candidate that was run.
    pub fn candidate(&self) -> Candidate {
        // What another engine does not take has one value for all of its candidates.
        let untold = EngineParams::default();
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
            engine: EngineParams {
                threads: self.threads,
                huge_pages: self.huge_pages.unwrap_or(untold.huge_pages),
                kernels: self.kernels.clone().unwrap_or(untold.kernels),
                rank_kernels: self.rank_kernels.clone(),
                split: self.split.unwrap_or(untold.split),
                // Trials do not use one.
                device: untold.device,
                fact_blocks: untold.fact_blocks,
                weights: self.weights.clone(),
                extra: self.extra(),
                settings: NodeSettings {
                    max_clock_mhz: self.max_clock_mhz,
                    package_limit_w: self.package_limit_w,
                    gpu_limit_w: self.gpu_limit_w,
                },
            },
        }
    }

    /// The measured score: GFLOP/s of a full run whose residual passed.
    pub fn score_gflops(&self) -> Option<f64> {
        score_gflops(self.extent, self.passed, self.rate_gflops)
    }

    /// What compares with other rows of the same extent: the score of a full run, the estimate of windows whose checks
    /// passed.
    pub fn comparable_rate_gflops(&self) -> Option<f64> {
        comparable_rate_gflops(self.extent, self.passed, self.rate_gflops, self.estimated_rate_gflops)
    }

    /// The dimensions that only the engine of this row has; none where the column is damaged.
    fn extra(&self) -> BTreeMap<String, String> {
        self.extra.as_ref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }
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

/// A value as JSON text in one cell of a flat row, null for the usual one.
mod text {
    use serde::de::DeserializeOwned;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};

    pub(super) fn serialize<T, S>(value: &T, serializer: S) -> Result<S::Ok, S::Error>
    where
        T: Serialize + Default + PartialEq,
        S: Serializer,
    {
        let text = (*value != T::default()).then(|| serde_json::to_string(value)).transpose();
        text.map_err(ser::Error::custom)?.serialize(serializer)
    }

    pub(super) fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
    where
        T: DeserializeOwned + Default,
        D: Deserializer<'de>,
    {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map_or(Ok(T::default()), |text| serde_json::from_str(&text).map_err(de::Error::custom))
    }
}

#[cfg(test)]
mod tests;
