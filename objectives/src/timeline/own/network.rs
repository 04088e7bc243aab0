//! The cost of a message between two ranks, by the innermost layer of the machine that joins them.
//!
//! Ranks fill the nodes in the order of their numbers. The cost is a mean over the places of a process row or column: of all
//! pairs of ranks `d` numbers apart, a fraction d/u is not in the same unit of u ranks.

use space::machine::{Layer, Machine};
use space::{HplParams, Pmap};

use super::forms::rounds;

/// Latency and time per word between ranks.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct MessageCost {
    /// Seconds of a message.
    pub(super) alpha_s: f64,
    /// Seconds per word; 0 if the message is passed in shared memory.
    pub(super) beta_s: f64,
}

/// Messages within units of some ranks.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Unit {
    /// Ranks of one thread that it joins.
    ranks: usize,
    link: MessageCost,
    /// Ranks that share its bandwidth.
    shared_by: usize,
}

/// The units of a machine, innermost first.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Network {
    units: Vec<Unit>,
    /// Cores of a unit that needs no other layer.
    node: usize,
}

/// Maximum number of distances in a mean over the ranks of a process column.
const DISTANCES: usize = 32;
/// Maximum number of simulated positions of a broadcast along a process row.
pub(super) const POSITIONS: usize = 64;

impl Network {
    /// The layers of `machine`. Messages between the threads of one process are part of the measured phases and cost nothing
    /// here; the same holds for messages within a node that has no layer of its own.
    pub(super) fn new(machine: &Machine) -> Self {
        // The survey of ranks describes each rank as a node.
        let in_process = machine.layers.iter().filter(|layer| layer.name == Layer::THREADS).map(|layer| layer.ranks);
        let node = machine.nodes.iter().map(|node| node.cores).chain(in_process).max().unwrap_or(1).max(1);
        let unit = |layer: &Layer| {
            let link = MessageCost { alpha_s: layer.alpha_s.unwrap_or(0.0), beta_s: layer.beta_s_per_word };
            Unit { ranks: layer.ranks, link, shared_by: layer.shared_by }
        };
        let (mut units, outer): (Vec<Unit>, Vec<Unit>) = machine
            .layers
            .iter()
            .filter(|layer| layer.joins_processes())
            .map(unit)
            .partition(|unit| unit.ranks <= node);
        let inner = units.last().copied().unwrap_or(Unit { ranks: 1, link: MessageCost::default(), shared_by: 1 });
        if inner.ranks < node {
            units.push(Unit { ranks: node, ..inner });
        }
        units.extend(outer);
        Self { units, node }
    }

    /// Whether ranks of `threads` threads need links between nodes that the machine does not have.
    pub(super) fn lacks_links(&self, ranks: usize, threads: usize) -> bool {
        ranks.saturating_mul(threads) > self.node && self.units.last().is_none_or(|unit| unit.ranks <= self.node)
    }

    /// Whether all messages are part of the measured phases.
    pub(super) fn is_free(&self) -> bool {
        self.units.iter().all(|unit| unit.link == MessageCost::default())
    }

    /// The mean link between ranks `distance` numbers apart. `senders`: the ranks of a unit that send at the same time, of
    /// which a part sends to other units.
    fn link(&self, distance: usize, threads: usize, senders: impl Fn(f64, f64) -> f64) -> MessageCost {
        let (mut mean, mut inside, mut beyond) = (MessageCost::default(), 1.0, 1.0);
        for (i, unit) in self.units.iter().enumerate() {
            let ranks = (unit.ranks / threads.max(1)).max(1) as f64;
            let further = if i + 1 == self.units.len() { 0.0 } else { (distance as f64 / ranks).min(beyond) };
            let here = beyond - further;
            let sharing = senders(inside, beyond).clamp(1.0, unit.shared_by as f64);
            mean.alpha_s += here * unit.link.alpha_s;
            mean.beta_s += here * unit.link.beta_s * sharing;
            (inside, beyond) = (ranks, further);
        }
        mean
    }

