//! Rates from samples: non-negative least squares on relative errors.

use space::least_squares;
use space::machine::RateKernel;
use space::stats::summary;

/// One timed call of a kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct FitSample {
    /// Sizes in the order of the kernel's form: m, n, k of DGEMM; k, n of DTRSM; m, k of the panel; k, n of the
    /// swap.
    pub sizes: Vec<f64>,
    /// Time in seconds, above 0.
    pub time_s: f64,
}

/// A fitted rate: coefficients of the form documented at [`RateKernel`], none negative.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// One coefficient per term.
    pub coefficients: Vec<f64>,
    /// Mean relative error on the samples.
    pub error: f64,
    /// Smallest and largest value of each size in the samples.
    pub valid: Vec<[f64; 2]>,
}

/// Why no rate could be fitted.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FitError {
    /// No samples.
    #[error("no samples of {kernel:?}; give the calibration more time")]
    Empty {
        /// The kernel.
        kernel: RateKernel,
    },
    /// An invalid sample.
    #[error("{kernel:?} sample {sizes:?} took {time_s} s; sizes and time must be positive numbers")]
    Sample {
        /// The kernel.
        kernel: RateKernel,
        /// Its sizes.
        sizes: Vec<f64>,
        /// Its time in seconds.
        time_s: f64,
    },
    /// Invalid message times.
    #[error("messages {messages:?} (words, seconds): there must be one, and all numbers positive")]
    Message {
        /// Words and seconds of each.
        messages: Vec<(f64, f64)>,
    },
}

/// Terms of a kernel's form at these sizes, in the order of its coefficients; `sizes` has
/// [`RateKernel::size_count`] entries.
pub fn terms(kernel: RateKernel, sizes: &[f64]) -> Vec<f64> {
    match (kernel, sizes) {
        (RateKernel::Dgemm, &[m, n, k]) => vec![m * n * k, m * n, m * k, n * k, 1.0],
        (RateKernel::Dtrsm, &[k, n]) => vec![k * k * n, k * n, 1.0],
        (RateKernel::Panel, &[m, k]) => vec![m * k * k, m * k, k],
        (RateKernel::Swap, &[k, n]) => vec![k * n, 1.0],
        _ => Vec::new(),
    }
}

/// Coefficients c ≥ 0 that minimise Σ ((cᵀ·terms − t)/t)².
///
/// # Errors
/// [`FitError`] when there are no samples, or one has a wrong number of sizes or is not a positive number.
pub fn fit(kernel: RateKernel, samples: &[FitSample]) -> Result<Fit, FitError> {
    if samples.is_empty() {
        return Err(FitError::Empty { kernel });
    }
    let positive = |value: &f64| value.is_finite() && *value > 0.0;
    let wrong =
        |s: &&FitSample| s.sizes.len() != kernel.size_count() || !s.sizes.iter().all(positive) || !positive(&s.time_s);
    if let Some(bad) = samples.iter().find(wrong) {
        return Err(FitError::Sample { kernel, sizes: bad.sizes.clone(), time_s: bad.time_s });
    }
    let rows: Vec<Vec<f64>> =
        samples.iter().map(|s| terms(kernel, &s.sizes).into_iter().map(|term| term / s.time_s).collect()).collect();
    let coefficients = non_negative(&rows);
    let error = rows.iter().map(|row| (dot(row, &coefficients) - 1.0).abs()).sum::<f64>() / rows.len() as f64;
    let valid = (0..kernel.size_count()).map(|index| range(samples.iter().map(|s| s.sizes[index]))).collect();
    Ok(Fit { coefficients, error, valid })
}

/// α ≥ 0 and β ≥ 0 of message times α + β·words over (words, seconds), by least squares on relative errors.
///
/// # Errors
/// [`FitError::Message`] when there is no message, or one is not of positive length and time.
pub fn message(messages: &[(f64, f64)]) -> Result<[f64; 2], FitError> {
    let positive = |value: f64| value.is_finite() && value > 0.0;
    if messages.is_empty() || !messages.iter().all(|&(words, time_s)| positive(words) && positive(time_s)) {
        return Err(FitError::Message { messages: messages.to_vec() });
    }
    let rows: Vec<Vec<f64>> = messages.iter().map(|(words, time_s)| vec![1.0 / time_s, words / time_s]).collect();
    let line = non_negative(&rows);
    Ok([line[0], line[1]])
}

