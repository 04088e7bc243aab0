//! The truth behind a table of single noisy runs.

use std::collections::BTreeMap;

use space::dims::Space;

use super::landscape::Landscape;

/// Sweeps over all dimensions; the fit of a balanced table does not change after the first, others settle in a few.
const SWEEPS: usize = 5;

/// Replaces the runs of every point by one fitted value: ln value = Σ_d effect(level of `with`, level of d).
///
/// Back-fitting: each sum of effects takes the mean of what the others leave. The maximum over thousands of single
/// runs is luck; the maximum of the fit is not. Points that fail keep failing.
pub fn smooth(landscape: &mut Landscape, with: usize) {
    let kept: Vec<usize> = (0..landscape.len()).filter(|&at| landscape.truth(at).is_some()).collect();
    let y: Vec<f64> = kept.iter().filter_map(|&at| landscape.truth(at)).map(f64::ln).collect();
    let mut fitted = vec![0.0; y.len()];
    let points = landscape.space.points();
    let dims = landscape.space.dims().len();
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
    for (at, log) in kept.into_iter().zip(fitted) {
        landscape.sites[at].runs = vec![log.exp()];
    }
}
