//! The original performance model of HPL, one function per term.
//!
//! Source: \[HPL\], scalability page. Sizes are f64 because the closed forms are; they count matrix rows,
//! columns or ranks. `log` is base 2. Nothing here is measured: see [`crate::predict`] for the model that
//! takes its rates from this machine.

use crate::timeline::{StepTimes, Timeline};

/// Order, blocking and grid of a run, as inputs of the models.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Problem {
    /// Order N, above 0.
    pub n: f64,
    /// Blocking factor NB, above 0.
    pub nb: f64,
    /// Process rows P, at least 1.
    pub p: f64,
    /// Process columns Q, at least 1.
    pub q: f64,
}

impl Problem {
    /// The problem with these whole numbers.
    pub fn new(n: usize, nb: usize, p: usize, q: usize) -> Self {
        Self { n: n as f64, nb: nb as f64, p: p as f64, q: q as f64 }
    }

    /// log P, base 2; 0 at P = 1.
    pub fn log_p(&self) -> f64 {
        self.p.log2()
    }
}

/// The machine parameters of the original model: one kind of message, one speed of computation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costs {
    /// γ: seconds per flop of matrix-matrix operations.
    pub gamma_s: f64,
    /// γ₂: seconds per flop of matrix-vector operations, used in the back substitution.
    pub gamma2_s: f64,
    /// α: seconds per message.
    pub alpha_s: f64,
    /// β: seconds per 8-byte word.
    pub beta_s: f64,
    /// Messages of a word of U in the update: 3 on \[HPL\]'s page, 2 on full-duplex links.
    pub update_coefficient: f64,
}

/// Time of one panel factorization with its broadcast, in seconds.
///
/// `m`: global rows of the panel; `nb`: its columns. T_pfact of \[HPL\], scalability page. The flop term turns
/// negative for m < P·nb/3, as published; the sum over a run keeps the right total.
pub fn pfact_s(c: &Costs, g: &Problem, m: f64, nb: f64) -> f64 {
    (m / g.p - nb / 3.0) * nb * nb * c.gamma_s
        + nb * g.log_p() * (c.alpha_s + 2.0 * c.beta_s * nb)
        + c.alpha_s
        + c.beta_s * m * nb / g.p
}

/// Time of one trailing update with its row exchange, in seconds.
///
/// `n`: order of the trailing matrix; `nb`: columns of the panel. T_update of \[HPL\], scalability page.
pub fn update_s(c: &Costs, g: &Problem, n: f64, nb: f64) -> f64 {
    c.gamma_s * (n * nb * nb / g.q + 2.0 * n * n * nb / (g.p * g.q))
        + c.alpha_s * (g.log_p() + g.p - 1.0)
        + c.update_coefficient * c.beta_s * n * nb / g.q
}

/// Time of the backward substitution, in seconds. T_backs of \[HPL\], scalability page.
pub fn backs_s(c: &Costs, g: &Problem) -> f64 {
    c.gamma2_s * g.n * g.n / (g.p * g.q) + g.n * (c.alpha_s / g.nb + 2.0 * c.beta_s)
}

/// Time of a whole run in seconds: T_HPL of \[HPL\], the sum over its panels.
///
/// A last panel narrower than NB has its real width.
pub fn sum_s(c: &Costs, g: &Problem) -> f64 {
    let panels = (g.n / g.nb).ceil() as usize;
    let steps = (0..panels).map(|step| {
        let rows = g.n - step as f64 * g.nb;
        let jb = g.nb.min(rows);
        pfact_s(c, g, rows, jb) + update_s(c, g, rows - jb, jb)
    });
    steps.sum::<f64>() + backs_s(c, g)
}

