//! The record of one trial: a flat row, the same in the journal and in Parquet.
//!
//! Column names are HPL's words in lower case, units are in the names, and what was measured never shares a
//! column with what was predicted. An absent value is null, never a number that stands for "none".

use objectives::{Failure, Measurement};
use serde::{Deserialize, Serialize};
use space::{Bcast, Candidate, EngineParams, Form, HplParams, KernelChoice, Looking, Pmap, Share, Swap, Weights};

use crate::session::Session;
use crate::strategy::Prediction;

#[cfg(test)]
pub(crate) mod arbitrary;
mod outcome;

pub use outcome::Outcome;

/// Version of the row's schema; raised whenever a column is added, renamed or changes its meaning.
///
/// Version 2 added `split` and `weights`; rows of version 1 are read as without them.
pub const ROW_SCHEMA: u32 = 2;

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
    /// Part of the local columns in the right section of the split update; 0 is no split.
    #[serde(default)]
    pub split: Share,
    /// Relative speeds of process rows and columns as JSON text; null when they are equal.
    #[serde(default, with = "weights_text")]
    pub weights: Weights,
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
    pub kernel: Option<String>,
    /// Programs and their versions.
    pub versions: String,
}

impl Row {
    /// The row of a full run of `candidate`, which took `wall_s` seconds of the wall clock in all and left
    /// `left_s` seconds of the budget.
    pub fn new(
        identity: Identity,
        candidate: &Candidate,
        predicted: Option<Prediction>,
        result: &Result<Measurement, Failure>,
        wall_s: f64,
        left_s: f64,
        session: &Session,
    ) -> Self {
        let (hpl, engine) = (&candidate.hpl, &candidate.engine);
        let (measured, failure) = (result.as_ref().ok(), result.as_ref().err());
        let engine_version = measured.and_then(|m| m.result.as_ref()).map(|run| format!(", engine {}", run.version));
        // JSON knows no NaN, and a rate without a number is none.
        let finite = |value: f64| Some(value).filter(|value| value.is_finite());
        Self {
            schema_version: ROW_SCHEMA,
            session: session.name.clone(),
            trial: identity.trial,
            repeat_of: identity.repeat_of,
            paired_with: identity.paired_with,
            strategy: identity.strategy,
            why: identity.why,
            fidelity: Fidelity::Full,
            engine: identity.engine,
            n: hpl.n,
            nb: hpl.nb,
            p: hpl.p,
            q: hpl.q,
            nbmin: hpl.nbmin,
            ndiv: hpl.ndiv,
            depth: hpl.depth,
            align: hpl.align,
            pmap: hpl.pmap,
            pfact: hpl.pfact,
            rfact: hpl.rfact,
            bcast: hpl.bcast,
            swap: hpl.swap.into(),
            swap_threshold: hpl.swap.threshold(),
            l1: hpl.l1,
            u: hpl.u,
            equil: hpl.equil,
            threads: engine.threads,
            huge_pages: engine.huge_pages,
            kernels: engine.kernels.clone(),
            split: engine.split,
            weights: engine.weights.clone(),
            extra: None,
            predicted_rate_gflops: predicted.and_then(|p| finite(p.rate_gflops)),
            predicted_sd: predicted.and_then(|p| finite(p.sd)),
            outcome: failure.map_or(Outcome::Passed, Outcome::from),
            failure_detail: failure.map(Failure::to_string),
            time_s: measured.and_then(|m| finite(m.time_s)),
            rate_gflops: measured.and_then(|m| finite(m.rate_gflops)),
            residual: match result {
                Ok(measured) => finite(measured.residual),
                Err(Failure::Residual { value, .. }) => value.and_then(finite),
                Err(_) => None,
            },
            passed: measured.is_some_and(|m| m.passed),
            wall_s,
            cost_fraction: 1.0,
            budget_left_s: left_s,
            started_utc: identity.started_utc,
            seed: session.seed,
            command: identity.command,
            host: measured.map_or(&session.host, |m| &m.host).clone(),
            kernel: measured.map(|m| m.kernel.clone()),
            versions: format!("hpl-tune {}{}", env!("CARGO_PKG_VERSION"), engine_version.unwrap_or_default()),
        }
    }

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
            engine: EngineParams {
                threads: self.threads,
                huge_pages: self.huge_pages,
                kernels: self.kernels.clone(),
                split: self.split,
                weights: self.weights.clone(),
                ..EngineParams::default()
            },
        }
    }

    /// The measured score: GFLOP/s of a full run whose residual passed.
    pub fn score_gflops(&self) -> Option<f64> {
        self.rate_gflops.filter(|_| self.passed && self.fidelity == Fidelity::Full)
    }
}

/// Weights in one cell of a flat row.
mod weights_text {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};
    use space::Weights;

    pub(super) fn serialize<S: Serializer>(weights: &Weights, serializer: S) -> Result<S::Ok, S::Error> {
        let text = (!weights.is_empty()).then(|| serde_json::to_string(weights)).transpose();
        text.map_err(ser::Error::custom)?.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Weights, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map_or(Ok(Weights::default()), |text| serde_json::from_str(&text).map_err(de::Error::custom))
    }
}

/// Who a trial is; all that is known of it before it ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Identity {
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
    /// Name of the engine.
    pub engine: String,
    /// Start in UTC, RFC 3339.
    pub started_utc: String,
    /// The command, quoted for a shell.
    pub command: String,
}

impl Identity {
    /// [`Row::strategy`] of a run of the baseline configuration.
    pub const BASELINE: &str = "baseline";
    /// [`Row::strategy`] of the repeats that decide between the leaders.
    pub const RACE: &str = "race";
    /// [`Row::strategy`] of the runs that compare best and baseline once the best is chosen.
    pub const CONFIRM: &str = "confirm";
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use space::params::Coded;

    use super::*;
    use crate::report::summary::tests::session;

    fn failed(candidate: &Candidate, failure: Failure) -> Row {
        let Row { strategy, why, engine, started_utc, command, .. } = arbitrary::row(3);
        let (repeat_of, paired_with) = (Some(1), Some(2));
        let identity = Identity { trial: 3, repeat_of, paired_with, strategy, why, engine, started_utc, command };
        Row::new(identity, candidate, None, &Err(failure), 1.0, 2.0, &session())
    }

    proptest! {
        #[test]
        fn candidates_come_back(row in arbitrary::any_row()) {
            let candidate = row.candidate();
            prop_assert_eq!(failed(&candidate, Failure::TimedOut { limit_s: 1.0 }).candidate(), candidate);
        }
    }

    #[test]
    fn a_wrong_residual_keeps_its_value_and_no_score() {
        let candidate = arbitrary::row(0).candidate();
        for (value, kept) in [(Some(1e6), Some(1e6)), (Some(f64::NAN), None), (None, None)] {
            let failure = Failure::Residual { value, info: 0 };
            let row = failed(&candidate, failure.clone());
            assert_eq!((row.residual, row.score_gflops(), row.passed), (kept, None, false));
            assert_eq!((row.outcome.name(), row.failure_detail), (failure.kind(), Some(failure.to_string())));
        }
    }

    #[test]
    fn words_are_those_of_the_parameters() {
        for (_, name) in space::Bcast::ALL {
            let json = format!("\"{name}\"");
            assert_eq!(serde_json::from_str::<Bcast>(&json).unwrap().name(), *name);
        }
        for swap in [Swap::BinExch, Swap::Long, Swap::Mix { threshold: 1 }] {
            assert_eq!(serde_json::to_value(SwapName::from(swap)).unwrap(), swap.name());
        }
    }
}
