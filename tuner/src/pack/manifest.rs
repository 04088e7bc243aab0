//! `pack.json`: what a pack says, for programs, for `pack --check` and for `verify`.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Purpose;
use super::acceptance::Accepted;
use super::asked::{Asked, asked};
use super::nodes::NodeFacts;
use super::peak::Peak;
use super::power::Judged;
use super::repeats::Repeats;
use crate::error::RecordError;
use crate::power::stamps::Stamps;
use crate::record::plain::{self, TEXT_BYTES};

/// Version of `pack.json`.
pub const PACK_SCHEMA: u32 = 2;
/// Its name.
pub const NAME: &str = "pack.json";

/// A field with its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field {
    /// Its key, see [`Asked::key`].
    pub key: String,
    /// What it is called.
    pub label: String,
    /// Its value; `None` where it is missing.
    pub value: Option<String>,
    /// Where that is from.
    pub from: Option<String>,
    /// How it is given where it is missing.
    pub how: Option<String>,
    /// Whether the pack is incomplete without it.
    pub needed: bool,
}

/// The score.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PackScore {
    /// Rmax in GFLOP/s, as HPL printed it.
    pub rmax_gflops: f64,
    /// Nmax.
    pub nmax: usize,
    /// Time in seconds, as HPL printed it.
    pub time_s: f64,
    /// Scaled residual, as HPL printed it.
    pub residual: Option<f64>,
    /// SHA-256 of HPL.out.
    pub output_sha256: String,
    /// Whether the journal had that hash when the pack was made.
    pub output_recorded: bool,
}

/// The contents of `pack.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`PACK_SCHEMA`].
    pub schema_version: u32,
    /// What it is for.
    pub purpose: Purpose,
    /// When it was made, in UTC.
    pub made_utc: String,
    /// By which version.
    pub made_by: String,
    /// The session.
    pub session: String,
    /// The trial whose run is packed.
    pub trial: u64,
    /// Its engine.
    pub engine: String,
    /// The score.
    pub score: PackScore,
    /// When the run began and ended.
    pub stamps: Stamps,
    /// Rpeak; `None` where a factor is not known.
    pub peak: Option<Peak>,
    /// The repeats by order.
    pub repeats: Vec<Repeats>,
    /// The nodes.
    pub nodes: Vec<NodeFacts>,
    /// The verdict of an acceptance.
    pub accepted: Option<Accepted>,
    /// The level of the power measurement; only there for the Green500.
    pub level: Option<Judged>,
    /// What is asked for.
    pub fields: Vec<Field>,
}

impl Manifest {
    /// Reads that of the pack in `folder`.
    ///
    /// # Errors
    /// [`RecordError`] when it is missing, damaged, or of another version: what a pack says follows from the rules of its version.
    pub fn read(folder: &Path) -> Result<Self, RecordError> {
        let path = folder.join(NAME);
        let json = plain::read(&path, TEXT_BYTES).map_err(RecordError::read(&path))?;
        let damaged = |error: serde_json::Error| RecordError::damaged(&path, error);
        let found = serde_json::from_slice::<crate::error::Version>(&json).map_err(damaged)?.schema_version;
        if found > u64::from(PACK_SCHEMA) {
            return Err(RecordError::Newer { path, found, known: PACK_SCHEMA });
        }
        if found < u64::from(PACK_SCHEMA) {
            return Err(RecordError::Older { path, found, known: PACK_SCHEMA });
        }
        serde_json::from_slice(&json).map_err(damaged)
    }

    /// The value of a field.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.fields.iter().find(|field| field.key == key)?.value.as_deref()
    }

    /// Fields of its purpose without a value, those included that are not in the list at all, with how they are given.
    pub fn missing(&self) -> Vec<(Asked, String)> {
        let how = |field: &Asked| {
            let said = self.fields.iter().find(|known| known.key == field.key).and_then(|known| known.how.clone());
            said.unwrap_or_else(|| field.how())
        };
        let missing = asked(self.purpose).into_iter().filter(|field| self.value(field.key).is_none());
        missing.map(|field| (field, how(&field))).collect()
    }
}
