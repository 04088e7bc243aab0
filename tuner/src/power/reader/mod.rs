//! The sources of power of a session: the sensors of this node or of all nodes of its runs, or the file of a meter.

mod means;
mod several;
mod total;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hpl::measure::power::{PowerSampler, PowerSamples, PowerSensors, SensorSet, Unreadable};
use serde::{Deserialize, Serialize};

use self::means::{means, of_sensors, readings_of};
use super::log::{self, LogError, Reading};
use super::record::{GRADE, PowerRecord, RECORD_SCHEMA};
use super::spans::RunSpans;
use crate::agents::NodeAgents;

/// The file of a meter that goes on while the session does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeterLog {
    /// The CSV.
    pub path: PathBuf,
    /// Seconds that are added to its times.
    #[serde(default)]
    pub offset_s: f64,
}

impl MeterLog {
    /// The readings so far. A last line without its end is still being written, and left out.
    ///
    /// # Errors
    /// [`LogError`].
    pub fn readings(&self) -> Result<Vec<Reading>, LogError> {
        let bytes = fs::read(&self.path).map_err(|error| LogError::Unreadable(error.to_string()))?;
        let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        // A meter may name its other columns in Latin-1.
        log::parse(&String::from_utf8_lossy(&bytes[..whole]), self.offset_s)
    }

    /// Makes sure that it is a meter's file, which may have no readings yet.
    ///
    /// # Errors
    /// A sentence with the file.
    pub fn check(&self) -> Result<(), String> {
        match self.readings() {
            Ok(_) | Err(LogError::TooFew(_)) => Ok(()),
            Err(error) => Err(format!("--power-log {}: {error}", self.path.display())),
        }
    }
}

/// Where runs are, seen from the node whose sensors are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunsOn {
    /// On it alone.
    ThisNode,
    /// On it and others, so many in all.
    Several {
        /// Its name.
        this: String,
        /// All nodes.
        nodes: usize,
    },
    /// On others alone.
    Others {
        /// Its name.
        this: String,
    },
}

/// Reads the power of runs.
#[derive(Debug)]
pub struct PowerReader {
    sensors: PowerSensors,
    meter: Option<MeterLog>,
    runs_on: RunsOn,
    /// Sensors of all nodes of the runs.
    nodes: Option<Arc<NodeAgents>>,
    /// Those of this node while the others' are read.
    none: PowerSensors,
}

impl PowerReader {
    /// The meter where there is one, else the sensors below `root`, `/` for this host.
    pub fn new(root: &Path, meter: Option<MeterLog>, runs_on: RunsOn) -> Self {
        let here = meter.is_none() && !matches!(runs_on, RunsOn::Others { .. });
        let sensors = if here { PowerSensors::find(root) } else { PowerSensors::default() };
        Self { sensors, meter, runs_on, nodes: None, none: PowerSensors::default() }
    }

    /// One that reads nothing: for simulated runs.
    pub fn nothing() -> Self {
        Self {
            sensors: PowerSensors::default(),
            meter: None,
            runs_on: RunsOn::ThisNode,
            nodes: None,
            none: PowerSensors::default(),
        }
    }

    /// This reader with the sensors of all nodes of the runs, as far as these answer; without any answer it stays as it is.
    #[must_use]
    pub fn with_nodes(self, nodes: Arc<NodeAgents>) -> Self {
        Self { nodes: Some(nodes), ..self }
    }

    /// Whether it is worth while to ask the nodes of the runs.
    pub fn needs_nodes(&self) -> bool {
        self.meter.is_none() && self.runs_on != RunsOn::ThisNode
    }

    /// Whether the runs are on other nodes, and not on this one.
    pub fn runs_elsewhere(&self) -> bool {
        matches!(self.runs_on, RunsOn::Others { .. })
    }

    /// The nodes of the runs, if one of them has a sensor.
    fn nodes_read(&self) -> Option<&NodeAgents> {
        self.nodes.as_deref().filter(|nodes| several::any_can_be_read(nodes))
    }

    /// What is read and what is not, with what would make it readable, a sentence each.
    pub fn sentences(&self) -> Vec<String> {
        if let Some(MeterLog { path, offset_s }) = &self.meter {
            let offset = if *offset_s == 0.0 { String::new() } else { format!(", {offset_s} s added to its times") };
            return vec![format!("power: of each run, by the readings in {}{offset}", path.display())];
        }
        let of_nodes = self.nodes.as_deref().map(several::sentences).unwrap_or_default();
        if self.nodes_read().is_some() {
            return of_nodes;
        }
        of_nodes.into_iter().chain(self.sentences_of_this_node()).collect()
    }

    fn sentences_of_this_node(&self) -> Vec<String> {
        if let RunsOn::Others { this } = &self.runs_on {
            return vec![format!(
                "power: not recorded, as the runs are not on this node, {this}; {WITH_METER}, or start the session on a node of its runs"
            )];
        }
        let chosen = self.sensors.set().of_node(|_| true);
        let unreadable = unreadable(self.sensors.unreadable());
        if chosen.is_empty() {
            let none = if unreadable.is_empty() { "no sensor was found on this node" } else { "no sensor can be read" };
            return std::iter::once(format!("power: not recorded, {none}; {WITH_METER}")).chain(unreadable).collect();
        }
        std::iter::once(format!("power: of each run, by {}", self.source(&chosen))).chain(unreadable).collect()
    }