fn range(values: impl Iterator<Item = f64>) -> [f64; 2] {
    values.fold([f64::INFINITY, 0.0], |[low, high], value| [low.min(value), high.max(value)])
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// A timed piece of work with its weight in the fit.
#[derive(Debug, Clone, PartialEq)]
pub struct Weighted {
    /// Units of each term, none negative, one positive.
    pub terms: Vec<f64>,
    /// Time in seconds, above 0.
    pub time_s: f64,
    /// Its weight, above 0.
    pub weight: f64,
}

/// Reweighting rounds of [`robust`].
const REWEIGHTED: usize = 4;

/// Coefficients c ≥ 0 of `rows`, at least one, that minimise the weighted relative errors: squares of small ones,
/// absolute values of large ones (Huber's loss by reweighting). Interruptions only lengthen work, so that errors are
/// large beyond the median for work that took longer than fitted, beyond three times that for work that took less.
pub fn robust(rows: &[Weighted]) -> Vec<f64> {
    let relative: Vec<Vec<f64>> =
        rows.iter().map(|row| row.terms.iter().map(|term| term / row.time_s).collect()).collect();
    let mut weights: Vec<f64> = rows.iter().map(|row| row.weight).collect();
    let mut coefficients = weighted(&relative, &weights);
    for _ in 1..REWEIGHTED {
        let errors: Vec<f64> = relative.iter().map(|row| dot(row, &coefficients) - 1.0).collect();
        let sizes: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
        let usual = summary(&sizes).median.max(1e-6);
        let large = |error: f64| if error < 0.0 { -error / usual } else { error / (3.0 * usual) };
        weights = rows.iter().zip(&errors).map(|(row, &error)| row.weight / large(error).max(1.0)).collect();
        coefficients = weighted(&relative, &weights);
    }
    coefficients
}

/// c ≥ 0 that minimises ‖rows·c − 1‖₂.
pub(crate) fn non_negative(rows: &[Vec<f64>]) -> Vec<f64> {
    least_squares::non_negative(rows, &vec![1.0; rows.len()])
}

/// c ≥ 0 that minimises Σ weight·(row·c − 1)².
pub(crate) fn weighted(rows: &[Vec<f64>], weights: &[f64]) -> Vec<f64> {
    let roots: Vec<f64> = weights.iter().map(|weight| weight.sqrt()).collect();
    let row = |(row, root): (&Vec<f64>, &f64)| row.iter().map(|x| x * root).collect::<Vec<f64>>();
    let rows: Vec<Vec<f64>> = rows.iter().zip(&roots).map(row).collect();
    least_squares::non_negative(&rows, &roots)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shapes() -> Vec<Vec<f64>> {
        let sizes = [(100.0, 80.0), (500.0, 2000.0), (2000.0, 500.0), (2000.0, 2000.0), (4000.0, 1000.0)];
        let ks = [8.0, 32.0, 64.0, 128.0, 256.0];
        sizes.iter().flat_map(|&(m, n)| ks.map(|k| vec![m, n, k])).collect()
    }

    fn made(coefficients: &[f64], noise: impl Fn(usize) -> f64) -> Vec<FitSample> {
        let time_s = |sizes: &[f64]| dot(&terms(RateKernel::Dgemm, sizes), coefficients);
        let shapes = shapes().into_iter().enumerate();
        shapes.map(|(i, sizes)| FitSample { time_s: time_s(&sizes) * (1.0 + noise(i)), sizes }).collect()
    }

    #[test]
    fn exact_samples_give_their_coefficients_back() {
        let truth = [1.8e-11, 3e-10, 5e-11, 0.0, 2e-6];
        let fit = fit(RateKernel::Dgemm, &made(&truth, |_| 0.0)).unwrap();
        for (found, wanted) in fit.coefficients.iter().zip(truth) {
            assert!((found - wanted).abs() <= 1e-5 * wanted.max(1e-12), "{:?}", fit.coefficients);
        }
        assert!(fit.error < 1e-9);
        assert_eq!(fit.valid, [[100.0, 4000.0], [80.0, 2000.0], [8.0, 256.0]]);
    }

    #[test]
    fn collinear_terms_and_single_samples_still_fit() {
        // One k only: mnk and mn are the same column.
        let samples: Vec<FitSample> = made(&[1e-11, 1e-10, 0.0, 0.0, 0.0], |_| 0.0);
        let one_k: Vec<FitSample> = samples.into_iter().filter(|s| s.sizes[2] == 64.0).collect();
        assert!(fit(RateKernel::Dgemm, &one_k).unwrap().error < 1e-9);
        assert!(fit(RateKernel::Dgemm, &one_k[..1]).unwrap().error < 1e-9);
    }

    #[test]
    fn messages_give_latency_and_bandwidth_back() {
        let line = |words: f64| (words, 2e-6 + 3e-9 * words);
        let [alpha_s, beta_s] = message(&[1.0, 100.0, 1e4, 1e6].map(line)).unwrap();
        assert!((alpha_s / 2e-6 - 1.0).abs() < 1e-6 && (beta_s / 3e-9 - 1.0).abs() < 1e-6);
        assert!(message(&[]).is_err() && message(&[(1.0, 0.0)]).is_err());
    }

    #[test]
    fn interrupted_work_counts_little() {
        let truth = [2e-9, 0.0, 5e-6];
        let row = |i: usize| {
            let terms = vec![1e4 + 500.0 * i as f64, (i * i) as f64, 1.0];
            let time_s = dot(&terms, &truth) * if i.is_multiple_of(5) { 3.0 } else { 1.0 };
            Weighted { terms, time_s, weight: 1.0 }
        };
        let rows: Vec<Weighted> = (0..40).map(row).collect();
        let found = robust(&rows);
        for row in rows.iter().skip(1).step_by(5) {
            assert!((dot(&row.terms, &found) / row.time_s - 1.0).abs() < 0.05, "{found:?}");
        }
    }

    #[test]
    fn useless_samples_are_named() {
        assert_eq!(fit(RateKernel::Swap, &[]), Err(FitError::Empty { kernel: RateKernel::Swap }));
        for (sizes, time_s) in [(vec![1.0, 2.0], 0.0), (vec![1.0], 1.0), (vec![f64::NAN, 1.0], 1.0)] {
            let result = fit(RateKernel::Swap, &[FitSample { sizes, time_s }]);
            assert!(matches!(result, Err(FitError::Sample { .. })), "{result:?}");
        }
    }

    proptest! {
        #[test]
        fn noisy_samples_are_met_within_their_noise(
            rate in 1e-12f64..1e-9, per_mn in 0.0f64..1e-9, per_mk in 0.0f64..1e-9, call in 0.0f64..1e-5,
            noise in proptest::collection::vec(-0.03f64..0.03, 25),
        ) {
            let truth = [rate, per_mn, per_mk, 0.0, call];
            let fit = fit(RateKernel::Dgemm, &made(&truth, |i| noise[i])).unwrap();
            prop_assert!(fit.coefficients.iter().all(|&c| c >= 0.0));
            prop_assert!(fit.error <= 0.03, "{}", fit.error);
            for s in made(&truth, |_| 0.0) {
                let time_s = dot(&terms(RateKernel::Dgemm, &s.sizes), &fit.coefficients);
                prop_assert!((time_s / s.time_s - 1.0).abs() < 0.08, "{s:?} {time_s}");
            }
        }

        #[test]
        fn no_feasible_neighbour_is_better(noise in proptest::collection::vec(-0.5f64..2.0, 25), step in 1e-4f64..0.5) {
            // Strong noise makes some plain least-squares coefficients negative.
            let samples = made(&[1e-11, 1e-10, 1e-10, 1e-10, 1e-6], |i| noise[i]);
            let rows: Vec<Vec<f64>> =
                samples.iter().map(|s| terms(RateKernel::Dgemm, &s.sizes).iter().map(|x| x / s.time_s).collect()).collect();
            let squares = |c: &[f64]| rows.iter().map(|row| (dot(row, c) - 1.0).powi(2)).sum::<f64>();
            let best = fit(RateKernel::Dgemm, &samples).unwrap().coefficients;
            for (j, typical) in [1e-11, 1e-10, 1e-10, 1e-10, 1e-6].into_iter().enumerate() {
                for change in [step * typical, -step * typical] {
                    let mut other = best.clone();
                    other[j] = (other[j] + change).max(0.0);
                    prop_assert!(squares(&other) >= squares(&best) * (1.0 - 1e-9));
                }
            }
        }
    }
}
