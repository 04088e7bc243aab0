//! `machine.toml`: the description of a machine, each number with its origin.

mod check;
mod device;
mod error;
mod measured;
mod phase;
pub mod published;

use serde::{Deserialize, Serialize};

pub use device::DeviceRates;
pub use error::MachineError;
pub use measured::Measured;
pub use phase::{EnginePhase, PhaseRate};

impl Machine {
    /// Reads and [checks](Self::check) the text of a `machine.toml`.
    ///
    /// # Errors
    /// [`MachineError`] naming the key.
    pub fn parse(text: &str) -> Result<Self, MachineError> {
        let machine: Self = toml::from_str(text)?;
        machine.check()?;
        Ok(machine)
    }

    /// The text that [`parse`](Self::parse) reads as this description.
    ///
    /// # Errors
    /// [`MachineError`] naming the key that could not be read back.
    pub fn to_toml(&self) -> Result<String, MachineError> {
        self.check()?;
        Ok(toml::to_string(self)?)
    }

    /// The machine whose kernels and phases take `times` as long; their origin says so, with the reason.
    #[must_use]
    pub fn slower(mut self, times: f64, why: &str) -> Self {
        let rates = self.rates.iter_mut().map(|rate| (&mut rate.coefficients, &mut rate.origin));
        let phases = self.phases.iter_mut().map(|phase| (&mut phase.coefficients, &mut phase.origin));
        for (coefficients, origin) in rates.chain(phases) {
            coefficients.iter_mut().for_each(|seconds| *seconds *= times);
            *origin = format!("{origin}; times {times:.3}: {why}");
        }
        self
    }
}

/// A machine description; `machine.toml` is this, serialised. Unknown keys are errors.
///
/// Unknown figures are left out; a model that needs one names it in its error.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// The host that the description was made on or for.
    pub host: Host,
    /// Groups of equal nodes; at least one, unless runs are all that is known.
    #[serde(rename = "node", default)]
    pub nodes: Vec<Node>,
    /// Measured rates of kernels.
    #[serde(rename = "rate", default)]
    pub rates: Vec<Rate>,
    /// Measured phases of our engine's steps.
    #[serde(rename = "phase", default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<PhaseRate>,
    /// Communication layers, innermost first, each joining a multiple of the ranks that the one inside it joins.
    #[serde(rename = "layer", default)]
    pub layers: Vec<Layer>,
    /// Links between nodes, where they differ.
    #[serde(rename = "link", default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Link>,
    /// Accelerator of each rank, for the equivalent-memory layer of MCL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accelerator: Option<Accelerator>,
    /// How far the host's work hides behind the accelerators', for the overlap model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offload: Option<Offload>,
    /// Rates of the device of each rank that holds the matrix, for the model of such runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceRates>,
    /// Figures of the timeline beyond rates and layers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeline: Option<RankCosts>,
    /// What the predictions published with these figures chose where models leave it open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choices: Option<PublishedChoices>,
    /// Runs of HPL that were measured there.
    #[serde(rename = "measured", default, skip_serializing_if = "Vec::is_empty")]
    pub measured: Vec<Measured>,
}

/// `[host]`: the origin of the numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Host or system name.
    pub name: String,
    /// Processor model; empty when unknown.
    #[serde(default)]
    pub cpu: String,
    /// Origin of the description: a calibration with its date, or a publication.
    pub origin: String,
    /// Kernels that the rates were measured with: a choice of kernels as `--blas` takes it, such as `builtin` or the path of a BLAS
    /// library; empty when unknown.
    #[serde(default)]
    pub kernels: String,
}

/// `[[node]]`: a group of equal nodes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Name of the group.
    pub name: String,
    /// How many such nodes, at least 1.
    pub count: usize,
    /// Cores usable for HPL on one node, at least 1.
    pub cores: usize,
    /// Memory available to HPL, in bytes: available memory, or the cgroup limit if lower; that of the
    /// accelerators if they store the matrix. 0 when unknown.
    #[serde(default)]
    pub memory_bytes: u64,
    /// Memory kept free of the matrix, in bytes.
    #[serde(default)]
    pub reserved_bytes: u64,
    /// Theoretical or measured peak of one node in GFLOP/s; 0 when unknown.
    #[serde(default)]
    pub peak_gflops: f64,
    /// Rate that one node sustains while all nodes work, of DGEMM or of a short HPL run, in GFLOP/s; 0 when unknown.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rate_gflops: f64,
    /// Bandwidth of one node's network link in one direction, in GB/s (10⁹ bytes a second); 0 when unknown.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub link_gbytes_per_s: f64,
    /// Accelerators of one node, one rank each; without it a rank takes a core, or as many as it has threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accelerators: Option<usize>,
}

impl Node {
    /// Ranks of `threads` threads that a full node runs, at least 1.
    pub fn ranks(&self, threads: usize) -> usize {
        self.accelerators.unwrap_or(self.cores / threads.max(1)).max(1)
    }
}

/// `[[link]]`: bandwidth between the nodes of two groups, or between two nodes of one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Names of the two groups; the same name twice for the links inside a group.
    pub nodes: [String; 2],
    /// Bandwidth from the first to the second in GB/s (10⁹ bytes a second); 0 where there is no link.
    pub gbytes_per_s: f64,
}

