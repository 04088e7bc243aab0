//! `session.toml`: what a session was asked to do, and how far it got.
//!
//! With the journal this is all that a resume needs. Time while no tuner runs does not count against the
//! budget: the clock is what the last row and the last save of this file say was used.

use std::path::Path;

use objectives::launcher::MpiJob;
use objectives::real::Extent;
use objectives::slurm_clock::SlurmClock;
use serde::{Deserialize, Serialize};
use space::candidate::EngineProfile;
use space::domain::Expert;
use space::machine::Node;
use space::{Candidate, KernelChoice, SettingLevels, Unequal};

use crate::error::{RecordError, Version};
use crate::power::MeterLog;
use crate::record::folder::replace_file;
use crate::record::lead::Lead;
use crate::record::left::GainLeft;
use crate::record::{Finished, GroupSizes, Objective, Row, names_in_order};

/// Version of the `session.toml` schema; raised by every release that changes a key.
pub const SESSION_SCHEMA: u32 = 1;

/// What the expert's rule of thumb says of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ExpertChoice {
    /// Its configuration.
    Rule(Expert),
    /// It says nothing.
    None {
        /// Why, as a clause.
        reason: String,
    },
}

impl ExpertChoice {
    /// The configuration, where there is one: that of `rule` in the place of the `default`'s.
    pub fn candidate(&self, default: &Candidate, profile: EngineProfile) -> Option<Candidate> {
        match self {
            Self::Rule(rule) => Some(rule.candidate(default, profile)),
            Self::None { .. } => None,
        }
    }
}

impl From<Result<Expert, String>> for ExpertChoice {
    fn from(found: Result<Expert, String>) -> Self {
        found.map_or_else(|reason| Self::None { reason }, Self::Rule)
    }
}

/// A session, as stored.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Session {
    /// [`SESSION_SCHEMA`] of the writer.
    pub schema_version: u32,
    /// Name of the session, as in [`Row::session`].
    pub name: String,
    /// Version of hpl-tune that started it.
    pub version: String,
    /// Name of the host that it is on, or was on last.
    pub host: String,
    /// Start in UTC, RFC 3339.
    pub started_utc: String,
    /// The command that started it, quoted for a shell.
    pub command: String,
    /// Wall-clock budget in seconds, everything included.
    pub budget_s: f64,
    /// Wall-clock seconds used when this file was last saved.
    pub elapsed_s: f64,
    /// Seed of every random choice.
    #[serde(with = "as_text")]
    pub seed: u64,
    /// Name of the engine that runs, [`Session::OURS`] or that of the profile in `engine.toml`.
    pub engine: String,
    /// Whether the search goes by whole runs or by windows.
    pub extent: Extent,
    /// What the search makes as large as possible.
    #[serde(default, skip_serializing_if = "Objective::is_rate")]
    pub objective: Objective,
    /// Search strategy.
    pub strategy: String,
    /// The relative gain at which the search ends, where the user gave one: no more is expected to be left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_gain: Option<f64>,
    /// The gain of better points that the runs of the search predict, once it has ended; nothing of it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<GainLeft>,
    /// How far the runs of the search show the best to be ahead of the default, once it is chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lead_of_search: Option<Lead>,
    /// Cores that runs may use, by number.
    pub cores: Vec<usize>,
    /// Memory that a run may use, in bytes; 0 where nothing says.
    pub memory_bytes: u64,
    /// Kernels that runs use, never `auto` once they are chosen; `None` for another engine, which has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernels: Option<KernelChoice>,
    /// Ranks that every candidate has; `None` when they are searched.
    pub ranks: Option<usize>,
    /// Threads that each rank of every candidate has; `None` when they are searched.
    pub threads: Option<usize>,
    /// Target N of the search, once it is chosen.
    pub n: Option<usize>,
    /// Whether the user chose N: the final run has it where one whole run takes at most half of the budget.
    pub n_fixed: bool,
    /// The largest N that memory allows, once it is known.
    pub n_memory: Option<usize>,
    /// Whether the budget, rather than memory or the user, limits N.
    pub n_limited_by_budget: bool,
    /// What the search had to assume, and where its model says less than it seems to, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Names of the nodes that the processes of our engine were found on, in the order of the ranks; none where they were not
    /// looked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// Names of the nodes that are kept to replace one of these; none unless the user asked for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spares: Vec<String>,
    /// Names of the nodes that answered no more, and were replaced or left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<String>,
    /// Names of the hosts that a session which names no nodes was on before, where this is another machine: what ran there is none of its runs here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moved_from: Vec<String>,
    /// What the expert's rule of thumb says, once it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expert: Option<ExpertChoice>,
    /// How our engine is started on processes; `None` for ranks that are threads of one process, and for another engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mpi_job: Option<MpiJob>,
    /// What these nodes have, equal ones together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<Node>,
    /// What distinguishes the ranks.
    #[serde(default, skip_serializing_if = "Unequal::is_empty")]
    pub unequal: Unequal,
    /// The file of the meter that the user gave; `None` for the sensors of the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_log: Option<MeterLog>,
    /// The settings of the node that are varied; none unless the user asked for it.
    #[serde(default, skip_serializing_if = "SettingLevels::is_empty")]
    pub settings: SettingLevels,
    /// How many nodes run a trial together, stage by stage before all of them; `None` where the costs and the model say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<GroupSizes>,
    /// How the highest clock is asked of Slurm; `None` where it is not varied, or set on this node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slurm_clock: Option<SlurmClock>,
    /// What was found of the GPUs of this node, and what was chosen; `None` where a flag named the engine, or there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus_found: Option<String>,
}

