//! The nodes of a run, and the memory that it needs on them.

use space::machine::{Machine, Node};

use super::{Run, ScenarioError};

/// The nodes of one group that a run uses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UsedNodes<'a> {
    /// The group.
    pub node: &'a Node,
    /// Number of its nodes.
    pub nodes: usize,
    /// Ranks on the fullest of them.
    pub ranks: usize,
}

/// Placement of the ranks of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Placement<'a> {
    /// Groups in the order of the description; none where it has no nodes.
    pub groups: Vec<UsedNodes<'a>>,
    /// Nodes of the run; one per rank where the description has none.
    pub nodes: usize,
    /// Ranks on the fullest node.
    pub ranks_per_node: usize,
    /// Threads of a rank; 1 where it has an accelerator, by which layers count.
    threads: usize,
    /// Capacity of the largest node, in ranks of one thread.
    full: usize,
    /// Ranks of one thread on all nodes of the description.
    all: usize,
}

impl<'a> Placement<'a> {
    /// Fills nodes in the order of the description, or spreads the ranks over a given number of them: evenly, else over
    /// unequal ones by what they hold.
    ///
    /// # Errors
    /// [`ScenarioError`] when a size is 0, ranks or nodes are too many, do not spread evenly, or the matrix does not
    /// fit where the memory is known.
    pub fn new(machine: &'a Machine, run: &Run) -> Result<Self, ScenarioError> {
        let sizes = [("N", run.n), ("NB", run.nb), ("P", run.p), ("Q", run.q), ("threads", run.threads)];
        let sizes = sizes.into_iter().chain(run.nodes.map(|nodes| ("nodes", nodes)));
        if let Some((name, _)) = sizes.into_iter().find(|(_, size)| *size == 0) {
            return Err(ScenarioError::Zero { name });
        }
        let placement = if machine.nodes.is_empty() { Self::unknown(run)? } else { Self::on(machine, run)? };
        placement.check_memory(run)?;
        Ok(placement)
    }

    fn unknown(run: &Run) -> Result<Self, ScenarioError> {
        let nodes = run.nodes.unwrap_or(run.ranks());
        if !run.ranks().is_multiple_of(nodes) {
            return Err(ScenarioError::Uneven { ranks: run.ranks(), nodes, full: run.ranks() });
        }
        let ranks_per_node = run.ranks() / nodes;
        Ok(Self { groups: Vec::new(), nodes, ranks_per_node, threads: 1, full: ranks_per_node, all: usize::MAX })
    }

    fn on(machine: &'a Machine, run: &Run) -> Result<Self, ScenarioError> {
        let mut left = run.ranks();
        let mut nodes_left = run.nodes.unwrap_or(usize::MAX);
        let each = match run.nodes {
            Some(nodes) if !left.is_multiple_of(nodes) && machine.nodes.len() == 1 => {
                return Err(ScenarioError::Uneven { ranks: left, nodes, full: machine.nodes[0].ranks(run.threads) });
            }
            Some(nodes) => left.div_ceil(nodes),
            None => usize::MAX,
        };
        let even = |nodes: usize| run.ranks().is_multiple_of(nodes) && all_hold(machine, nodes, each, run.threads);
        let is_even = run.nodes.is_some_and(even);
        let mut groups = Vec::new();
        for node in &machine.nodes {
            let full = node.ranks(run.threads);
            // Where the ranks do not spread evenly, larger nodes get more; equal nodes get the same number.
            let most = if is_even || machine.nodes.len() == 1 { full.min(each) } else { full };
            let ranks = most.min(left);
            let nodes = left.div_ceil(ranks.max(1)).min(node.count).min(nodes_left);
            if ranks == 0 || nodes == 0 {
                break;
            }
            groups.push(UsedNodes { node, nodes, ranks });
            left -= ranks.saturating_mul(nodes).min(left);
            nodes_left -= nodes;
        }
        let total = machine.nodes.iter().map(|node| node.count).fold(0, usize::saturating_add);
        let nodes: usize = groups.iter().map(|group| group.nodes).sum();
        if left > 0 || run.nodes.is_some_and(|asked| asked > nodes) {
            let Run { p, q, threads, .. } = *run;
            let full = machine.nodes.iter().map(|node| node.ranks(threads)).max().unwrap_or(1);
            let fits = run.nodes.is_some_and(|asked| asked <= total);
            return Err(match run.nodes {
                Some(nodes) if fits => ScenarioError::Uneven { ranks: run.ranks(), nodes, full },
                asked => ScenarioError::Nodes {
                    p,
                    q,
                    threads,
                    needed: asked.unwrap_or(nodes + left.div_ceil(full)),
                    nodes: total,
                },
            });
        }
        let ranks_per_node = groups.iter().map(|group| group.ranks).max().unwrap_or(1);
        let full = machine.nodes.iter().map(|node| node.ranks(1)).max().unwrap_or(1);
        let all = machine.nodes.iter().map(|node| node.count.saturating_mul(node.ranks(1)));
        let all = all.fold(0, usize::saturating_add);
        let threads = if groups.iter().any(|group| group.node.accelerators.is_some()) { 1 } else { run.threads };
        Ok(Self { groups, nodes, ranks_per_node, threads, full, all })
    }

