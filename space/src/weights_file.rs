//! The weights file: the part of the matrix of each process row and column, and its reason.

use serde::{Deserialize, Serialize};

use crate::{Share, Weights};

/// A weights file, as `hpl-tune weights` writes it and the engine reads it. TOML; unknown keys are errors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WeightsFile {
    /// Where the numbers come from.
    #[serde(default)]
    pub origin: String,
    /// Shares of the process rows; none for equal ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<Share>,
    /// Shares of the process columns; none for equal ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<Share>,
    /// The node of each rank, along the process rows: the order of ranks with PMAP row-major. May be left out.
    #[serde(rename = "node", default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<WeightedNode>,
}

/// `[[node]]`: the node of a rank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WeightedNode {
    /// Its name.
    pub name: String,
    /// Its relative speed.
    pub speed: Share,
}

/// Why a weights file is invalid.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum WeightsFileError {
    /// Invalid TOML, an unknown key, or an invalid share.
    #[error("{0}")]
    Syntax(#[from] toml::de::Error),
    /// Neither rows nor columns.
    #[error("neither rows nor columns; give the shares of one of them")]
    Empty,
    /// All shares are 0.
    #[error("all {axis} are 0, so that no process would own the matrix; make one of them positive")]
    AllZero {
        /// `rows` or `columns`.
        axis: &'static str,
    },
    /// Not one node per rank.
    #[error("{nodes} [[node]] for {rows} rows and {columns} columns; give one of each rank, or none")]
    Nodes {
        /// Nodes found.
        nodes: usize,
        /// Process rows, 1 without shares.
        rows: usize,
        /// Process columns, 1 without shares.
        columns: usize,
    },
    /// Weights that TOML cannot hold.
    #[error("cannot write the weights: {0}")]
    Unwritable(#[from] toml::ser::Error),
}

impl WeightsFile {
    /// Reads a weights file.
    ///
    /// # Errors
    /// [`WeightsFileError`] naming line or key.
    pub fn parse(text: &str) -> Result<Self, WeightsFileError> {
        let file: Self = toml::from_str(text)?;
        let (rows, columns, nodes) = (file.rows.len().max(1), file.columns.len().max(1), file.nodes.len());
        if file.rows.is_empty() && file.columns.is_empty() {
            return Err(WeightsFileError::Empty);
        }
        for (axis, shares) in [("rows", &file.rows), ("columns", &file.columns)] {
            if !shares.is_empty() && shares.iter().all(|&share| share == Share::ZERO) {
                return Err(WeightsFileError::AllZero { axis });
            }
        }
        if nodes > 0 && rows.checked_mul(columns) != Some(nodes) {
            return Err(WeightsFileError::Nodes { nodes, rows, columns });
        }
        Ok(file)
    }

    /// The text that [`parse`](Self::parse) reads as this.
    ///
    /// # Errors
    /// [`WeightsFileError::Unwritable`].
    pub fn to_toml(&self) -> Result<String, WeightsFileError> {
        Ok(toml::to_string(self)?)
    }

    /// The weights for the engine.
    pub fn weights(self) -> Weights {
        Weights { rows: self.rows, columns: self.columns }
    }
}