/// Where a run took place, as seen from the nodes of its session now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RanOn {
    /// On all of its nodes.
    AllNodes,
    /// On some of them.
    SomeNodes,
    /// On others: a session that was resumed on other nodes has such.
    OtherNodes,
}

/// The rows of a session by their [`RanOn`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RowsByPlace {
    /// On all of its nodes: what is compared, and reported.
    pub all: Vec<Row>,
    /// On some of its nodes.
    pub some: Vec<Row>,
    /// On others.
    pub elsewhere: Vec<Row>,
}

impl Session {
    /// [`Session::engine`] of our engine.
    pub const OURS: &str = "hpl";

    /// Whose rules say what cannot matter in its runs.
    pub fn profile(&self) -> EngineProfile {
        if self.engine == Self::OURS { EngineProfile::Ours } else { EngineProfile::Netlib }
    }

    /// Whether its runs are simulated: nothing of it is measured.
    pub fn is_simulated(&self) -> bool {
        self.mpi_job.as_ref().is_some_and(|job| job.simulated.is_some())
    }

    /// Whether all users may read its folder, by the command that started it.
    pub fn is_shared(&self) -> bool {
        let words = shlex::split(&self.command).unwrap_or_default();
        words.iter().any(|word| word == "--shared-folder")
    }

