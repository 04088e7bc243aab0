//! Newton's method on the logarithmic barrier of the program for the fastest chain.
//!
//! For rising t the minimum of t·s + φ(s, x) is followed, φ = −log det F₁ − log det F₂ − Σ log rows; at the minimum s is
//! within (number of barriers)/t of the optimum \[Boyd\], section 11.2. Edges enter F₁ and F₂ as b_l b_lᵀ with two
//! entries in b_l, so that the Hessian is squares of b_lᵀ F⁻¹ b_k.

use faer::linalg::solvers::{DenseSolveCore, Llt, Solve};
use faer::{Mat, Side};

/// constant + s·S + Σ c·x_l > 0.
pub(super) struct Constraint {
    pub(super) constant: f64,
    /// Coefficient of s.
    pub(super) s: f64,
    /// Variables with their coefficients.
    pub(super) terms: Vec<(usize, f64)>,
}

/// The program in (s, x): minimise s with F₁, F₂ and all rows positive.
pub(super) struct Program {
    pub(super) v: Vec<f64>,
    /// b_l of each variable; `None` for one that is in the rows only.
    pub(super) edges: Vec<Option<[(usize, f64); 2]>>,
    pub(super) rows: Vec<Constraint>,
}

/// A point close to the optimum.
pub(super) struct Minimum {
    pub(super) s: f64,
    pub(super) x: Vec<f64>,
    pub(super) gap: f64,
}

/// Factor between successive t.
const FASTER: f64 = 30.0;
/// Maximum Newton steps for one t.
const STEPS: usize = 60;
/// Half the squared Newton decrement at which the centre is accepted.
const CENTRED: f64 = 1e-3;

/// An interior point, with the factors that Newton's step needs.
struct Inside {
    factors: [Llt<f64>; 2],
    rows: Vec<f64>,
}

impl Inside {
    /// φ.
    fn barrier(&self) -> f64 {
        let log_det = |llt: &Llt<f64>| (0..llt.L().nrows()).map(|i| 2.0 * llt.L()[(i, i)].ln()).sum::<f64>();
        -self.factors.iter().map(log_det).sum::<f64>() - self.rows.iter().map(|row| row.ln()).sum::<f64>()
    }
}

impl Program {
    /// Follows the centres from `s` and `x`, which are inside, until the gap is at most `gap` or rounding stops it.
    pub(super) fn minimise(&self, s: f64, x: Vec<f64>, gap: f64) -> Minimum {
        let barriers = (2 * self.v.len() + self.rows.len()) as f64;
        let mut best = Minimum { s, x, gap: f64::INFINITY };
        let mut t = 1.0;
        while best.gap > gap {
            let Some((s, x)) = self.centre(best.s, best.x.clone(), t) else { break };
            best = Minimum { s, x, gap: barriers / t };
            t *= FASTER;
        }
        best
    }

    /// The minimum of t·s + φ; `None` if the iteration does not converge.
    fn centre(&self, mut s: f64, mut x: Vec<f64>, t: f64) -> Option<(f64, Vec<f64>)> {
        let mut here = self.inside(s, &x)?;
        for _ in 0..STEPS {
            let (gradient, hessian) = self.derivatives(&here, t);
            let step = hessian.llt(Side::Lower).ok()?.solve(&gradient);
            // −gradientᵀ·step, as the step below goes backwards.
            let decrement: f64 = (0..gradient.nrows()).map(|i| gradient[(i, 0)] * step[(i, 0)]).sum();
            if decrement.is_nan() {
                return None;
            }
            if 0.5 * decrement <= CENTRED {
                return Some((s, x));
            }
            let value = t * s + here.barrier();
            let mut length = 1.0;
            let (next, next_s, next_x) = loop {
                let next_s = s - length * step[(0, 0)];
                let next_x: Vec<f64> = x.iter().enumerate().map(|(l, x)| x - length * step[(l + 1, 0)]).collect();
                let lower = |inside: &Inside| t * next_s + inside.barrier() <= value - 0.1 * length * decrement;
                if let Some(inside) = self.inside(next_s, &next_x).filter(lower) {
                    break (inside, next_s, next_x);
                }
                length *= 0.5;
                if length < 1e-10 {
                    return None;
                }
            };
            (here, s, x) = (next, next_s, next_x);
        }
        None
    }

    /// Factors of F₁ and F₂ and the values of the rows, if all are positive.
    fn inside(&self, s: f64, x: &[f64]) -> Option<Inside> {
        let value = |row: &Constraint| row.constant + row.s * s + row.terms.iter().map(|&(l, c)| c * x[l]).sum::<f64>();
        let rows: Vec<f64> = self.rows.iter().map(value).collect();
        if !rows.iter().all(|row| *row > 0.0) {
            return None;
        }
        // P − vvᵀ.
        let v = &self.v;
        let mut p = Mat::from_fn(v.len(), v.len(), |i, j| f64::from(u8::from(i == j)) - v[i] * v[j]);
        for (b, x) in self.edges.iter().zip(x) {
            for &(i, bi) in b.iter().flatten() {
                for &(j, bj) in b.iter().flatten() {
                    p[(i, j)] -= x * bi * bj;
                }
            }
        }
        let factor = |sign: f64| {
            let f = Mat::from_fn(v.len(), v.len(), |i, j| sign * p[(i, j)] + if i == j { s } else { 0.0 });
            f.llt(Side::Lower).ok()
        };
        Some(Inside { factors: [factor(-1.0)?, factor(1.0)?], rows })
    }

    /// Gradient and Hessian of t·s + φ over (s, x).
    fn derivatives(&self, here: &Inside, t: f64) -> (Mat<f64>, Mat<f64>) {
        let size = self.edges.len() + 1;
        let (mut gradient, mut hessian) = (Mat::<f64>::zeros(size, 1), Mat::<f64>::zeros(size, size));
        gradient[(0, 0)] = t;
        // F₁ rises with x_l by b bᵀ, F₂ falls.
        for (factor, sign) in here.factors.iter().zip([1.0, -1.0]) {
            let inverse = factor.inverse();
            let square = &inverse * &inverse;
            let form = |g: &Mat<f64>, a: &[(usize, f64); 2], b: &[(usize, f64); 2]| {
                a.iter().map(|&(i, ai)| b.iter().map(|&(j, bj)| ai * bj * g[(i, j)]).sum::<f64>()).sum::<f64>()
            };
            gradient[(0, 0)] -= (0..self.v.len()).map(|i| inverse[(i, i)]).sum::<f64>();
            hessian[(0, 0)] += (0..self.v.len()).map(|i| square[(i, i)]).sum::<f64>();
            for (l, a) in self.edges.iter().enumerate().filter_map(|(l, a)| Some((l + 1, a.as_ref()?))) {
                gradient[(l, 0)] -= sign * form(&inverse, a, a);
                hessian[(l, 0)] += sign * form(&square, a, a);
                for (k, b) in self.edges[..l].iter().enumerate().filter_map(|(k, b)| Some((k + 1, b.as_ref()?))) {
                    hessian[(l, k)] += form(&inverse, a, b).powi(2);
                }
            }
        }
        for (row, value) in self.rows.iter().zip(&here.rows) {
            let terms: Vec<(usize, f64)> =
                std::iter::once((0, row.s)).chain(row.terms.iter().map(|&(l, c)| (l + 1, c))).collect();
            for &(l, c) in &terms {
                gradient[(l, 0)] -= c / value;
                for &(k, d) in terms.iter().filter(|(k, _)| *k <= l) {
                    hessian[(l, k)] += c * d / (value * value);
                }
            }
        }
        (gradient, hessian)
    }
}
