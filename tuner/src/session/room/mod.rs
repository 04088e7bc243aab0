//! What the runs of an engine have: places for ranks, memory for the matrix, and what their cost is computed from.
//!
//! Another engine's launcher reaches every node that is described. Its ranks have equal shares, so that the node with the
//! least memory per rank bounds all of them. Where the accelerators hold the matrix, a rank takes one of them, and neither
//! the host's memory nor its calibration says anything of it.

#[cfg(test)]
mod tests;

use objectives::foreign::{MatrixMemory, Profile};
use objectives::predict::Predictor;
use space::domain::{DomainError, DomainSpec};
use space::machine::{Host, Layer, Machine, Node, Rate, RateKernel};
use space::{EngineParams, Unequal};

use crate::exit::bad_input;
use crate::search::budget::Budget;
use crate::search::cost;
use crate::session::engine::Engine;
use crate::session::prepare::usable_bytes;

/// Part of an accelerator's memory that its driver and the libraries take, where the description does not say.
const DEVICE_RESERVE: u64 = 20;

/// Shortest time of a kernel per unit of work, in seconds: what a rate must have where nothing is to be charged.
const NOTHING_S: f64 = 1e-18;

/// This host, as far as it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Here {
    /// Cores that runs may use.
    pub cores: usize,
    /// Memory that can be filled, in bytes.
    pub memory_bytes: u64,
}

/// What the user fixed of the ranks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Their number.
    pub ranks: Option<usize>,
    /// Threads of each.
    pub threads: Option<usize>,
}

impl Wanted {
    /// What `--ranks` and `--threads` say.
    pub fn of(ranks: Option<u64>, threads: Option<u64>) -> Self {
        let size = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
        Self { ranks: ranks.map(size), threads: threads.map(size) }
    }

    /// Cores or accelerators that they need at least.
    pub(crate) fn places(self) -> usize {
        self.ranks.unwrap_or(1).saturating_mul(self.threads.unwrap_or(1))
    }
}

/// Where the runs of an engine take place.
#[derive(Debug, Clone, PartialEq)]
pub struct Room {
    /// Cores that ranks and threads may take; accelerators, one for each rank, where they hold the matrix.
    pub places: usize,
    /// Memory for the matrix with its workspace over all ranks, in bytes; `None` where nothing says.
    pub memory_bytes: Option<u64>,
    /// GFLOP/s of the slowest place by `rate_gflops`, else `peak_gflops`, of its node; `None` where nothing says.
    pub place_gflops: Option<f64>,
    /// The greatest number that divides the cores of each node; `None` where nothing says, and of accelerators.
    pub common_cores: Option<usize>,
    /// What is unknown or assumed, a sentence each.
    pub notes: Vec<String>,
    /// What every run uses of the places, all of them where the user fixed nothing.
    used: usize,
    /// Name of a place in messages.
    of: &'static str,
}

/// What a launcher reaches.
#[derive(Debug, Clone, Copy)]
struct LauncherReach {
    /// Whether a rank takes an accelerator, which holds its share of the matrix.
    device: bool,
    /// Nodes; `None` for all that there are.
    nodes: Option<usize>,
    /// Whether ranks may have several threads.
    threads: bool,
}

impl LauncherReach {
    const OURS: Self = Self { device: false, nodes: None, threads: true };
}

impl From<&Profile> for LauncherReach {
    fn from(profile: &Profile) -> Self {
        Self { device: profile.memory == MatrixMemory::Device, nodes: profile.nodes, threads: profile.threads }
    }
}

/// Nodes of one group that take part.
struct TakenNodes<'a> {
    node: &'a Node,
    nodes: usize,
    /// Ranks on each.
    ranks: usize,
    /// Ranks that each could have.
    full: usize,
}

