//! A whole session on a landscape: the schedule that users run, with its pairs, time limits and final run.
//!
//! Each point is a candidate of an engine whose one parameter is the place in the table. The clock is its own: a run takes
//! a minute at the mean rate of the usual point and else longer or shorter by its rate, as the work is the same; one that fails
//! takes as long as the usual one. Suggestions take no time, and all trials are whole runs. The machine may be slower from the
//! middle of the budget on, and its speed may wander.

use std::collections::HashMap;

use objectives::predict::Predictor;
use objectives::real::{Extent, Grids, PairRule, RunSpec};
use objectives::{Exit, Failure, Measurement, Observation};
use space::flops::rate_gflops;
use space::stats::median;
use space::{Candidate, EngineParams, HplParams};

use super::landscape::Landscape;
use super::places::{LandscapeDomain, N};
use super::play::{PriorChoice, prior_of};
use super::world::{self, Scenario, SeededLandscape};
use crate::record::session::Session;
use crate::record::{Circumstances, Identity, Objective, Row};
use crate::report::stats::{Ratio, paired_ratio};
use crate::search::budget::CLOSING_S;
use crate::search::cost::{self, CostEstimate};
use crate::search::hashed::hash;
use crate::search::history::History;
use crate::search::rounds;
use crate::search::schedule::{Due, Setup, View};
use crate::search::strategy::Strategy;
use crate::session::room::equal_places;

/// Wall-clock seconds of a run of the usual point.
const RUN_S: f64 = 60.0;

/// Steps of a wandering speed in that time.
const STEPS_PER_RUN: f64 = 2.0;

/// What a pair takes, in the time of two runs, as measured of windows of N = 12 000.
const PAIR_COST: f64 = 1.8;

/// What a session came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Played {
    /// Trials.
    pub trials: usize,
    /// Different points among them.
    pub points: usize,
    /// Trials that failed.
    pub failed: usize,
    /// Position of what it calls best: what the final run verified, else what it would have been, or the usual point where
    /// the pairs have taken that back.
    pub declared: Option<usize>,
    /// Whether a final run has passed.
    pub is_verified: bool,
    /// What it reports of best by usual, where both differ.
    pub ratio: Option<Ratio>,
    /// Share of the budget that trials have used.
    pub used: f64,
}

/// A session under way.
struct Playing<'a> {
    world: &'a SeededLandscape<'a>,
    places: LandscapeDomain<'a>,
    usual: usize,
    /// What the table's rates are multiplied by to be GFLOP/s of runs that take as long as the clock says.
    gflops: f64,
    total_s: f64,
    spent_s: f64,
    session: Session,
    rows: Vec<Row>,
    runs: HashMap<usize, usize>,
}

/// Plays the session of one seed by `strategy` with a budget of `run_times` runs of the usual point. A strategy that is told
/// nothing begins with the design, as for an engine that no model was made for.
pub fn play(
    strategy: &dyn Strategy,
    world: &SeededLandscape<'_>,
    prior_choice: PriorChoice,
    run_times: f64,
    seed: u64,
) -> Played {
    let landscape = world.landscape();
    let prior = prior_of(landscape, prior_choice, seed, RUN_S);
    let mut playing = Playing::new(world, run_times, seed);
    let baseline = playing.places.at(playing.usual);
    let predictor = predictor();
    loop {
        let view = View {
            setup: Setup {
                pairs: if world.scenario().pair_noise.is_some() {
                    PairRule::InProcess(Grids::All)
                } else {
                    PairRule::Never
                },
                objective: Objective::Gflops,
                domain: &playing.places,
                strategy,
                designed: prior_choice == PriorChoice::None,
                baseline: &baseline,
                expert: None,
                extent: Extent::Whole,
                seed,
                until_gain: None,
                n_is_chosen: false,
                earlier_rows: 0,
            },
            prior: prior.as_ref(),
            rows: &playing.rows,
            interrupted: &[],
            history: &History::from_rows(&playing.rows, &playing.places, Objective::Gflops),
            cost: &CostEstimate::new(&playing.rows, &predictor),
            lead_of_search: playing.session.lead_of_search,
            left_s: playing.left_s(),
            total_s: playing.total_s,
        };
        match view.due(N..=N) {
            Some(due) if playing.left_s() > 0.0 => {
                if let Some(lead) = view.is_choice(&due.plan).then(|| view.lead_of(&due.plan.candidate)) {
                    playing.session.lead_of_search = lead;
                }
                playing.run(due);
            }
            _ => {
                let chosen = view.chosen();
                return playing.end(&baseline, chosen);
            }
        }
    }
}

