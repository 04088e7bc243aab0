//! Matrices over groups of equal nodes.

/// A symmetric matrix over nodes, in which the nodes of a group are interchangeable.
#[derive(Debug, Clone, PartialEq)]
pub struct Grouped {
    /// Nodes of each group, at least 1.
    pub counts: Vec<usize>,
    /// Diagonal entry of the nodes of each group.
    pub diagonal: Vec<f64>,
    /// Entry between a node of one group and one of another; on the diagonal between two nodes of one group.
    pub between: Vec<Vec<f64>>,
}

impl Grouped {
    /// Sum over the row of a node of group `g`.
    pub fn row_sum(&self, g: usize) -> f64 {
        let others = |h: usize| (self.counts[h] - usize::from(g == h)) as f64;
        self.diagonal[g] + (0..self.counts.len()).map(|h| others(h) * self.between[g][h]).sum::<f64>()
    }

    /// Eigenvalues, ascending: those of the matrix between groups, and of each group with several nodes the one of the
    /// vectors that differ inside it only.
    pub fn eigenvalues(&self) -> Vec<f64> {
        let groups = self.counts.len();
        let root = |g: usize| (self.counts[g] as f64).sqrt();
        let quotient = faer::Mat::from_fn(groups, groups, |g, h| {
            let inside = if g == h { self.diagonal[g] - self.between[g][g] } else { 0.0 };
            inside + root(g) * root(h) * self.between[g][h]
        });
        let mut values =
            quotient.self_adjoint_eigenvalues(faer::Side::Lower).unwrap_or_else(|_| vec![f64::NAN; groups]);
        let several = (0..groups).filter(|&g| self.counts[g] > 1);
        values.extend(several.map(|g| self.diagonal[g] - self.between[g][g]));
        values.sort_by(f64::total_cmp);
        values
    }
}
