//! Dimensions that only one engine has: environment variables and flags.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use space::NodeSettings;
use space::dims::MAX_LEVELS;
use space::domain::ProcessRows;

use super::error::ProfileError;

/// A dimension of an engine that HPL.dat does not have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExtraDim {
    /// Its name in tables, and as a placeholder of the command.
    pub name: String,
    /// The environment variable that sets it, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<String>,
    /// Its values, the default one first.
    pub values: Vec<Value>,
    /// Whether the values are ordered, so that near values behave similarly; then they must be rising numbers.
    #[serde(default)]
    pub ordered: bool,
    /// On which grids it acts; on others it has its first value.
    #[serde(default, rename = "process_rows", skip_serializing_if = "ProcessRows::is_any")]
    pub acts: ProcessRows,
}

/// A TOML value: a number or a text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// A whole number.
    Integer(i64),
    /// Another number.
    Real(f64),
    /// A text.
    Text(String),
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Integer(number) => number.fmt(f),
            Self::Real(number) => number.fmt(f),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl Value {
    fn number(&self) -> Option<f64> {
        match self {
            Self::Integer(number) => Some(*number as f64),
            Self::Real(number) => Some(*number),
            Self::Text(_) => None,
        }
    }
}

/// What [`is_variable`] asks for, in words.
pub(super) const VARIABLE: &str = "the name of an environment variable has a sign at least, and none of = and NUL";

/// Whether an environment can have a variable of this name.
pub(super) fn is_variable(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}

impl ExtraDim {
    /// The values as texts.
    pub fn labels(&self) -> Vec<String> {
        self.values.iter().map(Value::to_string).collect()
    }

    /// Position of each value on the axis: its number if the values are ordered, otherwise its index.
    pub fn features(&self) -> Vec<f64> {
        let place = |(i, value): (usize, &Value)| if self.ordered { value.number() } else { None }.unwrap_or(i as f64);
        self.values.iter().enumerate().map(place).collect()
    }

    /// Checks the dimension; `known` are the placeholders that the program fills itself.
    pub(super) fn check(&self, known: &[&str]) -> Result<(), ProfileError> {
        let refuse =
            |problem: &str| Err(ProfileError::Dimension { name: self.name.clone(), problem: problem.to_owned() });
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if self.name.is_empty() || !self.name.chars().all(word) {
            return refuse("a name has letters, digits and _ only");
        }
        if known.contains(&self.name.as_str()) {
            return refuse("is a placeholder that hpl-tune fills itself; choose another name");
        }
        if ["ranks", "grid"].into_iter().chain(NodeSettings::NAMES).any(|name| name == self.name) {
            return refuse("is a dimension of every engine, which hpl-tune sets itself; choose another name");
        }
        if self.env.as_ref().is_some_and(|name| !is_variable(name)) {
            return refuse(&format!("env: {VARIABLE}"));
        }
        if self.values.is_empty() {
            return refuse("values is empty; give at least one, the default first");
        }
        if self.values.len() > MAX_LEVELS {
            return refuse(&format!("has more than {MAX_LEVELS} values; give fewer"));
        }
        if self.values.iter().any(|value| matches!(value, Value::Real(number) if !number.is_finite())) {
            return refuse("has a value that is no finite number; give it as a text, as 'inf'");
        }
        let labels = self.labels();
        if labels.iter().collect::<HashSet<_>>().len() < labels.len() {
            return refuse("a value is there twice");
        }
        let numbers: Option<Vec<f64>> = self.values.iter().map(Value::number).collect();
        if self.ordered && !numbers.is_some_and(|numbers| numbers.windows(2).all(|pair| pair[0] < pair[1])) {
            return refuse("ordered = true needs rising numbers; sort them, or leave ordered out");
        }
        Ok(())
    }
}
