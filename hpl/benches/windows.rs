//! The ranking of candidates by windows, compared with their full runs: Spearman's ρ for random points of the search space,
//! compared with that of repeated full runs.
//!
//! `cargo bench -p hpl --bench windows -- [N [DRAWS [SEED]]]`; each point takes two full runs and one of windows.

use hpl::plan::windows::Windows;
use hpl::program::{Ranks, RunOptions, Runner};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use space::domain::HplDomain;
use space::draw;
use space::stats::spearman;

fn main() {
    let numbers: Vec<usize> = std::env::args().filter_map(|word| word.parse().ok()).collect();
    let number = |at: usize, default| numbers.get(at).copied().unwrap_or(default);
    let (n, draws, seed) = (number(0, 16_000), number(1, 20), number(2, 1));
    let spec = hpl::machine::host::facts().domain_spec(n);
    let domain = HplDomain::new(&spec).expect("a space that fits this machine");
    let runner = Runner::new(&spec.kernels).expect("built-in kernels");
    let mut rng = ChaCha8Rng::seed_from_u64(seed as u64);
    let options = RunOptions { threshold: 16.0, force: false, watch: &() };
    let mut columns = [const { Vec::new() }; 3];
    println!("N={n}, {draws} draws: seconds of two full runs, predicted by windows, cost of the windows");
    for _ in 0..draws {
        let candidate = domain.candidate(draw::uniform(&domain, &mut rng).expect("a point"));
        let full = || {
            let result = runner.run(&candidate, &options).expect("a run").result;
            assert!(result.passed, "{result:?}");
            result.time_s
        };
        let before_s = full();
        let windows = runner.measure_windows_on(&Ranks::threads(), &candidate, &Windows::Auto, &options);
        let windows = windows.expect("windows");
        assert!(windows.passed, "{windows:?}");
        let after_s = full();
        let (hpl, predicted_s) = (&candidate.hpl, windows.predicted_time_s);
        println!(
            "{before_s:8.3} {after_s:8.3} {predicted_s:8.3} {:5.1} %   P={} Q={} T={} NB={} DEPTH={} NBMIN={} split {}",
            (windows.wall_s - windows.generate_s) / before_s.min(after_s) * 100.0,
            hpl.p,
            hpl.q,
            candidate.engine.threads,
            hpl.nb,
            hpl.depth,
            hpl.nbmin,
            candidate.engine.split.get(),
        );
        columns.iter_mut().zip([before_s, after_s, predicted_s]).for_each(|(column, time_s)| column.push(time_s));
    }
    let [before, after, predicted] = &columns;
    println!("rho of windows with the first runs {:.3}", spearman(predicted, before));
    println!("rho of windows with the second runs {:.3}", spearman(predicted, after));
    println!("rho of the full runs with each other {:.3}", spearman(before, after));
}