    /// Begins to read; the processes on the nodes are told by [`NodeAgents::begin`].
    pub fn start(&self) -> PowerSampler<'_> {
        PowerSampler::start(if self.nodes_read().is_some() { &self.none } else { &self.sensors })
    }

    /// What was read during the run in these spans; `None` where there is nothing to read.
    ///
    /// # Errors
    /// The file of a meter that has become none.
    pub fn of_run(&self, samples: &PowerSamples, spans: &RunSpans) -> Result<Option<PowerRecord>, String> {
        let core_s = spans.core.map(|core| core.length_s);
        if let Some(meter) = &self.meter {
            let readings = match meter.readings() {
                Ok(readings) => readings,
                Err(LogError::TooFew(_)) => Vec::new(),
                Err(error) => return Err(format!("--power-log {}: {error}", meter.path.display())),
            };
            let (core, run) = means(&readings, spans);
            return Ok(Some(PowerRecord {
                schema_version: RECORD_SCHEMA,
                source: self.on_nodes(format!("meter {}", meter.path.display())),
                of_all: self.is_of_all(),
                core_s,
                core,
                run,
                sensors: Vec::new(),
                nodes: Vec::new(),
                node_share: 1.0,
                samples: 0,
                sampled_s: 0.0,
                sampler_cpu_s: 0.0,
            }));
        }
        if let Some(nodes) = self.nodes_read() {
            return Ok(several::of_run(nodes, spans));
        }
        let set = self.sensors.set();
        let chosen = set.of_node(|sensor| samples.moves(sensor));
        if chosen.is_empty() {
            return Ok(None);
        }
        let (core, run) = means(&readings_of(samples, &chosen), spans);
        let node_share = match self.runs_on {
            RunsOn::Several { nodes, .. } => 1.0 / nodes as f64,
            RunsOn::ThisNode | RunsOn::Others { .. } => 1.0,
        };
        Ok(Some(PowerRecord {
            schema_version: RECORD_SCHEMA,
            source: self.source(&chosen),
            of_all: self.is_of_all() && lacking(set, &chosen, self.sensors.unreadable()).is_none(),
            core_s,
            core,
            run,
            sensors: of_sensors((set, samples), &chosen, spans, None),
            nodes: Vec::new(),
            node_share,
            samples: samples.times_s.len(),
            sampled_s: samples.span().as_secs_f64(),
            sampler_cpu_s: samples.cpu_s,
        }))
    }

    /// Whether there is something to read that stands for the node.
    pub fn can_read(&self) -> bool {
        if let Some(nodes) = self.nodes_read() {
            return several::all_can_be_read(nodes);
        }
        let set = self.sensors.set();
        self.meter.is_some() || lacking(set, &set.of_node(|_| true), self.sensors.unreadable()).is_none()
    }

    /// Whether the readings are those of all that a run uses.
    pub fn is_of_all(&self) -> bool {
        self.runs_on == RunsOn::ThisNode || self.nodes_read().is_some_and(several::all_can_be_read)
    }

    /// The sensors in words that none of them moves, where there are some.
    pub fn still(&self, samples: &PowerSamples) -> Option<String> {
        let all = self.sensors.set().of_node(|_| true);
        let still = !all.is_empty() && samples.times_s.len() > 1 && all.iter().all(|&sensor| !samples.moves(sensor));
        still.then(|| {
            format!("power: {} stood still during a run, so nothing is recorded of it", self.sensors.set().words(&all))
        })
    }

    fn source(&self, chosen: &[usize]) -> String {
        let set = self.sensors.set();
        let part = lacking(set, chosen, self.sensors.unreadable()).map_or(String::new(), |part| format!("; {part}"));
        self.on_nodes(format!("{}; {GRADE}{part}", set.words(chosen)))
    }

    fn on_nodes(&self, source: String) -> String {
        match (&self.meter, &self.runs_on) {
            (None, RunsOn::Several { this, nodes }) => format!("{source}; of {this} alone, one of {nodes} nodes"),
            _ => source,
        }
    }
}

const WITH_METER: &str = "a meter's readings are taken with --power-log FILE.csv";

/// What of a node these sensors do not measure, in words; `None` where they stand for it.
fn lacking(set: &SensorSet, chosen: &[usize], unreadable: &[Unreadable]) -> Option<String> {
    if !set.have_processors(chosen) {
        return Some("accelerators alone".to_owned());
    }
    let names: Vec<&str> = set.lacking(chosen, unreadable).iter().map(|sensor| sensor.name.as_str()).collect();
    (!names.is_empty()).then(|| format!("without {}", names.join(" ")))
}

/// Sensors that cannot be read, together where the way out is the same.
fn unreadable(sensors: &[Unreadable]) -> Vec<String> {
    let of = |way_out: String| {
        let same = sensors.iter().filter(|sensor| sensor.way_out == way_out);
        let named: Vec<String> = same.map(ToString::to_string).collect();
        format!("power: not read: {}. To change that: {way_out}", named.join("; "))
    };
    ways_out(sensors).into_iter().map(of).collect()
}

/// What would make sensors readable, each once.
pub fn ways_out(sensors: &[Unreadable]) -> Vec<String> {
    let mut ways: Vec<String> = Vec::new();
    for sensor in sensors {
        if !ways.contains(&sensor.way_out) {
            ways.push(sensor.way_out.clone());
        }
    }
    ways
}

#[cfg(test)]
mod tests;
