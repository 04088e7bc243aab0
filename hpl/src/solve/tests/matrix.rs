//! Every variant against every other: residuals of the whole matrix, and of a sample that covers its pairs.

use std::collections::HashSet;

use super::cover::{LENGTHS, covering, pairwise, variant};
use super::*;

const GRIDS: [(usize, usize); 5] = [(1, 1), (1, 4), (4, 1), (2, 3), (3, 2)];
/// Whole blocks and not.
const ORDERS: [usize; 2] = [300, 317];
const NB: usize = 16;

#[test]
fn a_covering_sample_of_the_matrix_passes() {
    let shapes = GRIDS.into_iter().flat_map(|grid| ORDERS.map(|n| (n, grid)));
    let runs: Vec<Candidate> = shapes.flat_map(|(n, (p, q))| covering(n, NB, p, q)).collect();
    assert!((200..400).contains(&runs.len()), "{}", runs.len());
    runs.iter().for_each(|candidate| drop(passes(candidate)));
}

/// Everything: `cargo test --release -p hpl --lib -- --ignored --nocapture the_whole_matrix`.
#[test]
#[ignore = "a hundred thousand runs"]
fn the_whole_matrix_passes() {
    let (start, mut count) = (Instant::now(), 0);
    for ((p, q), n) in GRIDS.into_iter().flat_map(|grid| ORDERS.map(|n| (grid, n))) {
        let base = HplParams { nb: NB, ..HplParams::baseline(n, p, q) };
        for index in 0..LENGTHS.iter().product() {
            let mut rest: usize = index;
            let values = LENGTHS.map(|length| {
                let value = rest % length;
                rest /= length;
                value
            });
            passes(&variant(base, values));
            count += 1;
        }
        println!("P×Q {p}×{q} N {n}: {count} runs passed after {:.0} s", start.elapsed().as_secs_f64());
    }
}

/// Counted from the candidates themselves: every value of every parameter with every one of every other.
#[test]
fn every_pair_is_covered() {
    for ((p, q), n) in GRIDS.into_iter().flat_map(|grid| ORDERS.map(|n| (grid, n))) {
        let words = |c: &Candidate| {
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
        let runs: Vec<_> = covering(n, NB, p, q).iter().map(words).collect();
        let mut met = HashSet::new();
        for run in &runs {
            met.extend((0..9).flat_map(|a| (a + 1..9).map(move |b| (run[a].clone(), run[b].clone()))));
        }
        let pairs = |a: usize| LENGTHS[a + 1..].iter().map(|b| LENGTHS[a] * b).sum::<usize>();
        assert_eq!(met.len(), (0..9).map(pairs).sum::<usize>());
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
