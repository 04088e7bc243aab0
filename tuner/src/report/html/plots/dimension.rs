//! A dimension of the search as an axis: where each of its values lies.

use std::collections::BTreeSet;

use super::figure::plain;
use super::trials::SearchTrial;
use crate::report::Summary;
use crate::report::format::cut;
use crate::report::importance::dimensions;

/// Different numbers from which on they lie where their size says, and not side by side.
const MANY: usize = 10;
/// Longest name of a value on an axis, in characters.
const LONGEST: usize = 14;

/// A dimension that was varied.
pub(super) struct DimensionAxis {
    /// HPL's name, `grid` for P×Q, or the name of the engine's own dimension.
    pub(super) name: String,
    /// The value of each trial.
    values: Vec<String>,
    /// The different values in order: numbers by size, then words.
    different: Vec<String>,
    /// Whether values are placed by their size.
    by_size: bool,
}

impl DimensionAxis {
    /// The dimensions that differ between these trials, those that explain most first.
    pub(super) fn varied(summary: &Summary, trials: &[SearchTrial<'_>]) -> Vec<Self> {
        let of_trials: Vec<Vec<(String, String)>> = trials.iter().map(|trial| dimensions(trial.row)).collect();
        let Some(first) = of_trials.first() else { return Vec::new() };
        // Trials of other dimensions are not looked at, as those of another engine's options.
        let value = |of: &[(String, String)], name: &str| {
            of.iter().find(|(other, _)| other == name).map(|(_, value)| value.clone())
        };
        let axis = |(name, _): &(String, String)| {
            let values: Option<Vec<String>> = of_trials.iter().map(|of| value(of, name)).collect();
            Some(Self::new(name.clone(), values?)).filter(|axis| axis.different.len() > 1)
        };
        let mut axes: Vec<Self> = first.iter().filter_map(axis).collect();
        let place = |axis: &Self| summary.importance.iter().position(|dim| dim.dimension == axis.name);
        axes.sort_by_key(|axis| place(axis).unwrap_or(usize::MAX));
        axes
    }

    fn new(name: String, values: Vec<String>) -> Self {
        let mut different: Vec<String> = values.iter().collect::<BTreeSet<_>>().into_iter().cloned().collect();
        let number = |value: &String| value.parse::<f64>().ok().filter(|number| number.is_finite());
        different.sort_by(|a, b| {
            let key = |value: &String| number(value).unwrap_or(f64::INFINITY);
            key(a).total_cmp(&key(b)).then_with(|| a.cmp(b))
        });
        let by_size = different.len() > MANY && different.iter().all(|value| number(value).is_some());
        Self { name, values, different, by_size }
    }

    /// Where the value of the `index`-th trial lies: its size, or its place among the different ones from 0.
    pub(super) fn place(&self, index: usize) -> f64 {
        self.place_of(&self.values[index])
    }

    fn place_of(&self, value: &String) -> f64 {
        if self.by_size {
            return value.parse().unwrap_or(0.0);
        }
        self.different.iter().position(|other| other == value).map_or(0.0, |place| place as f64)
    }

    /// The lowest and the highest place.
    pub(super) fn ends(&self) -> [f64; 2] {
        let place = |value: Option<&String>| value.map_or(0.0, |value| self.place_of(value));
        [place(self.different.first()), place(self.different.last())]
    }

    /// Places with names, about `most` at most and not so near that names overlap: the first and the last one, and some between.
    pub(super) fn ticks(&self, most: usize) -> Vec<(f64, String)> {
        let places: Vec<(f64, &String)> = self.different.iter().map(|value| (self.place_of(value), value)).collect();
        let [first, last] = self.ends();
        let apart = ((last - first) / most as f64).max(f64::MIN_POSITIVE);
        let mut chosen: Vec<(f64, &String)> = Vec::new();
        for &(place, value) in &places {
            let is_last = place == last;
            while is_last && chosen.len() > 1 && chosen.last().is_some_and(|&(before, _)| place - before < apart) {
                chosen.pop();
            }
            if is_last || chosen.last().is_none_or(|&(before, _)| place - before >= apart) {
                chosen.push((place, value));
            }
        }
        chosen.into_iter().map(|(place, value)| (place, plain(&cut(value, LONGEST)))).collect()
    }

    /// Whether its values lie where their size says.
    pub(super) fn is_by_size(&self) -> bool {
        self.by_size
    }

    /// The places in use with the indices of the trials there.
    pub(super) fn groups(&self) -> Vec<(f64, Vec<usize>)> {
        let of = |value: &String| (0..self.values.len()).filter(|&at| self.values[at] == *value).collect();
        self.different.iter().map(|value| (self.place_of(value), of(value))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(values: &[&str]) -> DimensionAxis {
        DimensionAxis::new("x".to_owned(), values.iter().map(|&value| value.to_owned()).collect())
    }

    #[test]
    fn numbers_are_in_order_of_size_and_words_behind_them() {
        let found = axis(&["1024", "64", "auto", "128", "64"]);
        assert_eq!((found.place(0), found.place(1), found.place(2), found.place(4)), (2.0, 0.0, 3.0, 0.0));
        let ticks: Vec<String> = found.ticks(9).into_iter().map(|(_, name)| name).collect();
        assert_eq!(ticks, ["64", "128", "1024", "auto"]);
        assert_eq!(found.ends(), [0.0, 3.0]);
        assert_eq!(found.groups()[0], (0.0, vec![1, 4]));
    }

    #[test]
    fn many_numbers_lie_where_their_size_says() {
        let values: Vec<String> = (1..=40).map(|value| (8 * value).to_string()).collect();
        let found = DimensionAxis::new("NB".to_owned(), values);
        assert!(found.is_by_size() && found.place(4) == 40.0 && found.ends() == [8.0, 320.0]);
        let ticks = found.ticks(5);
        assert!((3..=6).contains(&ticks.len()) && ticks[0].0 == 8.0 && ticks.last().unwrap().0 == 320.0, "{ticks:?}");
    }

    #[test]
    fn long_values_are_cut_and_are_text() {
        let names: Vec<String> =
            axis(&["<b>", "0123456789abcdefg"]).ticks(5).into_iter().map(|(_, name)| name).collect();
        assert_eq!(names, ["0123456789abcd…", "&lt;b&gt;"]);
    }
}
