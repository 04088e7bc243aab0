//! The fastest mixing chain of random graphs, compared with Clarabel, another solver of semidefinite programs.
//!
//! `cargo test --release --workspace --features objectives/clarabel --test clarabel`; `tests/run` does so where OpenBLAS is, which
//! Clarabel's semidefinite cones call.

use clarabel::algebra::CscMatrix;
use clarabel::solver::SupportedConeT::{NonnegativeConeT, PSDTriangleConeT};
use clarabel::solver::{DefaultSettings, DefaultSolver, IPSolver, SolverStatus};
use objectives::weights::slem::Grouped;
use objectives::weights::slem::fastest::fastest;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

// The library that Debian's hpcc needs, by the name that it has without files for developers.
#[link(name = "libopenblas.so.0", kind = "dylib", modifiers = "+verbatim")]
unsafe extern "C" {}

/// A connected graph of `n` nodes: a random tree, and each other edge with this probability.
fn graph(n: usize, density: f64, rng: &mut ChaCha8Rng) -> Vec<(usize, usize)> {
    let parents: Vec<usize> = (1..n).map(|node| rng.random_range(0..node)).collect();
    let pairs = (1..n).flat_map(|j| (0..j).map(move |i| (i, j)));
    pairs.filter(|&(i, j)| parents[j - 1] == i || rng.random_bool(density)).collect()
}

/// Smallest s with −s·I ⪯ I − Σ p_l b_l b_lᵀ − 11ᵀ/n ⪯ s·I, p ≥ 0 and 1 − Σ_{l at i} p_l ≥ 0: variables p, then s; rows
/// A·x + slack = b with the slack in a cone.
fn clarabel(n: usize, edges: &[(usize, usize)]) -> f64 {
    let (m, root) = (edges.len(), 2f64.sqrt());
    let (mut places, mut b, mut row) = ((Vec::new(), Vec::new(), Vec::new()), Vec::new(), 0);
    let mut put = |row: usize, column: usize, value: f64| {
        places.0.push(row);
        places.1.push(column);
        places.2.push(value);
    };
    for sign in [1.0, -1.0] {
        // slack = s·I + sign·(Σ p b bᵀ − (I − 11ᵀ/n)), the upper triangle by columns, times √2 off the diagonal.
        for j in 0..n {
            for i in 0..=j {
                let (own, scale) = if i == j { (1.0, 1.0) } else { (0.0, root) };
                if i == j {
                    put(row, m, -1.0);
                }
                for (l, &(g, h)) in edges.iter().enumerate() {
                    if i == j && (i == g || i == h) {
                        put(row, l, -sign);
                    } else if (i, j) == (g, h) {
                        put(row, l, sign * scale);
                    }
                }
                b.push(-sign * scale * (own - 1.0 / n as f64));
                row += 1;
            }
        }
    }
    for l in 0..m {
        put(row, l, -1.0);
        b.push(0.0);
        row += 1;
    }
    for i in 0..n {
        edges.iter().enumerate().filter(|(_, (g, h))| *g == i || *h == i).for_each(|(l, _)| put(row, l, 1.0));
        b.push(1.0);
        row += 1;
    }
    let a = CscMatrix::new_from_triplets(row, m + 1, places.0, places.1, places.2);
    let cost = [vec![0.0; m], vec![1.0]].concat();
    let cones = [PSDTriangleConeT(n), PSDTriangleConeT(n), NonnegativeConeT(m + n)];
    let settings = DefaultSettings { verbose: false, ..DefaultSettings::default() };
    let mut solver = DefaultSolver::new(&CscMatrix::zeros((m + 1, m + 1)), &cost, &a, &b, &cones, settings).unwrap();
    solver.solve();
    assert_eq!(solver.solution.status, SolverStatus::Solved);
    solver.solution.obj_val
}

#[test]
fn random_graphs_have_the_optimum_that_clarabel_finds() {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut worst: f64 = 0.0;
    for n in 5..=12 {
        for density in [0.0, 0.2, 0.5, 0.8] {
            let edges = graph(n, density, &mut rng);
            let mut pattern = Grouped { counts: vec![1; n], diagonal: vec![1.0; n], between: vec![vec![0.0; n]; n] };
            for &(i, j) in &edges {
                (pattern.between[i][j], pattern.between[j][i]) = (1.0, 1.0);
            }
            let (ours, theirs) = (fastest(&pattern).unwrap().modulus, clarabel(n, &edges));
            worst = worst.max((ours - theirs).abs());
            assert!((ours - theirs).abs() < 1e-6, "{n} nodes, edges {edges:?}: {ours} and {theirs}");
        }
    }
    println!("32 graphs of 5 to 12 nodes, largest difference {worst:.1e}");
}
