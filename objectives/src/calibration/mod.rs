//! Calibration: a machine description from timed samples of this machine.
//!
//! Part of the time is used for samples of single kernels and messages, the rest for short runs of the engine, whose
//! phases give the rates within the engine.

mod runs;
mod waiting;
mod warnings;

use std::time::Instant;

use hpl::backend::host::kernels::{self, KernelError, Kernels};
use hpl::measure::probe::{ProbeError, ProbeOptions, Quantity, Sample, measure};
use hpl::program::RunError;
use space::machine::{Host, Layer, Machine, Node, PhaseRate, Rate, RateKernel};
use space::stats::summary;
use space::{KernelChoice, RunResult, Unequal};

use self::runs::Runs;
use self::warnings::{
    disturbances, failed_runs, inaccurate_phases, inaccurate_rates, interrupted_runs, interruptions, paused,
    slowed_runs,
};
use crate::fit::{self, FitError};
use crate::predict::k_index;
use crate::timeline::own::{Observed, learn, refined};

pub use self::warnings::BUSY;

/// Fraction of the budget for samples of single kernels.
const SAMPLES_SHARE: f64 = 0.35;

/// Fraction of the budget, and seconds, reserved for fitting.
const FITTING: (f64, f64) = (0.02, 0.1);

/// What is measured first.
const KERNELS_NOW: &str = "rates of kernels, memory and messages";
/// What is measured then.
const RUNS_NOW: &str = "phases of short runs of HPL";

/// Measured values of k at which one fit ends and the next begins.
const K_BREAKS: [usize; 3] = [32, 64, 192];

/// Minimum memory left to the system and its caches, in bytes.
const RESERVED: u64 = 256 << 20;

/// Share of the operations of the largest product above which another is as large: parts of ranks are rounded.
const LARGE_PRODUCT: f64 = 0.9;

/// Options of a calibration.
#[derive(Debug, Clone)]
pub struct CalibrationOptions {
    /// Kernels that runs will use.
    pub kernels: KernelChoice,
    /// Logical CPUs that runs will use, as [`hpl::machine::host::facts`] lists them; at least one.
    pub cores: Vec<usize>,
    /// Wall-clock seconds of the whole calibration.
    pub budget_s: f64,
    /// Largest N of later runs.
    pub max_n: usize,
    /// The command of the calibration, stored as the origin of every number.
    pub origin: String,
}

/// A machine description, with warnings about its accuracy.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibration {
    /// The description.
    pub machine: Machine,
    /// What makes it doubtful; empty on an idle machine whose runs are right.
    pub warnings: Vec<String>,
    /// Wall-clock seconds used.
    pub elapsed_s: f64,
    /// The samples behind the rates.
    pub samples: Vec<Sample>,
    /// Short runs of the engine that were made.
    pub runs: usize,
    /// Those of them whose residual failed.
    pub runs_failed: usize,
}

