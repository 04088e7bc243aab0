//! The inputs of the closed forms, from a machine description and a run.
//!
//! Every choice that the published models leave open is a field of [`Choices`]; every figure that a model needs and a
//! description does not state is a [`ScenarioError::Missing`] with a way to give it.

mod place;
mod rate;
mod ways;

pub use space::machine::Layering;
use space::machine::Machine;

pub use place::{Placement, UsedNodes};
pub use rate::Gamma;
pub(crate) use ways::Ways;

use crate::mcl::{self, InnerGrid, LayerExtent, McLayer, Mcl, MemoryBandwidth};
use crate::netlib::{Costs, Problem};

/// A run to predict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Order N.
    pub n: usize,
    /// Blocking factor NB.
    pub nb: usize,
    /// Process rows P.
    pub p: usize,
    /// Process columns Q.
    pub q: usize,
    /// Nodes over which the ranks are spread evenly; by default the fewest nodes that fit its ranks.
    pub nodes: Option<usize>,
    /// Threads of each rank.
    pub threads: usize,
}

impl Run {
    /// Ranks, P·Q.
    pub fn ranks(&self) -> usize {
        self.p * self.q
    }

    /// Sizes for the closed forms.
    pub fn problem(&self) -> Problem {
        Problem::new(self.n, self.nb, self.p, self.q)
    }
}

/// Choices that the published models leave open, and figures in place of those that a description does not state.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Choices {
    /// The extent for which a layer of MCL is charged.
    pub reading: LayerExtent,
    /// Words of the row exchange per word of U: 3 in print, 2 on full-duplex links.
    pub update_coefficient: f64,
    /// Bandwidth of an accelerator's memory.
    pub memory: MemoryBandwidth,
    /// Layers that a run is charged for.
    pub layering: Layering,
    /// Placement of the ranks of an inner layer in the grid.
    pub inner: InnerGrid,
    /// N_new in place of N, equation (17) of \[MCL\].
    pub round_n: bool,
    /// DGEMM of one rank in GFLOP/s; replaces all rates of the description.
    pub rank_gflops: Option<f64>,
    /// Seconds per message of the layers whose latency the description does not state.
    pub alpha_s: Option<f64>,
    /// GB/s of one link that joins all ranks, if the description states no layer.
    pub link_gbytes_per_s: Option<f64>,
    /// Fraction of a rank's columns in the right section of the split update on devices.
    pub split: f64,
    /// Where panels are factored if the matrix is on devices; `None` for where our engine does it, if the description states how long that
    /// takes.
    pub fact: Option<FactPlace>,
    /// Rate in GFLOP/s of the panel factorization by the host threads of one device; replaces the one of the description.
    pub host_panel_gflops: Option<f64>,
}

/// Where panels are factored if the matrix is on devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FactPlace {
    /// By the threads of the host.
    Host,
    /// On the device; our engine does that for P = 1.
    Device,
}

impl Default for Choices {
    fn default() -> Self {
        Self {
            reading: LayerExtent::default(),
            update_coefficient: 2.0,
            memory: MemoryBandwidth::default(),
            layering: Layering::default(),
            inner: InnerGrid::default(),
            round_n: false,
            rank_gflops: None,
            alpha_s: None,
            link_gbytes_per_s: None,
            split: 0.0,
            fact: None,
            host_panel_gflops: None,
        }
    }
}

/// Why a run cannot be predicted on a machine.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ScenarioError {
    /// A figure that the description does not state.
    #[error("{model} needs {what}, which the description does not state; {way_out}")]
    Missing {
        /// The model.
        model: &'static str,
        /// The figure, with its key.
        what: String,
        /// How to give it.
        way_out: &'static str,
    },
    /// A size of 0.
    #[error("{name} must be at least 1, found 0")]
    Zero {
        /// N, NB, P, Q, nodes or threads.
        name: &'static str,
    },
    /// Too many ranks or nodes.
    #[error(
        "P×Q = {p}×{q} with {threads} threads each need {needed} nodes, there are {nodes}; lower P or Q, or raise [[node]] count"
    )]
    Nodes {
        /// Process rows.
        p: usize,
        /// Process columns.
        q: usize,
        /// Threads of each rank.
        threads: usize,
        /// Nodes needed, or asked for.
        needed: usize,
        /// Nodes of the description.
        nodes: usize,
    },
    /// Ranks that cannot be spread evenly.
    #[error(
        "P×Q = {ranks} ranks do not spread evenly over {nodes} nodes of at most {full} ranks; change P, Q or the nodes"
    )]
    Uneven {
        /// P·Q.
        ranks: usize,
        /// Nodes asked for.
        nodes: usize,
        /// Ranks that a full node runs.
        full: usize,
    },
    /// Layers that do not join all ranks.
    #[error(
        "the [[layer]]s multiply to {joined} ranks, P×Q = {ranks}; lower P or Q, or describe the layer that joins them"
    )]
    Layers {
        /// Ranks that the outermost layer joins.
        joined: usize,
        /// P·Q.
        ranks: usize,
    },
    /// A matrix that does not fit.
    #[error(
        "N = {n} needs {needed_bytes} bytes on each {node}, {free_bytes} are usable; lower N to at most {largest_n} or use more nodes"
    )]
    Memory {
        /// Order N.
        n: usize,
        /// Name of the group of nodes.
        node: String,
        /// Bytes of the matrix on one of them.
        needed_bytes: u64,
        /// What such a node has.
        free_bytes: u64,
        /// Largest N of this placement.
        largest_n: usize,
    },
}

