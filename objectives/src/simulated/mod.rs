//! A simulated cluster with its own clock.
//!
//! `hpl-tune __simulated` is started in place of `xhpl`, walks the engine's own plan on a described machine
//! ([`crate::timeline::own`]) and writes the same results, with noise, slow nodes, runs that crash or hang, and
//! changes of speed. All its output states that it is simulated. It is used to evaluate searches, as the true optimum is
//! known.

mod answer;
mod at;
mod clock;
mod power;
mod settings;
#[cfg(test)]
mod tests;
mod watts;

use serde::{Deserialize, Serialize};
use space::machine::{Machine, MachineError, Node};
use space::{Share, Unequal};

use crate::timeline::noise::{normal, uniform};
use crate::timeline::own::OwnModel;

pub use self::answer::{Asked, KERNEL, SimulatedRun};
pub use self::clock::{Clock, LIMIT_VARIABLE, RunClock};
pub use self::power::{NodePower, SimulatedPower};
pub use self::settings::SimulatedSettings;

/// The verb of `hpl-tune` that replaces `xhpl`.
pub const VERB: &str = "__simulated";
/// Version of the format.
const SCHEMA: u32 = 1;
/// Maximum error of the tuner's description, as a share: a factor of three up or down.
const MOST_WRONG: f64 = 2.0;

/// A simulated cluster, as in its TOML file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SimulatedCluster {
    /// 1.
    pub schema_version: u32,
    /// Source of its figures, and assumptions.
    pub origin: String,
    /// Seed of all pseudo-random numbers.
    pub seed: u64,
    /// Standard deviation of the logarithm of a run's time.
    pub noise: f64,
    /// Least and largest share by which each rate in the tuner's description differs from the true one, up or down.
    pub rate_errors: [f64; 2],
    /// Share of the runs that crash.
    #[serde(default)]
    pub breaks_off: f64,
    /// Share of the runs that hang.
    #[serde(default)]
    pub hangs: f64,
    /// Nodes that are slower than described.
    #[serde(default)]
    pub slow: Vec<Slow>,
    /// Changes of speed of all nodes.
    #[serde(default)]
    pub change: Vec<SpeedChange>,
    /// Power of each node; without it nothing is said of power.
    #[serde(default)]
    pub power: Option<NodePower>,
    /// The clocks and power limits that its nodes can have; without them nothing can be set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<SimulatedSettings>,
    /// The true machine: one group of equal nodes with the phases of the engine, and the layers between its ranks.
    pub machine: Machine,
}

/// Nodes that are slower than described.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slow {
    /// Their indices, from 0.
    pub nodes: Vec<usize>,
    /// Factor on their computing time.
    pub times: f64,
}

/// A change of speed of all nodes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpeedChange {
    /// Moment of the change, in seconds of runs.
    pub at_s: f64,
    /// Factor on the time of runs from then on.
    pub times: f64,
}

