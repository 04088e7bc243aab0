//! A strategy searches a world.

use std::collections::HashMap;
use std::time::Instant;

use space::dims::{Point, Space};

use super::landscape::Landscape;
use super::trace::SearchTrace;
use super::world::SeededLandscape;
use crate::search::hashed::hash;
use crate::search::history::{History, Trial, TrialResult};
use crate::search::strategy::left::{self, Next};
use crate::search::strategy::prior::Flat;
use crate::search::strategy::{Ctx, Prior, Proposal, Strategy, bayes};

/// Wall-clock seconds of each run. After short ones the process would take fewer of them.
const RUN_S: f64 = 60.0;

/// The prior that a strategy gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum PriorChoice {
    /// Nothing.
    #[default]
    None,
    /// The model's values.
    Model,
    /// The model's values, each at the wrong point, another for each seed.
    Shuffled,
    /// The model's values reversed.
    Reversed,
}

/// Asks `strategy` and answers by `run`, which gets the point and how often it was run before, until `seen` says that
/// it is enough, nothing is left to propose, or `limit` runs are done. Also gives the seconds that each proposal took.
pub fn search(
    strategy: &dyn Strategy,
    (space, prior): (&dyn Space, &dyn Prior),
    seed: u64,
    limit: usize,
    run: &mut dyn FnMut(&Point, usize) -> TrialResult,
    seen: &mut dyn FnMut(&History, &Proposal) -> bool,
) -> (History, Vec<f64>) {
    let (mut history, mut ask_s) = (History::default(), Vec::new());
    let mut count: HashMap<Point, usize> = HashMap::new();
    for number in 0..limit as u64 {
        let ctx = ctx(space, prior, &history, seed, limit);
        let asked = Instant::now();
        let Some(proposal) = strategy.ask(&ctx) else { break };
        ask_s.push(asked.elapsed().as_secs_f64());
        let times = count.entry(proposal.point.clone()).or_default();
        let outcome = run(&proposal.point, *times);
        *times += 1;
        history.trials.push(Trial { number, point: proposal.point.clone(), outcome, wall_s: RUN_S, pair: None });
        if seen(&history, &proposal) {
            break;
        }
    }
    (history, ask_s)
}

/// The budget is counted in evaluations.
fn ctx<'a>(space: &'a dyn Space, prior: &'a dyn Prior, history: &'a History, seed: u64, limit: usize) -> Ctx<'a> {
    let trial = history.trials.len() as u64;
    let budget_left_s = limit as f64 - trial as f64;
    Ctx { space, history, prior, budget_left_s, budget_total_s: limit as f64, pairs: None, trial, seed }
}

/// Lets `strategy` search `world`, until no more than `until_gain` is left to gain where that is given, and keeps what it ran, which
/// point it declares best in the end, and what it says is left.
pub fn play(
    strategy: &dyn Strategy,
    world: &SeededLandscape<'_>,
    prior: PriorChoice,
    until_gain: Option<f64>,
    seed: u64,
) -> SearchTrace {
    let landscape = world.landscape();
    let prior = prior_of(landscape, prior, seed, 1.0);
    let at = |point: &Point| landscape.space.position(point).expect("proposals are points of the space");
    let evals = world.scenario().evals;
    let mut number = 0;
    let mut run = |point: &Point, repeat: usize| {
        number += 1;
        let value = world.run(at(point), repeat, number - 1);
        value.map_or(TrialResult::Failed, |value| TrialResult::Rate(landscape.rate(value)))
    };
    let until = Until { strategy, gain: until_gain };
    let (history, ask_s) = search(&until, (&landscape.space, prior.as_ref()), seed, evals, &mut run, &mut |_, _| false);
    let end = ctx(&landscape.space, prior.as_ref(), &history, seed, evals);
    let declared = bayes::leaders(&end, 1).first().map(|(point, _)| at(point));
    let points = history.trials.iter().map(|trial| at(&trial.point)).collect();
    let (tool, landscape) = (strategy.name().to_owned(), landscape.name.clone());
    SearchTrace { tool, landscape, seed, points, ask_s, declared, left: left::left(&end) }
}

/// A strategy that ends when little is left to gain, where that is asked for.
struct Until<'a> {
    strategy: &'a dyn Strategy,
    gain: Option<f64>,
}

impl Strategy for Until<'_> {
    fn name(&self) -> &'static str {
        self.strategy.name()
    }

    fn ask(&self, ctx: &Ctx<'_>) -> Option<Proposal> {
        match self.gain.map_or(Next::Search, |gain| left::next(ctx, gain)) {
            Next::Search => self.strategy.ask(ctx),
            Next::Again(point) => {
                let repeat_of = ctx.history.trials.iter().find(|trial| trial.point == point).map(|trial| trial.number);
                Some(Proposal {
                    point,
                    repeat_of,
                    reference: None,
                    why: "the best so far again".to_owned(),
                    predicted: None,
                })
            }
            Next::End => None,
        }
    }
}

/// Expected log rates by position, and what every run is expected to cost.
struct ModelPrior<'a> {
    landscape: &'a Landscape,
    log_rates: Vec<f64>,
    cost_s: f64,
}

impl Prior for ModelPrior<'_> {
    fn log_rate(&self, point: &Point) -> f64 {
        self.landscape.space.position(point).map_or(f64::NEG_INFINITY, |at| self.log_rates[at])
    }

    fn cost_s(&self, _: &Point) -> f64 {
        self.cost_s
    }
}

/// The prior that strategies get for `landscape`, where every run is expected to cost `cost_s` seconds.
pub(super) fn prior_of(landscape: &Landscape, choice: PriorChoice, seed: u64, cost_s: f64) -> Box<dyn Prior + '_> {
    let logs = landscape.sites.iter().filter_map(|site| site.model).map(|value| landscape.rate(value).ln());
    let logs: Vec<f64> = logs.collect();
    let log_rates = match choice {
        PriorChoice::None => return Box::new(Flat { cost_s }),
        PriorChoice::Model => logs,
        PriorChoice::Reversed => logs.iter().map(|log| -log).collect(),
        PriorChoice::Shuffled => {
            let mut order: Vec<usize> = (0..logs.len()).collect();
            order.sort_by_key(|&at| hash(seed, at as u64, 0, 4));
            order.into_iter().map(|at| logs[at]).collect()
        }
    };
    Box::new(ModelPrior { landscape, log_rates, cost_s })
}