    /// Links along the process rows and columns of a run.
    pub(super) fn links(&self, hpl: &HplParams, threads: usize) -> MessageCosts {
        let (next_column, next_row) = match hpl.pmap {
            Pmap::Row => (1, hpl.q),
            Pmap::Column => (hpl.p, 1),
        };
        // The ranks of a unit that are in one process row, and in one process column.
        let of_row = |ranks: f64| (ranks / next_column as f64).clamp(1.0, hpl.q as f64);
        let of_column = |ranks: f64| (ranks / next_row as f64).clamp(1.0, hpl.p as f64);
        // Senders at a time: one rank per process row in a broadcast, one process column in a pivot search, all in an exchange.
        let bcast = |columns: usize| self.link(columns * next_column, threads, |ranks, _| ranks / of_row(ranks));
        let pivot = |rows: usize| self.link(rows * next_row, threads, |ranks, beyond| of_column(ranks) * beyond);
        let swap = |rows: usize| self.link(rows * next_row, threads, |ranks, beyond| ranks * beyond);
        let sum = |a: MessageCost, b: MessageCost| MessageCost {
            alpha_s: a.alpha_s + b.alpha_s,
            beta_s: a.beta_s + b.beta_s,
        };
        let partners = || (0..rounds(hpl.p) as u32).map(|round| 1 << round);
        let others = (1..hpl.p).step_by((hpl.p / DISTANCES).max(1));
        let count = others.clone().count().max(1) as f64;
        MessageCosts {
            bcast: (0..hpl.q.min(POSITIONS)).map(bcast).collect(),
            pivot: partners().map(pivot).fold(MessageCost::default(), sum),
            swap: MessageCost {
                alpha_s: partners().map(|rows| swap(rows).alpha_s).sum(),
                beta_s: others.map(|rows| swap(rows).beta_s).sum::<f64>() / count,
            },
        }
    }
}

/// Costs of the messages of one run.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct MessageCosts {
    /// Between ranks of a process row, by the process columns between them, from 0.
    pub(super) bcast: Vec<MessageCost>,
    /// All messages of one pivot search over a process column.
    pub(super) pivot: MessageCost,
    /// All messages of one row exchange over a process column; the time per word is per received word.
    pub(super) swap: MessageCost,
}

#[cfg(test)]
mod tests {
    use space::machine::Node;

    use super::*;

    fn layer(name: &str, ranks: usize, alpha_s: f64, shared_by: usize) -> Layer {
        Layer { name: name.into(), ranks, alpha_s: Some(alpha_s), beta_s_per_word: alpha_s / 1000.0, shared_by }
    }

    fn network(layers: &[Layer]) -> Network {
        let node = Node { name: "node".into(), count: 8, cores: 8, ..Node::default() };
        Network::new(&Machine { nodes: vec![node], layers: layers.to_vec(), ..Machine::default() })
    }

    fn links(network: &Network, p: usize, q: usize) -> MessageCosts {
        network.links(&HplParams::baseline(1000, p, q), 1)
    }

    #[test]
    fn threads_of_a_process_exchange_for_nothing() {
        let network = network(&[layer("memory", 1, 1.0, 1), layer(Layer::THREADS, 8, 1.0, 1)]);
        let links = links(&network, 2, 4);
        assert_eq!((links.pivot, links.swap, links.bcast[3]), Default::default());
        assert!(!network.lacks_links(8, 1) && network.lacks_links(8, 2), "two nodes without a link");
    }

    #[test]
    fn a_message_costs_what_the_layer_takes_that_joins_its_ends() {
        let network = network(&[layer("socket", 4, 1.0, 1), layer("network", 64, 100.0, 8)]);
        // A process row of 4 ranks lies within a socket: a quarter of all pairs of neighbours is on two sockets.
        let near = links(&network, 16, 4).bcast[1].alpha_s;
        // The node has no layer of its own: within it messages cost the same as in a socket.
        assert!((near - (7.0 / 8.0 + 100.0 / 8.0)).abs() < 1e-9, "{near}");
        // A distance of eight rows always leads to another node.
        assert_eq!(links(&network, 2, 32).pivot.alpha_s, 100.0);
    }

    #[test]
    fn ranks_of_a_node_share_its_link() {
        let network = network(&[layer("network", 64, 100.0, 8)]);
        let (rows, columns) = (links(&network, 2, 8), links(&network, 1, 16));
        // All eight ranks of the node exchange rows with the other node at the same time; one of them forwards the panel.
        assert!((rows.swap.beta_s - 8.0 * 0.1).abs() < 1e-12, "{rows:?}");
        assert!((columns.bcast[8].beta_s - 0.1).abs() < 1e-12, "{columns:?}");
    }
}
