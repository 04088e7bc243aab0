//! Which dimensions made the difference, as far as that is more than chance.

use std::collections::BTreeMap;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use super::words;
use crate::record::Row;

/// How much of the differences between candidates one dimension explains by itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Importance {
    /// HPL's name, `grid` for P×Q, or the name of the engine's own dimension.
    pub dimension: String,
    /// Part of the variance of the logarithm of the rates, 0 to 1, that its values explain, less what as many values
    /// would explain by chance (ε² of the one-way analysis of variance). A search looks at good regions only, so this is
    /// the importance there; dimensions that moved together share it.
    pub explained: f64,
    /// Its values that were tried.
    pub values: usize,
    /// Probability that a dimension without effect explains as much, by permutations of the rates, times the number of dimensions
    /// that were looked at (Bonferroni); at most 1.
    pub p_value: f64,
    /// What a dimension without effect explains at most, in 95 % of searches over as many dimensions.
    pub chance: f64,
}

impl Importance {
    /// Whether chance hardly explains as much.
    pub fn is_shown(&self) -> bool {
        self.p_value < RISK
    }
}

/// Different candidates below which chance explains too much.
const LEAST: usize = 8;

/// Permutations of the candidates' rates, at least.
const PERMUTATIONS: usize = 1000;
/// Dimensions from which on no further permutations are made; of more none is shown.
const MOST_DIMENSIONS: usize = 500;

/// Probability that any dimension without effect is shown.
const RISK: f64 = 0.05;

/// Parts of the variance that differ by less are equal: the sums of rates in another order are rounded otherwise.
const ROUNDING: f64 = 1e-6;

/// The importance of every dimension that was varied, most important first, from passed trials of one N and extent. Each
/// candidate counts once, by the mean of its runs: repeats say nothing new of its dimensions. The same trials give the same
/// result.
pub fn importance(rows: &[&Row]) -> Vec<Importance> {
    let mut runs: BTreeMap<Vec<(String, String)>, Vec<f64>> = BTreeMap::new();
    for (row, rate) in rows.iter().filter_map(|row| Some((row, row.comparable_rate_gflops()?))) {
        runs.entry(dimensions(row)).or_default().push(rate.ln());
    }
    let mean = |logs: &Vec<f64>| logs.iter().sum::<f64>() / logs.len() as f64;
    let mut logs: Vec<f64> = runs.values().map(mean).collect();
    let candidates: Vec<&Vec<(String, String)>> = runs.keys().collect();
    let Some(first) = candidates.first().filter(|_| candidates.len() >= LEAST) else { return Vec::new() };
    if candidates.iter().any(|dims| dims.len() != first.len()) {
        return Vec::new();
    }
    let groups_of = |index: usize| Labelled::new(candidates.iter().map(|dims| dims[index].1.as_str()));
    let varied: Vec<(usize, Labelled)> =
        (0..first.len()).filter_map(|index| Some((index, groups_of(index)?))).collect();
    let explained: Vec<f64> = varied.iter().map(|(_, groups)| groups.explained(&logs)).collect();
    let permutations = permutations(varied.len());
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut by_chance = vec![Vec::with_capacity(permutations); varied.len()];
    for _ in 0..permutations {
        logs.shuffle(&mut rng);
        varied.iter().zip(&mut by_chance).for_each(|((_, groups), found)| found.push(groups.explained(&logs)));
    }
    let dimensions = varied.len();
    let importance = |((index, groups), explained): (&(usize, Labelled), f64), mut found: Vec<f64>| {
        found.sort_by(f64::total_cmp);
        let as_much = found.iter().filter(|&&chance| chance >= explained - ROUNDING).count();
        let below = (1.0 - RISK / dimensions as f64) * permutations as f64;
        Importance {
            dimension: first[*index].0.clone(),
            explained,
            values: groups.sizes.len(),
            p_value: ((1 + as_much) as f64 / (1 + permutations) as f64 * dimensions as f64).min(1.0),
            chance: found[(below.ceil() as usize).min(permutations) - 1],
        }
    };
    let mut found: Vec<Importance> =
        varied.iter().zip(explained).zip(by_chance).map(|(of, chance)| importance(of, chance)).collect();
    found.sort_by(|a, b| b.explained.total_cmp(&a.explained));
    found
}

/// Permutations of so many dimensions: enough for one to be shown that explains more than all of them do.
fn permutations(dimensions: usize) -> usize {
    let each = (1.0 / RISK).ceil() as usize;
    PERMUTATIONS.max(each * dimensions.min(MOST_DIMENSIONS))
}

/// The words of a trial, P and Q as one.
pub(super) fn dimensions(row: &Row) -> Vec<(String, String)> {
    let grid = ("grid".to_owned(), format!("{}×{}", row.p, row.q));
    let others = words(&row.candidate()).into_iter().filter(|(name, _)| !["N", "P", "Q"].contains(&name.as_str()));
    [grid].into_iter().chain(others).collect()
}

/// Which candidates have which value of a dimension.
struct Labelled {
    /// The group of each candidate.
    of: Vec<usize>,
    /// Candidates in each group.
    sizes: Vec<usize>,
}