impl Room {
    /// What the runs of `engine` have on `machine`, or without a description on this host.
    pub fn new(engine: &Engine, here: Here, machine: Option<&Machine>, wanted: Wanted) -> Self {
        let host = Self {
            places: here.cores,
            memory_bytes: Some(here.memory_bytes),
            place_gflops: None,
            common_cores: None,
            notes: Vec::new(),
            used: wanted.ranks.map_or(here.cores, |_| wanted.places()),
            of: "cores",
        };
        match (engine, machine.filter(|machine| !machine.nodes.is_empty())) {
            (Engine::Ours, None) => host,
            (Engine::Ours, Some(machine)) => match usable_bytes(machine) {
                0 => host,
                // The ranks are threads of a process here, whatever is described.
                bytes => Self { memory_bytes: Some(bytes.min(here.memory_bytes)), ..host },
            },
            (Engine::Foreign(foreign), None) => match foreign.profile().memory {
                MatrixMemory::Host => host,
                MatrixMemory::Device => Self::unknown(wanted, "no [[node]] is described"),
            },
            (Engine::Launched(_), None) => host,
            (Engine::Launched(_), Some(machine)) => Self::described(LauncherReach::OURS, machine, wanted),
            (Engine::Foreign(foreign), Some(machine)) => Self::described(foreign.profile().into(), machine, wanted),
        }
    }

    /// Accelerators of which nothing is known.
    fn unknown(wanted: Wanted, why: &str) -> Self {
        let places = wanted.ranks.unwrap_or(1);
        let ranks = if wanted.ranks.is_none() { " and one rank is assumed" } else { "" };
        let note = format!(
            "accelerators hold the matrix, {why}: N is not checked against their memory{ranks}; give accelerators and \
             memory_bytes with --machine"
        );
        let (memory_bytes, place_gflops, common_cores) = (None, None, None);
        Self { places, memory_bytes, place_gflops, common_cores, notes: vec![note], used: places, of: "accelerators" }
    }

    fn described(runs: LauncherReach, machine: &Machine, wanted: Wanted) -> Self {
        let device = runs.device;
        if device && machine.nodes.iter().all(|node| node.accelerators.is_none()) {
            return Self::unknown(wanted, "no [[node]] says accelerators");
        }
        let threads = threads_each(runs, machine, wanted);
        let full = |node: &Node| if device { node.accelerators.unwrap_or(0) } else { node.cores / threads };
        let most = runs.nodes.unwrap_or(usize::MAX);
        let of_all = |part: &TakenNodes<'_>| part.nodes.saturating_mul(part.full);
        let all = parts(&machine.nodes, full, usize::MAX, most);
        let places = all.iter().map(of_all).fold(0, usize::saturating_add);
        let used = parts(&machine.nodes, full, wanted.ranks.unwrap_or(usize::MAX), most);
        let (ranks, threads) = (wanted.ranks.unwrap_or(places), if device { 1 } else { threads });
        let mut notes = Vec::new();
        let memory_bytes = memory_of(&used, device, &mut notes).map(|each| each.saturating_mul(ranks as u64));
        let rates = used.iter().map(|part| rate_of(part.node).map(|rate| rate / (part.full * threads) as f64));
        let rates: Option<Vec<f64>> = rates.collect();
        let (places, used) = (places.saturating_mul(threads), ranks.saturating_mul(threads));
        // A domain divides the places by fixed ranks: they have no more threads than there is place for on their nodes.
        let is_divided = runs.threads && !device && wanted.ranks.is_some() && wanted.threads.is_none();
        Self {
            places: if is_divided { places.min(used) } else { places },
            memory_bytes,
            place_gflops: rates.and_then(|rates| rates.into_iter().reduce(f64::min)),
            common_cores: if device { None } else { common_cores(&all) },
            notes,
            used,
            of: if device { "accelerators" } else { "cores" },
        }
    }

    /// Its places in words, as `4 accelerators`.
    pub fn places_in_words(&self) -> String {
        let one = self.of.trim_end_matches('s');
        format!("{} {}", self.places, if self.places == 1 { one } else { self.of })
    }

    /// Refuses ranks and threads that are more than there is place for.
    ///
    /// # Errors
    /// What they need, what there is, and the way out.
    pub fn check(&self, wanted: Wanted) -> anyhow::Result<()> {
        let (needed, found, of) = (wanted.places(), self.places, self.of);
        let why = if found == 0 { ", as none of the nodes has as many for one rank" } else { "" };
        if needed <= found {
            return Ok(());
        }
        Err(bad_input(format!(
            "--ranks and --threads need {needed} {of}, {found} are available{why}; lower them, or describe more nodes with \
             --machine and reach them by --launcher"
        )))
    }

