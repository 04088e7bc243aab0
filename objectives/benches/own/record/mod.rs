//! A landscape of uniform draws: points of a whole search space, each once, the tenth that looked best four times more.

mod busy;
mod scene;

use std::collections::HashMap;
use std::fs::{OpenOptions, read_to_string};
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use space::dims::Point;

pub(crate) use self::busy::{VERB, take};
use self::scene::Scene;
use crate::Flags;

/// One of so many draws is run again, and how often.
const LEADERS: usize = 10;
const REPEATS: usize = 4;
/// The usual configuration is run again before so many others, to show whether the machine kept its speed.
const BETWEEN: usize = 20;

/// What is measured of a run: seconds of the solution, its rate, 1 where the residual passed, seconds of the whole evaluation.
const MEASURED: [&str; 4] = ["time_s", "rate_gflops", "passed", "wall_s"];

/// A row of a table: the configuration's cells, the rate (0 of a failed run) and whether it passed.
struct Row {
    cells: String,
    rate_gflops: f64,
    passed: bool,
}

/// The rows of the table at `path`, which must have the columns of `header`; none where there is no table.
fn read(path: &Path, header: &str) -> Vec<Row> {
    let text = read_to_string(path).unwrap_or_default();
    let found = text.lines().next().unwrap_or(header);
    assert!(found == header, "{} has the columns {found}, not {header}: give another --table", path.display());
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        let (point, measured) = cells.split_at(cells.len() - MEASURED.len());
        Row { cells: point.join(","), rate_gflops: measured[1].parse().expect("a rate"), passed: measured[2] == "1" }
    };
    text.lines().skip(1).map(row).collect()
}

/// `points` with the usual one before every [`BETWEEN`] of them.
fn with_usual(scene: &Scene, points: &[Point]) -> Vec<Point> {
    points.chunks(BETWEEN).flat_map(|some| [std::slice::from_ref(&scene.usual), some].concat()).collect()
}

/// What is run, in its order: `draws` points of the space, and where all of them are among the `rows` the leaders.
fn order(scene: &Scene, draws: usize, seed: usize, rows: &[Row]) -> Vec<Point> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed as u64);
    let mut once = scene.space.points().to_vec();
    once.shuffle(&mut rng);
    once.truncate(draws);
    let mut all = with_usual(scene, &once);
    if rows.len() >= all.len() {
        let first: HashMap<&str, f64> = rows.iter().rev().map(|row| (row.cells.as_str(), row.rate_gflops)).collect();
        let rate = |point: &Point| first.get(scene.cells(point).as_str()).copied().expect("a row of each draw");
        once.sort_by(|a, b| rate(b).total_cmp(&rate(a)));
        once.truncate(draws / LEADERS);
        for _ in 0..REPEATS {
            once.shuffle(&mut rng);
            all.extend(with_usual(scene, &once));
        }
    }
    all
}

/// Runs what the table lacks, until the seconds are used.
pub(crate) fn record(flags: &Flags) {
    let (path, seconds) = (flags.path("--table"), flags.number("--seconds", 500) as u64);
    let (draws, seed) = (flags.number("--draws", 1000), flags.number("--seed", 1));
    let start = Instant::now();
    let scene = Scene::new(flags);
    let header = [&scene.names()[..], &MEASURED.map(str::to_owned)].concat().join(",");
    let mut file = OpenOptions::new().create(true).append(true).open(&path).expect("a file to write");
    if file.metadata().expect("the size of a file").len() == 0 {
        file.write_all(format!("{header}\n").as_bytes()).expect("a header written");
    }
    loop {
        let rows = read(&path, &header);
        let all = order(&scene, draws, seed, &rows);
        let is_here = |(row, point): (&Row, &Point)| row.cells == scene.cells(point);
        assert!(
            rows.len() <= all.len() && rows.iter().zip(&all).all(is_here),
            "{} holds other runs: give the --n, --draws, --seed and scenario that it was begun with, or another --table",
            path.display()
        );
        let (points, s) = (scene.space.points().len(), start.elapsed().as_secs_f64());
        println!("{points} points; {} of {} runs are there, {s:.0} s", rows.len(), all.len());
        if rows.len() == all.len() || start.elapsed().as_secs() >= seconds {
            return steadiness(&scene, &rows);
        }
        for point in all[rows.len()..].iter().take_while(|_| start.elapsed().as_secs() < seconds) {
            let run = scene.run(point);
            let (cells, passed) = (scene.cells(point), u8::from(run.passed));
            let line = format!("{cells},{:.6},{:.4},{passed},{:.4}\n", run.time_s, run.rate_gflops, run.wall_s);
            file.write_all(line.as_bytes()).expect("a row written");
        }
    }
}

/// Prints how the usual configuration spreads, and its mean in the first and in the second half of its runs.
fn steadiness(scene: &Scene, rows: &[Row]) {
    let usual = scene.cells(&scene.usual);
    let rates: Vec<f64> =
        rows.iter().filter(|row| row.cells == usual && row.passed).map(|row| row.rate_gflops).collect();
    let failed = rows.iter().filter(|row| !row.passed).count();
    if rates.len() > 3 {
        let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len() as f64;
        let middle = mean(&rates);
        let variance = rates.iter().map(|rate| (rate / middle - 1.0).powi(2)).sum::<f64>() / (rates.len() - 1) as f64;
        let (early, late) = rates.split_at(rates.len() / 2);
        println!(
            "usual configuration: {} runs, {middle:.2} GFLOP/s, CV {:.2} %; first half {:.2}, second half {:.2}",
            rates.len(),
            100.0 * variance.sqrt(),
            mean(early),
            mean(late)
        );
    }
    println!("{failed} failed runs");
}
