//! What wrong rates of the model do to candidates.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::thread;

use objectives::predict::Predictor;
use space::dims::{DimKind, Point};
use space::machine::{EnginePhase, Layer, Machine, RateKernel};
use space::{Candidate, Candidates};

/// Standard deviation of the logarithm of a rate about the model's, as [`objectives::timeline::own::refined`] has it.
const DOUBT: f64 = 0.1;

/// How many times as long as the quickest a candidate may take to be looked at.
const SLOWEST: f64 = 1.25;

/// What the model may be wrong in.
#[derive(Debug, Clone, PartialEq)]
enum Uncertain {
    Phase(EnginePhase),
    Kernel(RateKernel),
    Layer(String),
}

/// What the model of a whole machine may be wrong in: of the engine's timeline its phases, else its kernels, and the layers between ranks.
pub struct RateDoubts(Vec<Uncertain>);

impl RateDoubts {
    /// Those about `machine`.
    pub fn of(machine: &Machine) -> Self {
        let phases =
            EnginePhase::ALL.into_iter().filter(|phase| machine.phases.iter().any(|rate| rate.phase == *phase));
        let computing: Vec<Uncertain> = match machine.phases.is_empty() {
            false => phases.map(Uncertain::Phase).collect(),
            true => RateKernel::ALL.into_iter().map(Uncertain::Kernel).collect(),
        };
        // Messages between threads of a process are part of the phases.
        let between = machine.layers.iter().filter(|layer| layer.ranks > 1 && layer.name != Layer::THREADS);
        let layers = between.map(|layer| Uncertain::Layer(layer.name.clone()));
        Self(computing.into_iter().chain(layers).collect())
    }

    /// What each of these rates of `machine`, slower by a standard deviation, does to the arms of `star`. Arms that are much slower than
    /// the best are left out.
    ///
    /// # Errors
    /// What is missing in the description of the machine, as a clause.
    pub fn shifts(&self, machine: &Machine, star: &Star) -> Result<Vec<ArmShift>, String> {
        let predictor = |machine: &Machine| Predictor::new(machine).map_err(|error| error.to_string());
        let usual = predictor(machine)?;
        let log = |predictor: &Predictor, candidate: &Candidate| predictor.time_s(candidate).ln();
        let of_arms = star.arms.iter().map(|arm| log(&usual, &arm.candidate));
        let best = of_arms.fold(log(&usual, &star.centre), f64::min);
        let is_near = |arm: &&Arm| log(&usual, &arm.candidate) <= best + SLOWEST.ln();
        let near: Vec<&Arm> = star.arms.iter().filter(is_near).collect();
        let slower: Vec<Predictor> =
            self.0.iter().map(|of| predictor(&slowed(machine, of))).collect::<Result<_, String>>()?;
        let candidates: Vec<&Candidate> =
            std::iter::once(&star.centre).chain(near.iter().map(|arm| &arm.candidate)).collect();
        let shift = |of: &Predictor, candidate: &Candidate| log(&usual, candidate) - log(of, candidate);
        let column = |of: &Predictor| candidates.iter().map(|candidate| shift(of, candidate)).collect::<Vec<f64>>();
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        let mut columns: Vec<Vec<f64>> = Vec::new();
        for some in slower.chunks(threads) {
            columns.extend(thread::scope(|scope| {
                let started: Vec<_> = some.iter().map(|of| scope.spawn(|| column(of))).collect();
                let joined =
                    started.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
                joined.collect::<Vec<Vec<f64>>>()
            }));
        }
        let of = |(row, arm): (usize, &&Arm)| ArmShift {
            dim: arm.dim.clone(),
            towards: arm.towards,
            effect: arm.effect,
            shifts: columns.iter().map(|column| column[row + 1] - column[0]).collect(),
        };
        Ok(near.iter().enumerate().map(of).collect())
    }
}

/// `machine` with one thing slower by a standard deviation.
fn slowed(machine: &Machine, uncertain: &Uncertain) -> Machine {
    let mut machine = machine.clone();
    let slower = |coefficients: &mut Vec<f64>| coefficients.iter_mut().for_each(|of| *of *= DOUBT.exp());
    match uncertain {
        Uncertain::Phase(phase) => {
            let rates = machine.phases.iter_mut().filter(|rate| rate.phase == *phase);
            rates.for_each(|rate| slower(&mut rate.coefficients));
        }
        Uncertain::Kernel(kernel) => {
            let rates = machine.rates.iter_mut().filter(|rate| rate.kernel == *kernel);
            rates.for_each(|rate| slower(&mut rate.coefficients));
        }
        Uncertain::Layer(name) => {
            for layer in machine.layers.iter_mut().filter(|layer| layer.name == *name) {
                layer.alpha_s = layer.alpha_s.map(|alpha_s| alpha_s * DOUBT.exp());
                layer.beta_s_per_word *= DOUBT.exp();
            }
        }
    }
    machine
}