    /// Memory of the runs in bytes as a domain takes it: without bound where it is unknown.
    ///
    /// # Errors
    /// Unknown memory without an N of the user.
    pub fn memory_for(&self, n: Option<usize>) -> anyhow::Result<u64> {
        match (self.memory_bytes, n) {
            (Some(bytes), _) => Ok(bytes),
            (None, Some(_)) => Ok(u64::MAX),
            (None, None) => Err(bad_input(
                "no N: the memory of the ranks is unknown; give --n, or [[node]] with memory_bytes (and \
                 accelerators, where they hold the matrix) by --machine",
            )),
        }
    }

    /// What the domain of the runs of order `n` is made of, with memory by [`memory_for`](Self::memory_for): ranks and threads as
    /// `wanted`, all of equal speed, and the kernels of an engine that has no choice.
    pub fn spec(&self, n: usize, memory_bytes: u64, wanted: Wanted) -> DomainSpec {
        DomainSpec {
            n,
            cores: self.places,
            memory_bytes,
            kernels: EngineParams::default().kernels,
            ranks: wanted.ranks,
            threads: wanted.threads,
            most_threads: None,
            common_cores: self.common_cores,
            unequal: Unequal::default(),
        }
    }

    /// The description that predictions of runs start from: `machine` itself where its rates are those of the ranks, else
    /// one that knows no more than how fast a place is. Where not even that is known, the usual run at the target N takes
    /// half of what one run may take; the first one shows it. `spec.n` is not read.
    ///
    /// # Errors
    /// [`DomainError`] when no candidate is left.
    pub fn model(
        &self,
        engine: &Engine,
        machine: Option<&Machine>,
        spec: &DomainSpec,
        n: Option<usize>,
        budget: &Budget,
    ) -> Result<Modelled, DomainError> {
        let ours = matches!(engine, Engine::Ours);
        let fits = |machine: &&Machine| ours || (engine.calibrates() && !machine.rates.is_empty());
        if let Some(machine) = machine.filter(fits) {
            return Ok(Modelled { machine: machine.clone(), note: None });
        }
        let places = self.places.max(1);
        let (machine, note) = if let Some(place_gflops) = self.place_gflops {
            let layers = machine.map_or(Vec::new(), |machine| machine.layers.clone());
            let note =
                "run times are predicted from rate_gflops or peak_gflops of the nodes until the first run has ended";
            (equal_places(places, place_gflops, layers), note)
        } else {
            let n = n.unwrap_or_else(|| engine.largest_order(spec.memory_bytes, self.used, 1));
            let spec = DomainSpec { n, ..spec.clone() };
            engine.check_fits(&spec)?;
            let usual = engine.usual(&spec)?;
            let at_one = Predictor::new(&equal_places(places, 1.0, Vec::new())).map_or(1.0, |one| one.time_s(&usual));
            let place_gflops = at_one / cost::solve_s(0.5 * budget.run_s());
            (equal_places(places, place_gflops, Vec::new()), SPEED_UNKNOWN)
        };
        Ok(Modelled { machine, note: Some(note.to_owned()) })
    }
}

/// The note where nothing says how fast a place is.
pub const SPEED_UNKNOWN: &str = "the speed of the nodes is unknown: the first run shows how long runs take";

/// A description to predict from.
#[derive(Debug, Clone, PartialEq)]
pub struct Modelled {
    /// What a predictor takes.
    pub machine: Machine,
    /// What it is made of, where it is no calibration.
    pub note: Option<String>,
}

/// Threads that the ranks of any candidate have at most: as asked, else all cores that fixed ranks leave to each on its node.
fn threads_each(runs: LauncherReach, machine: &Machine, wanted: Wanted) -> usize {
    let fixed = || {
        let ranks = wanted.ranks?;
        let places = |each: usize| {
            let of_nodes = machine.nodes.iter().map(|node| node.count.saturating_mul(node.cores / each));
            of_nodes.fold(0, usize::saturating_add)
        };
        let least = machine.nodes.iter().map(|node| node.cores).min()?;
        // A rank is on one node: more threads than leave a place to each rank are none.
        let most = least.min(places(1) / ranks.max(1));
        runs.threads.then(|| (1..=most).rev().find(|&each| places(each) >= ranks).unwrap_or(1))
    };
    wanted.threads.or_else(fixed).unwrap_or(1).max(1)
}

