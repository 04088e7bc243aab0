//! The fastest mixing chain of random graphs, compared with what another solver of semidefinite programs found
//! (`slem/optima.py` writes the file).

use objectives::weights::slem::Grouped;
use objectives::weights::slem::fastest::fastest;
use serde::Deserialize;

#[derive(Deserialize)]
struct Optima {
    solver: String,
    graphs: Vec<Graph>,
}

#[derive(Deserialize)]
struct Graph {
    nodes: usize,
    edges: Vec<(usize, usize)>,
    optimum: f64,
}

#[test]
fn random_graphs_have_the_optimum_that_another_solver_finds() {
    let optima: Optima = serde_json::from_str(include_str!("slem/optima.json")).unwrap();
    let mut worst: f64 = 0.0;
    for Graph { nodes: n, edges, optimum } in &optima.graphs {
        let mut pattern = Grouped { counts: vec![1; *n], diagonal: vec![1.0; *n], between: vec![vec![0.0; *n]; *n] };
        for &(i, j) in edges {
            (pattern.between[i][j], pattern.between[j][i]) = (1.0, 1.0);
        }
        let ours = fastest(&pattern).unwrap().modulus;
        worst = worst.max((ours - optimum).abs());
        assert!((ours - optimum).abs() < 1e-6, "{n} nodes, edges {edges:?}: {ours} and {optimum}");
    }
    assert_eq!(optima.graphs.len(), 32);
    println!("32 graphs of 5 to 12 nodes, largest difference to {} {worst:.1e}", optima.solver);
}