/// Why a calibration failed.
#[derive(Debug, thiserror::Error)]
pub enum CalibrationError {
    /// The kernels cannot be used.
    #[error("calibration: {0}")]
    Kernels(#[from] KernelError),
    /// Measuring failed.
    #[error("calibration: {0}")]
    Probe(#[from] ProbeError),
    /// The samples gave no rate.
    #[error("calibration: {0}")]
    Fit(#[from] FitError),
    /// No sample of a kernel has a time above that of the clocks.
    #[error("calibration: no measurement of {kernel:?} took longer than the clocks can tell; give it more time")]
    NoSample {
        /// The kernel.
        kernel: RateKernel,
    },
    /// A run of the engine failed.
    #[error("calibration: {0}")]
    Run(#[from] RunError),
}

/// Measures this machine; `progress` is called with what is measured and the used share of the budget, from 0 to 1.
///
/// # Errors
/// [`CalibrationError`] when the kernels cannot be used, the budget is too short, or cores, memory or threads are
/// missing.
pub fn calibrate(
    options: &CalibrationOptions,
    progress: &mut (dyn FnMut(&'static str, f64) + Send),
) -> Result<Calibration, CalibrationError> {
    let (started, cores) = (Instant::now(), options.cores.len());
    let kernels = kernels::load(&options.kernels)?;
    let before = hpl::machine::host::facts();
    let memory_bytes = before.memory_available_bytes;
    let mut samples = samples(options, &*kernels, started, memory_bytes, progress)?;
    let share = quota_share(before.cpu_quota, cores);
    with_pauses(&mut samples, share);
    let peak_gflops = peak_gflops(&samples, cores);
    let runs = short_runs(options, started, memory_bytes, peak_gflops, progress)?;
    let after = hpl::machine::host::facts();
    let date = jiff::Timestamp::now().strftime("%Y-%m-%d").to_string();
    let rates = rates(&samples, &date, &options.origin)?;
    let (phases, doubt) = phases(&runs, &date, &options.origin);
    let mut warnings = disturbances(&before, &after, cores, hpl::machine::host::cpus_online());
    warnings.extend(failed_runs(&runs));
    let paused = paused(share);
    let is_paused = paused.is_some();
    warnings.extend(paused.or_else(|| interruptions(&samples)));
    warnings.extend(interrupted_runs(&runs, is_paused));
    warnings.extend(doubt);
    warnings.extend(inaccurate_rates(&rates));
    warnings.extend(inaccurate_phases(&phases));
    let machine = Machine {
        host: Host {
            name: before.hostname.clone(),
            cpu: before.cpu_model,
            origin: format!("{}, {date}{}", options.origin, quota_in_words(before.cpu_quota.filter(|_| is_paused))),
            kernels: kernels.name(),
        },
        nodes: vec![Node {
            name: before.hostname,
            count: 1,
            cores,
            memory_bytes,
            reserved_bytes: reserved_bytes(memory_bytes),
            peak_gflops,
            ..Node::default()
        }],
        rates,
        phases,
        layers: layers(&samples, cores)?,
        ..Machine::default()
    };
    let (made, runs_failed) = (runs.made, runs.failed);
    let machine = corrected(&machine, runs.results);
    Ok(Calibration { machine, warnings, elapsed_s: started.elapsed().as_secs_f64(), samples, runs: made, runs_failed })
}

/// The share of the time in which a CPU quota of the control group lets `cores` cores compute. It is below 1 for one core alone: of a quota
/// of more than one CPU no more cores are used than it has.
fn quota_share(quota: Option<f64>, cores: usize) -> f64 {
    quota.map_or(1.0, |quota| (quota / cores as f64).min(1.0))
}

/// Adds the time in which a quota pauses the cores, which compute in this share of it: kernels and copies are timed without waits.
fn with_pauses(samples: &mut [Sample], share: f64) {
    for sample in samples {
        if matches!(sample.quantity, Quantity::Rate(_) | Quantity::Copy) {
            sample.time_s /= share;
        }
    }
}

/// The quota for the origin of a description; empty without one.
fn quota_in_words(quota: Option<f64>) -> String {
    quota.map_or_else(String::new, |quota| format!(", at a CPU quota of {quota:.2}"))
}

/// Times of kernels, memory and messages, within their share of the budget.
fn samples(
    options: &CalibrationOptions,
    kernels: &dyn Kernels,
    started: Instant,
    memory_bytes: u64,
    progress: &mut (dyn FnMut(&'static str, f64) + Send),
) -> Result<Vec<Sample>, ProbeError> {
    let before_s = started.elapsed().as_secs_f64();
    let probe = ProbeOptions {
        cores: options.cores.clone(),
        budget_s: SAMPLES_SHARE * options.budget_s - before_s,
        max_n: options.max_n,
        memory_bytes: memory_bytes / 2,
    };
    measure(kernels, &probe, &mut |share| progress(KERNELS_NOW, SAMPLES_SHARE * share))
        .map_err(|error| of_whole_budget(error, options.budget_s, before_s))
}

/// Runs of the engine in the rest of the budget, without the part for fitting.
fn short_runs(
    options: &CalibrationOptions,
    started: Instant,
    memory_bytes: u64,
    peak_gflops: f64,
    progress: &mut (dyn FnMut(&'static str, f64) + Send),
) -> Result<Runs, RunError> {
    let runs = runs::Options {
        kernels: &options.kernels,
        cores: options.cores.len(),
        started,
        budget_s: options.budget_s * (1.0 - FITTING.0) - FITTING.1,
        max_n: options.max_n,
        memory_bytes,
        peak_gflops,
    };
    runs::measure(&runs, &mut |share| progress(RUNS_NOW, SAMPLES_SHARE + (1.0 - SAMPLES_SHARE) * share))
}

/// Rates of the phases by these runs, and why they are doubtful. Without phases the description has the rates of kernels only.
fn phases(runs: &Runs, date: &str, origin: &str) -> (Vec<PhaseRate>, Option<String>) {
    match learn(&runs.results, date, origin) {
        Ok(_) if runs.are_too_disturbed() => (Vec::new(), None),
        Ok(learned) => (learned.rates, slowed_runs(learned.slowed, learned.runs)),
        Err(error) => (Vec::new(), Some(error.to_string())),
    }
}

/// `machine` with its phases corrected by the runs with look-ahead.
fn corrected(machine: &Machine, runs: Vec<RunResult>) -> Machine {
    let overlapping = runs.into_iter().filter(|run| run.candidate.hpl.depth > 0);
    let overlapping: Vec<Observed> =
        overlapping.map(|run| Observed { candidate: run.candidate, phases: run.phases }).collect();
    refined(machine, &overlapping, &Unequal::default())
}

/// `error` in seconds of the whole budget, of which the samples have a share that began after `before_s` seconds.
fn of_whole_budget(error: ProbeError, budget_s: f64, before_s: f64) -> ProbeError {
    match error {
        ProbeError::TooShort { enough_s, .. } => {
            ProbeError::TooShort { budget_s, enough_s: (before_s + enough_s) / SAMPLES_SHARE }
        }
        other => other,
    }
}

/// What is left to the system and its caches of so much available memory: a twentieth, no less than [`RESERVED`], no more than half.
fn reserved_bytes(available_bytes: u64) -> u64 {
    (available_bytes / 20).max(RESERVED).min(available_bytes / 2)
}

/// Rates per kernel and number of threads, in ranges of k: one form cannot describe the cache effects of wide panels as well.
fn rates(samples: &[Sample], date: &str, origin: &str) -> Result<Vec<Rate>, CalibrationError> {
    let mut rates = Vec::new();
    for kernel in RateKernel::ALL {
        let of_kernel = |s: &&Sample| s.quantity == Quantity::Rate(kernel);
        let mut threads: Vec<usize> = samples.iter().filter(of_kernel).map(|s| s.threads).collect();
        threads.sort_unstable();
        threads.dedup();
        if threads.is_empty() {
            return Err(CalibrationError::NoSample { kernel });
        }
        for threads in threads {
            let chosen: Vec<&Sample> = samples.iter().filter(of_kernel).filter(|s| s.threads == threads).collect();
            for piece in pieces(kernel, &chosen) {
                let fit = fit::fit(kernel, &piece.iter().map(|s| timed(s)).collect::<Vec<_>>())?;
                rates.push(Rate {
                    kernel,
                    threads,
                    coefficients: fit.coefficients,
                    valid: fit.valid,
                    spread: summary(&piece.iter().map(|s| s.spread).collect::<Vec<_>>()).median,
                    fit_error: fit.error,
                    date: date.to_owned(),
                    origin: origin.to_owned(),
                });
            }
        }
    }
    Ok(rates)
}

/// The samples in ranges of k, divided at [`K_BREAKS`]; all in one range when a range has too few.
fn pieces<'a>(kernel: RateKernel, samples: &[&'a Sample]) -> Vec<Vec<&'a Sample>> {
    let k = |s: &Sample| s.sizes[k_index(kernel)];
    let bounds = [&[0][..], &K_BREAKS, &[usize::MAX]].concat();
    let within = |range: &[usize]| samples.iter().copied().filter(|s| (range[0]..=range[1]).contains(&k(s))).collect();
    let pieces: Vec<Vec<&Sample>> = bounds.windows(2).map(within).collect();
    let full = |piece: &Vec<&Sample>| piece.len() > kernel.coefficient_count();
    if pieces.iter().all(full) { pieces } else { vec![samples.to_vec()] }
}

fn timed(sample: &Sample) -> fit::FitSample {
    fit::FitSample { sizes: sample.sizes.iter().map(|&size| size as f64).collect(), time_s: sample.time_s }
}

/// Layers for the memory of a rank, and for messages if there can be several ranks.
fn layers(samples: &[Sample], cores: usize) -> Result<Vec<Layer>, FitError> {
    let mut layers = Vec::new();
    if let Some(copy) = samples.iter().find(|s| s.quantity == Quantity::Copy) {
        // A copied word is read once and written once.
        let beta_s_per_word = copy.time_s / (2 * copy.sizes[0]) as f64;
        layers.push(Layer { name: "memory".into(), ranks: 1, alpha_s: Some(0.0), beta_s_per_word, shared_by: 1 });
    }
    // The latency is fitted to pivot exchanges as in the engine, of 2NB + 4 words; the bandwidth to long messages.
    let words = |s: &Sample| match s.quantity {
        Quantity::Message => Some(s.sizes[0]),
        Quantity::Pivot => Some(2 * s.sizes[1] + 4),
        Quantity::Rate(_) | Quantity::Copy => None,
    };
    let messages: Vec<(f64, f64)> =
        samples.iter().filter_map(|s| words(s).map(|words| (words as f64, s.time_s))).collect();
    if !messages.is_empty() {
        let [alpha_s, beta_s_per_word] = fit::message(&messages)?;
        layers.push(Layer {
            name: Layer::THREADS.into(),
            ranks: cores,
            alpha_s: Some(alpha_s),
            beta_s_per_word,
            shared_by: 1,
        });
    }
    Ok(layers)
}

/// The rate of the largest measured DGEMM over all cores, as ranks of the number of threads that is fastest at it. The fastest of all
/// products would be one whose repeats were lucky.
fn peak_gflops(samples: &[Sample], cores: usize) -> f64 {
    let flops =
        |s: &Sample| 2.0 * s.sizes.iter().map(|&size| size as f64).product::<f64>() * (cores / s.threads) as f64;
    let products = || samples.iter().filter(|s| s.quantity == Quantity::Rate(RateKernel::Dgemm));
    let largest = products().map(flops).fold(0.0, f64::max);
    let large = products().filter(|s| flops(s) >= LARGE_PRODUCT * largest);
    large.map(|s| flops(s) / s.time_s * 1e-9).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests;
