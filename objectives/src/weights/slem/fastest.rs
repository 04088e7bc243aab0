//! The fastest mixing Markov chain on a graph, by a barrier method.
//!
//! Over symmetric doubly stochastic P ≥ 0 that are 0 off the graph: minimise s with −s·I ⪯ P − 11ᵀ/n ⪯ s·I \[FMMC\].
//! With one variable p_l per edge, P = I − Σ p_l b_l b_lᵀ has all its equations built in, and the program is
//!
//! ```text
//! F₁ = sI − P + vvᵀ ⪰ 0,   F₂ = sI + P − vvᵀ ⪰ 0,   p ≥ 0,   P_ii ≥ 0.
//! ```
//!
//! By symmetry the nodes of a group have equal entries \[FMMC-symmetry\]. P is then block diagonal: a matrix between the
//! groups, with v_g = sqrt(c_g/n) and b = sqrt(c_h)·e_g − sqrt(c_g)·e_h for an edge between groups of c_g and c_h nodes,
//! and one number per group with several nodes, 1 − c_g·p_gg − Σ c_h·p_gh, the eigenvalue of vectors that differ inside it.
//!
//! If several matrices have the smallest modulus, the barrier method converges to their analytic centre.

use super::newton::{Constraint, Minimum, Program};
use super::{Grouped, SlemError};

/// Target gap of the modulus.
const GAP: f64 = 1e-7;
/// Largest acceptable gap.
const LARGEST_GAP: f64 = 1e-4;

/// The optimum.
#[derive(Debug, Clone, PartialEq)]
pub struct Fastest {
    /// Q*.
    pub matrix: Grouped,
    /// Its second largest eigenvalue modulus s.
    pub modulus: f64,
    /// Upper bound of the difference between s and the optimum.
    pub gap: f64,
}

/// The fastest chain on the graph of the positive entries of `pattern`, which is connected.
///
/// # Errors
/// [`SlemError::NotSolved`] when rounding ends the iteration far from the optimum.
pub fn fastest(pattern: &Grouped) -> Result<Fastest, SlemError> {
    let counts = &pattern.counts;
    let several = |g: usize| counts[g] > 1;
    let linked = |&(g, h): &(usize, usize)| pattern.between[g][h] > 0.0;
    let pairs = || (0..counts.len()).flat_map(|h| (0..=h).map(move |g| (g, h))).filter(|&(g, h)| g != h || several(g));
    let nodes: usize = counts.iter().sum();
    // 11ᵀ/n is a matrix on the complete graph and has the modulus 0: it is the optimum.
    if pairs().all(|pair| linked(&pair)) {
        let share = 1.0 / nodes as f64;
        let matrix = Grouped {
            counts: counts.clone(),
            diagonal: vec![share; counts.len()],
            between: vec![vec![share; counts.len()]; counts.len()],
        };
        return Ok(Fastest { matrix, modulus: 0.0, gap: 0.0 });
    }
    let edges: Vec<(usize, usize)> = pairs().filter(linked).collect();
    solve(counts, &edges)
}

/// The same for given edges.
pub(super) fn solve(counts: &[usize], edges: &[(usize, usize)]) -> Result<Fastest, SlemError> {
    let program = program(counts, edges);
    let degree = |g: usize| {
        let others = |&(a, b): &(usize, usize)| match (a == g, b == g) {
            (true, true) => counts[g] - 1,
            (true, false) => counts[b],
            (false, true) => counts[a],
            (false, false) => 0,
        };
        edges.iter().map(others).sum::<usize>()
    };
    let largest = (0..counts.len()).map(degree).max().unwrap_or(0) as f64;
    let start = vec![1.0 / (largest + 1.0); edges.len()];
    let Minimum { s, x, gap } = program.minimise(2.0, start, GAP);
    if gap > LARGEST_GAP {
        return Err(SlemError::NotSolved { gap });
    }
    let mut between = vec![vec![0.0; counts.len()]; counts.len()];
    for (&(g, h), &p) in edges.iter().zip(&x) {
        between[g][h] = p;
        between[h][g] = p;
    }
    let mut matrix = Grouped { counts: counts.to_vec(), diagonal: vec![0.0; counts.len()], between };
    matrix.diagonal = (0..counts.len()).map(|g| (1.0 - matrix.row_sum(g)).max(0.0)).collect();
    Ok(Fastest { matrix, modulus: s, gap })
}

fn program(counts: &[usize], edges: &[(usize, usize)]) -> Program {
    let (groups, nodes) = (counts.len(), counts.iter().sum::<usize>() as f64);
    let root = |g: usize| (counts[g] as f64).sqrt();
    // An edge inside a group has no entry in the matrix between groups.
    let vector = |&(g, h): &(usize, usize)| if g == h { None } else { Some([(g, root(h)), (h, -root(g))]) };
    // Σ over the edges at a node of group g, those inside the group counted `inside` times.
    let at_node = |g: usize, inside: usize| -> Vec<(usize, f64)> {
        let coefficient = |&(a, b): &(usize, usize)| match (a == g, b == g) {
            (true, true) => inside,
            (true, false) => counts[b],
            (false, true) => counts[a],
            (false, false) => 0,
        };
        let terms = edges.iter().enumerate().map(|(l, edge)| (l, coefficient(edge) as f64));
        terms.filter(|(_, coefficient)| *coefficient > 0.0).collect()
    };
    let scaled = |terms: &[(usize, f64)], by: f64| terms.iter().map(|&(l, c)| (l, by * c)).collect::<Vec<_>>();
    let mut rows: Vec<Constraint> =
        (0..edges.len()).map(|l| Constraint { constant: 0.0, s: 0.0, terms: vec![(l, 1.0)] }).collect();
    for (g, &count) in counts.iter().enumerate() {
        rows.push(Constraint { constant: 1.0, s: 0.0, terms: scaled(&at_node(g, count - 1), -1.0) });
        if count > 1 {
            let inside = at_node(g, count);
            rows.push(Constraint { constant: -1.0, s: 1.0, terms: scaled(&inside, 1.0) });
            rows.push(Constraint { constant: 1.0, s: 1.0, terms: scaled(&inside, -1.0) });
        }
    }
    Program {
        v: (0..groups).map(|g| root(g) / nodes.sqrt()).collect(),
        edges: edges.iter().map(vector).collect(),
        rows,
    }
}
