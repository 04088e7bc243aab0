//! Shares: non-negative numbers that divide something among parts.

use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};

/// A finite number of at least 0; 0 is never negative zero, so equal shares have equal bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Share(f64);

impl Share {
    /// Nothing.
    pub const ZERO: Self = Self(0.0);

    /// The share `value`.
    ///
    /// # Errors
    /// [`NoShare`] when `value` is negative or not finite.
    pub fn new(value: f64) -> Result<Self, NoShare> {
        // Adding 0 makes +0 of −0.
        if value.is_finite() && value >= 0.0 { Ok(Self(value + 0.0)) } else { Err(NoShare { found: value }) }
    }

    /// Its value, finite and at least 0.
    pub fn get(self) -> f64 {
        self.0
    }
}

/// A negative or non-finite number in place of a [`Share`].
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("a share must be a finite number of at least 0, found {found}")]
pub struct NoShare {
    /// The number.
    pub found: f64,
}

// Neither NaN nor −0 is a share: equality by value is equality by bits.
impl Eq for Share {}

impl Hash for Share {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

impl TryFrom<f64> for Share {
    type Error = NoShare;

    fn try_from(value: f64) -> Result<Self, NoShare> {
        Self::new(value)
    }
}

impl From<Share> for f64 {
    fn from(share: Share) -> Self {
        share.0
    }
}

impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::str::FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let value: f64 = text.parse().map_err(|_| format!("{text} is not a number"))?;
        Self::new(value).map_err(|error| error.to_string())
    }
}

/// Relative speeds of process rows and process columns, in proportion to which the matrix is dealt.
///
/// An empty list means equal speeds. A speed of 0 gets nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Weights {
    /// Speed of each process row: P of them, or none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<Share>,
    /// Speed of each process column: Q of them, or none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<Share>,
}

impl Weights {
    /// Whether no speeds are given at all.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.columns.is_empty()
    }
}

/// `equal`, `columns 1:0.352`, `rows 1:0.5 columns 1:0.352`; from three equal ones on as in `rows 1×3:0.5`.
impl std::fmt::Display for Weights {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let axis = |name: &str, shares: &[Share]| {
            let group = |equal: &[Share]| match equal.len() {
                1 => equal[0].to_string(),
                2 => format!("{0}:{0}", equal[0]),
                times => format!("{}×{times}", equal[0]),
            };
            let groups: Vec<String> = shares.chunk_by(PartialEq::eq).map(group).collect();
            (!groups.is_empty()).then(|| format!("{name} {}", groups.join(":")))
        };
        let axes = [axis("rows", &self.rows), axis("columns", &self.columns)].into_iter().flatten();
        let text = axes.collect::<Vec<_>>().join(" ");
        f.write_str(if text.is_empty() { "equal" } else { &text })
    }
}
