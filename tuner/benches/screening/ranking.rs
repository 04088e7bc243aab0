//! The short way to predict candidates, compared with all steps on all ranks.

use std::time::Instant;

use objectives::predict::Predictor;
use rand::SeedableRng;
use rand::seq::index::sample;
use rand_chacha::ChaCha8Rng;
use space::dims::Space;
use space::domain::{DomainSpec, HplDomain, squarest};
use space::stats::spearman;
use space::{Candidate, KernelChoice, Unequal};

use crate::machines::machine;

/// How much slower than the best a candidate may be predicted that is drawn.
const WITHIN: f64 = 0.15;

/// Draws candidates on 16 and 64 ranks and prints how the two ways agree.
pub(crate) fn report(draws: usize) {
    println!("cores  drawn of                     count  rank correlation  first loses  mean |difference|");
    for (cores, n) in [(16, 40_000), (64, 60_000)] {
        for nodes in [1, 4] {
            one(nodes, cores / nodes, n, draws);
        }
    }
}

fn one(nodes: usize, cores: usize, n: usize, draws: usize) {
    let predictor = Predictor::new(&machine(nodes, cores, 1, 1 << 40)).expect("a description with phases");
    let (threads, unequal, all) = (None, Unequal::default(), nodes * cores);
    let spec = DomainSpec {
        n,
        cores: all,
        memory_bytes: 1 << 45,
        kernels: KernelChoice::Builtin,
        ranks: None,
        threads,
        most_threads: None,
        common_cores: None,
        unequal,
    };
    let domain = HplDomain::new(&spec).expect("candidates");
    let candidates: Vec<Candidate> = domain.points().iter().map(|point| domain.candidate(point)).collect();
    let clock = Instant::now();
    let times = predictor.screen(candidates.len(), |i| candidates[i].clone(), 1);
    let screened_s = clock.elapsed().as_secs_f64();
    let best = times.iter().copied().fold(f64::INFINITY, f64::min);
    let good: Vec<usize> = (0..times.len()).filter(|&i| times[i] <= best * (1.0 + WITHIN)).collect();
    let (p, q) = squarest(all);
    let on_grid: Vec<usize> =
        (0..times.len()).filter(|&i| (candidates[i].hpl.p, candidates[i].hpl.q) == (p, q)).collect();
    for (what, from) in [("15 % of the best", good), ("one grid", on_grid)] {
        let mut rng = ChaCha8Rng::seed_from_u64(17);
        let mut drawn: Vec<usize> =
            sample(&mut rng, from.len(), draws.min(from.len())).into_iter().map(|i| from[i]).collect();
        // The one that would be run first.
        let first = from.iter().copied().min_by(|&a, &b| times[a].total_cmp(&times[b])).expect("candidates");
        drawn.push(first);
        let exact: Vec<f64> = drawn.iter().map(|&i| predictor.exact_time_s(&candidates[i])).collect();
        let short: Vec<f64> = drawn.iter().map(|&i| times[i]).collect();
        let least = exact.iter().copied().fold(f64::INFINITY, f64::min);
        let loss = exact[exact.len() - 1] / least - 1.0;
        let off: f64 = short.iter().zip(&exact).map(|(s, e)| (s / e - 1.0).abs()).sum::<f64>() / exact.len() as f64;
        println!(
            "{all:>5}  {:<28} {:>5}  {:>16.4}  {:>9.2} %  {:>10.2} %",
            format!("{what}, {nodes} nodes"),
            drawn.len(),
            spearman(&short, &exact),
            100.0 * loss,
            100.0 * off
        );
    }
    println!("       {} candidates screened in {screened_s:.2} s on one thread", candidates.len());
}
