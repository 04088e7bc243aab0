use std::f64::consts::PI;
use std::time::Instant;

use proptest::prelude::*;

use super::fastest::solve;
use super::*;
use crate::weights::WeightsError;

fn near(found: f64, wanted: f64, tolerance: f64) {
    assert!((found - wanted).abs() <= tolerance, "{found} is not {wanted}");
}

fn path(n: usize) -> Vec<(usize, usize)> {
    (1..n).map(|i| (i - 1, i)).collect()
}

/// Published and derived optima: cos(π/n) of a path with all weights 1/2 [FMMC-path]; 1 − 1/k of a star with k leaves;
/// (d − 1)/(d + 1) of a cube of d dimensions, with equal edges.
#[test]
fn known_graphs_have_their_known_optimum() {
    for n in [3, 4, 7, 12] {
        let fastest = solve(&vec![1; n], &path(n)).unwrap();
        near(fastest.modulus, (PI / n as f64).cos(), 2e-7);
        // The optimum on a path has diagonal entries 0 in the interior and 1/2 at the ends.
        let diagonal = &fastest.matrix.diagonal;
        assert!(diagonal[1..n - 1].iter().all(|rest| *rest < 1e-5), "{diagonal:?}");
        near(diagonal[0], 0.5, 1e-3);
    }
    for leaves in [3, 6] {
        let edges: Vec<_> = (1..=leaves).map(|leaf| (0, leaf)).collect();
        near(solve(&vec![1; leaves + 1], &edges).unwrap().modulus, 1.0 - 1.0 / leaves as f64, 2e-7);
    }
    for d in [2_usize, 3, 4] {
        let edges: Vec<_> =
            (0..1_usize << d).flat_map(|i| (0..d).map(move |bit| (i, i ^ (1 << bit)))).filter(|(i, j)| i < j).collect();
        near(solve(&vec![1; 1 << d], &edges).unwrap().modulus, (d as f64 - 1.0) / (d as f64 + 1.0), 2e-7);
    }
}

#[test]
fn a_complete_graph_needs_no_search_and_the_search_finds_the_same() {
    let pattern = Grouped { counts: vec![1; 6], diagonal: vec![1.0; 6], between: vec![vec![1.0; 6]; 6] };
    let direct = fastest::fastest(&pattern).unwrap();
    assert_eq!((direct.modulus, direct.matrix.diagonal[3]), (0.0, 1.0 / 6.0));
    let edges: Vec<_> = (0..6).flat_map(|h| (0..h).map(move |g| (g, h))).collect();
    let searched = solve(&[1; 6], &edges).unwrap();
    near(searched.modulus, 0.0, 2e-7);
    searched.matrix.diagonal.iter().for_each(|q| near(*q, 1.0 / 6.0, 1e-5));
}

#[test]
fn groups_of_equal_nodes_have_the_optimum_of_their_nodes() {
    // Two groups of three joined by a bridge node: inside linked, the groups not with each other.
    let grouped = solve(&[3, 1, 3], &[(0, 0), (0, 1), (1, 2), (2, 2)]).unwrap();
    let group = |i: usize| [0, 0, 0, 1, 2, 2, 2][i];
    let linked = |&(i, j): &(usize, usize)| group(i) == group(j) || group(i) == 1 || group(j) == 1;
    let edges: Vec<_> = (0..7).flat_map(|j| (0..j).map(move |i| (i, j))).filter(linked).collect();
    let single = solve(&[1; 7], &edges).unwrap();
    near(grouped.modulus, single.modulus, 3e-7);
    let moduli = grouped.matrix.eigenvalues();
    near(moduli[moduli.len() - 1], 1.0, 1e-9);
}

/// The rate at which (9) converges is that of its linearisation.
#[test]
fn the_scaling_converges_as_claimed() {
    let matrix = Grouped {
        counts: vec![1, 2, 1],
        diagonal: vec![0.3, 0.5, 0.2],
        between: vec![vec![0.0, 2.0, 1.0], vec![2.0, 1.5, 4.0], vec![1.0, 4.0, 0.0]],
    };
    let scaled = scaling::scale(&matrix);
    assert!(scaled.row_error < scaling::TOLERANCE && scaled.iterations < 30, "{scaled:?}");
    // The matrix times its scaling factors is the original.
    for g in 0..3 {
        near(scaled.e[g].powi(2) * scaled.matrix.diagonal[g], matrix.diagonal[g], 1e-12);
        for h in 0..3 {
            near(scaled.e[g] * scaled.e[h] * scaled.matrix.between[g][h], matrix.between[g][h], 1e-12);
        }
    }
    let claimed = scaling::convergence(&scaled.matrix);
    let error = |matrix: &Grouped| (0..3).map(|g| (matrix.row_sum(g) - 1.0).abs()).fold(0.0, f64::max);
    let step = |matrix: &Grouped| {
        let d: Vec<f64> = (0..3).map(|g| matrix.row_sum(g).sqrt()).collect();
        let mut next = matrix.clone();
        for g in 0..3 {
            next.diagonal[g] /= d[g] * d[g];
            (0..3).for_each(|h| next.between[g][h] /= d[g] * d[h]);
        }
        next
    };
    let mut last = scaled.matrix;
    (0..8).for_each(|_| last = step(&last));
    near(error(&step(&last)) / error(&last), claimed, 0.02);
}