/// Random points, each once, for the same time; the best single run is declared: what a script without a model does.
pub fn draw(world: &SeededLandscape<'_>, run_times: f64, seed: u64) -> Played {
    let mut playing = Playing::new(world, run_times, seed);
    let mut order: Vec<usize> = (0..world.landscape().len()).collect();
    order.sort_by_key(|&at| hash(seed, at as u64, 0, 5));
    let (mut best, mut failed, mut trials) = (None, 0, 0);
    for at in order {
        let (value, wall_s) = playing.evaluate(at);
        playing.spent_s += wall_s;
        if playing.left_s() < 0.0 {
            break;
        }
        trials += 1;
        match value {
            Some(rate) if best.is_none_or(|(_, most)| rate > most) => best = Some((at, rate)),
            Some(_) => {}
            None => failed += 1,
        }
    }
    let declared = best.map(|(at, _)| at);
    Played { trials, points: trials, failed, declared, is_verified: true, ratio: None, used: 1.0 }
}

/// One that takes a run for a minute, as the clock does, whatever the candidate.
fn predictor() -> Predictor {
    let candidate = Candidate { hpl: HplParams::baseline(N, 1, 1), engine: EngineParams::default() };
    let at = |gflops| Predictor::new(&equal_places(1, gflops, Vec::new())).expect("equal places have rates");
    let at_one_s = at(1.0).time_s(&candidate);
    at(at_one_s / cost::solve_s(RUN_S))
}

impl<'a> Playing<'a> {
    fn new(world: &'a SeededLandscape<'a>, run_times: f64, seed: u64) -> Self {
        let landscape = world.landscape();
        let usual = usual(landscape);
        let session =
            Session { name: landscape.name.clone(), engine: landscape.name.clone(), seed, ..Session::default() };
        Self {
            world,
            places: LandscapeDomain::new(landscape),
            usual,
            gflops: rate_gflops(N, cost::solve_s(RUN_S)) / usual_rate(landscape),
            total_s: run_times * RUN_S,
            spent_s: 0.0,
            session,
            rows: Vec::new(),
            runs: HashMap::new(),
        }
    }

    fn left_s(&self) -> f64 {
        self.total_s - self.spent_s
    }

    /// GFLOP/s of the next run of a point, `None` where it fails, and its wall-clock seconds.
    fn evaluate(&mut self, at: usize) -> (Option<f64>, f64) {
        let landscape = self.world.landscape();
        let repeat = self.runs.entry(at).or_default();
        let Scenario { drift, wander, .. } = *self.world.scenario();
        let step = if self.spent_s >= 0.5 * self.total_s { 1.0 - drift } else { 1.0 };
        let steps = (STEPS_PER_RUN * self.spent_s / RUN_S) as usize;
        let wandered = if wander > 0.0 { world::wander(self.session.seed, steps) } else { 0.0 };
        let speed = step * (wander * wandered).exp();
        let value = self.world.run(at, *repeat, 0);
        *repeat += 1;
        let rate = value.map(|value| landscape.rate(value) * self.gflops * speed);
        (rate, rate.map_or(RUN_S / speed, |rate| cost::whole_s(rate_gflops(N, 1.0) / rate)))
    }

    /// Logarithm of the rate of one run by that of another, as both in turn in one process show it.
    fn log_ratio(&self, [a, b]: [(usize, f64); 2]) -> f64 {
        let truth = |at: usize| self.world.rate(at).ln();
        let luck = |(at, rate): (usize, f64)| rate.ln() - truth(at);
        let noise = self.world.scenario().pair_noise.unwrap_or(1.0);
        truth(a.0) - truth(b.0) + noise * (luck(a) - luck(b))
    }

