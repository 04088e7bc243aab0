//! Replay of recorded landscapes: how many runs each strategy needs.
//!
//! `HPL_TUNE_LANDSCAPES=DIR cargo test --release -p hpl-tune replay -- --ignored --nocapture`, where DIR holds
//! `dahu/factorial_nb128.csv`, `dahu/geometry.csv` \[Cornebize\] and `landscapes/xhpl_zen4_n2000.csv`. Every strategy meets
//! the same noise: the k-th run of a point is the same for all.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use space::dims::{Dim, Point, Space};

use super::prior::Flat;
use super::testing::{Grid, Table, categorical, noise, ordered, session};
use super::{Ctx, Prior, Strategy, bayes, local, nelder_mead, random};
use crate::history::{History, Outcome};

struct Landscape {
    space: Grid,
    /// Measured rates of each point, one or more.
    runs: HashMap<Point, Vec<f64>>,
    /// What a model says, as logarithms; empty without one.
    model: HashMap<Point, f64>,
    /// Standard deviation of added noise, where the runs themselves hold none.
    noise: f64,
}

/// Rows of a CSV file by column name.
fn rows(name: &str) -> Vec<HashMap<String, String>> {
    let folder = std::env::var("HPL_TUNE_LANDSCAPES").expect("HPL_TUNE_LANDSCAPES names the folder of the landscapes");
    let text = std::fs::read_to_string(Path::new(&folder).join(name)).unwrap();
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let row = |line: &str| names.iter().zip(line.split(',')).map(|(a, b)| (a.to_string(), b.to_string())).collect();
    lines.map(row).collect()
}

impl Landscape {
    /// `key` names the level of each dimension in a row, `is_run` tells measurements from the model's rows.
    fn new(
        dims: Vec<Dim>,
        rows: &[HashMap<String, String>],
        key: impl Fn(&HashMap<String, String>, usize) -> String,
        is_run: impl Fn(&HashMap<String, String>) -> bool,
    ) -> Self {
        let (mut runs, mut model) = (HashMap::<Point, Vec<f64>>::new(), HashMap::new());
        for row in rows {
            let level = |(d, dim): (usize, &Dim)| {
                let label = key(row, d);
                dim.levels.iter().position(|level| level.label == label).unwrap() as u16
            };
            let point = Point(dims.iter().enumerate().map(level).collect());
            let rate: f64 = row["rate_gflops"].parse().unwrap();
            if is_run(row) {
                runs.entry(point).or_default().push(rate);
            } else {
                model.insert(point, rate.ln());
            }
        }
        let space = Grid::new(dims, |levels| runs.contains_key(&Point(levels.to_vec())));
        Self { space, runs, model, noise: 0.0 }
    }

    fn means(&self) -> HashMap<&Point, f64> {
        self.runs.iter().map(|(point, rates)| (point, rates.iter().sum::<f64>() / rates.len() as f64)).collect()
    }
}

/// BCAST × DEPTH × SWAP at NB 128 on 32×32.
fn factorial() -> Landscape {
    let names = ["bcast", "depth", "swap"];
    let levels: [&[&str]; 3] =
        [&["1ring", "1ringM", "2ring", "2ringM", "long", "longM"], &["0", "1"], &["bin-exch", "long", "mix"]];
    let dims = names.iter().zip(levels).map(|(name, levels)| categorical(name, levels)).collect();
    let rows = rows("dahu/factorial_nb128.csv");
    Landscape::new(dims, &rows, |row, d| row[names[d]].clone(), |row| row["mode"] == "reality")
}

/// The 28 grids of 960 ranks.
fn geometry() -> Landscape {
    let rows = rows("dahu/geometry.csv");
    let aspect = |row: &HashMap<String, String>| {
        let of = |name: &str| row[name].parse::<f64>().unwrap();
        (of("p") / of("q")).log2()
    };
    let mut aspects: Vec<f64> = rows.iter().map(aspect).collect();
    aspects.sort_by(f64::total_cmp);
    aspects.dedup();
    let dims = vec![ordered("grid", &aspects)];
    Landscape::new(dims, &rows, |row, _| aspect(row).to_string(), |row| row["mode"] == "reality")
}

/// 2700 configurations of Netlib's program on two cores. One run each, so the truth is smoothed: main effects and
/// the interactions of NB; the noise is what its repeats showed, 1.3 %.
fn zen4() -> Landscape {
    let rows = rows("landscapes/xhpl_zen4_n2000.csv");
    let names = ["nb", "p", "pfact", "rfact", "nbmin", "ndiv", "depth", "swap"];
    let is_ordered = |name: &str| !matches!(name, "pfact" | "rfact" | "swap");
    let dim = |name: &&str| {
        let mut labels: Vec<&str> = rows.iter().map(|row| row[*name].as_str()).collect();
        let number = |label: &str| label.parse::<f64>().unwrap_or(0.0);
        labels.sort_by(|a, b| number(a).total_cmp(&number(b)).then(a.cmp(b)));
        labels.dedup();
        if is_ordered(name) {
            let mut dim =
                ordered(name, &labels.iter().map(|l| l.parse::<f64>().unwrap().max(0.5).log2()).collect::<Vec<_>>());
            dim.levels.iter_mut().zip(labels).for_each(|(level, label)| level.label = label.to_owned());
            dim
        } else {
            categorical(name, &labels)
        }
    };
    let dims: Vec<Dim> = names.iter().map(dim).collect();
    let mut landscape = Landscape::new(dims, &rows, |row, d| row[names[d]].clone(), |_| true);
    // Back-fitting of the pairs (NB, d).
    let points: Vec<Point> = landscape.space.points().to_vec();
    let y: Vec<f64> = points.iter().map(|point| landscape.runs[point][0].ln()).collect();
    let mut fitted = vec![0.0; y.len()];
    for d in (0..names.len()).cycle().take(5 * names.len()) {
        let mut groups: BTreeMap<(u16, u16), (f64, f64)> = BTreeMap::new();
        for ((point, y), fitted) in points.iter().zip(&y).zip(&fitted) {
            let (sum, count) = groups.entry((point.0[0], point.0[d])).or_default();
            (*sum, *count) = (*sum + y - fitted, *count + 1.0);
        }
        for (point, fitted) in points.iter().zip(&mut fitted) {
            let (sum, count) = groups[&(point.0[0], point.0[d])];
            *fitted += sum / count;
        }
    }
    landscape.runs = points.into_iter().zip(fitted).map(|(point, log)| (point, vec![log.exp()])).collect();
    landscape.noise = 0.013;
    landscape
}

