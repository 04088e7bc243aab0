use std::thread;

use super::*;
use crate::comm::threads::{self, ThreadComm};
use crate::mat::Mat;
use crate::team::{TeamParams, with_team};

/// Rows of the whole matrix after the interchanges, by global row of origin.
fn interchanged(m: usize, ia: usize, pivots: &[usize]) -> Vec<usize> {
    let mut content: Vec<usize> = (0..m).collect();
    for (j, &pivot) in pivots.iter().enumerate() {
        content.swap(ia + j, pivot);
    }
    content
}

/// Element (row of origin, column) of the test matrix.
fn value(row: usize, col: usize) -> f64 {
    (row * 100 + col) as f64
}

fn pivots(m: usize, ia: usize, jb: usize, seed: usize) -> Vec<usize> {
    (0..jb).map(|j| ia + j + (j * 7 + seed * 13) * 31 % (m - ia - j)).collect()
}

fn check_rank(comm: &ThreadComm, rows: &Axis, swap: Swap, ia: usize, pivots: &[usize], n: usize) {
    let (me, jb) = (comm.rank(), pivots.len());
    let mp = rows.local_len(me);
    let fill = |col| (0..mp).map(move |i| value(rows.global(me, i), col));
    let mut data: Vec<f64> = (0..n).flat_map(fill).collect();
    let mut u_data = vec![f64::NAN; jb * n];
    let moves = Moves::new(rows, ia, pivots);
    let (a, u) = (MatMut::new(&mut data, mp, n, mp.max(1)), MatMut::new(&mut u_data, jb, n, jb));
    let exchange = Exchange { column: comm, rows, swap };
    let team = TeamParams { threads: 1, cores: &[], spin: false };
    with_team(team, |team| exchange.run(team, &moves, a, u, &mut Pool::default())).unwrap().unwrap();
    let (a, u) = (Mat::new(&data, mp, n, mp.max(1)), Mat::new(&u_data, jb, n, jb));
    let expected = interchanged(rows.len(), ia, pivots);
    for col in 0..n {
        (0..jb).for_each(|i| assert_eq!(u.at(i, col), value(expected[ia + i], col), "U on {me}"));
        for i in 0..mp {
            let global = rows.global(me, i);
            let from = if (ia..ia + jb).contains(&global) { global } else { expected[global] };
            assert_eq!(a.at(i, col), value(from, col), "row {global} on {me}");
        }
    }
}

#[test]
fn both_exchanges_are_the_interchanges() {
    let swaps = [Swap::BinExch, Swap::Long, Swap::Mix { threshold: 2 }];
    for (p, swap) in (1..=9).flat_map(|p| swaps.map(|swap| (p, swap))) {
        for (m, nb, ia, jb, n) in
            [(40, 5, 0, 5, 3), (40, 5, 15, 5, 2), (43, 5, 40, 3, 4), (64, 8, 8, 8, 0), (7, 7, 0, 7, 1)]
        {
            for seed in 0..5 {
                let (rows, pivots) = (Axis::block_cyclic(m, nb, p), pivots(m, ia, jb, seed));
                thread::scope(|scope| {
                    for comm in threads::world(p, false) {
                        let (rows, pivots) = (&rows, &pivots);
                        scope.spawn(move || check_rank(&comm, rows, swap, ia, pivots, n));
                    }
                });
            }
        }
    }
}
