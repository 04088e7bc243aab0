//! Refinement: the phases of real runs correct the calibrated rates.
//!
//! There is one factor per phase and number of threads with a log-normal prior around 1; every run with its phases is an
//! observation of it, with a smaller variance the larger the phase's share of the run is. Runs that were slowed by other
//! load are left out. A pure function of description and runs.

use std::collections::{BTreeMap, BTreeSet};

use space::machine::{EnginePhase, Machine};
use space::result::PhaseTime;
use space::{Candidate, Unequal};

use super::OwnModel;
use super::quiet::slowed;

/// Prior standard deviation of the logarithm of a phase's factor.
const PRIOR: f64 = 0.1;

/// Standard deviation of the logarithm of a phase's time between equal runs.
const SCATTER: f64 = 0.04;

/// Error of a phase as a share of the run, from causes outside the phase, such as a wait that is counted in another phase.
const STRAY: f64 = 0.005;

/// A real run with its phases.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    /// The candidate of the run.
    pub candidate: Candidate,
    /// Its phases, as in [`RunResult::phases`](space::RunResult::phases); for windows, those of the measured steps.
    pub phases: Vec<PhaseTime>,
}

/// Number of ranks with recorded phases, at least 1.
fn ranks(run: &Observed) -> f64 {
    run.phases.iter().map(|time| time.rank).collect::<BTreeSet<_>>().len().max(1) as f64
}

/// Seconds of factorization, rows, update and substitution, means over the ranks with recorded phases.
fn measured(run: &Observed) -> [f64; 4] {
    let ranks = ranks(run);
    let sum = |of: fn(&PhaseTime) -> f64| run.phases.iter().map(of).sum::<f64>() / ranks;
    [sum(|time| time.fact_s), sum(|time| time.rs_s), sum(|time| time.update_s), sum(|time| time.trsv_s)]
}

/// The predicted seconds of the same steps, each as often as it was made; the substitution is the step after the last.
fn predicted(model: &OwnModel, run: &Observed) -> [f64; 4] {
    let timeline = model.timeline(&run.candidate);
    let ranks = ranks(run);
    let mut times: BTreeMap<usize, f64> = BTreeMap::new();
    run.phases.iter().for_each(|time| *times.entry(time.step as usize).or_default() += 1.0 / ranks);
    let mut sums = [0.0; 4];
    for (&k, times) in &times {
        let made = match timeline.steps.get(k) {
            Some(step) => [step.fact_s, step.rs_s, step.update_s, 0.0],
            None if k == timeline.steps.len() => [0.0, 0.0, 0.0, timeline.trsv_s],
            None => continue,
        };
        sums.iter_mut().zip(made).for_each(|(sum, seconds)| *sum += times * seconds);
    }
    sums
}

/// Index of a phase in these arrays; P = 1 and P > 1 have different phases for the rows.
fn place(phase: EnginePhase, p: usize) -> Option<usize> {
    match phase {
        EnginePhase::Fact => Some(0),
        EnginePhase::RowsHere => (p == 1).then_some(1),
        EnginePhase::RowsExchanged => (p > 1).then_some(1),
        EnginePhase::Update => Some(2),
        EnginePhase::Trsv => Some(3),
    }
}

/// `machine` with its phases corrected by `runs`; unchanged if it has no phases. `unequal` as for [`OwnModel::slowed`].
pub fn refined(machine: &Machine, runs: &[Observed], unequal: &Unequal) -> Machine {
    let mut machine = machine.clone();
    let Some(model) = OwnModel::new(&machine).map(|model| model.slowed(unequal.clone())) else { return machine };
    let mut ratios: Vec<(&Observed, [f64; 4], [f64; 4])> =
        runs.iter().map(|run| (run, measured(run), predicted(&model, run))).collect();
    let whole = |times: &[f64; 4]| times.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    let slowed = slowed(&ratios.iter().map(|(_, real_s, model_s)| whole(real_s) / whole(model_s)).collect::<Vec<_>>());
    let mut slowed = slowed.into_iter();
    ratios.retain(|_| !slowed.next().unwrap_or(false));
    for rate in &mut machine.phases {
        let (mut weights, mut sum) = (PRIOR.powi(-2), 0.0);
        for (run, real_s, model_s) in &ratios {
            let Some(at) = place(rate.phase, run.candidate.hpl.p) else { continue };
            // With look-ahead one thread factors nearly all panels during an update.
            let alone = rate.phase == EnginePhase::Fact && run.candidate.hpl.depth > 0;
            let threads = if alone { 1 } else { run.candidate.engine.threads };
            let counts = threads == rate.threads && real_s[at] > 0.0 && model_s[at] > 0.0;
            if counts {
                let share = model_s[at] / model_s.iter().sum::<f64>();
                let weight = (SCATTER.powi(2) + (STRAY / share).powi(2)).recip();
                weights += weight;
                sum += weight * (real_s[at] / model_s[at]).ln();
            }
        }
        let factor = (sum / weights).exp();
        rate.coefficients.iter_mut().for_each(|coefficient| *coefficient *= factor);
    }
    machine
}
