//! The user's limits: `space.toml` narrows, fixes or widens the dimensions of the HPL space, and narrows or fixes the
//! additional dimensions of another engine.
//!
//! ```toml
//! [nb]
//! values = [192, 240, 1024]      # exactly these, also such as are not searched otherwise
//! [depth]
//! fixed = 1
//! [nbmin]
//! min = 4                        # of the usual values those from 4 to 16
//! max = 16
//! [bcast]
//! without = ["long", "longM"]    # the usual values but these
//! ```
//!
//! A list alone, `nb = [192, 240]`, means `values`, and a value alone, `depth = 1`, means `fixed`.

use std::collections::BTreeMap;
use std::fmt::Formatter;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::error::LimitError;
use super::spec::{Extra, ForeignSpec};
use super::values::{NAMES, Values};
use crate::Swap;
use crate::dims::MAX_LEVELS;
use crate::nearest::hint;
use crate::order::MAX_N;
use crate::params::Coded;
use crate::settings::{NodeSettings, SettingLevels};

/// The limits of each named dimension; empty for the usual space.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(transparent)]
pub struct Limits(BTreeMap<String, Limit>);

/// The allowed values of one dimension.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
struct Limit {
    values: Option<Vec<Word>>,
    fixed: Option<Word>,
    without: Option<Vec<Word>>,
    min: Option<f64>,
    max: Option<f64>,
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LimitVisitor)
    }
}

/// Reads a table, or in short the values or the only one.
struct LimitVisitor;

impl<'de> Visitor<'de> for LimitVisitor {
    type Value = Limit;