const GOALS: [f64; 3] = [0.01, 0.0025, 0.001];

/// Evaluations until a configuration within each goal of the true best was run, and how good the declared best is.
fn score(
    name: &str,
    landscape: &Landscape,
    strategy: &dyn Strategy,
    prior: &dyn Fn(u64) -> Box<dyn Prior>,
    limit: usize,
) {
    let means = landscape.means();
    let best = means.values().copied().fold(0.0, f64::max);
    let seeds: u64 = std::env::var("SEEDS").map_or(25, |seeds| seeds.parse().unwrap());
    let (mut hits, mut regrets, mut repeats, mut asks) = (vec![Vec::new(); 3], Vec::new(), 0, 0);
    for seed in 0..seeds {
        let prior = prior(seed);
        let run = |point: &Point, repeat: usize| {
            let mut rates = landscape.runs[point].clone();
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            rng.set_stream(point.0.iter().fold(7, |hash, &level| hash * 101 + u64::from(level)));
            rates.shuffle(&mut rng);
            Outcome::Rate(rates[repeat % rates.len()] * (landscape.noise * noise(seed, point, repeat)).exp())
        };
        let count = |_: &History, proposal: &super::Proposal| {
            asks += 1;
            repeats += usize::from(proposal.repeat_of.is_some());
            false
        };
        let history = session(strategy, &landscape.space, prior.as_ref(), seed, &run, count, limit);
        for (goal, hits) in GOALS.iter().zip(&mut hits) {
            let hit = history.trials.iter().position(|trial| means[&trial.point] >= best * (1.0 - goal));
            hits.push(hit.map_or(limit + 1, |at| at + 1));
        }
        let early = History { trials: history.trials[..history.trials.len().min(limit / 2)].to_vec() };
        let prior = prior.as_ref();
        let ctx = Ctx {
            space: &landscape.space,
            history: &early,
            prior,
            budget_left_s: 0.0,
            budget_total_s: 1.0,
            trial: 0,
            seed,
        };
        regrets.push(100.0 * (1.0 - means[&bayes::leaders(&ctx, 1)[0].0] / best));
    }
    regrets.sort_by(f64::total_cmp);
    let summary = |hits: &mut Vec<usize>| {
        hits.sort_unstable();
        let mean = hits.iter().sum::<usize>() as f64 / hits.len() as f64;
        format!("{mean:6.1} /{:4}", hits[(hits.len() * 9).div_ceil(10) - 1])
    };
    let hits: Vec<String> = hits.iter_mut().map(summary).collect();
    let p95 = regrets[(regrets.len() * 19).div_ceil(20) - 1];
    println!(
        "{name:28}{}   repeats {:2} %   regret of the declared best after {}: p95 {p95:.2} %",
        hits.join("  "),
        100 * repeats / asks,
        limit / 2
    );
}

fn report(name: &str, landscape: &Landscape, limit: usize) {
    println!(
        "\n{name}: {} points; evaluations to 1 %, 0.25 %, 0.1 % as mean / p90; {} at most",
        landscape.runs.len(),
        limit
    );
    let flat = |_| -> Box<dyn Prior> { Box::new(Flat { cost_s: 1.0 }) };
    let only = std::env::var("ONLY").unwrap_or_default();
    let strategies: [&dyn Strategy; 4] =
        [&bayes::Bayes, &random::Random, &local::LocalSearch, &nelder_mead::NelderMead];
    for strategy in strategies {
        if strategy.name().contains(&only) {
            score(strategy.name(), landscape, strategy, &flat, limit);
        }
    }
    if landscape.model.is_empty() {
        return;
    }
    let model: BTreeMap<&Point, f64> = landscape.model.iter().map(|(point, log)| (point, *log)).collect();
    let table = |logs: Vec<f64>| -> Box<dyn Prior> {
        Box::new(Table(model.keys().map(|point| (*point).clone()).zip(logs).collect()))
    };
    let logs: Vec<f64> = model.values().copied().collect();
    let shuffled = |seed| {
        let mut logs = logs.clone();
        logs.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
        table(logs)
    };
    score("bayes, model as prior", landscape, &bayes::Bayes, &|_| table(logs.clone()), limit);
    score("bayes, prior shuffled", landscape, &bayes::Bayes, &shuffled, limit);
    score(
        "bayes, prior of wrong sign",
        landscape,
        &bayes::Bayes,
        &|_| table(logs.iter().map(|log| 20.0 - log).collect()),
        limit,
    );
}

#[test]
#[ignore = "needs the recorded landscapes"]
fn replay() {
    report("factorial", &factorial(), 36);
    report("geometry", &geometry(), 28);
    if std::env::var("SMALL").is_err() {
        report("zen4", &zen4(), 100);
    }
}
