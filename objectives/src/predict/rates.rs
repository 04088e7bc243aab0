//! The kernels' fitted times, prepared for millions of evaluations.

use space::counted;
use space::machine::{Rate, RateKernel};

use super::error::ModelError;

/// Rates by kernel and threads.
#[derive(Debug)]
pub(super) struct RateTable {
    /// Per kernel of [`RateKernel::ALL`]: measured rates, by rising number of threads. Several with the same number are for different
    /// ranges of k.
    by_kernel: [Vec<Rate>; 4],
}

/// The kernels of a rank with a given number of threads.
#[derive(Debug, Clone, Copy)]
pub(super) struct RankRates {
    dgemm: [f64; 5],
    dtrsm: [f64; 3],
    panel: [f64; 3],
    swap: [f64; 2],
    /// Panel factored by one thread of the rank.
    panel_alone: [f64; 3],
}

impl RankRates {
    /// C(m×n) −= A(m×k)·B(k×n), in seconds.
    pub(super) fn dgemm_s(&self, m: f64, n: f64, k: f64) -> f64 {
        let c = &self.dgemm;
        c[0] * m * n * k + c[1] * m * n + c[2] * m * k + c[3] * n * k + c[4]
    }

    /// L1⁻¹·U with U k×n, in seconds.
    pub(super) fn dtrsm_s(&self, k: f64, n: f64) -> f64 {
        let c = &self.dtrsm;
        c[0] * k * k * n + c[1] * k * n + c[2]
    }

    /// Factorization of an m×k panel by all threads of the rank, in seconds.
    pub(super) fn panel_s(&self, m: f64, k: f64) -> f64 {
        panel_form(&self.panel, m, k)
    }

    /// The same by one of its threads.
    pub(super) fn panel_alone_s(&self, m: f64, k: f64) -> f64 {
        panel_form(&self.panel_alone, m, k)
    }

    /// Exchange of k rows over n columns, in seconds.
    pub(super) fn swap_s(&self, k: f64, n: f64) -> f64 {
        self.swap[0] * k * n + self.swap[1]
    }
}

fn panel_form(c: &[f64; 3], m: f64, k: f64) -> f64 {
    c[0] * m * k * k + c[1] * m * k + c[2] * k
}

impl RateTable {
    /// Checks and sorts the rates of a machine.
    pub(super) fn new(rates: &[Rate]) -> Result<Self, ModelError> {
        for rate in rates {
            check(rate)?;
        }
        let mut by_kernel = RateKernel::ALL
            .map(|kernel| -> Vec<Rate> { rates.iter().filter(|rate| rate.kernel == kernel).cloned().collect() });
        for (list, kernel) in by_kernel.iter_mut().zip(RateKernel::ALL) {
            if list.is_empty() {
                return Err(ModelError::MissingRate { kernel });
            }
            list.sort_by_key(|rate| rate.threads);
        }
        Ok(Self { by_kernel })
    }

    /// Kernels at NB = `k` of a rank of `threads` threads, each `shared` ≥ 1 times slower because threads share cores.
    pub(super) fn at(&self, threads: usize, k: f64, shared: f64) -> RankRates {
        RankRates {
            dgemm: self.coefficients(RateKernel::Dgemm, threads, k, shared),
            dtrsm: self.coefficients(RateKernel::Dtrsm, threads, k, shared),
            panel: self.coefficients(RateKernel::Panel, threads, k, shared),
            swap: self.coefficients(RateKernel::Swap, threads, k, shared),
            panel_alone: self.coefficients(RateKernel::Panel, 1, k, shared),
        }
    }

    /// The rate measured with the nearest number of threads, the lower one of two; of these the one whose range of
    /// k is nearest.
    fn nearest(&self, kernel: RateKernel, threads: usize, k: f64) -> &Rate {
        let list = &self.by_kernel[kernel as usize];
        let after = list.partition_point(|rate| rate.threads <= threads);
        let threads = list[after.saturating_sub(1)].threads;
        let distance = |rate: &&Rate| {
            let [low, high] = rate.valid[k_index(kernel)];
            (low - k).max(k - high).max(0.0)
        };
        let same = list.iter().filter(|rate| rate.threads == threads);
        same.min_by(|a, b| distance(a).total_cmp(&distance(b))).expect("the list holds this thread count")
    }

    fn coefficients<const LEN: usize>(&self, kernel: RateKernel, threads: usize, k: f64, shared: f64) -> [f64; LEN] {
        let rate = self.nearest(kernel, threads, k);
        // A panel is little faster with more threads, so the time of the nearest number of threads is the better estimate.
        let speedup = if kernel == RateKernel::Panel { 1.0 } else { threads as f64 / rate.threads as f64 };
        std::array::from_fn(|index| rate.coefficients[index] * shared / speedup)
    }

    /// Warnings for a run whose largest sizes `largest` (kernel, sizes) are outside the measured ranges.
    pub(super) fn warnings(&self, threads: usize, largest: &[(RateKernel, Vec<f64>)]) -> Vec<String> {
        let mut warnings = Vec::new();
        for (kernel, sizes) in largest {
            let rate = self.nearest(*kernel, threads, sizes[k_index(*kernel)]);
            if rate.threads != threads {
                warnings.push(format!(
                    "{kernel:?} was not measured with {}; the rate of {} is used",
                    counted(threads, "thread"),
                    counted(rate.threads, "thread")
                ));
            }
            for ((name, size), [low, high]) in names(*kernel).iter().zip(sizes).zip(&rate.valid) {
                if size > high || (*name == "k" && size < low) {
                    warnings.push(format!(
                        "{kernel:?} at {name} = {size}: extrapolated from what was measured, {low} to {high}"
                    ));
                }
            }
        }
        warnings
    }
}

/// Position of k among the sizes of a kernel.
pub(crate) fn k_index(kernel: RateKernel) -> usize {
    match kernel {
        RateKernel::Dgemm => 2,
        RateKernel::Dtrsm | RateKernel::Swap => 0,
        RateKernel::Panel => 1,
    }
}

fn names(kernel: RateKernel) -> &'static [&'static str] {
    match kernel {
        RateKernel::Dgemm => &["m", "n", "k"],
        RateKernel::Dtrsm | RateKernel::Swap => &["k", "n"],
        RateKernel::Panel => &["m", "k"],
    }
}

fn check(rate: &Rate) -> Result<(), ModelError> {
    let Rate { kernel, threads, .. } = *rate;
    let shape = |key, needed, found| ModelError::Shape { kernel, threads, key, needed, found };
    let (sizes, needed) = (kernel.size_count(), kernel.coefficient_count());
    if rate.coefficients.len() != needed {
        return Err(shape("coefficients", needed, rate.coefficients.len()));
    }
    if rate.valid.len() != sizes {
        return Err(shape("valid", sizes, rate.valid.len()));
    }
    let usable = |c: &f64| c.is_finite() && *c >= 0.0;
    if threads == 0 || !rate.coefficients.iter().all(usable) || rate.coefficients.iter().all(|&c| c == 0.0) {
        return Err(ModelError::Coefficients { kernel, threads });
    }
    Ok(())
}
