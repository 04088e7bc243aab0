//! Timed samples of the real kernels and messages on this machine.
//!
//! Every measurement uses all cores at the same time, as a run does: the cores are divided into ranks of `threads`
//! threads, and each rank works on a local shape of such a rank. Measurements alternate: each round does every point
//! once, so that a disturbance affects all of them, and a sample is the median of its rounds with its spread. Rounds
//! are repeated until the budget is used. Kernels are timed by the CPU time of their threads, unless the system counts it in long ticks: the
//! time that other processes had the cores is reported as a disturbance and is not part of the kernel's time.

mod clock;
mod messages;
mod points;
mod sample;
mod stage;
mod work;

use std::time::Instant;

pub use self::sample::{ProbeOptions, Quantity, Sample};
use crate::backend::host::kernels::Kernels;
use crate::backend::host::team::{HelperPanicked, Team, TeamParams, with_team};
use crate::mat::NoMemory;
use points::ProbePoint;
use stage::OperandsByCore;

/// Errors of a probe.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The list of cores is empty.
    #[error("no cores to measure on")]
    NoCores,
    /// The budget is too short for three rounds, even with the smallest matrix.
    #[error("{budget_s:.1} s are too short to calibrate this machine; give it at least {enough_s:.1} s")]
    TooShort {
        /// The budget in seconds.
        budget_s: f64,
        /// A sufficient budget in seconds.
        enough_s: f64,
    },
    /// No memory for the operands.
    #[error(transparent)]
    NoMemory(#[from] NoMemory),
    /// A thread could not be started.
    #[error(
        "thread {index} could not be started: {error}; raise the limit of threads (ulimit -u, pids.max of the control group), or give \
         it fewer cores (taskset -c)"
    )]
    NotStarted {
        /// Index of the thread.
        index: usize,
        /// The system's reason.
        error: std::io::Error,
    },
    /// A measuring thread panicked.
    #[error("a measuring thread panicked; the kernels cannot be trusted")]
    Panicked,
}

/// Minimum rounds for a median.
const MIN_ROUNDS: usize = 3;

/// Smallest order that is tried when the budget is short.
const MIN_N: usize = 64;

/// Measures `kernels` on `options.cores`; `progress` is called with the used fraction of the budget, from 0 to 1.
///
/// The calling thread keeps its affinity: the work is done by new threads.
///
/// # Errors
/// [`ProbeError`] when there are no cores, memory or threads, or the budget is too short.
pub fn measure(
    kernels: &dyn Kernels,
    options: &ProbeOptions,
    progress: &mut (dyn FnMut(f64) + Send),
) -> Result<Vec<Sample>, ProbeError> {
    let start = Instant::now();
    if options.cores.is_empty() {
        return Err(ProbeError::NoCores);
    }
    let mut n = stage::order(options);
    loop {
        match attempt(kernels, options, n, start, progress) {
            // Half the order takes a quarter of the time, for a small budget or a slow machine.
            Err(ProbeError::TooShort { .. }) if n > MIN_N && start.elapsed().as_secs_f64() < options.budget_s => n /= 2,
            outcome => return outcome,
        }
    }
}

/// Measures with a matrix of order `n`.
fn attempt(
    kernels: &dyn Kernels,
    options: &ProbeOptions,
    n: usize,
    start: Instant,
    progress: &mut (dyn FnMut(f64) + Send),
) -> Result<Vec<Sample>, ProbeError> {
    let cores = options.cores.as_slice();
    let stage = OperandsByCore::new(cores.len(), n)?;
    let mut points = points::plan(cores.len(), &stage);
    std::thread::scope(|scope| {
        let work = || {
            let params = TeamParams { threads: cores.len(), cores, spin: true };
            with_team(params, |team| rounds(kernels, &stage, team, &mut points, start, options, progress))
                .map_err(|refused| ProbeError::NotStarted { index: refused.index, error: refused.error })?
        };
        let thread = std::thread::Builder::new().name("hpl-probe".to_owned()).spawn_scoped(scope, work);
        let thread = thread.map_err(|error| ProbeError::NotStarted { index: 0, error })?;
        thread.join().unwrap_or(Err(ProbeError::Panicked))
    })?;
    Ok(points.iter().filter_map(ProbePoint::sample).collect())
}

