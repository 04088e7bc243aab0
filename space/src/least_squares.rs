//! Least squares with coefficients that are not negative.

/// c ≥ 0 that minimises Σ (row·c − value)² over rows of one length; all 0 where the rows determine no coefficient.
///
/// The optimum is the plain least-squares solution on the terms that it does not set to zero. Terms are few, so all of their subsets
/// are tried: exact and without iteration. Of those that are equally near, up to rounding, the one of the first terms is taken.
///
/// ```
/// let rows = [vec![1.0, 1.0], vec![1.0, 2.0], vec![1.0, 3.0]];
/// assert_eq!(space::least_squares::non_negative(&rows, &[3.0, 5.0, 7.0]), [1.0, 2.0]);
/// assert_eq!(space::least_squares::non_negative(&rows, &[3.0, 2.0, 1.0]), [2.0, 0.0]);
/// ```
pub fn non_negative(rows: &[Vec<f64>], values: &[f64]) -> Vec<f64> {
    let width = rows.first().map_or(0, Vec::len);
    let normal = Normal::new(rows, values, width);
    let rounding = ROUNDING * normal.total;
    let mut best = (f64::INFINITY, vec![0.0; width]);
    for subset in 1..1_usize << width {
        let terms: Vec<usize> = (0..width).filter(|term| subset >> term & 1 == 1).collect();
        let Some(found) = normal.solve(&terms).filter(|found| found.iter().all(|&c| c >= 0.0)) else { continue };
        let error = normal.squares(&found);
        if error < best.0 - rounding {
            best = (error, found);
        }
    }
    best.1
}

/// Part of Σ value² up to which errors differ by rounding.
const ROUNDING: f64 = 1e-12;

/// The normal equations: AᵀA, Aᵀb and bᵀb of the rows A and the values b.
struct Normal {
    gram: Vec<Vec<f64>>,
    right: Vec<f64>,
    total: f64,
}

impl Normal {
    fn new(rows: &[Vec<f64>], values: &[f64], width: usize) -> Self {
        let product = |i: usize, j: usize| rows.iter().map(|row| row[i] * row[j]).sum::<f64>();
        let by_value = |i: usize| rows.iter().zip(values).map(|(row, value)| row[i] * value).sum::<f64>();
        Self {
            gram: (0..width).map(|i| (0..width).map(|j| product(i, j)).collect()).collect(),
            right: (0..width).map(by_value).collect(),
            total: values.iter().map(|value| value * value).sum(),
        }
    }

    /// Σ (row·c − value)², from the products alone: there may be thousands of rows.
    fn squares(&self, c: &[f64]) -> f64 {
        let dot = |a: &[f64]| a.iter().zip(c).map(|(x, c)| x * c).sum::<f64>();
        let quadratic: f64 = self.gram.iter().zip(c).map(|(row, x)| x * dot(row)).sum();
        quadratic - 2.0 * dot(&self.right) + self.total
    }

    /// The least-squares solution on `terms` by elimination, the other coefficients 0; `None` where the rows do not determine it.
    /// Scales of the terms do not matter.
    fn solve(&self, terms: &[usize]) -> Option<Vec<f64>> {
        /// sin² of the angle between a term and those before it, up to which it depends on them.
        const DEPENDENT: f64 = 1e-9;
        let size = terms.len();
        let equation = |&i: &usize| {
            let left = terms.iter().map(|&j| self.gram[i][j]);
            left.chain([self.right[i]]).collect::<Vec<f64>>()
        };
        let mut system: Vec<Vec<f64>> = terms.iter().map(equation).collect();
        for i in 0..size {
            if system[i][i] <= DEPENDENT * self.gram[terms[i]][terms[i]] {
                return None;
            }
            let pivot = system[i].clone();
            for row in &mut system[i + 1..] {
                let factor = row[i] / pivot[i];
                row.iter_mut().zip(&pivot).for_each(|(x, p)| *x -= factor * p);
            }
        }
        let mut found = vec![0.0; self.right.len()];
        for i in (0..size).rev() {
            let known: f64 = (i + 1..size).map(|j| system[i][j] * found[terms[j]]).sum();
            found[terms[i]] = (system[i][size] - known) / system[i][i];
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_of_terms_do_not_matter() {
        let truth = [2e-11, 5e3, 3.0];
        let rows: Vec<Vec<f64>> =
            (1..20).map(f64::from).map(|i| vec![1e11 * i * i, 1e-3 * i.sqrt(), (7.0 * i).cos()]).collect();
        let value = |row: &Vec<f64>| row.iter().zip(truth).map(|(x, c)| x * c).sum::<f64>();
        let values: Vec<f64> = rows.iter().map(value).collect();
        for (found, wanted) in non_negative(&rows, &values).iter().zip(truth) {
            assert!((found / wanted - 1.0).abs() < 1e-6, "{found} {wanted}");
        }
    }

    #[test]
    fn what_the_rows_do_not_determine_is_0() {
        assert_eq!(non_negative(&[], &[]), [0.0; 0]);
        assert_eq!(non_negative(&[vec![0.0, 2.0]], &[4.0]), [0.0, 2.0]);
        assert_eq!(non_negative(&[vec![1.0], vec![2.0]], &[-1.0, -2.0]), [0.0]);
        assert_eq!(non_negative(&[vec![f64::NAN]], &[1.0]), [0.0]);
    }

    /// Which of several exact fits was taken was up to rounding.
    #[test]
    fn of_exact_fits_the_one_of_the_first_terms_is_taken() {
        for scale in [1.0, 0.1, 0.3, 7e9, 1e-7] {
            let rows = [vec![3.0, 0.7, 0.1], vec![0.6 * 3.0, 0.6 * 0.7, 0.6 * 0.1]];
            let found = non_negative(&rows, &[0.9 * scale, 0.9 * 0.6 * scale]);
            assert!(found[0] > 0.0 && found[1..] == [0.0, 0.0], "{scale} {found:?}");
        }
    }

    #[test]
    fn equal_terms_share_nothing() {
        let found = non_negative(&[vec![1.0, 1.0], vec![2.0, 2.0]], &[3.0, 6.0]);
        assert_eq!(found, [3.0, 0.0]);
    }
}