/// MCL of a run on a machine, and the origin of its γ.
///
/// # Errors
/// [`ScenarioError`] when the run does not fit the machine, or the description lacks a figure.
pub fn mcl(machine: &Machine, run: &Run, choices: &Choices) -> Result<(Mcl, Gamma), ScenarioError> {
    let (gamma, layers) = gamma_and_layers("mcl", machine, run, choices)?;
    let Choices { reading, update_coefficient, round_n, inner, .. } = *choices;
    Ok((Mcl { gamma_s: gamma.s_per_flop, layers, reading, update_coefficient, round_n, inner }, gamma))
}

/// Costs of the original model: one kind of message, that of the layer which joins all ranks.
///
/// γ₂ is half the time per word of the rank's own memory, as a matrix-vector product does two flops per word; without a
/// layer of one rank it is γ.
///
/// # Errors
/// As [`mcl()`].
pub fn netlib(machine: &Machine, run: &Run, choices: &Choices) -> Result<(Costs, Gamma), ScenarioError> {
    let (gamma, layers) = gamma_and_layers("netlib", machine, run, choices)?;
    let memory = layers.first().filter(|layer| layer.ranks == 1);
    let outer = layers.last().filter(|layer| layer.ranks > 1);
    let costs = Costs {
        gamma_s: gamma.s_per_flop,
        gamma2_s: memory.map_or(gamma.s_per_flop, |layer| layer.beta_s / 2.0),
        alpha_s: outer.map_or(0.0, |layer| layer.alpha_s),
        beta_s: outer.map_or(0.0, |layer| layer.beta_s),
        update_coefficient: choices.update_coefficient,
    };
    Ok((costs, gamma))
}

fn gamma_and_layers(
    model: &'static str,
    machine: &Machine,
    run: &Run,
    choices: &Choices,
) -> Result<(Gamma, Vec<McLayer>), ScenarioError> {
    let placement = Placement::new(machine, run)?;
    let gamma = Gamma::new(model, machine, run, &placement, choices)?;
    Ok((gamma, layers(model, machine, run, &placement, choices)?))
}

/// The layers that a run uses, each with the ranks of this run that it joins.
pub(crate) fn layers(
    model: &'static str,
    machine: &Machine,
    run: &Run,
    placement: &Placement,
    choices: &Choices,
) -> Result<Vec<McLayer>, ScenarioError> {
    let mut layers: Vec<McLayer> = Vec::new();
    if let Some(accelerator) = &machine.accelerator {
        layers.push(mcl::accelerator(accelerator, choices.memory).1);
    }
    if run.ranks() > 1 && machine.layers.iter().all(|layer| layer.ranks == 1) {
        layers.push(link(model, run, placement, choices)?);
        return Ok(layers);
    }
    let mut joined = 1;
    for (index, layer) in machine.layers.iter().enumerate() {
        let ranks = placement.joined(layer.ranks).min(run.ranks());
        // A layer that joins no more ranks than the one inside it carries no message of this run.
        if ranks == joined && layer.ranks > 1 {
            continue;
        }
        // What shares a link is within a node, or within what the layer inside joins; without nodes nothing is known of that.
        let is_known = !machine.nodes.is_empty() || run.nodes.is_some();
        let senders = if is_known { placement.ranks_per_node.max(joined) } else { run.ranks() };
        joined = ranks;
        let alpha_s = layer.alpha_s.or(choices.alpha_s).ok_or_else(|| ScenarioError::Missing {
            model,
            what: format!("alpha_s of [[layer]] {} ({})", index + 1, layer.name),
            way_out: "give --alpha, in seconds per message, or state it in a copy of the file",
        })?;
        // The memory of a rank is described for one thread; several read it at the same time.
        let readers = if layer.ranks == 1 { placement.readers() } else { 1 };
        let of_thread = McLayer::of(layer, alpha_s, senders.saturating_mul(readers));
        layers.push(McLayer { ranks, beta_s: of_thread.beta_s / readers as f64, ..of_thread });
    }
    if joined < run.ranks() {
        return Err(ScenarioError::Layers { joined, ranks: run.ranks() });
    }
    if choices.layering == Layering::Ends && layers.len() > 1 {
        let last = layers.len() - 1;
        layers = layers
            .into_iter()
            .enumerate()
            .filter(|(i, layer)| *i == last || layer.ranks == 1)
            .map(|(_, l)| l)
            .collect();
    }
    Ok(layers)
}

/// The single layer of a description that states none: the user's, otherwise the link of the slowest node, which its ranks
/// share where messages leave it.
fn link(model: &'static str, run: &Run, placement: &Placement, choices: &Choices) -> Result<McLayer, ScenarioError> {
    let missing = |what: String, way_out| ScenarioError::Missing { model, what, way_out };
    let sharing = |group: &UsedNodes| if placement.nodes > 1 { group.ranks as f64 } else { 1.0 };
    let of_rank = placement.groups.iter().map(|group| group.node.link_gbytes_per_s / sharing(group));
    let slowest = of_rank.reduce(f64::min);
    let gbytes_per_s = choices.link_gbytes_per_s.or(slowest.filter(|rate| *rate > 0.0)).ok_or_else(|| {
        let what = format!("a [[layer]] that joins {} ranks", run.ranks());
        missing(what, "give --link and --alpha, or state its alpha_s and beta_s_per_word in a copy of the file")
    })?;
    let alpha_s = choices.alpha_s.ok_or_else(|| {
        missing("the latency of the link that joins the ranks".to_owned(), "give --alpha, in seconds per message")
    })?;
    Ok(McLayer { name: "link".to_owned(), ranks: run.ranks(), alpha_s, beta_s: 8e-9 / gbytes_per_s })
}

#[cfg(test)]
mod tests;