/// Why the description of a cluster is invalid.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The TOML is invalid.
    #[error(transparent)]
    Toml(#[from] toml::de::Error),
    /// The machine is invalid.
    #[error("[machine]: {0}")]
    Machine(#[from] MachineError),
    /// Another value is invalid.
    #[error("{0}")]
    Value(String),
}

impl SimulatedCluster {
    /// Reads and checks the text of a cluster's file.
    ///
    /// # Errors
    /// [`ClusterError`] naming the key.
    pub fn parse(text: &str) -> Result<Self, ClusterError> {
        let cluster: Self = toml::from_str(text)?;
        cluster.machine.check()?;
        let bad = |problem: &str| Err(ClusterError::Value(problem.to_owned()));
        let share = |value: f64| (0.0..1.0).contains(&value);
        let times = |value: f64| value.is_finite() && value > 0.0;
        let [least, most] = cluster.rate_errors;
        if cluster.schema_version != SCHEMA {
            return bad(&format!("schema_version: {}, this program reads {SCHEMA}", cluster.schema_version));
        }
        if !(share(cluster.noise) && share(cluster.breaks_off) && share(cluster.hangs)) {
            return bad("noise, breaks_off, hangs: must be at least 0 and below 1");
        }
        if !(0.0..=MOST_WRONG).contains(&least) || !(least..=MOST_WRONG).contains(&most) {
            return bad("rate_errors: must be two rising shares from 0 to 2");
        }
        let [Node { cores: 1.., count, .. }] = cluster.machine.nodes[..] else {
            return bad("[machine]: a simulated cluster has one [[node]] group with cores");
        };
        let slow = |slow: &Slow| times(slow.times) && slow.times >= 1.0 && slow.nodes.iter().all(|&node| node < count);
        if !cluster.slow.iter().all(slow) || (0..count).all(|node| cluster.of_node(node) > 1.0) {
            return bad("[[slow]]: nodes must be some, below the count of [[machine.node]], times at least 1");
        }
        if cluster.change.iter().any(|change| !times(change.times) || !change.at_s.is_finite()) {
            return bad("[[change]]: at_s must be a number, times above 0");
        }
        if cluster.power.is_some_and(|power| !power.is_valid()) {
            return bad("[power]: idle_watts must be at least 0, busy_watts no less");
        }
        if cluster.settings.as_ref().is_some_and(|settings| !settings.is_valid()) {
            return bad(
                "[settings]: clocks_mhz and package_limits_w must rise from above 0, packages be at least 1, board_watts at least 0, \
                 exponent from 1 to 5, constant_share and memory_share from 0 to 1",
            );
        }
        if OwnModel::new(&cluster.machine).is_none() {
            return bad("[[machine.phase]]: fact, rows, update and trsv are needed for some number of threads");
        }
        Ok(cluster)
    }

    /// Its nodes, all equal in the tuner's description.
    pub fn node(&self) -> &Node {
        &self.machine.nodes[0]
    }

    /// The nodes `names` alone, and by how many times all of them are slower than described.
    ///
    /// # Errors
    /// A name that no node has.
    pub fn part(&self, names: &[String]) -> Result<(Self, f64), String> {
        let hosts = self.hosts();
        let place = |name: &String| {
            let found = hosts.iter().position(|host| host == name);
            found.ok_or_else(|| format!("--nodes: no node {name}; there are {} … {}", hosts[0], hosts[hosts.len() - 1]))
        };
        let nodes = names.iter().map(place).collect::<Result<Vec<usize>, String>>()?;
        let times: Vec<f64> = nodes.iter().map(|&node| self.of_node(node)).collect();
        let least = times.iter().copied().fold(f64::INFINITY, f64::min);
        let slow = times.iter().enumerate().filter(|(_, times)| **times > least);
        let slow = slow.map(|(node, times)| Slow { nodes: vec![node], times: times / least }).collect();
        let mut machine = self.machine.clone();
        machine.nodes[0].count = nodes.len();
        Ok((Self { slow, machine, ..self.clone() }, least))
    }

    /// Names of the nodes, in the order of the ranks; each contains `simulated`. As names of hosts they have no spaces and commas, at which
    /// lists of them are divided.
    pub fn hosts(&self) -> Vec<String> {
        let name = self.node().name.replace(|sign: char| sign.is_whitespace() || sign == ',', "-");
        (1..=self.node().count).map(|index| format!("simulated-{name}-{index}")).collect()
    }

    /// The description that a tuner gets: every rate with its error, no slow nodes, and only the layers within a node, as from a
    /// calibration of one node.
    pub fn description(&self) -> Machine {
        let [least, most] = self.rate_errors;
        let factor = |index: usize| {
            let luck = self.luck(0, index as u64);
            let by = 1.0 + least + uniform(luck) * (most - least);
            if normal(luck) > 0.0 { by } else { by.recip() }
        };
        let mut machine = self.machine.clone();
        let rates = machine.rates.iter_mut().map(|rate| &mut rate.coefficients);
        let phases = machine.phases.iter_mut().map(|phase| &mut phase.coefficients);
        for (index, coefficients) in rates.chain(phases).enumerate() {
            coefficients.iter_mut().for_each(|coefficient| *coefficient *= factor(index));
        }
        let cores = self.node().cores;
        machine.layers.retain(|layer| layer.ranks <= cores);
        machine
    }

    /// The model of the true cluster.
    ///
    /// # Panics
    /// Never: the phases are there since [`SimulatedCluster::parse`].
    pub fn truth(&self) -> OwnModel {
        OwnModel::new(&self.machine).expect("checked when it was read").slowed(self.unequal())
    }

    /// Relative speeds of its nodes.
    pub fn unequal(&self) -> Unequal {
        let speed = |node: usize| Share::new(self.of_node(node).recip()).unwrap_or_default();
        let speeds = if self.slow.is_empty() { Vec::new() } else { (0..self.node().count).map(speed).collect() };
        Unequal::nodes(speeds, self.node().cores)
    }

    /// The node of a rank: nodes are filled one after the other.
    fn node_of(&self, rank: usize, threads: usize) -> usize {
        let each = (self.node().cores / threads.max(1)).max(1);
        (rank / each).min(self.node().count - 1)
    }

    /// Factor on the computing time of a node.
    fn of_node(&self, node: usize) -> f64 {
        self.slow.iter().filter(|slow| slow.nodes.contains(&node)).map(|slow| slow.times).product()
    }

    /// Factor on the time of runs `clock_s` seconds after the start of the first.
    fn changed(&self, clock_s: f64) -> f64 {
        self.change.iter().filter(|change| change.at_s <= clock_s).map(|change| change.times).product()
    }

    /// A seed for the `index`-th random number of run `run`.
    fn luck(&self, run: u64, index: u64) -> u64 {
        let step = |seed: u64, next: u64| (seed ^ next).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        step(step(step(0x5851_f42d_4c95_7f2d, self.seed), run), index)
    }
}
