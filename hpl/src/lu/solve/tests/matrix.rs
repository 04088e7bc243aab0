//! All combinations of variants: residuals of the full matrix of combinations, and of a sample that covers all pairs.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::cover::{LENGTHS, covering, pairwise, variant};
use super::*;

const GRIDS: [(usize, usize); 5] = [(1, 1), (1, 4), (4, 1), (2, 3), (3, 2)];
/// With and without a partial last block.
const ORDERS: [usize; 2] = [300, 317];
const NB: usize = 16;

#[test]
fn a_covering_sample_of_the_matrix_passes() {
    let shapes = GRIDS.into_iter().flat_map(|grid| ORDERS.map(|n| (n, grid)));
    let runs: Vec<Candidate> = shapes.flat_map(|(n, (p, q))| covering(n, NB, p, q)).collect();
    assert!((200..400).contains(&runs.len()), "{}", runs.len());
    runs.iter().for_each(|candidate| drop(passes(candidate)));
}

/// All combinations on one grid, with one concurrent run per core:
/// `cargo test --release -p hpl --lib -- --ignored --nocapture --test-threads 1 the_whole_matrix`.
fn whole(p: usize, q: usize) {
    let start = Instant::now();
    let (next, total) = (AtomicUsize::new(0), LENGTHS.iter().product::<usize>());
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(&n) = ORDERS.get(index / total) else { return };
            let mut rest = index % total;
            let values = LENGTHS.map(|length| {
                let value = rest % length;
                rest /= length;
                value
            });
            passes(&variant(HplParams { nb: NB, ..HplParams::baseline(n, p, q) }, values));
        }
    };
    thread::scope(|scope| {
        let workers = thread::available_parallelism().map_or(1, |cores| cores.get());
        (0..workers).for_each(|_| drop(scope.spawn(work)));
    });
    let count = ORDERS.len() * total;
    println!("P×Q {p}×{q}: {count} runs passed in {:.0} s", start.elapsed().as_secs_f64());
}

#[test]
#[ignore = "twenty thousand runs"]
fn the_whole_matrix_on_1x1_passes() {
    whole(1, 1);
}

#[test]
#[ignore = "twenty thousand runs"]
fn the_whole_matrix_on_1x4_passes() {
    whole(1, 4);
}

#[test]
#[ignore = "twenty thousand runs"]
fn the_whole_matrix_on_4x1_passes() {
    whole(4, 1);
}

#[test]
#[ignore = "twenty thousand runs"]
fn the_whole_matrix_on_2x3_passes() {
    whole(2, 3);
}

#[test]
#[ignore = "twenty thousand runs"]
fn the_whole_matrix_on_3x2_passes() {
    whole(3, 2);
}

/// Counted from the candidates: every value of every parameter occurs with every value of every other parameter.
#[test]
fn every_pair_is_covered() {
    for ((p, q), n) in GRIDS.into_iter().flat_map(|grid| ORDERS.map(|n| (grid, n))) {
        let values = |c: &Candidate| {
            let Candidate { hpl: h, engine: e } = c;
            [
                format!("PFACT {:?}", h.pfact),
                format!("RFACT {:?}", h.rfact),
                format!("BCAST {:?}", h.bcast),
                format!("SWAP {:?}", h.swap),
                format!("DEPTH {}", h.depth),
                format!("L1 {:?}", h.l1),
                format!("U {:?}", h.u),
                format!("EQUIL {}", h.equil),
                format!("split {}", e.split),
            ]
        };
        let runs: Vec<_> = covering(n, NB, p, q).iter().map(values).collect();
        let mut covered = HashSet::new();
        for run in &runs {
            covered.extend((0..9).flat_map(|a| (a + 1..9).map(move |b| (run[a].clone(), run[b].clone()))));
        }
        let pairs = |a: usize| LENGTHS[a + 1..].iter().map(|b| LENGTHS[a] * b).sum::<usize>();
        assert_eq!(covered.len(), (0..9).map(pairs).sum::<usize>());
        assert!(runs.len() < 2 * LENGTHS[2] * LENGTHS[4].max(LENGTHS[0]), "{} runs are no sample", runs.len());
    }
}

#[test]
fn a_sample_of_one_dimension_is_empty_and_of_two_is_all() {
    assert!(pairwise(&[5], 0).is_empty());
    let mut all = pairwise(&[2, 3], 1);
    all.sort();
    assert_eq!(all, [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]);
}
