//! What is fitted: a factor on DGEMM, the latency of a pivot's message, and the rate of a node's link under load.
//!
//! Least squares of relative errors on three runs, with priors: the published values, of which DGEMM may be 5 % off, the latency
//! 30 % and the link 15 %. A run is taken as 1.5 % uncertain. Gauss–Newton steps on logarithms.

use objectives::timeline::{LinkCosts, Platform};
use space::HplParams;

use crate::runs::{Data, Run};

/// A level of the timeline: seconds of a run.
pub(crate) type Level = fn(&HplParams, &Platform) -> f64;

/// The runs that are fitted: two small ones for the latency, one whose row exchanges all meet on the links.
const RUNS: [(&str, &str); 3] =
    [("2019-03", "50000"), ("2019-03", "75000"), ("configurations_nb128", "long, DEPTH 0, bin-exch")];
/// Uncertainty of a run, then of the logarithm of each parameter.
const RUN: f64 = 0.015;
const PRIOR: [f64; 3] = [0.05, 0.3, 0.15];

/// The fitted parameters.
pub(crate) struct Fit {
    /// Factor on the published rates of DGEMM.
    pub(crate) dgemm: f64,
    pub(crate) pivot_s: f64,
    pub(crate) link_s_per_byte: f64,
    /// Relative errors on the runs of the fit.
    pub(crate) errors: [f64; 3],
}

impl Fit {
    fn new(platform: &Platform, log: [f64; 3], errors: [f64; 3]) -> Self {
        let [dgemm, pivot, link] = log.map(f64::exp);
        Self {
            dgemm,
            pivot_s: pivot * platform.pivot_s,
            link_s_per_byte: link * platform.between.s_per_byte.near,
            errors,
        }
    }

    /// The platform with these parameters and CPUs of so many seconds per multiply–add, measured at k = 128.
    pub(crate) fn platform(&self, published: &Platform, cpus: &[f64]) -> Platform {
        let mut platform = published.clone();
        let at_128 = |cpu: &f64| self.dgemm * (cpu - published.gemm.mn_s / 128.0);
        platform.multiply_add_s = cpus.iter().map(at_128).collect();
        platform.gemm.mn_s *= self.dgemm;
        platform.pivot_s = self.pivot_s;
        platform.between = LinkCosts { s_per_byte: [self.link_s_per_byte; 2].into(), ..published.between };
        platform
    }
}

/// Fits a level.
pub(crate) fn fit(data: &Data, platform: &Platform, level: Level) -> Fit {
    let runs = RUNS.map(|(set, name)| data.run(set, name));
    let errors = |log: [f64; 3]| {
        let fit = Fit::new(platform, log, [0.0; 3]);
        runs.map(|(set, Run { hpl, real_s, .. })| {
            (level(hpl, &fit.platform(platform, &data.speeds(set.slow_nodes))) / real_s).ln()
        })
    };
    let mut log = [0.0; 3];
    for _ in 0..3 {
        let (here, mut slopes) = (errors(log), [[0.0; 3]; 3]);
        for (j, slope) in slopes.iter_mut().enumerate() {
            let mut there = log;
            there[j] += PRIOR[j];
            let moved = errors(there);
            *slope = std::array::from_fn(|i| (moved[i] - here[i]) / PRIOR[j]);
        }
        // Normal equations of what is left to the runs and of the priors.
        let product = |a: &[f64; 3], b: &[f64; 3]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>() / (RUN * RUN);
        let prior = |j: usize| 1.0 / (PRIOR[j] * PRIOR[j]);
        let matrix: [[f64; 3]; 3] = std::array::from_fn(|j| {
            std::array::from_fn(|i| product(&slopes[j], &slopes[i]) + if i == j { prior(j) } else { 0.0 })
        });
        let right = std::array::from_fn(|j| -product(&slopes[j], &here) - prior(j) * log[j]);
        let step = solve(matrix, right);
        log = std::array::from_fn(|j| log[j] + step[j]);
    }
    let errors = errors(log).map(|error| error.exp() - 1.0);
    Fit::new(platform, log, errors)
}

/// Solves a small system by Cramer's rule.
fn solve(a: [[f64; 3]; 3], b: [f64; 3]) -> [f64; 3] {
    let determinant = |m: [[f64; 3]; 3]| {
        let minor = |i: usize, j: usize| m[1][i] * m[2][j] - m[1][j] * m[2][i];
        m[0][0] * minor(1, 2) - m[0][1] * minor(0, 2) + m[0][2] * minor(0, 1)
    };
    std::array::from_fn(|j| {
        let replaced = std::array::from_fn(|i| std::array::from_fn(|k| if k == j { b[i] } else { a[i][k] }));
        determinant(replaced) / determinant(a)
    })
}
