//! The profile of an engine: its checked TOML, and the command, environment and input of a candidate.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use serde::{Deserialize, Serialize};
use space::Candidate;
use space::dat::{DatError, HplDat, MAX_VALUES};
use space::domain::{Extra, ForeignSpec};
use space::params::Coded;

use super::dimension::ExtraDim;
use super::error::ProfileError;
use super::output::{PatternTexts, Patterns, PrintedResult};
use super::template::Template;
use crate::launcher;
use crate::progress::{ProgressPoint, traced};

/// Version of the schema of profiles.
///
/// Version 2 added `memory`, `nodes` and `most_threads`; older profiles describe engines on the hosts of any number of nodes. Version 3 added
/// `check_first` and `residual_eps` of the patterns.
pub const PROFILE_SCHEMA: u32 = 3;

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

/// Placeholders that are filled for every engine.
const PLACEHOLDERS: [&str; 19] = [
    "np",
    "threads",
    "n",
    "nb",
    "p",
    "q",
    "nbmin",
    "ndiv",
    "pfact",
    "rfact",
    "bcast",
    "depth",
    "swap",
    "threshold",
    "pmap",
    "dat",
    "out",
    "folder",
    "program",
];

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
    /// Environment variables of the program, with placeholders.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Patterns of its output.
    pub patterns: PatternTexts,
    /// Additional dimensions of this engine.
    #[serde(default, rename = "dimension", skip_serializing_if = "Vec::is_empty")]
    pub dimensions: Vec<ExtraDim>,
}

fn none() -> String {
    "none".to_owned()
}

fn one() -> usize {
    1
}

impl Profile {
    /// Reads the text of a profile; [`Foreign::new`] checks it.
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
        });
        ForeignSpec {
            obeys: self.obeys.clone(),
            nb: self.nb.clone(),
            threads: self.threads,
            most_threads: self.most_threads,
            extra: extra.collect(),
        }
    }
}

/// A checked profile, ready to run candidates.
#[derive(Debug, Clone)]
pub struct Foreign {
    profile: Profile,
    command: Vec<Template>,
    env: Vec<(String, Template)>,
    patterns: Patterns,
}

impl Foreign {
    /// Checks a profile.
    ///
    /// # Errors
    /// [`ProfileError`] naming the key and the way out.
    pub fn new(profile: Profile) -> Result<Self, ProfileError> {
        check_values(&profile)?;
        profile.dimensions.iter().try_for_each(|dim| dim.check(&PLACEHOLDERS))?;
        let known: Vec<&str> =
            PLACEHOLDERS.into_iter().chain(profile.dimensions.iter().map(|d| d.name.as_str())).collect();
        let launcher = launcher::words(&profile.launcher);
        let words = profile.command.iter().flat_map(|word| match word.as_str() {
            "{launch}" => launcher.clone(),
            word => vec![word.to_owned()],
        });
        let command =
            words.map(|word| Template::parse(&word, "command", &known)).collect::<Result<Vec<_>, ProfileError>>()?;
        let env = profile
            .env
            .iter()
            .map(|(name, text)| Ok((name.clone(), Template::parse(text, &format!("env.{name}"), &known)?)));
        let env = env.collect::<Result<Vec<_>, ProfileError>>()?;
        let patterns = Patterns::new(&profile.patterns)?;
        let foreign = Self { profile, command, env, patterns };
        foreign.check_holes()?;
        Ok(foreign)
    }

    /// The checked profile.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The words of the command that runs `candidate` in `folder`.
    pub fn command(&self, candidate: &Candidate, folder: &Path) -> Vec<OsString> {
        self.command.iter().map(|word| word.fill(|name| self.value(name, candidate, folder)).into()).collect()
    }

    /// The same with `words` in the place of the program and its flags: where its ranks would be started. `None` where no word of the
    /// command is the program alone.
    pub fn started_in_its_place(
        &self,
        candidate: &Candidate,
        folder: &Path,
        words: &[OsString],
    ) -> Option<Vec<OsString>> {
        let program = self.command.iter().position(|word| word.is("program"))?;
        let mut command = self.command(candidate, folder);
        command.truncate(program);
        command.extend_from_slice(words);
        Some(command)
    }

    /// The environment variables of that command, in addition to the inherited ones.
    pub fn environment(&self, candidate: &Candidate, folder: &Path) -> Vec<(String, String)> {
        let fixed =
            self.env.iter().map(|(name, text)| (name.clone(), text.fill(|hole| self.value(hole, candidate, folder))));
        let dims = self
            .profile
            .dimensions
            .iter()
            .filter_map(|dim| Some((dim.env.clone()?, self.value(&dim.name, candidate, folder))));
        fixed.chain(dims).collect()
    }

