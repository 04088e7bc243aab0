//! The profile of an engine: the contents of its TOML.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use space::dat::MAX_VALUES;
use space::dims::MAX_LEVELS;
use space::domain::{Extra, ForeignSpec};
use space::workspace::Workspace;

use super::dimension::{ExtraDim, VARIABLE, is_variable};
use super::error::ProfileError;
use super::output::PatternTexts;

/// Version of the schema of profiles.
///
/// Version 2 added `memory`, `nodes` and `most_threads`; older profiles describe engines on the hosts of any number of nodes. Version 3 added
/// `check_first` and `residual_eps` of the patterns, version 4 `usual_nb`, `depth_alone`, `workspace` and
/// `process_rows` of a dimension, version 5 `usual_nbmin`.
pub const PROFILE_SCHEMA: u32 = 5;

/// Profiles of known programs, by name.
pub const SHIPPED: [(&str, &str); 9] = [
    ("netlib", include_str!("../../../datasets/engines/netlib.toml")),
    ("hpcc", include_str!("../../../datasets/engines/hpcc.toml")),
    ("rochpl", include_str!("../../../datasets/engines/rochpl.toml")),
    ("nvidia", include_str!("../../../datasets/engines/nvidia.toml")),
    ("rochpl-mxp", include_str!("../../../datasets/engines/rochpl-mxp.toml")),
    ("nvidia-mxp", include_str!("../../../datasets/engines/nvidia-mxp.toml")),
    ("intel", include_str!("../../../datasets/engines/intel.toml")),
    ("cuda", include_str!("../../../datasets/engines/cuda.toml")),
    ("hip", include_str!("../../../datasets/engines/hip.toml")),
];

/// Dimensions of HPL that an engine may obey, besides ranks and grid, which all engines obey.
pub const OBEYABLE: [&str; 8] = ["nb", "nbmin", "ndiv", "pfact", "rfact", "bcast", "depth", "swap"];

/// Location of the matrix.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MatrixMemory {
    /// In the memory of the hosts; ranks run on their cores.
    #[default]
    Host,
    /// In the memory of the accelerators, one rank on each.
    Device,
}

/// The contents of a profile's TOML. Unknown keys are errors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Version of the schema.
    pub schema_version: u32,
    /// Name of the engine in tables and records.
    pub name: String,
    /// What it is, in one line.
    pub about: String,
    /// Source of the program's formats.
    pub source: String,
    /// The program: a name on the path, or a path.
    pub program: String,
    /// Its launcher: one of [`crate::launcher::LAUNCHERS`], or the words of another.
    #[serde(default = "none")]
    pub launcher: String,
    /// The words of the command, with placeholders; the word `{launch}` is replaced by those of the launcher.
    pub command: Vec<String>,
    /// The file in the working folder that the program reads, in the form of HPL.dat; none for flags alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// The file in the working folder that the program writes; none for its standard output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Number of times that N is repeated in the input: runs in one call, of which the median is the score.
    #[serde(default = "one")]
    pub repeats: usize,
    /// Location of the matrix, which decides whether a rank uses cores or an accelerator.
    #[serde(default)]
    pub memory: MatrixMemory,
    /// Number of nodes that its command can use; none for all nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<usize>,
    /// Whether ranks may have several threads.
    #[serde(default)]
    pub threads: bool,
    /// Threads of a rank at most, where ranks may have several: the cores of a node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_threads: Option<usize>,
    /// The dimensions of [`OBEYABLE`] that it obeys.
    pub obeys: Vec<String>,
    /// Values of NB; empty for the usual ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nb: Vec<usize>,
    /// NB of the usual HPL.dat; none for the value of `nb` nearest to that of our default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usual_nb: Option<usize>,
    /// NBMIN of the usual HPL.dat; none for that of our default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usual_nbmin: Option<usize>,
    /// Whether DEPTH acts with one process column, too: Netlib's program looks ahead for other columns only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub depth_alone: bool,
    /// What its runs keep beside the matrix.
    #[serde(default, skip_serializing_if = "is_as_hpl")]
    pub workspace: Workspace,
    /// Environment variables of the program, with placeholders.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Patterns of its output.
    pub patterns: PatternTexts,
    /// Additional dimensions of this engine.
    #[serde(default, rename = "dimension", skip_serializing_if = "Vec::is_empty")]
    pub dimensions: Vec<ExtraDim>,
}

/// Whether a profile need not say it.
fn is_as_hpl(workspace: &Workspace) -> bool {
    *workspace == Workspace::Hpl
}

fn none() -> String {
    "none".to_owned()
}

fn one() -> usize {
    1
}

