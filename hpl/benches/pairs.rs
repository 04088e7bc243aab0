//! The ratio of the rates of two configurations: from windows, measured alternately, compared with whole runs.
//!
//! `cargo bench -p hpl --bench pairs -- [N [ROUNDS]]`: the reference 1×2, NB 128 and other grids, threads and NB. Each round
//! is a whole run of both and a measurement of windows of both; printed is the rate relative to the reference, in per cent.

use hpl::program::{Ranks, RunOptions, Runner};
use space::{Candidate, EngineParams, HplParams, KernelChoice};

/// P, Q, threads, NB, DEPTH.
const SHAPES: [(usize, usize, usize, usize, usize); 6] =
    [(1, 2, 1, 128, 1), (2, 1, 1, 128, 1), (1, 1, 2, 128, 1), (1, 2, 1, 384, 1), (2, 1, 1, 384, 1), (1, 1, 2, 384, 1)];

fn main() {
    let numbers: Vec<usize> = std::env::args().filter_map(|word| word.parse().ok()).collect();
    let number = |at: usize, default| numbers.get(at).copied().unwrap_or(default);
    let (n, rounds) = (number(0, 8000), number(1, 7));
    let runner = Runner::new(&KernelChoice::Builtin).expect("built-in kernels");
    let options = RunOptions { threshold: 16.0, force: false, watch: &() };
    let ranks = Ranks::threads();
    let candidate = |(p, q, threads, nb, depth)| {
        let hpl = HplParams { nb, depth, ..HplParams::baseline(n, p, q) };
        Candidate { hpl, engine: EngineParams { threads, ..EngineParams::default() } }
    };
    let reference = candidate(SHAPES[0]);
    let whole_s = |candidate: &Candidate| {
        let result = runner.run_on(&ranks, candidate, &options).expect("a run").result;
        assert!(result.passed, "{result:?}");
        result.time_s
    };
    let mut logs = [const { (Vec::new(), Vec::new(), Vec::new()) }; SHAPES.len()];
    for _ in 0..rounds {
        for (shape, (whole, windows, sds)) in SHAPES.into_iter().zip(&mut logs) {
            let other = candidate(shape);
            let pair = runner.measure_pair_on(&ranks, [&other, &reference], &options).expect("windows");
            assert!(pair.passed(), "{pair:?}");
            let times = [whole_s(&reference), whole_s(&other)];
            whole.push((times[0] / times[1]).ln());
            windows.push(pair.predicted_log_ratio);
            sds.push(pair.predicted_log_ratio_sd);
            println!(
                "{shape:?}: whole {:.3} {:.3} s, {:+.2} %; windows {:+.2} % +- {:.2}, wall {:.2} s",
                times[0],
                times[1],
                100.0 * whole[whole.len() - 1],
                100.0 * pair.predicted_log_ratio,
                100.0 * pair.predicted_log_ratio_sd,
                pair.candidate.wall_s,
            );
        }
    }
    println!("P, Q, threads, NB, DEPTH: per cent above the reference by whole runs, by windows (standard deviations)");
    for (shape, (whole, windows, sds)) in SHAPES.into_iter().zip(&logs) {
        let (of_whole, of_windows) = (moments(whole), moments(windows));
        println!(
            "{shape:?}: {:+.2} ({:.2}), {:+.2} ({:.2}, predicted {:.2}), difference {:+.2} +- {:.2}",
            of_whole.0,
            of_whole.1,
            of_windows.0,
            of_windows.1,
            moments(sds).0,
            of_windows.0 - of_whole.0,
            of_whole.1.hypot(of_windows.1) / (rounds as f64).sqrt(),
        );
    }
}

/// Mean and standard deviation in per cent.
fn moments(logs: &[f64]) -> (f64, f64) {
    let count = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / count;
    let squares = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>();
    (100.0 * mean, 100.0 * (squares / (count - 1.0).max(1.0)).sqrt())
}
