//! What a table means: the TOML in its folder.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use space::dims::DimKind;

/// Version of the description's schema.
pub const LANDSCAPE_SCHEMA: u32 = 1;

/// What a table means; the TOML in its folder.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// [`LANDSCAPE_SCHEMA`] of the writer.
    pub schema_version: u32,
    /// Short name for tables of results.
    pub name: String,
    /// Where the table comes from.
    pub origin: String,
    /// The table, in the folder of the description or below it.
    pub table: PathBuf,
    /// What is measured.
    pub value: MeasuredColumn,
    /// Which rows are runs: the text that each of these columns must hold; empty for all rows.
    #[serde(default)]
    pub runs: BTreeMap<String, String>,
    /// What one evaluation costs.
    pub cost: Option<Cost>,
    /// Spread of one run where the table holds means.
    pub noise: Option<Noise>,
    /// Which rows are failed runs.
    pub failure: Option<FailedRows>,
    /// What a model says of each point.
    pub model: Option<ModelColumn>,
    /// For a table of single noisy runs: its values are replaced by a fit of main effects and of each dimension's
    /// interaction with this one.
    pub smooth_with: Option<String>,
    /// The level of each dimension at the point that users start from, as the table has it, a ratio as `1:2`; without it a session
    /// starts from the point of the median rate.
    pub usual: Option<BTreeMap<String, String>>,
    /// The dimensions.
    pub dimension: Vec<Dimension>,
}

impl Description {
    pub(super) fn check(&self) -> Result<(), String> {
        if self.schema_version != LANDSCAPE_SCHEMA {
            return Err(format!("schema_version {} is unknown, {LANDSCAPE_SCHEMA} is known", self.schema_version));
        }
        if self.dimension.is_empty() {
            return Err("no [[dimension]]: give one for each column that was varied".to_owned());
        }
        let names: Vec<&str> = self.dimension.iter().map(|dimension| dimension.name.as_str()).collect();
        if let Some(twice) = names.iter().enumerate().find(|(i, name)| names[..*i].contains(name)) {
            return Err(format!("dimension '{}' is there twice", twice.1));
        }
        let odd = |dimension: &&Dimension| dimension.kind == DimKind::Categorical && dimension.ratio.is_some();
        if let Some(dimension) = self.dimension.iter().find(odd) {
            return Err(format!("dimension '{}': a ratio is ordered, not categorical", dimension.name));
        }
        match self.noise {
            Some(Noise::Cv(cv)) if !(0.0..1.0).contains(&cv) => Err(format!("[noise] cv {cv} is not between 0 and 1")),
            _ => Ok(()),
        }
    }
}

/// The measured value.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredColumn {
    /// Its column.
    pub column: String,
    /// Whether more is better.
    pub goal: Goal,
}

/// Which values are good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Goal {
    /// Large ones, as of a rate.
    Maximize,
    /// Small ones, as of a time.
    Minimize,
}

/// Cost of one evaluation.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// Its column, in seconds.
    pub column: String,
}

/// Relative standard deviation of one run.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Noise {
    /// It is so much for all points but those of which several runs show their own.
    Cv(f64),
    /// In a column.
    Column(String),
}

/// Which rows failed.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailedRows {
    /// The column with the outcome.
    pub column: String,
    /// Its texts that mean a passed run.
    pub passed: Vec<String>,
}

/// A model's value for each point.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelColumn {
    /// The column with its values, of the same unit as the measured ones.
    pub column: String,
    /// Its table, in the same place, where it is another one.
    pub table: Option<PathBuf>,
    /// Which rows are the model's: the text that each of these columns must hold.
    #[serde(default)]
    pub rows: BTreeMap<String, String>,
}

/// One dimension.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dimension {
    /// Its name, and its column unless `ratio` is given.
    pub name: String,
    /// How its levels relate.
    pub kind: DimKind,
    /// Scale of an ordered one.
    #[serde(default)]
    pub scale: LevelScale,
    /// Two columns whose quotient is the position of an ordered dimension, such as P and Q.
    pub ratio: Option<[String; 2]>,
}

/// How numbers become positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LevelScale {
    /// As they are.
    #[default]
    Linear,
    /// By their logarithm to base 2.
    Log,
}