/// A candidate and those that differ from it in one dimension.
#[derive(Debug, Clone, PartialEq)]
pub struct Star {
    centre: Candidate,
    arms: Vec<Arm>,
}

#[derive(Debug, Clone, PartialEq)]
struct Arm {
    /// Name of the dimension in which it differs.
    dim: String,
    /// Which of the dimension's other values it has: of ordered ones the one below or above, of others the first or second after it.
    towards: usize,
    /// The usual effect of the dimension, see [`Space::effects`](space::dims::Space::effects).
    effect: f64,
    candidate: Candidate,
}

/// What wrong rates do to an arm of a star, beside its centre.
#[derive(Debug, Clone, PartialEq)]
pub struct ArmShift {
    /// Name of the dimension in which it differs.
    pub dim: String,
    /// Which of the dimension's other values it has.
    pub towards: usize,
    /// Standard deviation of the logarithm of the rate over the values of the dimension, before any run.
    pub effect: f64,
    /// For each rate what it does to the logarithm of the rate, when it is slower by a standard deviation.
    pub shifts: Vec<f64>,
}

/// Length of a vector of shifts.
pub fn size(shifts: &[f64]) -> f64 {
    shifts.iter().map(|shift| shift * shift).sum::<f64>().sqrt()
}

impl Star {
    /// The star about the `usual` candidate with the number of ranks that `predictor` expects most of; without arms where `domain` does not
    /// have it.
    pub fn new(domain: &dyn Candidates, usual: &Candidate, predictor: &Predictor) -> Self {
        let Some(point) = domain.point(usual) else { return Self { centre: usual.clone(), arms: Vec::new() } };
        let with = |point: &Point, dim: usize, level: usize| {
            let mut other = point.clone();
            other.0[dim] = level as u16;
            domain.canonical(&other).filter(|found| found != point)
        };
        let ranks = domain.dims().iter().position(|dim| dim.name == "ranks");
        let by_ranks = ranks.into_iter().flat_map(|dim| {
            let levels = 0..domain.dims()[dim].levels.len();
            levels.filter_map(|level| with(&point, dim, level)).collect::<Vec<Point>>()
        });
        let time_s = |point: &Point| predictor.time_s(&domain.candidate(point));
        let best = by_ranks.chain([point.clone()]).min_by(|a, b| time_s(a).total_cmp(&time_s(b)));
        let centre = best.unwrap_or(point);
        let (mut points, mut arms) = (vec![centre.clone()], Vec::new());
        for (dim, (of, effect)) in domain.dims().iter().zip(domain.effects()).enumerate() {
            let (here, count) = (usize::from(centre.0[dim]), of.levels.len());
            let others = match of.kind {
                DimKind::Ordered => [here.checked_sub(1), Some(here + 1)],
                DimKind::Categorical => [1, 2].map(|after| Some((here + after) % count)),
            };
            for (towards, level) in others.into_iter().enumerate() {
                let level = level.filter(|level| *level < count && *level != here);
                let Some(found) = level.and_then(|level| with(&centre, dim, level)) else { continue };
                if !points.contains(&found) {
                    let candidate = domain.candidate(&found);
                    arms.push(Arm { dim: of.name.clone(), towards, effect, candidate });
                    points.push(found);
                }
            }
        }
        Self { centre: domain.candidate(&centre), arms }
    }
}

#[cfg(test)]
mod tests {
    use space::domain::{HplDomain, default_candidate};

    use super::*;
    use crate::search::schedule::tests::{machine, predictor, spec};

    #[test]
    fn the_model_says_what_wrong_rates_do_to_the_arms_of_a_star() {
        let (domain, machine) = (HplDomain::new(&spec()).unwrap(), machine());
        let star = Star::new(&domain, &default_candidate(&spec()), &predictor());
        let of_nb = || star.arms.iter().filter(|arm| arm.dim == "nb");
        assert!(star.arms.len() > 8 && of_nb().count() == 2, "{:?}", star.arms);
        assert!(of_nb().all(|arm| arm.candidate.hpl.nb != star.centre.hpl.nb && arm.effect == 0.036));
        let doubts = RateDoubts::of(&machine);
        let shifts = doubts.shifts(&machine, &star).unwrap();
        assert!(!shifts.is_empty() && shifts.iter().all(|of| of.shifts.len() == 4), "{shifts:?}");
        // NB changes how much of the time is whose; the model sees nothing of NDIV.
        assert!(shifts.iter().any(|of| of.dim == "nb" && size(&of.shifts) > 1e-4), "{shifts:?}");
        assert!(shifts.iter().all(|of| of.dim != "ndiv" || size(&of.shifts) == 0.0), "{shifts:?}");
    }
}