/// The panels of [`sum_s`] one by one: FACT with its pivot exchanges, LBCAST, RS and the update's flops. Where the flop
/// term of a last panel is negative, so is its FACT.
pub fn timeline(c: &Costs, g: &Problem) -> Timeline {
    let panels = (g.n / g.nb).ceil() as usize;
    let mut end_s = 0.0;
    let steps = (0..panels).map(|step| {
        let rows = g.n - step as f64 * g.nb;
        let jb = g.nb.min(rows);
        let lbcast_s = c.alpha_s + c.beta_s * rows * jb / g.p;
        let rs_s = c.alpha_s * (g.log_p() + g.p - 1.0) + c.update_coefficient * c.beta_s * (rows - jb) * jb / g.q;
        let (pfact_s, update_s) = (pfact_s(c, g, rows, jb), update_s(c, g, rows - jb, jb));
        end_s += pfact_s + update_s;
        StepTimes { fact_s: pfact_s - lbcast_s, lbcast_s, rs_s, update_s: update_s - rs_s, end_s }
    });
    let steps: Vec<StepTimes> = steps.collect();
    let trsv_s = backs_s(c, g);
    Timeline { total_s: end_s + trsv_s, steps, trsv_s }
}

/// Leading terms of [`sum_s`] in seconds, the closed form of \[HPL\]'s page:
/// 2N³γ/(3PQ) + βN²(κP + Q)/(2PQ) + αN((NB+1) log P + P)/NB with κ the update coefficient.
pub fn closed_s(c: &Costs, g: &Problem) -> f64 {
    let (n, ranks) = (g.n, g.p * g.q);
    2.0 * n * n * n * c.gamma_s / (3.0 * ranks)
        + c.beta_s * n * n * (c.update_coefficient * g.p + g.q) / (2.0 * ranks)
        + c.alpha_s * n * ((g.nb + 1.0) * g.log_p() + g.p) / g.nb
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn costs() -> Costs {
        Costs { gamma_s: 1e-11, gamma2_s: 1e-10, alpha_s: 2e-6, beta_s: 1e-9, update_coefficient: 3.0 }
    }

    #[test]
    fn flops_of_a_serial_run_are_two_thirds_n_cubed() {
        // γ = 1 and nothing else: the sum counts operations, 2N³/3 + O(N²NB).
        let c = Costs { gamma_s: 1.0, gamma2_s: 0.0, alpha_s: 0.0, beta_s: 0.0, update_coefficient: 3.0 };
        let flops = sum_s(&c, &Problem::new(10_000, 10, 1, 1));
        let expected = 2.0 / 3.0 * 1e12;
        assert!((flops / expected - 1.0).abs() < 2e-3, "{flops}");
    }

    #[test]
    fn the_sum_approaches_the_closed_form_as_nb_over_n_falls() {
        let off = |n: usize| {
            let g = Problem::new(n, 128, 4, 6);
            (sum_s(&costs(), &g) / closed_s(&costs(), &g) - 1.0).abs()
        };
        let errors: Vec<f64> = [8_000, 64_000, 512_000, 4_096_000].map(off).to_vec();
        assert!(errors.windows(2).all(|pair| pair[1] < pair[0]), "{errors:?}");
        assert!(errors[3] < 2e-3, "{errors:?}");
    }

    #[test]
    fn the_panels_add_up_to_the_sum() {
        let g = Problem::new(10_007, 128, 4, 6);
        let run = timeline(&costs(), &g);
        let sums = run.sums();
        let phases = sums.fact_s + sums.lbcast_s + sums.rs_s + sums.update_s + run.trsv_s;
        for total_s in [run.total_s, phases] {
            assert!((total_s / sum_s(&costs(), &g) - 1.0).abs() < 1e-12, "{total_s}");
        }
        assert_eq!(run.steps.len(), 79);
    }

    proptest! {
        #[test]
        fn time_falls_when_a_rate_rises(n in 500usize..100_000, nb in 1usize..400, p in 1usize..12, q in 1usize..12) {
            let g = Problem::new(n, nb, p, q);
            // Panels of fewer than P·NB/3 rows count negative flops; keep them a small part of the run.
            prop_assume!(n > 4 * nb * p);
            let slow = costs();
            for fast in [
                Costs { gamma_s: slow.gamma_s / 2.0, ..slow },
                Costs { gamma2_s: slow.gamma2_s / 2.0, ..slow },
                Costs { alpha_s: slow.alpha_s / 2.0, ..slow },
                Costs { beta_s: slow.beta_s / 2.0, ..slow },
            ] {
                prop_assert!(sum_s(&fast, &g) < sum_s(&slow, &g));
            }
        }
    }
}