    fn run(&mut self, due: Due) {
        let Due { plan, limit_s } = due;
        let at = self.places.place(&plan.candidate).expect("candidates are of this table");
        let (rate, mut cost_s) = self.evaluate(at);
        let reference = plan.reference.as_ref().and_then(|reference| self.places.place(&reference.candidate));
        let mut pair = None;
        if let Some(other) = reference {
            let (of_other, other_s) = self.evaluate(other);
            cost_s = PAIR_COST * (cost_s + other_s);
            pair = rate.zip(of_other).map(|(own, of_other)| (of_other, self.log_ratio([(at, own), (other, of_other)])));
        }
        let wall_s = cost_s.min(limit_s);
        let result = match rate {
            _ if cost_s > limit_s => Err(Failure::TimedOut { limit_s }),
            Some(rate) if reference.is_none() || pair.is_some() => Ok(Observation::Whole(measured(rate, wall_s))),
            _ => Err(Failure::Crashed { exit: Exit::Code(1), telling_lines: Vec::new() }),
        };
        self.spent_s += wall_s;
        let identity = Identity {
            trial: self.rows.len() as u64,
            repeat_of: plan.repeat_of,
            paired_with: plan.paired_with,
            reference_trial: plan.reference.as_ref().map(|reference| reference.trial),
            strategy: plan.strategy,
            why: plan.why,
            engine: self.session.engine.clone(),
            started_utc: String::new(),
            command: String::new(),
            nodes: None,
        };
        let around = Circumstances { wall_s, left_s: self.left_s(), ..Circumstances::default() };
        let reference = plan.reference.map(|reference| reference.candidate);
        let run = RunSpec { candidate: plan.candidate, extent: plan.extent, reference, nodes: plan.nodes };
        let mut row = Row::new(identity, &run, plan.predicted, &result, around, &self.session);
        if let Some((of_other, log_ratio)) = pair.filter(|_| row.passed) {
            (row.reference_rate_gflops, row.log_ratio) = (Some(of_other), Some(log_ratio));
        }
        self.rows.push(row);
    }

    fn end(self, baseline: &Candidate, chosen: Option<Candidate>) -> Played {
        let verified = rounds::verified(&self.rows, N);
        let is_verified = verified.is_some();
        let lead = rounds::lead(&self.rows, baseline, Objective::Gflops, self.session.lead_of_search);
        let best = if lead.is_some_and(|lead| lead.is_behind()) { Some(baseline.clone()) } else { verified.or(chosen) };
        let other = best.as_ref().filter(|best| *best != baseline);
        Played {
            trials: self.rows.len(),
            points: self.runs.len(),
            failed: self.rows.iter().filter(|row| !row.passed).count(),
            declared: best.as_ref().and_then(|best| self.places.place(best)),
            is_verified,
            ratio: other.and_then(|best| paired_ratio(&rounds::in_turn(&self.rows, best, baseline, Objective::Gflops))),
            used: (self.spent_s + CLOSING_S) / self.total_s,
        }
    }
}

/// The position of the point that users start from: as the description says, else that of the median rate.
pub fn usual(landscape: &Landscape) -> usize {
    if let Some(usual) = landscape.usual {
        return usual;
    }
    let rate = |at: &usize| landscape.truth(*at).map_or(0.0, |value| landscape.rate(value));
    let passing: Vec<usize> = (0..landscape.len()).filter(|&at| landscape.truth(at).is_some()).collect();
    let typical = median(&passing.iter().map(rate).collect::<Vec<f64>>()).unwrap_or(0.0);
    let far = |at: &usize| (rate(at) - typical).abs();
    passing.into_iter().min_by(|a, b| far(a).total_cmp(&far(b))).unwrap_or(0)
}

/// The rate of that point as it was recorded, which a seed may have crash; of the fastest one where its own runs have all failed.
pub fn usual_rate(landscape: &Landscape) -> f64 {
    let rate = |at: usize| landscape.truth(at).map(|value| landscape.rate(value));
    let fastest = || (0..landscape.len()).filter_map(rate).fold(0.0, f64::max);
    rate(usual(landscape)).unwrap_or_else(fastest)
}