    /// What its rates are.
    pub fn how(&self) -> &'static str {
        if self.is_simulated() { "simulated" } else { "measured" }
    }

    /// Its engine as [`Row::engine`] has it.
    pub fn recorded_engine(&self) -> String {
        if self.is_simulated() { Row::SIMULATED.to_owned() } else { self.engine.clone() }
    }

    /// The speeds of its ranks, or of the nodes that are slower than the others, as a clause.
    pub fn speeds(&self) -> String {
        let relative = self.unequal.relative();
        if self.unequal.node_cores.is_none() {
            let speeds: Vec<String> = relative.iter().map(|speed| format!("{speed:.3}")).collect();
            return format!("speeds of the ranks {}", speeds.join(" : "));
        }
        let slower = self.hosts.iter().zip(relative).filter(|(_, speed)| *speed < 1.0);
        let named: Vec<String> = slower.map(|(host, speed)| format!("{host} {speed:.3}")).collect();
        format!("speeds of the slower nodes {}", named.join(", "))
    }

    /// The nodes that answered no more, in words.
    pub fn lost_nodes(&self) -> Option<String> {
        let lost = self.lost.join(", ");
        (!self.lost.is_empty()).then(|| {
            format!("nodes that answered no more: {lost}; what ran on them is in the record and no part of the result")
        })
    }

    /// Names of its nodes as [`Row::nodes`] has them.
    pub fn node_names(&self) -> Option<String> {
        (!self.hosts.is_empty()).then(|| names_in_order(&self.hosts))
    }

    /// Its rows by where they ran: runs on other nodes are of another machine, and those on some of its nodes of another task.
    pub fn split(&self, rows: Vec<Row>) -> RowsByPlace {
        let mut split = RowsByPlace::default();
        for row in rows {
            match self.place_of(&row) {
                RanOn::AllNodes => split.all.push(row),
                RanOn::SomeNodes => split.some.push(row),
                RanOn::OtherNodes => split.elsewhere.push(row),
            }
        }
        split
    }

    /// Where a row of it ran.
    pub fn place_of(&self, row: &Row) -> RanOn {
        let within = |names: &String| names.split(' ').all(|name| self.hosts.iter().any(|host| host == name));
        match &row.nodes {
            None if self.moved_from.contains(&row.host) => RanOn::OtherNodes,
            nodes if *nodes == self.node_names() => RanOn::AllNodes,
            Some(names) if within(names) => RanOn::SomeNodes,
            _ => RanOn::OtherNodes,
        }
    }

    /// Write to `path`, replacing what is there in one step.
    ///
    /// # Errors
    /// [`RecordError::Write`] with the path; what was there stays then.
    pub fn save(&self, path: &Path) -> Result<(), RecordError> {
        let text = self.to_toml().map_err(|e| RecordError::damaged(path, e))?;
        replace_file(path, text.as_bytes())
    }

    /// The text that [`parse`](Self::parse) reads as this.
    ///
    /// # Errors
    /// A number that TOML cannot hold.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        toml::to_string(self)
    }

    /// Read from `path`.
    ///
    /// # Errors
    /// [`RecordError::Read`] when the file cannot be read, else as [`parse`](Self::parse).
    pub fn load(path: &Path) -> Result<Self, RecordError> {
        Self::parse(&std::fs::read_to_string(path).map_err(RecordError::read(path))?, path)
    }

    /// Read the `text` of the file at `path`.
    ///
    /// # Errors
    /// [`RecordError::Newer`] for a schema that this program does not know, [`RecordError::Damaged`] with the
    /// offending line or key otherwise: also for a time or a rate that is no number.
    pub fn parse(text: &str, path: &Path) -> Result<Self, RecordError> {
        let damaged = |e: toml::de::Error| RecordError::damaged(path, e);
        let found = toml::from_str::<Version>(text).map_err(damaged)?.schema_version;
        if found > u64::from(SESSION_SCHEMA) {
            return Err(RecordError::Newer { path: path.to_path_buf(), found, known: SESSION_SCHEMA });
        }
        let session: Self = toml::from_str(text).map_err(damaged)?;
        session.numbers().find(|(_, value)| !(0.0..f64::INFINITY).contains(value)).map_or(Ok(()), |(key, value)| {
            Err(RecordError::damaged(path, format_args!("{key} is {value}, not a number from 0")))
        })?;
        Ok(session)
    }

    /// Its times, and the rates of its nodes, by their keys.
    fn numbers(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let own = [("budget_s", self.budget_s), ("elapsed_s", self.elapsed_s)];
        let rates = self.nodes.iter().flat_map(|node| {
            let Node { peak_gflops, rate_gflops, link_gbytes_per_s, .. } = node;
            [("peak_gflops", *peak_gflops), ("rate_gflops", *rate_gflops), ("link_gbytes_per_s", *link_gbytes_per_s)]
        });
        own.into_iter().chain(rates)
    }

    /// Wall-clock seconds of the budget that are used up, by the later of this file and the journal.
    pub fn used_s<R: Finished>(&self, rows: &[R]) -> f64 {
        self.used_by_s(rows).max(self.elapsed_s)
    }

    /// Wall-clock seconds of the budget that were used up when the last of the rows was finished.
    pub fn used_by_s<R: Finished>(&self, rows: &[R]) -> f64 {
        rows.iter().map(|row| self.budget_s - row.budget_left_s()).fold(0.0, f64::max)
    }
}

/// TOML's integers have a sign, seeds do not.
mod as_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(seed: &u64, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(seed)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests;
