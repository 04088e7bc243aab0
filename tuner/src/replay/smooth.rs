//! The truth behind a table of single noisy runs.

use std::collections::BTreeMap;

use space::dims::Space;

/// Sweeps over all dimensions; the fit of a balanced table does not change after the first, others settle in a few.
const SWEEPS: usize = 5;

/// One fitted value for each point of `space` that has one: ln value = Σ_d effect(level of `with`, level of d).
///
/// Back-fitting: each sum of effects takes the mean of what the others leave. The maximum over thousands of single
/// runs is chance; the maximum of the fit is not. Points that fail keep failing.
pub(super) fn smooth(space: &dyn Space, values: &[Option<f64>], with: usize) -> Vec<Option<f64>> {
    let kept: Vec<usize> = (0..values.len()).filter(|&at| values[at].is_some()).collect();
    let y: Vec<f64> = kept.iter().filter_map(|&at| values[at]).map(f64::ln).collect();
    let mut fitted = vec![0.0; y.len()];
    let points = space.points();
    let dims = space.dims().len();
    for d in (0..dims).cycle().take(SWEEPS * dims) {
        let group = |at: usize| (points[at].0[with], points[at].0[d]);
        let mut groups: BTreeMap<(u16, u16), (f64, f64)> = BTreeMap::new();
        for ((&at, y), fitted) in kept.iter().zip(&y).zip(&fitted) {
            let (sum, count) = groups.entry(group(at)).or_default();
            (*sum, *count) = (*sum + y - fitted, *count + 1.0);
        }
        for (&at, fitted) in kept.iter().zip(&mut fitted) {
            let (sum, count) = groups[&group(at)];
            *fitted += sum / count;
        }
    }
    let mut smoothed = vec![None; values.len()];
    for (at, log) in kept.into_iter().zip(fitted) {
        smoothed[at] = Some(log.exp());
    }
    smoothed
}