    /// Name and text of its input file, if it has one.
    ///
    /// # Errors
    /// [`DatError`] when HPL.dat cannot hold the candidate.
    pub fn input(&self, candidate: &Candidate) -> Result<Option<(&str, String)>, DatError> {
        let Some(name) = &self.profile.input else { return Ok(None) };
        let mut dat = HplDat::single(&candidate.hpl);
        dat.ns = vec![candidate.hpl.n; self.profile.repeats];
        Ok(Some((name, dat.write()?)))
    }

    /// All results in its output, in order.
    pub fn read(&self, text: &str) -> Vec<PrintedResult> {
        self.patterns.read(text)
    }

    /// The progress that the text reports, rising; empty when the profile has no pattern for it.
    pub fn progress(&self, text: &str) -> Vec<ProgressPoint> {
        traced(text, |line| self.progress_of(line))
    }

    /// The progress that a line reports.
    pub(crate) fn progress_of(&self, line: &str) -> Option<ProgressPoint> {
        self.patterns.progress_of(line)
    }

    /// Whether the profile has a pattern for progress.
    pub(crate) fn reports_progress(&self) -> bool {
        self.patterns.progress.is_some()
    }

    /// The pattern that a line with a result matches, for messages.
    pub fn result_pattern(&self) -> &str {
        self.patterns.result()
    }

    fn value(&self, name: &str, candidate: &Candidate, folder: &Path) -> String {
        let (hpl, engine) = (&candidate.hpl, &candidate.engine);
        let file =
            |name: &Option<String>, usual: &str| folder.join(name.as_deref().unwrap_or(usual)).display().to_string();
        match name {
            "np" => hpl.ranks().to_string(),
            "threads" => engine.threads.to_string(),
            "n" => hpl.n.to_string(),
            "nb" => hpl.nb.to_string(),
            "p" => hpl.p.to_string(),
            "q" => hpl.q.to_string(),
            "nbmin" => hpl.nbmin.to_string(),
            "ndiv" => hpl.ndiv.to_string(),
            "pfact" => hpl.pfact.code().to_string(),
            "rfact" => hpl.rfact.code().to_string(),
            "bcast" => hpl.bcast.code().to_string(),
            "depth" => hpl.depth.to_string(),
            "swap" => hpl.swap.code().to_string(),
            "threshold" => hpl.swap.threshold().to_string(),
            "pmap" => hpl.pmap.code().to_string(),
            "dat" => file(&self.profile.input, "HPL.dat"),
            "out" => file(&self.profile.output, "HPL.out"),
            "folder" => folder.display().to_string(),
            "program" => self.profile.program.clone(),
            name => {
                let usual =
                    || self.profile.dimensions.iter().find(|dim| dim.name == name).map(|dim| dim.values[0].to_string());
                engine.extra.get(name).cloned().or_else(usual).unwrap_or_default()
            }
        }
    }

    /// Every additional dimension must change the environment or the command, and `{dat}` needs an input.
    fn check_holes(&self) -> Result<(), ProfileError> {
        let has =
            |name: &str| self.command.iter().chain(self.env.iter().map(|(_, text)| text)).any(|text| text.has(name));
        if let Some(dim) = self.profile.dimensions.iter().find(|dim| dim.env.is_none() && !has(&dim.name)) {
            let problem = format!("changes nothing; give it env, or use {{{}}} in the command", dim.name);
            return Err(ProfileError::Dimension { name: dim.name.clone(), problem });
        }
        if has("dat") && self.profile.input.is_none() {
            let problem = "is missing, but {dat} is used; name the file that the program reads".to_owned();
            return Err(ProfileError::Value { key: "input", problem });
        }
        if self.profile.input.is_none() && !(has("n") && has("nb") && has("p") && has("q")) {
            let problem = "does not say {n}, {nb}, {p} and {q}, and there is no input file to say them".to_owned();
            return Err(ProfileError::Value { key: "command", problem });
        }
        Ok(())
    }
}

/// Checks values that every run needs.
fn check_values(profile: &Profile) -> Result<(), ProfileError> {
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
    if profile.nb.contains(&0) || !profile.nb.is_sorted_by(|a, b| a < b) {
        return bad("nb", "must be rising numbers from 1 on".to_owned());
    }
    if let Some(name) = profile.obeys.iter().find(|name| !OBEYABLE.contains(&name.as_str())) {
        return Err(ProfileError::Obeys { name: name.clone(), known: OBEYABLE.join(" ") });
    }
    for (i, dim) in profile.dimensions.iter().enumerate() {
        if profile.dimensions[..i].iter().any(|other| other.name == dim.name) {
            return Err(ProfileError::Dimension { name: dim.name.clone(), problem: "is there twice".to_owned() });
        }
    }
    Ok(())
}