/// `[[rate]]`: the fitted time of a kernel as a linear form of its sizes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// Which kernel.
    pub kernel: RateKernel,
    /// Threads of one rank that took part, all ranks of the node being busy.
    pub threads: usize,
    /// Coefficients of the kernel's form, see [`RateKernel`]; none negative.
    pub coefficients: Vec<f64>,
    /// Smallest and largest value measured of each size, in the order of the form.
    pub valid: Vec<[f64; 2]>,
    /// Relative spread of repeats: (third − first quartile) / median.
    pub spread: f64,
    /// Mean relative error of the fit on its own samples.
    pub fit_error: f64,
    /// Date of measurement, `2026-11-20`, or of the publication.
    pub date: String,
    /// Command or publication that it comes from.
    pub origin: String,
}

/// Kernels whose time is described by a rate. Times are in seconds, sizes local to one rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RateKernel {
    /// C(m×n) −= A(m×k)·B(k×n): c₀ mnk + c₁ mn + c₂ mk + c₃ nk + c₄.
    Dgemm,
    /// L1⁻¹·U with L1 k×k and U k×n: c₀ k²n + c₁ kn + c₂.
    Dtrsm,
    /// Factorization of an m×k panel: c₀ mk² + c₁ mk + c₂ k.
    Panel,
    /// Exchange of k rows over n columns in memory: c₀ kn + c₁.
    Swap,
}

impl RateKernel {
    /// All kernels, in the order of their declaration.
    pub const ALL: [Self; 4] = [Self::Dgemm, Self::Dtrsm, Self::Panel, Self::Swap];

    /// Number of coefficients in the kernel's form.
    pub fn coefficient_count(self) -> usize {
        match self {
            Self::Dgemm => 5,
            Self::Dtrsm | Self::Panel => 3,
            Self::Swap => 2,
        }
    }

    /// Number of sizes in the kernel's form.
    pub fn size_count(self) -> usize {
        match self {
            Self::Dgemm => 3,
            Self::Dtrsm | Self::Panel | Self::Swap => 2,
        }
    }
}

/// `[[layer]]`: one level of the communication hierarchy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layer {
    /// Name: `threads`, `node`, `network`, ….
    pub name: String,
    /// Ranks, of one thread or with an accelerator each, that one unit of this layer joins on the full machine: a multiple of those of the
    /// layer inside it.
    pub ranks: usize,
    /// Latency of a message in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alpha_s: Option<f64>,
    /// Time per 8-byte word in seconds; in the memory of a rank (of `ranks` 1) for one of its threads.
    pub beta_s_per_word: f64,
    /// Ranks that share the layer's bandwidth at the same time, at least 1; fewer where a run has fewer on a node.
    #[serde(default = "one")]
    pub shared_by: usize,
}

/// `[accelerator]`: parameters of MCL's first layer, equations (6)–(10).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accelerator {
    /// Memory controllers M.
    pub memory_controllers: f64,
    /// Quad-words W that a controller moves at once.
    pub words_per_controller: f64,
    /// Data rate H of the memory in transfers per second.
    pub memory_rate_hz: f64,
    /// Cores C.
    pub cores: f64,
    /// Flops F of a core in a cycle.
    pub flops_per_cycle: f64,
    /// Core clock S in Hz.
    pub clock_hz: f64,
    /// Memory latency in seconds.
    pub latency_s: f64,
}

/// `[offload]`: a run in which the accelerators do the update and the host all other work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Offload {
    /// Rate of one node in GFLOP/s while the update hides all other work.
    pub steady_gflops: f64,
    /// Share of the steps of the fitted run, from 0 to 1, after which the update no longer hides the rest.
    pub hidden_steps: f64,
}

/// What the parts of a step cost beyond `[[rate]]` and `[[layer]]`. Pairs are from cache and from memory, while all ranks of the
/// node work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RankCosts {
    /// CPUs of a node, at least 1: ranks of one CPU are equally fast.
    pub cpus: usize,
    /// Relative standard deviation of the time of one DGEMM call.
    #[serde(default)]
    pub spread: f64,
    /// Seconds per element of C beyond the rate of DGEMM; below 0 where its fit to wide products already contains some of it.
    #[serde(default)]
    pub dgemm_mn_s: f64,
    /// Cache that the panel of one rank may fill, in bytes.
    pub cache_bytes: f64,
    /// Factorization of an m×k panel without messages, in seconds per m·k².
    pub panel_s: [f64; 2],
    /// One pass over rows that are gathered or put in place, in seconds per byte.
    pub copy_s_per_byte: [f64; 2],
    /// A message within a node, in seconds per byte.
    pub inside_s_per_byte: [f64; 2],
    /// Seconds for one message of a pivot search.
    pub pivot_s: f64,
    /// Seconds per byte of its row.
    pub pivot_s_per_byte: f64,
}

/// `[choices]`: the choices of the model that was published with the figures of a description, as stated by its source or
/// assumed; they are the defaults of the user's choices.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedChoices {
    /// NB of the measured runs that state none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nb: Option<usize>,
    /// Layers that a run is charged for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layers: Option<Layering>,
}

/// Which layers of a description a run is charged for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layering {
    /// All that it uses.
    #[default]
    All,
    /// A rank's memory and the layer that joins all ranks.
    Ends,
}

impl Layer {
    /// Name of the layer that a calibration measures between the threads of one process.
    pub const THREADS: &str = "threads";

    /// Whether its messages are between processes, not between the threads of one.
    pub fn joins_processes(&self) -> bool {
        self.ranks > 1 && self.name != Self::THREADS
    }
}

fn one() -> usize {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_zero(value: &f64) -> bool {
    *value == 0.0
}