/// Runs rounds of all points until the budget is used.
fn rounds(
    kernels: &dyn Kernels,
    stage: &OperandsByCore,
    team: &mut Team<'_>,
    points: &mut [ProbePoint],
    start: Instant,
    options: &ProbeOptions,
    progress: &mut (dyn FnMut(f64) + Send),
) -> Result<(), ProbeError> {
    let fill = |core: usize| stage.fill(core);
    team.fork(&fill, || fill(0))?;
    let elapsed_s = || start.elapsed().as_secs_f64();
    let mut report = |now_s: f64| progress((now_s / options.budget_s).min(1.0));
    // The first round warms up clocks, caches and pages, and gives the cost of each point.
    let before_s = elapsed_s();
    let affordable_s = (options.budget_s - before_s) / (MIN_ROUNDS as f64 + 1.5);
    let mut costs_s = Vec::with_capacity(points.len());
    for point in points.iter() {
        let job_start = Instant::now();
        point.round(kernels, stage, team)?;
        costs_s.push(job_start.elapsed().as_secs_f64());
        report(elapsed_s());
        if elapsed_s() - before_s > affordable_s {
            let enough_s = before_s + (MIN_ROUNDS as f64 + 1.5) * (elapsed_s() - before_s);
            return Err(ProbeError::TooShort { budget_s: options.budget_s, enough_s });
        }
    }
    // The last round may be incomplete, which does not affect the medians.
    for at in (0..points.len()).cycle() {
        if elapsed_s() + costs_s[at] > options.budget_s {
            break;
        }
        let round = points[at].round(kernels, stage, team)?;
        points[at].rounds.push(round);
        report(elapsed_s());
    }
    Ok(())
}

impl From<HelperPanicked> for ProbeError {
    fn from(_: HelperPanicked) -> Self {
        Self::Panicked
    }
}

#[cfg(test)]
mod tests {
    use space::machine::RateKernel;

    use super::*;
    use crate::backend::host::kernels::Builtin;

    fn options(cores: usize, budget_s: f64, max_n: usize) -> ProbeOptions {
        let allowed = crate::machine::host::facts().cores_allowed;
        // If there are more threads than cores, threads share cores and are slow.
        ProbeOptions {
            cores: allowed.into_iter().cycle().take(cores).collect(),
            budget_s,
            max_n,
            memory_bytes: 1 << 28,
        }
    }

    #[test]
    fn every_kernel_is_measured_at_every_thread_count() {
        let mut last = 0.0;
        // Other processes may take the cores for seconds.
        let budgets_s = [2.5, 10.0, 40.0];
        let mut measured =
            budgets_s.into_iter().map(|s| measure(&Builtin::best(), &options(2, s, 300), &mut |share| last = share));
        let samples = measured.find_map(Result::ok).unwrap();
        assert!(last > 0.9, "{last}");
        for kernel in RateKernel::ALL {
            for threads in [1, 2] {
                let wanted = |s: &&Sample| s.quantity == Quantity::Rate(kernel) && s.threads == threads;
                assert!(samples.iter().filter(wanted).count() >= 4, "{kernel:?} {threads}");
            }
        }
        assert!(samples.iter().any(|s| s.quantity == Quantity::Message));
        assert!(samples.iter().any(|s| s.quantity == Quantity::Copy));
        assert!(samples.iter().all(|s| s.time_s > 0.0 && s.spread >= 0.0 && s.rounds >= MIN_ROUNDS));
    }

    #[test]
    fn any_size_and_number_of_cores_has_a_plan() {
        for (cores, max_n) in [(1, 1), (1, 40), (3, 7), (4, 2), (6, 150)] {
            // Other processes may take the cores for longer than the first budgets.
            let mut measured =
                [0.5, 5.0, 40.0].into_iter().map(|s| measure(&Builtin::best(), &options(cores, s, max_n), &mut |_| ()));
            let enough = |samples: &Vec<Sample>| samples.iter().all(|s| s.rounds >= MIN_ROUNDS);
            let samples = measured.find_map(|found| found.ok().filter(enough));
            let samples = samples.expect("40 s are enough for matrices of this size");
            let dgemm = |sample: &&Sample| sample.quantity == Quantity::Rate(RateKernel::Dgemm);
            for threads in [1, cores] {
                assert!(
                    samples.iter().filter(dgemm).any(|s| s.threads == threads),
                    "{threads} of {cores}, N = {max_n}"
                );
            }
            assert!(samples.iter().all(|s| s.time_s > 0.0), "{samples:?}");
        }
    }

    #[test]
    fn errors_name_a_sufficient_budget() {
        let of = |options: &ProbeOptions| measure(&Builtin::best(), options, &mut |_| ()).unwrap_err();
        assert!(matches!(of(&options(0, 1.0, 100)), ProbeError::NoCores));
        let short = of(&options(1, 0.0, 2000));
        assert!(matches!(short, ProbeError::TooShort { enough_s, .. } if enough_s > 0.0), "{short}");
    }
}