    fn expecting(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str("a table with values, fixed, without, min or max, or a list of values, or a value")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Limit, A::Error> {
        Limit::deserialize(MapAccessDeserializer::new(map))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Limit, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element()? {
            values.push(value);
        }
        Ok(Limit { values: Some(values), ..Limit::default() })
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Limit, E> {
        Ok(Limit { fixed: Some(Word::Integer(value)), ..Limit::default() })
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Limit, E> {
        Ok(Limit { fixed: Some(Word::Real(value)), ..Limit::default() })
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Limit, E> {
        Ok(Limit { fixed: Some(Word::Text(value.to_owned())), ..Limit::default() })
    }
}

/// A value as users write it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
enum Word {
    Integer(i64),
    Real(f64),
    Text(String),
}

impl std::fmt::Display for Word {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Integer(value) => value.fmt(f),
            Self::Real(value) => value.fmt(f),
            Self::Text(value) => value.fmt(f),
        }
    }
}

impl Limits {
    /// Parses `space.toml` for our engine.
    ///
    /// # Errors
    /// [`LimitError`] for bad syntax with its line, unknown dimensions, and keys that exclude each other.
    pub fn parse(text: &str) -> Result<Self, LimitError> {
        let names: Vec<&str> = NAMES.into_iter().chain(NodeSettings::NAMES).collect();
        Self::among(text, &names, &CATEGORICAL)
    }

    /// Parses `space.toml` for an engine that obeys `foreign`.
    ///
    /// # Errors
    /// As [`Limits::parse`]; a dimension that the engine does not obey is unknown.
    pub fn parse_for(text: &str, foreign: &ForeignSpec) -> Result<Self, LimitError> {
        let (obeys, extra) = (foreign.obeys.iter().map(String::as_str), foreign.extra.iter());
        let names: Vec<&str> =
            ["ranks", "grid"].into_iter().chain(obeys).chain(extra.clone().map(|extra| &*extra.name)).collect();
        let names: Vec<&str> = names.into_iter().chain(NodeSettings::NAMES).collect();
        let unordered = extra.filter(|extra| !extra.ordered).map(|extra| &*extra.name);
        let unordered: Vec<&str> = CATEGORICAL.into_iter().chain(unordered).collect();
        Self::among(text, &names, &unordered)
    }

    fn among(text: &str, names: &[&str], unordered: &[&str]) -> Result<Self, LimitError> {
        let limits: Self = toml::from_str(text).map_err(|error| LimitError::Syntax(error.to_string()))?;
        for (name, limit) in &limits.0 {
            if !names.contains(&name.as_str()) {
                let known = names.iter().map(ToString::to_string).collect();
                return Err(LimitError::NoDimension { name: name.clone(), known });
            }
            let wrong = |wrong: &str| LimitError::Contradiction { name: name.clone(), wrong: wrong.to_owned() };
            if limit.values.is_some() && limit.fixed.is_some() {
                return Err(wrong("'values' and 'fixed' exclude each other; keep one"));
            }
            if let (Some(min), Some(max)) = (limit.min, limit.max)
                && min > max
            {
                return Err(wrong(&format!("min {min} is above max {max}")));
            }
            if (limit.min.is_some() || limit.max.is_some()) && unordered.contains(&name.as_str()) {
                return Err(wrong("it has no order: give 'values' or 'without' instead of 'min' and 'max'"));
            }
            if limit.values.as_ref().is_some_and(|values| values.len() > MAX_LEVELS) {
                return Err(wrong(&format!("'values' are more than {MAX_LEVELS}; give fewer")));
            }
            if *limit == Limit::default() {
                return Err(wrong("no key; give values, fixed, without, min or max"));
            }
        }
        Ok(limits)
    }

    /// The names of the limited dimensions.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Whether there is no limit.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Those of other dimensions than `extra`, to which another engine may give a name of ours, such as `split`.
    pub(super) fn besides(&self, extra: &[Extra]) -> Self {
        let is_other = |name: &String| extra.iter().all(|own| own.name != *name);
        let others = self.0.iter().filter(|(name, _)| is_other(name));
        Self(others.map(|(name, limit)| (name.clone(), limit.clone())).collect())
    }

    /// The values that are left of `usual`; where nothing is left of a dimension, what is left of it in `finest`, of which
    /// `usual` may be a choice.
    pub(super) fn apply(&self, usual: Values, finest: &Values) -> Result<Values, LimitError> {
        let size = |value: usize| value as f64;
        let of_ranks = |(ranks, _): &(usize, usize)| (ranks.to_string(), size(*ranks));
        let of_grid = |(p, q): &(usize, usize)| (format!("{p}:{q}"), size(*p) / size(*q));
        Ok(Values {
            splits: self.subset("ranks", usual.splits, &finest.splits, of_ranks)?,
            aspects: self.subset("grid", usual.aspects, &finest.aspects, of_grid)?,
            nb: or_finest(usual.nb, &finest.nb, |values| self.sizes("nb", values, 1))?,
            nbmin: or_finest(usual.nbmin, &finest.nbmin, |values| self.sizes("nbmin", values, 1))?,
            ndiv: or_finest(usual.ndiv, &finest.ndiv, |values| self.sizes("ndiv", values, 2))?,
            pfact: or_finest(usual.pfact, &finest.pfact, |values| self.named("pfact", values))?,
            rfact: or_finest(usual.rfact, &finest.rfact, |values| self.named("rfact", values))?,
            bcast: or_finest(usual.bcast, &finest.bcast, |values| self.named("bcast", values))?,
            depth: or_finest(usual.depth, &finest.depth, |values| self.sizes("depth", values, 0))?,
            swap: self.subset("swap", usual.swap, &finest.swap, |swap: &Swap| (swap.name().to_owned(), 0.0))?,
            split: or_finest(usual.split, &finest.split, |values| self.shares(values))?,
            pmap: or_finest(usual.pmap, &finest.pmap, |values| self.named("pmap", values))?,
        })
    }

    /// The allowed values of an additional dimension of another engine.
    pub(super) fn extra(&self, usual: &Extra) -> Result<Extra, LimitError> {
        let levels: Vec<(String, f64)> = usual.labels.iter().cloned().zip(usual.features.iter().copied()).collect();
        let (labels, features) = self.subset(&usual.name, levels.clone(), &levels, Clone::clone)?.into_iter().unzip();
        Ok(Extra { labels, features, ..usual.clone() })
    }

    /// The values of the settings of the nodes that are left of `usual`; listed ones may be between these.
    pub(super) fn settings(&self, usual: &SettingLevels) -> Result<SettingLevels, LimitError> {
        let [clock, limit, gpu] = NodeSettings::NAMES;
        let of = |name: &str, usual: &[u32]| {
            let Some(&found) = usual.last() else { return Ok(Vec::new()) };
            let left = self.sizes(name, usual.iter().map(|&value| value as usize).collect(), 1)?;
            let above = left.iter().find(|&&value| value > found as usize);
            if let Some(above) = above {
                let wrong = format!("above {found}, which the node was found with");
                return Err(LimitError::NoValue { name: name.to_owned(), found: above.to_string(), wrong });
            }
            Ok(left.into_iter().map(|value| value as u32).collect())
        };
        Ok(SettingLevels {
            max_clock_mhz: of(clock, &usual.max_clock_mhz)?,
            package_limit_w: of(limit, &usual.package_limit_w)?,
            gpu_limit_w: of(gpu, &usual.gpu_limit_w)?,
        })
    }

    /// Of the usual values those that are allowed, or else, and where values are listed, of the finest ones: nothing can be added to
    /// these.
    fn subset<T: Clone>(
        &self,
        name: &str,
        usual: Vec<T>,
        finest: &[T],
        of: impl Fn(&T) -> (String, f64),
    ) -> Result<Vec<T>, LimitError> {
        let Some(limit) = self.0.get(name) else { return Ok(usual) };
        let labels: Vec<String> = finest.iter().map(|value| of(value).0).collect();
        for word in limit.words() {
            if !labels.contains(&word.to_string()) {
                let wrong = format!("not possible here; possible are {}", labels.join(", "));
                return Err(LimitError::NoValue { name: name.to_owned(), found: word.to_string(), wrong });
            }
        }
        let allowed = |value: &T| {
            let (label, position) = of(value);
            limit.lists(&label) && limit.spans(position)
        };
        // What is listed need not be usual where there are many grids.
        let base = if limit.exact().is_some() { finest.to_vec() } else { usual };
        let mut left: Vec<T> = base.into_iter().filter(&allowed).collect();
        if left.is_empty() {
            left = finest.iter().filter(|&value| allowed(value)).cloned().collect();
        }
        limit.not_empty(name, left, || labels)
    }

    /// Whole numbers of at least `least`; listed ones need not be usual.
    fn sizes(&self, name: &str, usual: Vec<usize>, least: usize) -> Result<Vec<usize>, LimitError> {
        let Some(limit) = self.0.get(name) else { return Ok(usual) };
        let number = |word: &Word| {
            let value = if let Word::Integer(value) = word { usize::try_from(*value).ok() } else { None };
            value.filter(|value| (least..=MAX_N).contains(value)).ok_or_else(|| LimitError::NoValue {
                name: name.to_owned(),
                found: word.to_string(),
                wrong: format!("not a whole number from {least} to {MAX_N}"),
            })
        };
        let labels = usual.iter().map(ToString::to_string).collect();
        let mut left = limit.exact().map_or(Ok(usual), |words| words.iter().map(number).collect())?;
        let without = limit.without.iter().flatten().map(number).collect::<Result<Vec<_>, _>>()?;
        left.retain(|value| !without.contains(value) && limit.spans(*value as f64));
        left.sort_unstable();
        left.dedup();
        limit.not_empty(name, left, || labels)
    }

    /// Shares of at least 0 and below 1.
    fn shares(&self, usual: Vec<f64>) -> Result<Vec<f64>, LimitError> {
        let name = "split";
        let Some(limit) = self.0.get(name) else { return Ok(usual) };
        let number = |word: &Word| {
            let value = match word {
                Word::Integer(value) => Some(*value as f64),
                Word::Real(value) => Some(*value),
                Word::Text(_) => None,
            };
            value.filter(|value| (0.0..1.0).contains(value)).ok_or_else(|| LimitError::NoValue {
                name: name.to_owned(),
                found: word.to_string(),
                wrong: "not a share of at least 0 and below 1".to_owned(),
            })
        };
        let labels = usual.iter().map(ToString::to_string).collect();
        let mut left: Vec<f64> = limit.exact().map_or(Ok(usual), |words| words.iter().map(number).collect())?;
        let without = limit.without.iter().flatten().map(number).collect::<Result<Vec<_>, _>>()?;
        left.retain(|value| !without.contains(value) && limit.spans(*value));
        left.sort_by(f64::total_cmp);
        left.dedup();
        limit.not_empty(name, left, || labels)
    }

    /// Values with names; all can be listed, in the order in which the usual ones come first.
    fn named<T: Coded + PartialEq>(&self, name: &str, usual: Vec<T>) -> Result<Vec<T>, LimitError> {
        let Some(limit) = self.0.get(name) else { return Ok(usual) };
        let mut known = usual.clone();
        for &(value, _) in T::ALL {
            if !known.contains(&value) {
                known.push(value);
            }
        }
        // What is listed may be unusual; what is only excluded leaves the usual ones.
        let base = if limit.exact().is_some() { known.clone() } else { usual };
        let names: Vec<String> = known.iter().map(|value| value.name().to_owned()).collect();
        for word in limit.words() {
            if !names.contains(&word.to_string()) {
                let hint = hint(&word.to_string(), names.iter().map(String::as_str));
                let wrong = format!("unknown; known are {}{hint}", names.join(", "));
                return Err(LimitError::NoValue { name: name.to_owned(), found: word.to_string(), wrong });
            }
        }
        let left = base.into_iter().filter(|value| limit.lists(value.name())).collect();
        limit.not_empty(name, left, || names)
    }
}

/// What `narrow` leaves of the usual values of a dimension, or else of its finest ones.
fn or_finest<T: Clone>(
    usual: Vec<T>,
    finest: &[T],
    narrow: impl Fn(Vec<T>) -> Result<Vec<T>, LimitError>,
) -> Result<Vec<T>, LimitError> {
    narrow(usual).or_else(|_| narrow(finest.to_vec()))
}

const CATEGORICAL: [&str; 5] = ["pfact", "rfact", "bcast", "swap", "pmap"];

impl Limit {
    /// The listed values, `None` when nothing is listed.
    fn exact(&self) -> Option<Vec<Word>> {
        self.values.clone().or_else(|| self.fixed.clone().map(|word| vec![word]))
    }

    fn words(&self) -> Vec<Word> {
        [self.exact(), self.without.clone()].into_iter().flatten().flatten().collect()
    }

    fn lists(&self, label: &str) -> bool {
        let has = |words: &[Word]| words.iter().any(|word| word.to_string() == label);
        self.exact().is_none_or(|words| has(&words)) && !self.without.as_deref().is_some_and(has)
    }

    fn spans(&self, position: f64) -> bool {
        self.min.is_none_or(|min| position >= min) && self.max.is_none_or(|max| position <= max)
    }

    fn not_empty<T>(
        &self,
        name: &str,
        left: Vec<T>,
        usual: impl FnOnce() -> Vec<String>,
    ) -> Result<Vec<T>, LimitError> {
        if left.is_empty() { Err(LimitError::Empty { name: name.to_owned(), usual: usual() }) } else { Ok(left) }
    }
}