fn measured(rate_gflops: f64, wall_s: f64) -> Measurement {
    Measurement {
        rate_gflops,
        time_s: self::rate_gflops(N, 1.0) / rate_gflops,
        residual: 0.0,
        passed: true,
        wall_s,
        generate_s: 0.0,
        check_s: 0.0,
        started_utc: String::new(),
        command: Vec::new(),
        kernel: String::new(),
        host: String::new(),
        result: None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::landscape::tests::hill;
    use super::*;
    use crate::search::strategy::bayes::Bayes;

    fn steady() -> Scenario {
        Scenario { cv: Some(0.002), evals: usize::MAX, ..Scenario::default() }
    }

    #[test]
    fn a_session_finds_the_top_within_its_budget_and_proves_its_gain() {
        let landscape = hill(0);
        for seed in 0..3 {
            let world = SeededLandscape::new(&landscape, steady(), seed);
            let played = play(&Bayes, &world, PriorChoice::None, 80.0, seed);
            assert_eq!(played, play(&Bayes, &world, PriorChoice::None, 80.0, seed), "the seed decides");
            assert!(played.is_verified && played.failed == 0 && (0.5..=1.0).contains(&played.used), "{played:?}");
            let declared = played.declared.unwrap();
            assert!(world.rate(declared) > 0.99 * world.best(), "{played:?}");
            let ratio = played.ratio.unwrap();
            let truth = world.rate(declared) / world.rate(usual(&landscape));
            let [low, high] = ratio.interval.unwrap();
            assert!(ratio.pairs >= 6 && low < truth + 0.01 && high > truth - 0.01, "{ratio:?} {truth}");
        }
    }

    #[test]
    fn random_draws_for_the_same_time_declare_their_luckiest_run() {
        let landscape = hill(0);
        let world = SeededLandscape::new(&landscape, steady(), 1);
        let drawn = draw(&world, 4.0, 1);
        assert!(drawn.trials > 2 && drawn.trials < landscape.len(), "{drawn:?}");
        assert!(world.rate(drawn.declared.unwrap()) > 0.0 && drawn.ratio.is_none());
    }

    #[test]
    fn a_usual_point_that_crashes_leaves_the_pace_as_it_was_recorded() {
        let landscape = hill(0);
        let at = usual(&landscape);
        let crashing = |seed: u64| (seed, SeededLandscape::new(&landscape, Scenario { crash: 0.3, ..steady() }, seed));
        let (seed, world) = (0..100).map(crashing).find(|(_, world)| world.truth(at).is_none()).unwrap();
        let still = SeededLandscape::new(&landscape, steady(), seed);
        let pace = |world: &SeededLandscape<'_>| Playing::new(world, 10.0, seed).gflops;
        assert!(pace(&world).is_finite() && pace(&world) == pace(&still), "{}", pace(&world));
        let played = draw(&world, 4.0, seed);
        assert!((1..landscape.len()).contains(&played.trials), "{played:?}");
        // A description may name a point whose runs have all failed.
        let failing = Landscape { usual: Some(23), ..hill(1) };
        assert!(failing.truth(23).is_none() && usual_rate(&failing) > 0.0);
    }

    #[test]
    fn a_machine_that_slows_down_or_wanders_changes_the_runs() {
        let landscape = hill(0);
        let late = |scenario: Scenario| {
            let world = SeededLandscape::new(&landscape, scenario, 1);
            let mut playing = Playing::new(&world, 10.0, 1);
            playing.spent_s = 0.9 * playing.total_s;
            let (rate, wall_s) = playing.evaluate(playing.usual);
            (rate.unwrap() * (wall_s - 0.1), rate.unwrap())
        };
        let still = Scenario { cv: Some(0.0), ..steady() };
        let (work, rate) = late(still);
        let (same, slower) = late(Scenario { drift: 0.1, ..still });
        assert!((slower / rate - 0.9).abs() < 1e-9 && (same / work - 1.0).abs() < 1e-6, "{rate} {slower}");
        assert!((late(Scenario { wander: 0.05, ..still }).1 / rate).ln().abs() > 1e-4);
    }
}
