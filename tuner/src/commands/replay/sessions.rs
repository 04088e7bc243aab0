//! Whole sessions on a landscape, scored by what they declare in the end.

use serde::Serialize;

use super::print::{JSON_SCHEMA, print};
use crate::cli::replay::ReplayArgs;
use crate::exit::bad_input;
use crate::replay::landscape::Landscape;
use crate::replay::score::percentile;
use crate::replay::session::{Played, draw, play, usual_rate};
use crate::replay::world::{Scenario, SeededLandscape};
use crate::search::progress::Progress;
use crate::search::strategy;

/// What the sessions of one budget came to.
#[derive(Debug, Serialize)]
struct SessionScore {
    /// The strategy of the sessions, or `draws` for random points of which the fastest run is declared.
    tool: String,
    /// The budget in runs of the usual point.
    budget_runs: u32,
    /// Sessions.
    seeds: usize,
    /// Trials, different points and failures, means.
    trials: f64,
    points: f64,
    failed: f64,
    /// Sessions without a final run that passed.
    unverified: usize,
    /// True relative distance of the declared best from the best, mean and 95th percentile; 1 where nothing is declared.
    regret_mean: f64,
    regret_p95: f64,
    /// True rate of the declared best by that of the usual point as it was recorded, mean.
    best_by_usual: f64,
    /// Sessions whose declared best is truly slower than the usual point.
    slower: usize,
    /// Sessions that print an interval of best by usual, and those where it holds the true ratio.
    intervals: usize,
    held: usize,
    /// Share of the budget that trials used, mean.
    used: f64,
}

#[derive(Debug, Serialize)]
struct SessionsReport {
    schema_version: u32,
    landscape: String,
    points: usize,
    sessions: Vec<SessionScore>,
}

/// Plays the sessions of all seeds, strategies and budgets, and prints what they came to.
pub(super) fn replay(args: &ReplayArgs, landscape: &Landscape) -> anyhow::Result<u8> {
    let scenario = Scenario {
        cv: args.cv,
        crash: args.crash,
        drift: args.drift,
        wander: args.wander,
        pair_noise: args.pair_noise,
        evals: usize::MAX,
    };
    let tools = args.strategy.len() as u64 + 1;
    let mut left = (args.session.len() as u64 * tools * args.seeds) as f64;
    let mut progress = Progress::new(left.max(1.0), args.quiet);
    progress.phase("replaying");
    let mut sessions = Vec::new();
    for &budget in &args.session {
        let runs = f64::from(budget);
        let mut one = |tool: &str, session: &dyn Fn(&SeededLandscape<'_>, u64) -> Played| {
            let play = |seed: u64| {
                let world = SeededLandscape::new(landscape, scenario, seed);
                let played = session(&world, seed);
                progress.tick(left);
                left -= 1.0;
                (world, played)
            };
            let played: Vec<(SeededLandscape<'_>, Played)> = (0..args.seeds).map(play).collect();
            sessions.extend((!played.is_empty()).then(|| score(tool, budget, &played)));
        };
        for name in &args.strategy {
            let strategy = strategy::by_name(name).ok_or_else(|| bad_input(format!("no strategy '{name}'")))?;
            one(name, &|world, seed| play(strategy.as_ref(), world, args.prior, runs, seed));
        }
        one("draws", &|world, seed| draw(world, runs, seed));
    }
    progress.end();
    let (name, points) = (landscape.name.clone(), landscape.len());
    let report = SessionsReport { schema_version: JSON_SCHEMA, landscape: name, points, sessions };
    print(args, &report, &table(&report))
}

fn score(tool: &str, budget_runs: u32, played: &[(SeededLandscape<'_>, Played)]) -> SessionScore {
    let mean = |value: &dyn Fn(&SeededLandscape<'_>, &Played) -> f64| {
        played.iter().map(|(world, played)| value(world, played)).sum::<f64>() / played.len() as f64
    };
    let rate = |world: &SeededLandscape<'_>, played: &Played| played.declared.map_or(0.0, |at| world.rate(at));
    let by_usual = |world: &SeededLandscape<'_>, played: &Played| rate(world, played) / usual_rate(world.landscape());
    let mut regrets: Vec<f64> = played.iter().map(|(world, played)| 1.0 - rate(world, played) / world.best()).collect();
    let intervals = played.iter().filter_map(|(world, played)| {
        let [low, high] = played.ratio.as_ref()?.interval?;
        Some((low..=high).contains(&by_usual(world, played)))
    });
    let intervals: Vec<bool> = intervals.collect();
    SessionScore {
        tool: tool.to_owned(),
        budget_runs,
        seeds: played.len(),
        trials: mean(&|_, played| played.trials as f64),
        points: mean(&|_, played| played.points as f64),
        failed: mean(&|_, played| played.failed as f64),
        unverified: played.iter().filter(|(_, played)| !played.is_verified).count(),
        regret_mean: space::stats::mean(&regrets),
        regret_p95: percentile(&mut regrets, 95),
        best_by_usual: mean(&by_usual),
        slower: played.iter().filter(|(world, played)| by_usual(world, played) < 1.0).count(),
        intervals: intervals.len(),
        held: intervals.iter().filter(|held| **held).count(),
        used: mean(&|_, played| played.used),
    }
}

fn table(report: &SessionsReport) -> String {
    let mut text = format!(
        "{}: {} points, sessions in simulated time; budgets in runs of the usual point\n\
         {:14}{:>7}{:>7}{:>8}{:>8}{:>8}{:>9}{:>17}{:>12}{:>8}{:>15}{:>8}\n",
        report.landscape,
        report.points,
        "tool",
        "budget",
        "seeds",
        "trials",
        "points",
        "failed",
        "no final",
        "regret mean/p95",
        "best/usual",
        "slower",
        "interval held",
        "used"
    );
    for score in &report.sessions {
        text += &format!(
            "{:14}{:>7}{:>7}{:>8.1}{:>8.1}{:>8.1}{:>9}{:>17}{:>12.3}{:>8}{:>15}{:>8}\n",
            score.tool,
            score.budget_runs,
            score.seeds,
            score.trials,
            score.points,
            score.failed,
            score.unverified,
            format!("{:.2} / {:.2} %", 100.0 * score.regret_mean, 100.0 * score.regret_p95),
            score.best_by_usual,
            score.slower,
            if score.intervals == 0 { "-".to_owned() } else { format!("{} of {}", score.held, score.intervals) },
            format!("{:.1} %", 100.0 * score.used)
        );
    }
    text
}
