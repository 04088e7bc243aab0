//! Which dimensions made the difference.

use std::collections::BTreeMap;

use serde::Serialize;

use super::words;
use crate::record::Row;

/// How much of the differences between candidates one dimension explains by itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Importance {
    /// HPL's word, `grid` for P×Q, or the name of the engine's own dimension.
    pub dimension: String,
    /// Part of the variance of the logarithm of the rates, 0 to 1, that its values explain, less what as many values
    /// would explain by chance (ε² of the one-way analysis of variance). A search looks at good regions only, so this is
    /// the importance there; dimensions that moved together share it.
    pub explained: f64,
    /// Its values that were tried.
    pub values: usize,
}

/// Different candidates below which chance explains too much.
const LEAST: usize = 8;

/// The importance of every dimension that was varied, most important first, from passed trials of one N and fidelity. Each
/// candidate counts once, by the mean of its runs: repeats say nothing new of its dimensions.
pub fn importance(rows: &[&Row]) -> Vec<Importance> {
    let mut runs: BTreeMap<Vec<(String, String)>, Vec<f64>> = BTreeMap::new();
    for (row, rate) in rows.iter().filter_map(|row| Some((row, row.figure_gflops()?))) {
        runs.entry(dimensions(row)).or_default().push(rate.ln());
    }
    let mean = |logs: &Vec<f64>| logs.iter().sum::<f64>() / logs.len() as f64;
    let logs: Vec<f64> = runs.values().map(mean).collect();
    let candidates: Vec<&Vec<(String, String)>> = runs.keys().collect();
    let Some(first) = candidates.first().filter(|_| candidates.len() >= LEAST) else { return Vec::new() };
    let of_dimension = |index: usize| {
        let labels: Vec<&str> = candidates.iter().map(|dims| dims[index].1.as_str()).collect();
        let (explained, values) = explained(&logs, &labels)?;
        Some(Importance { dimension: first[index].0.clone(), explained, values })
    };
    let same_shape = candidates.iter().all(|dims| dims.len() == first.len());
    let mut found: Vec<Importance> = (0..first.len()).filter(|_| same_shape).filter_map(of_dimension).collect();
    found.sort_by(|a, b| b.explained.total_cmp(&a.explained));
    found
}

/// The words of a trial, P and Q as one.
fn dimensions(row: &Row) -> Vec<(String, String)> {
    let grid = ("grid".to_owned(), format!("{}×{}", row.p, row.q));
    let others = words(&row.candidate()).into_iter().filter(|(name, _)| !["N", "P", "Q"].contains(&name.as_str()));
    [grid].into_iter().chain(others).collect()
}

/// ε² of the values by their labels, with the number of labels; `None` where there is one label, or one value for each.
fn explained(values: &[f64], labels: &[&str]) -> Option<(f64, usize)> {
    let mut groups: Vec<(&str, Vec<f64>)> = Vec::new();
    for (&value, &label) in values.iter().zip(labels) {
        match groups.iter_mut().find(|(known, _)| *known == label) {
            Some((_, group)) => group.push(value),
            None => groups.push((label, vec![value])),
        }
    }
    let (count, kinds) = (values.len(), groups.len());
    if kinds < 2 || kinds >= count {
        return None;
    }
    let within: f64 = groups.iter().map(|(_, group)| squares(group)).sum();
    let total = squares(values);
    let noise = within / (count - kinds) as f64;
    let explained = (total - within - (kinds - 1) as f64 * noise) / total;
    Some((if total > 0.0 { explained.clamp(0.0, 1.0) } else { 0.0 }, kinds))
}

/// Sum of squared distances to the mean.
fn squares(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::arbitrary::row;

    #[test]
    fn what_decides_is_first_and_what_does_nothing_is_zero() {
        // NB decides, PFACT does nothing.
        let rows: Vec<Row> = (0..24)
            .map(|i| Row {
                nb: [64, 128, 192][i as usize % 3],
                pfact: [space::Looking::Left, space::Looking::Right][i as usize / 3 % 2],
                nbmin: [4, 8][i as usize / 6 % 2],
                rate_gflops: Some([20.0, 25.0, 22.0][i as usize % 3] * (1.0 + 0.001 * (i % 5) as f64)),
                ..row(i)
            })
            .collect();
        let found = importance(&rows.iter().collect::<Vec<_>>());
        assert_eq!((found[0].dimension.as_str(), found[0].values), ("NB", 3));
        assert!(found[0].explained > 0.99, "{found:?}");
        let pfact = found.iter().find(|dim| dim.dimension == "PFACT").unwrap();
        assert!(pfact.explained < 0.05, "{found:?}");
        assert!(found.iter().all(|dim| dim.dimension != "BCAST"), "not varied: {found:?}");
    }

    #[test]
    fn too_little_says_nothing() {
        assert!(importance(&[]).is_empty());
        let few: Vec<Row> = (0..40).map(|i| Row { nb: [64, 128, 192][i as usize % 3], ..row(i) }).collect();
        assert!(importance(&few.iter().collect::<Vec<_>>()).is_empty(), "many runs of three candidates");
    }
}