/// The nodes that `ranks` ranks fill one after the other, at most `most` of them.
fn parts(nodes: &[Node], full: impl Fn(&Node) -> usize, ranks: usize, most: usize) -> Vec<TakenNodes<'_>> {
    let (mut ranks_left, mut nodes_left) = (ranks, most);
    let mut parts = Vec::new();
    for node in nodes {
        let full = full(node);
        let nodes = if full == 0 { 0 } else { node.count.min(nodes_left).min(ranks_left.div_ceil(full)) };
        if nodes > 0 {
            parts.push(TakenNodes { node, nodes, ranks: full.min(ranks_left), full });
            ranks_left = ranks_left.saturating_sub(nodes.saturating_mul(full));
            nodes_left -= nodes;
        }
    }
    parts
}

/// The greatest number that divides the cores of each of these nodes.
fn common_cores(all: &[TakenNodes<'_>]) -> Option<usize> {
    let cores = || all.iter().map(|part| part.node.cores);
    (1..=cores().min()?).rev().find(|&common| cores().all(|of_node| of_node.is_multiple_of(common)))
}

/// Memory that every rank has, in bytes: that of the ranks with the least; `None` where no node says.
fn memory_of(used: &[TakenNodes<'_>], device: bool, notes: &mut Vec<String>) -> Option<u64> {
    let each = |part: &TakenNodes<'_>| {
        let Node { memory_bytes, reserved_bytes, .. } = *part.node;
        let kept = if device && reserved_bytes == 0 { memory_bytes / DEVICE_RESERVE } else { reserved_bytes };
        // An accelerator's memory is its own, a host's is shared by the ranks that are there.
        let sharers = if device { part.full } else { part.ranks };
        memory_bytes.saturating_sub(kept) / sharers.max(1) as u64
    };
    let known: Vec<(u64, &TakenNodes<'_>)> =
        used.iter().filter(|part| part.node.memory_bytes > 0).map(|part| (each(part), part)).collect();
    if known.is_empty() {
        notes.push("memory_bytes of the nodes is unknown: N is not checked against it".to_owned());
    }
    let (least, least_of) = known.iter().min_by_key(|(bytes, _)| *bytes)?;
    let most = known.iter().map(|(bytes, _)| *bytes).max()?;
    if let Some(part) = used.iter().find(|part| part.node.memory_bytes == 0) {
        notes.push(format!("memory_bytes of [[node]] {} is unknown: taken for that of the others", part.node.name));
    }
    if most > *least {
        notes.push(format!(
            "ranks have equal shares: those on [[node]] {} limit all to {:.1} GiB each",
            least_of.node.name,
            *least as f64 / f64::from(1 << 30)
        ));
    }
    Some(*least)
}

/// What a node reaches, or else could reach, in GFLOP/s.
fn rate_of(node: &Node) -> Option<f64> {
    [node.rate_gflops, node.peak_gflops].into_iter().find(|rate| *rate > 0.0)
}

/// A machine of equal places that do every operation at the same rate, and exchange messages as `layers` say.
pub(crate) fn equal_places(places: usize, place_gflops: f64, layers: Vec<Layer>) -> Machine {
    let flop_s = (1e-9 / place_gflops).clamp(NOTHING_S, 1.0);
    let rate = |kernel: RateKernel| {
        // A multiply-add is two flops.
        let first = match kernel {
            RateKernel::Dgemm => 2.0 * flop_s,
            RateKernel::Dtrsm | RateKernel::Panel => flop_s,
            RateKernel::Swap => NOTHING_S,
        };
        let rest = std::iter::repeat_n(0.0, kernel.coefficient_count() - 1);
        Rate {
            kernel,
            threads: 1,
            coefficients: std::iter::once(first).chain(rest).collect(),
            valid: vec![[0.0, 1e9]; kernel.size_count()],
            spread: 0.0,
            fit_error: 0.0,
            date: String::new(),
            origin: "assumed".to_owned(),
        }
    };
    Machine {
        host: Host { name: "assumed".to_owned(), origin: "places that are alike".to_owned(), ..Host::default() },
        nodes: vec![Node { name: "places".to_owned(), count: 1, cores: places, ..Node::default() }],
        rates: RateKernel::ALL.map(rate).to_vec(),
        layers: layers.into_iter().filter(|layer| layer.alpha_s.is_some()).collect(),
        ..Machine::default()
    }
}