#[test]
fn a_matrix_that_cannot_be_scaled_is_named() {
    let group = |name: &str, speed_gflops| NodeGroup {
        name: name.into(),
        count: 1,
        speed_gflops,
        memory_bytes: 1 << 34,
        reserved_bytes: 0,
    };
    let pair = Cluster::new(vec![group("a", 10.0), group("b", 0.0)], vec![vec![1.0; 2]; 2]).unwrap();
    let error = slem(&pair, 10_000, &SlemOptions::default()).unwrap_err();
    assert!(matches!(error, SlemError::NotScaled { iterations: 100, .. }), "{error}");
    let error = slem(&pair, 10_000, &SlemOptions { message_unit: 0.0 }).unwrap_err();
    assert!(error.to_string().contains("above 0, found 0"), "{error}");
    assert!(WeightsError::from(error).to_string().starts_with("SLEM: "));
}

/// A graph of 48 nodes with most of its 1128 edges, and 500 nodes of 6 kinds of which some are not linked.
#[test]
#[ignore = "prints times: run it alone, in release"]
fn how_long_it_takes() {
    for (n, every) in [(8, 5), (48, 5), (48, 2)] {
        let edges: Vec<_> = (0..n)
            .flat_map(|j: usize| (0..j).map(move |i| (i, j)))
            .filter(|(i, j)| i + 1 == *j || !(i * 7 + j * 13).is_multiple_of(every))
            .collect();
        let start = Instant::now();
        let fastest = solve(&vec![1; n], &edges).unwrap();
        println!(
            "{n} nodes, {} edges: {:.3} s, modulus {:.6}",
            edges.len(),
            start.elapsed().as_secs_f64(),
            fastest.modulus
        );
    }
    let counts = [100, 50, 150, 80, 70, 50];
    let group = |i: usize| (0..6).find(|&g| i < counts[..=g].iter().sum::<usize>()).unwrap();
    let nodes = (0..500).map(|i| NodeGroup {
        name: format!("n{i}"),
        count: 1,
        speed_gflops: 100.0 + 50.0 * group(i) as f64,
        memory_bytes: 64 << 30,
        reserved_bytes: 2 << 30,
    });
    let link = |i: usize, j: usize| if group(i).abs_diff(group(j)) > 3 { 0.0 } else { 1.0 };
    let links = (0..500).map(|i| (0..500).map(|j| link(i, j)).collect()).collect();
    let cluster = Cluster::new(nodes.collect(), links).unwrap();
    let start = Instant::now();
    let slem = slem(&cluster, 500_000, &SlemOptions::default()).unwrap();
    println!("500 nodes of 6 kinds: {:.3} s, modulus {:.6}", start.elapsed().as_secs_f64(), slem.modulus);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// For any graph: doubly stochastic, no negative entry, no entry off the graph, the reported modulus, and at least as good
    /// as the chain of equal weights on the edges.
    #[test]
    fn the_optimum_is_a_chain_on_the_graph(n in 3usize..9, extra in proptest::collection::vec(any::<bool>(), 36)) {
        let mut edges = path(n);
        let others = (0..n).flat_map(|j| (0..j).map(move |i| (i, j))).filter(|(i, j)| i + 1 < *j);
        edges.extend(others.zip(extra).filter(|(_, taken)| *taken).map(|(edge, _)| edge));
        let fastest = solve(&vec![1; n], &edges).unwrap();
        let matrix = &fastest.matrix;
        for i in 0..n {
            prop_assert!((matrix.row_sum(i) - 1.0).abs() < 1e-9 && matrix.diagonal[i] >= 0.0);
            for j in 0..n {
                let on_graph = edges.contains(&(i.min(j), i.max(j)));
                prop_assert!(matrix.between[i][j] >= 0.0 && (on_graph || matrix.between[i][j] == 0.0));
            }
        }
        let second = |matrix: &Grouped| {
            let values = matrix.eigenvalues();
            values[0].abs().max(values[values.len() - 2].abs())
        };
        prop_assert!((second(matrix) - fastest.modulus).abs() < 1e-5);
        let mut plain = matrix.clone();
        let weight = 1.0 / n as f64;
        plain.between.iter_mut().flatten().for_each(|p| if *p > 0.0 { *p = weight });
        plain.diagonal = vec![0.0; n];
        plain.diagonal = (0..n).map(|i| 1.0 - plain.row_sum(i)).collect();
        prop_assert!(fastest.modulus <= second(&plain) + 1e-6);
    }
}