    fn check_memory(&self, run: &Run) -> Result<(), ScenarioError> {
        let ranks = run.ranks();
        let Some(tightest) = self.known().min_by_key(|group| largest_n(group, ranks)) else { return Ok(()) };
        let largest_n = largest_n(tightest, ranks);
        if run.n <= largest_n {
            return Ok(());
        }
        Err(ScenarioError::Memory {
            n: run.n,
            node: tightest.node.name.clone(),
            needed_bytes: (8.0 * (run.n as f64).powi(2) / ranks as f64 * tightest.ranks as f64) as u64,
            free_bytes: free_bytes(tightest.node),
            largest_n,
        })
    }

    /// Largest N whose matrix fits with this placement of P·Q ranks; `None` where no memory is known.
    pub fn largest_n(&self, ranks: usize) -> Option<usize> {
        self.known().map(|group| largest_n(group, ranks)).min()
    }

    /// Groups whose memory is known.
    fn known(&self) -> impl Iterator<Item = &UsedNodes<'a>> {
        self.groups.iter().filter(|group| group.node.memory_bytes > 0)
    }

    /// Threads by which a rank reads its memory: no more than there are cores, and 1 where it has an accelerator.
    pub(super) fn readers(&self) -> usize {
        let cores = self.groups.iter().map(|group| group.node.cores).min().unwrap_or(1);
        self.threads.min(cores).max(1)
    }

    /// Number of this run's ranks in a layer that joins `ranks` on the full machine.
    pub(super) fn joined(&self, ranks: usize) -> usize {
        if ranks >= self.all {
            return usize::MAX;
        }
        if ranks <= self.full {
            return (ranks / self.threads).max(1).min(self.ranks_per_node);
        }
        (ranks as f64 * self.ranks_per_node as f64 / self.full as f64).ceil() as usize
    }
}

/// Whether each of the first `nodes` nodes runs `ranks` ranks.
fn all_hold(machine: &Machine, nodes: usize, ranks: usize, threads: usize) -> bool {
    let mut left = nodes;
    machine.nodes.iter().all(|node| {
        let is_used = left > 0;
        left -= node.count.min(left);
        !is_used || node.ranks(threads) >= ranks
    })
}

fn free_bytes(node: &Node) -> u64 {
    node.memory_bytes.saturating_sub(node.reserved_bytes)
}

/// Largest N for which the equal parts of the ranks fit into the memory of the group's nodes.
fn largest_n(group: &UsedNodes<'_>, ranks: usize) -> usize {
    (free_bytes(group.node) as f64 / 8.0 / group.ranks as f64 * ranks as f64).sqrt() as usize
}