impl Labelled {
    /// `None` where there is one label, or one value for each.
    fn new<'a>(labels: impl Iterator<Item = &'a str>) -> Option<Self> {
        let mut known: Vec<&str> = Vec::new();
        let mut sizes: Vec<usize> = Vec::new();
        let group = |label: &'a str| {
            let group = known.iter().position(|other| *other == label).unwrap_or_else(|| {
                known.push(label);
                sizes.push(0);
                known.len() - 1
            });
            sizes[group] += 1;
            group
        };
        let of: Vec<usize> = labels.map(group).collect();
        (sizes.len() >= 2 && sizes.len() < of.len()).then_some(Self { of, sizes })
    }

    /// ε² of the values, 0 to 1.
    fn explained(&self, values: &[f64]) -> f64 {
        let (count, kinds) = (values.len(), self.sizes.len());
        let mean = values.iter().sum::<f64>() / count as f64;
        let mut sums = vec![0.0; kinds];
        let mut total = 0.0;
        for (value, &group) in values.iter().zip(&self.of) {
            sums[group] += value - mean;
            total += (value - mean).powi(2);
        }
        let between: f64 = sums.iter().zip(&self.sizes).map(|(sum, &size)| sum * sum / size as f64).sum();
        let noise = (total - between) / (count - kinds) as f64;
        if total > 0.0 { ((between - (kinds - 1) as f64 * noise) / total).clamp(0.0, 1.0) } else { 0.0 }
    }
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
        assert!(pfact.explained < 0.05 && !pfact.is_shown(), "{found:?}");
        assert!(found[0].is_shown() && found[0].chance < 0.8, "{found:?}");
        assert_eq!(found, importance(&rows.iter().collect::<Vec<_>>()), "a fixed seed");
        assert!(found.iter().all(|dim| dim.dimension != "BCAST"), "not varied: {found:?}");
    }

    /// Rates that have nothing to do with the dimensions: few searches show any of them.
    #[test]
    fn chance_is_hardly_ever_shown() {
        use rand::RngExt;
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut shown = 0;
        for _ in 0..100 {
            let rows: Vec<Row> = (0..12)
                .map(|i| Row {
                    nb: 64 * rng.random_range(1..5),
                    pfact: [space::Looking::Left, space::Looking::Right][rng.random_range(0..2)],
                    nbmin: [2, 4, 8][rng.random_range(0..3)],
                    ndiv: [2, 3][rng.random_range(0..2)],
                    rate_gflops: Some(20.0 + rng.random::<f64>()),
                    ..row(i)
                })
                .collect();
            let found = importance(&rows.iter().collect::<Vec<_>>());
            shown += usize::from(found.iter().any(Importance::is_shown));
            assert!(found.iter().all(|dim| !dim.is_shown() || dim.explained > dim.chance), "{found:?}");
        }
        // 5 are expected; more than 12 in one of 2000 such tests.
        assert!(shown <= 12, "{shown} of 100");
    }

    /// A thousand permutations of 60 dimensions leave each a probability of 6 % at least.
    #[test]
    fn one_of_many_dimensions_that_decides_is_shown() {
        use rand::RngExt;
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let run = |i: u64| {
            let value = |dim: usize, any: u64| if dim == 0 { i % 2 } else { any };
            let words: BTreeMap<String, String> =
                (0..60).map(|dim| (format!("x{dim}"), value(dim, rng.random_range(0..2)).to_string())).collect();
            let extra = Some(serde_json::to_string(&words).unwrap());
            Row { nb: 64, extra, rate_gflops: Some(20.0 + 5.0 * (i % 2) as f64), ..row(i) }
        };
        let rows: Vec<Row> = (0..24).map(run).collect();
        let found = importance(&rows.iter().collect::<Vec<_>>());
        assert!(found[0].dimension == "x0" && found[0].is_shown(), "{:?}", found[0]);
    }

    /// The two fastest of eight candidates have the other NB. A permutation explains as much where it leaves these two to it, in whatever
    /// order it has them and the others.
    #[test]
    fn permutations_that_divide_the_rates_alike_explain_as_much() {
        let rates = [26.0, 25.0, 23.8, 22.9, 22.8, 21.6, 21.4, 20.9];
        let run = |(i, &rate): (usize, &f64)| {
            let nb = if i < 2 { 128 } else { 64 };
            Row { nb, align: 4 + i, rate_gflops: Some(rate), ..row(i as u64) }
        };
        let rows: Vec<Row> = rates.iter().enumerate().map(run).collect();
        let found = importance(&rows.iter().collect::<Vec<_>>());
        // NB 128 is before NB 64 in the order of words.
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let mut places: Vec<usize> = (0..8).collect();
        let mut alike = 0;
        for _ in 0..PERMUTATIONS {
            places.shuffle(&mut rng);
            alike += usize::from(places[0] < 2 && places[1] < 2);
        }
        let names: Vec<&str> = found.iter().map(|dim| dim.dimension.as_str()).collect();
        assert_eq!((names, alike > 20), (vec!["NB"], true));
        assert_eq!(found[0].p_value, (1 + alike) as f64 / (1 + PERMUTATIONS) as f64);
    }

    #[test]
    fn too_little_says_nothing() {
        assert!(importance(&[]).is_empty());
        let few: Vec<Row> = (0..40).map(|i| Row { nb: [64, 128, 192][i as usize % 3], ..row(i) }).collect();
        assert!(importance(&few.iter().collect::<Vec<_>>()).is_empty(), "many runs of three candidates");
    }
}
