//! `hpl-tune replay`: strategies, whole sessions and other tools scored on recorded landscapes.

mod print;
mod sessions;

use serde::Serialize;
use space::dims::{Dim, Space};

use self::print::{JSON_SCHEMA, print};
use crate::cli::replay::ReplayArgs;
use crate::exit::bad_input;
use crate::record::decode::Decoder;
use crate::record::folder::replace_file;
use crate::replay::landscape::{Goal, LANDSCAPE_SCHEMA, Landscape};
use crate::replay::play::{PriorChoice, play};
use crate::replay::score::{GOALS, ToolScore, score};
use crate::replay::trace::{self, SearchTrace};
use crate::replay::world::{Scenario, SeededLandscape};
use crate::search::progress::Progress;
use crate::search::strategy;

/// All that is known of one landscape's searches.
#[derive(Debug, Serialize)]
struct LandscapeReport {
    schema_version: u32,
    landscape: String,
    points: usize,
    evaluations: usize,
    scores: Vec<ToolScore>,
}

/// Lets each strategy search the landscape with each seed, adds the stored traces of other tools, and prints the measures.
///
/// # Errors
/// A landscape, a table or a trace that cannot be used; a file that cannot be written.
pub fn replay(args: &ReplayArgs) -> anyhow::Result<u8> {
    let decoder = Decoder::child()?;
    let landscape = Landscape::read(&args.landscape, args.table.as_deref(), args.model.as_deref(), &decoder);
    let landscape = landscape.map_err(bad_input)?;
    if let Some(path) = &args.export {
        replace_file(path, serde_json::to_string(&Export::new(&landscape))?.as_bytes())?;
    }
    if args.prior != PriorChoice::None && !landscape.has_model() {
        return Err(bad_input(format!(
            "{} has no model's value for every point; leave out --prior, or give a table with --model",
            args.landscape.display()
        )));
    }
    if !args.session.is_empty() {
        return sessions::replay(args, &landscape);
    }
    let evals = args.evals.map_or(landscape.len().min(DEFAULT_EVALS), |evals| evals as usize);
    let scenario = Scenario { cv: args.cv, crash: args.crash, drift: args.drift, wander: 0.0, pair_noise: None, evals };
    let traces = traces(args, &landscape, scenario)?;
    if let Some(path) = &args.store {
        trace::write(path, traces.iter().flatten()).map_err(bad_input)?;
    }
    let others = args.traces.iter().map(|path| trace::read(path, &landscape).map_err(bad_input));
    let others: Vec<SearchTrace> = others.collect::<anyhow::Result<Vec<_>>>()?.concat();
    let groups = traces.into_iter().chain(by_tool(others));
    let scores = groups.filter(|group| !group.is_empty()).map(|group| {
        let world = |trace: &SearchTrace| SeededLandscape::new(&landscape, scenario, trace.seed);
        score(&group.into_iter().map(|trace| (trace.clone(), world(&trace))).collect::<Vec<_>>())
    });
    let report = LandscapeReport {
        schema_version: JSON_SCHEMA,
        landscape: landscape.name.clone(),
        points: landscape.len(),
        evaluations: evals,
        scores: scores.collect(),
    };
    print(args, &report, &table(&report))
}

/// Evaluations of a search in a landscape that has more points.
const DEFAULT_EVALS: usize = 200;

/// Our searches, a list for each strategy.
fn traces(args: &ReplayArgs, landscape: &Landscape, scenario: Scenario) -> anyhow::Result<Vec<Vec<SearchTrace>>> {
    let total = (args.strategy.len() * args.seeds as usize).max(1) as f64;
    let mut progress = Progress::new(total, args.quiet);
    progress.phase("replaying");
    let mut done = 0.0;
    let mut all = Vec::new();
    for name in &args.strategy {
        let strategy = strategy::by_name(name).ok_or_else(|| bad_input(format!("no strategy '{name}'")))?;
        let mut traces = Vec::new();
        for seed in 0..args.seeds {
            progress.tick(total - done);
            traces.push(play(
                strategy.as_ref(),
                &SeededLandscape::new(landscape, scenario, seed),
                args.prior,
                args.until_gain,
                seed,
            ));
            done += 1.0;
        }
        all.push(traces);
    }
    progress.end();
    Ok(all)
}

/// Traces of one tool each, in the order of their first appearance.
fn by_tool(traces: Vec<SearchTrace>) -> Vec<Vec<SearchTrace>> {
    let mut groups: Vec<Vec<SearchTrace>> = Vec::new();
    for trace in traces {
        match groups.iter_mut().find(|group| group[0].tool == trace.tool) {
            Some(group) => group.push(trace),
            None => groups.push(vec![trace]),
        }
    }
    groups
}

fn table(report: &LandscapeReport) -> String {
    let goals = GOALS.map(|goal| format!("{:>17}", format!("to {} %", 100.0 * goal))).concat();
    let mut text = format!(
        "{}: {} points, {} evaluations at most; evaluations as mean / p90, (k) searches never got there\n\
         {:22}{:>6}{goals}{:>9}{:>17}{:>7}{:>17}{:>8}{:>9}{:>10}\n",
        report.landscape,
        report.points,
        report.evaluations,
        "tool",
        "seeds",
        "score P",
        "regret mean/p95",
        "runs",
        "left (held)",
        "failed",
        "repeats",
        "ask p95"
    );
    for score in &report.scores {
        let reach = score.reach.map(|reach| {
            let never = if reach.never > 0 { format!(" ({})", reach.never) } else { String::new() };
            format!("{:>17}", format!("{:.1} / {}{never}", reach.mean, reach.p90))
        });
        text += &format!(
            "{:22}{:>6}{}{:>9.3}{:>17}{:>7.1}{:>17}{:>8.1}{:>9.1}{:>10}\n",
            score.tool,
            score.seeds,
            reach.concat(),
            score.performance,
            format!("{:.2} / {:.2} %", 100.0 * score.regret_mean, 100.0 * score.regret_p95),
            score.evaluations,
            score.left.map_or("-".to_owned(), |bound| format!(
                "{:.2} % ({:.0} %)",
                100.0 * bound.at_most,
                100.0 * bound.held
            )),
            score.failed,
            score.repeats,
            format!("{:.1} ms", 1e3 * score.ask_s_p95)
        );
    }
    text
}

/// A landscape for a tool that is not ours: positions, levels, and what every run needs to come out the same.
#[derive(Serialize)]
struct Export<'a> {
    schema_version: u32,
    name: &'a str,
    goal: Goal,
    dims: &'a [Dim],
    points: Vec<&'a [u16]>,
    runs: Vec<&'a [f64]>,
    cv: Vec<f64>,
    cost_s: Vec<f64>,
}

impl<'a> Export<'a> {
    fn new(landscape: &'a Landscape) -> Self {
        let sites = &landscape.sites;
        Self {
            schema_version: LANDSCAPE_SCHEMA,
            name: &landscape.name,
            goal: landscape.goal,
            dims: landscape.space.dims(),
            points: landscape.space.points().iter().map(|point| point.0.as_slice()).collect(),
            runs: sites.iter().map(|site| site.runs.as_slice()).collect(),
            cv: sites.iter().map(|site| site.cv).collect(),
            cost_s: sites.iter().map(|site| site.cost_s).collect(),
        }
    }
}