impl Profile {
    /// Reads the text of a profile; [`super::Foreign::new`] checks it.
    ///
    /// # Errors
    /// [`ProfileError`] naming the key.
    pub fn parse(text: &str) -> Result<Self, ProfileError> {
        /// Read first: the error of a newer profile is its version, not an unknown key.
        #[derive(Deserialize)]
        struct Version {
            schema_version: u32,
        }
        let found = toml::from_str::<Version>(text)?.schema_version;
        if found > PROFILE_SCHEMA {
            return Err(ProfileError::Newer { found, known: PROFILE_SCHEMA });
        }
        Ok(toml::from_str(text)?)
    }

    /// Its dimensions in the form that the space uses.
    pub fn obeyed(&self) -> ForeignSpec {
        let extra = self.dimensions.iter().map(|dim| Extra {
            name: dim.name.clone(),
            labels: dim.labels(),
            features: dim.features(),
            ordered: dim.ordered,
            acts: dim.acts,
        });
        ForeignSpec {
            obeys: self.obeys.clone(),
            usual_nb: self.usual_nb,
            usual_nbmin: self.usual_nbmin,
            depth_alone: self.depth_alone,
            workspace: self.workspace,
            nb: self.nb.clone(),
            threads: self.threads,
            most_threads: self.most_threads,
            extra: extra.collect(),
        }
    }
}

/// Checks values that every run needs.
///
/// # Errors
/// [`ProfileError`] naming the key and the way out.
pub(super) fn check_values(profile: &Profile) -> Result<(), ProfileError> {
    let bad = |key, problem: String| Err(ProfileError::Value { key, problem });
    if !(1..=PROFILE_SCHEMA).contains(&profile.schema_version) {
        return Err(ProfileError::Newer { found: profile.schema_version, known: PROFILE_SCHEMA });
    }
    if profile.command.is_empty() {
        return bad("command", "is empty; give the words of the command".to_owned());
    }
    for (key, name) in [("input", &profile.input), ("output", &profile.output)] {
        if name.as_ref().is_some_and(|name| name.is_empty() || name.contains('/') || name.starts_with('.')) {
            return bad(key, "must be the plain name of a file in the working folder".to_owned());
        }
    }
    if !(1..=MAX_VALUES).contains(&profile.repeats) || (profile.repeats > 1 && profile.input.is_none()) {
        return bad("repeats", format!("must be 1 to {MAX_VALUES}, and 1 without an input file"));
    }
    if profile.most_threads == Some(0) {
        return bad("most_threads", "must be at least 1; leave it out for all cores".to_owned());
    }
    if profile.nodes == Some(0) {
        return bad("nodes", "must be at least 1; leave it out for all nodes".to_owned());
    }
    if profile.memory == MatrixMemory::Device && profile.threads {
        return bad("threads", "must be false where memory = 'device': a rank takes one accelerator".to_owned());
    }
    for (key, value) in [("usual_nb", profile.usual_nb), ("usual_nbmin", profile.usual_nbmin)] {
        if value == Some(0) {
            return bad(key, "must be at least 1; leave it out for that of our default".to_owned());
        }
    }
    if profile.nb.contains(&0) || !profile.nb.is_sorted_by(|a, b| a < b) {
        return bad("nb", "must be rising numbers from 1 on".to_owned());
    }
    if profile.nb.len() > MAX_LEVELS {
        return bad("nb", format!("has more than {MAX_LEVELS} values; give fewer"));
    }
    if let Some(name) = profile.obeys.iter().find(|name| !OBEYABLE.contains(&name.as_str())) {
        return Err(ProfileError::Obeys { name: name.clone(), known: OBEYABLE.join(" ") });
    }
    let obeys = |name: &str| profile.obeys.iter().any(|known| known == name);
    for (key, name, is_given) in [
        ("nb", "nb", !profile.nb.is_empty()),
        ("usual_nb", "nb", profile.usual_nb.is_some()),
        ("usual_nbmin", "nbmin", profile.usual_nbmin.is_some()),
    ] {
        if is_given && !obeys(name) {
            return bad(key, format!("would be ignored, as obeys lacks {name}; add it there, or leave {key} out"));
        }
    }
    if let Some(name) = profile.env.keys().find(|name| !is_variable(name)) {
        return bad("env", format!("has the name '{name}'; {VARIABLE}"));
    }
    for (i, dim) in profile.dimensions.iter().enumerate() {
        if profile.dimensions[..i].iter().any(|other| other.name == dim.name) {
            return Err(ProfileError::Dimension { name: dim.name.clone(), problem: "is there twice".to_owned() });
        }
        let same = |other: &&ExtraDim| dim.env.is_some() && other.env == dim.env;
        if let Some(other) = profile.dimensions[..i].iter().find(same) {
            let problem = format!("has the env of {}, of which one would be ignored; give each its own", other.name);
            return Err(ProfileError::Dimension { name: dim.name.clone(), problem });
        }
        if let Some(name) = dim.env.as_ref().filter(|name| profile.env.contains_key(*name)) {
            let problem = format!("has the env {name}, whose value in the table env would be ignored; leave that out");
            return Err(ProfileError::Dimension { name: dim.name.clone(), problem });
        }
    }
    Ok(())
}
