//! The nodes of a run: groups of equal nodes, with the links between them.

use std::collections::HashMap;
use std::ops::Range;

use space::machine::{Layer, Machine, Node};

use super::error::WeightsError;

/// Maximum difference of a link's two directions, as a fraction of the faster; more is taken as an input error.
const MAX_ASYMMETRY: f64 = 0.25;

/// Maximum number of groups of nodes: every two have a link.
const MAX_GROUPS: usize = 8192;

/// Maximum number of nodes: each has its own place in the grid.
const MAX_NODES: usize = 1_000_000;

/// A group of equal nodes. Each runs one process.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeGroup {
    /// Name of the group.
    pub name: String,
    /// Number of nodes, at least 1.
    pub count: usize,
    /// Rate of one node in GFLOP/s while all nodes work; 0 for a node with no share.
    pub speed_gflops: f64,
    /// Memory of one node in bytes.
    pub memory_bytes: u64,
    /// The part of it that is reserved for the system.
    pub reserved_bytes: u64,
}

/// Groups of nodes and the bandwidths between them.
#[derive(Debug, Clone, PartialEq)]
pub struct Cluster {
    groups: Vec<NodeGroup>,
    /// Bandwidth in GB/s from a node of one group to a node of another; on the diagonal, to another node of the same group.
    links: Vec<Vec<f64>>,
}

impl Cluster {
    /// The cluster of these groups; `links[g][h]` in GB/s. The smaller of both directions is used.
    ///
    /// # Errors
    /// [`WeightsError`] that names the invalid node or link.
    pub fn new(groups: Vec<NodeGroup>, links: Vec<Vec<f64>>) -> Result<Self, WeightsError> {
        match groups.iter().map(|group| group.count).fold(0, usize::saturating_add) {
            0 => return Err(WeightsError::NoNodes),
            found if found > MAX_NODES => return Err(WeightsError::TooManyNodes { found, most: MAX_NODES }),
            _ => {}
        }
        let wanted = groups.len();
        let count =
            |what, found| if found == wanted { Ok(()) } else { Err(WeightsError::Count { what, wanted, found }) };
        count("rows of the link matrix", links.len())?;
        links.iter().try_for_each(|row| count("columns of the link matrix", row.len()))?;
        if let Some(bad) = groups.iter().find(|group| !(group.speed_gflops.is_finite() && group.speed_gflops >= 0.0)) {
            return Err(WeightsError::Speed { node: bad.name.clone(), found: bad.speed_gflops });
        }
        if groups.iter().all(|group| group.speed_gflops == 0.0) {
            return Err(WeightsError::AllZero);
        }
        let mut cluster = Self { groups, links };
        cluster.settle_links()?;
        cluster.check_connected()?;
        Ok(cluster)
    }

    /// The cluster of a machine description: the speed of a node is its `rate_gflops`, else its `peak_gflops`; a link is
    /// its `[[link]]`, else the slower `link_gbytes_per_s` of its nodes, else that of the innermost `[[layer]]` that joins
    /// them, as the ranks of successive nodes follow each other. The one process of a node has its link for itself.
    ///
    /// # Errors
    /// [`WeightsError`] that names what is missing.
    pub fn from_machine(machine: &Machine) -> Result<Self, WeightsError> {
        let nodes = &machine.nodes;
        let groups = nodes.iter().map(group).collect::<Result<Vec<_>, _>>()?;
        if nodes.len() > MAX_GROUPS {
            return Err(WeightsError::TooManyGroups { found: nodes.len(), most: MAX_GROUPS });
        }
        let ranks = ranks(nodes);
        let layer = |g: usize, h: usize| {
            let joins = |layer: &Layer| ranks[g.min(h)].start / layer.ranks == (ranks[g.max(h)].end - 1) / layer.ranks;
            let at = machine.layers.iter().position(joins).or(machine.layers.len().checked_sub(1))?;
            let layer = &machine.layers[at];
            // The nodes in a unit of the layer inside share a link: one, or several where a survey made nodes of ranks.
            let inside = at.checked_sub(1).map_or(1, |at| machine.layers[at].ranks);
            let processes = inside / nodes[g].ranks(1).max(nodes[h].ranks(1));
            let sharing = layer.shared_by.min(processes).max(1);
            let bandwidth = 8e-9 / (layer.beta_s_per_word * sharing as f64);
            Some(bandwidth).filter(|bandwidth| bandwidth.is_finite())
        };
        let links = machine.links.iter().rev().map(|link| {
            let [from, to] = &link.nodes;
            ((from.as_str(), to.as_str()), link.gbytes_per_s)
        });
        let links: HashMap<(&str, &str), f64> = links.collect();
        let given = |g: &Node, h: &Node| links.get(&(g.name.as_str(), h.name.as_str())).copied();
        let bandwidth = |g: usize, h: usize| {
            let (from, to) = (&nodes[g], &nodes[h]);
            let slower = from.link_gbytes_per_s.min(to.link_gbytes_per_s);
            // A single node has no link to one of its own kind.
            let no_link = (g == h && from.count == 1).then_some(0.0);
            let known = given(from, to).or_else(|| given(to, from)).or((slower > 0.0).then_some(slower));
            known
                .or_else(|| layer(g, h))
                .or(no_link)
                .ok_or_else(|| WeightsError::NoLink { between: [from.name.clone(), to.name.clone()] })
        };
        let row = |g| (0..nodes.len()).map(|h| bandwidth(g, h)).collect();
        Self::new(groups, (0..nodes.len()).map(row).collect::<Result<_, _>>()?)
    }

    /// This cluster with groups merged that differ in their names only, and the new group of each.
    pub fn joined(&self) -> (Self, Vec<usize>) {
        let mut first: Vec<usize> = Vec::new();
        let mut became = Vec::with_capacity(self.groups.len());
        for g in 0..self.groups.len() {
            let known = first.iter().position(|&h| self.alike(g, h));
            became.push(known.unwrap_or(first.len()));
            if known.is_none() {
                first.push(g);
            }
        }
        let mut groups: Vec<NodeGroup> =
            first.iter().map(|&g| NodeGroup { count: 0, ..self.groups[g].clone() }).collect();
        let mut links: Vec<Vec<f64>> =
            first.iter().map(|&g| first.iter().map(|&h| self.links[g][h]).collect()).collect();
        for (g, &to) in became.iter().enumerate() {
            if g != first[to] {
                links[to][to] = self.links[g][first[to]];
            }
            groups[to].count += self.groups[g].count;
        }
        (Self { groups, links }, became)
    }

    /// This cluster with other speeds of its nodes in GFLOP/s, one per group.
    ///
    /// # Errors
    /// [`WeightsError`] for speeds that are negative, not finite, all 0, or not one per group.
    pub fn with_speeds(&self, speeds: &[f64]) -> Result<Self, WeightsError> {
        self.normalised(speeds)?;
        let group = |(group, &speed_gflops): (&NodeGroup, &f64)| NodeGroup { speed_gflops, ..group.clone() };
        Self::new(self.groups.iter().zip(speeds).map(group).collect(), self.links.clone())
    }

    /// The groups, in the order given.
    pub fn groups(&self) -> &[NodeGroup] {
        &self.groups
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.groups.iter().map(|group| group.count).sum()
    }

    /// Bandwidth between a node of group `g` and another of group `h`, in GB/s; 0 where there is no link.
    pub fn link(&self, g: usize, h: usize) -> f64 {
        self.links[g][h]
    }

    /// Bandwidth between a node of group `g` and the others, in GB/s: the harmonic mean over the linked nodes, which is the rate
    /// of sending one word to each of them. Infinite for a node without others.
    pub fn port(&self, g: usize) -> f64 {
        let (mut nodes, mut time) = (0.0, 0.0);
        for (h, group) in self.groups.iter().enumerate() {
            let (others, bandwidth) = (group.count - usize::from(g == h && group.count > 0), self.links[g][h]);
            if bandwidth > 0.0 {
                nodes += others as f64;
                time += others as f64 / bandwidth;
            }
        }
        if time > 0.0 { nodes / time } else { f64::INFINITY }
    }

    /// Shares of the nodes that are in proportion to `speeds`, one per group: together 1.
    ///
    /// # Errors
    /// [`WeightsError`] for speeds that are negative, not finite, all 0, or not one per group.
    pub fn normalised(&self, speeds: &[f64]) -> Result<Vec<f64>, WeightsError> {
        let (wanted, found) = (self.groups.len(), speeds.len());
        if wanted != found {
            return Err(WeightsError::Count { what: "speeds", wanted, found });
        }
        let largest = speeds.iter().copied().fold(0.0, f64::max);
        if let Some((group, &found)) = self.groups.iter().zip(speeds).find(|(_, s)| !(s.is_finite() && **s >= 0.0)) {
            return Err(WeightsError::Speed { node: group.name.clone(), found });
        }
        let sum: f64 =
            self.groups.iter().zip(speeds).map(|(group, speed)| group.count as f64 * (speed / largest)).sum();
        if largest == 0.0 || sum == 0.0 {
            return Err(WeightsError::AllZero);
        }
        Ok(speeds.iter().map(|speed| speed / largest / sum).collect())
    }

    fn names(&self, g: usize, h: usize) -> [String; 2] {
        [g, h].map(|at| self.groups[at].name.clone())
    }

    /// Checks each link and takes the smaller of both directions.
    fn settle_links(&mut self) -> Result<(), WeightsError> {
        for g in 0..self.groups.len() {
            for h in 0..=g {
                let (there, back) = (self.links[h][g], self.links[g][h]);
                if let Some(found) = [there, back].into_iter().find(|b| !(b.is_finite() && *b >= 0.0)) {
                    return Err(WeightsError::Link { between: self.names(h, g), found });
                }
                if (there - back).abs() > MAX_ASYMMETRY * there.max(back) {
                    let between = self.names(h, g);
                    return Err(WeightsError::Asymmetric { between, there, back });
                }
                self.links[g][h] = there.min(back);
                self.links[h][g] = there.min(back);
            }
        }
        Ok(())
    }

    /// Whether all nodes are reached from the first.
    fn check_connected(&self) -> Result<(), WeightsError> {
        let filled = |g: &usize| self.groups[*g].count > 0;
        let all: Vec<usize> = (0..self.groups.len()).filter(filled).collect();
        let (mut reached, mut new) = (vec![false; self.groups.len()], vec![all[0]]);
        reached[all[0]] = true;
        while let Some(g) = new.pop() {
            for &h in &all {
                if self.links[g][h] > 0.0 && !reached[h] {
                    reached[h] = true;
                    new.push(h);
                }
            }
        }
        let lost = all.iter().find(|&&g| !reached[g]).map(|&g| self.names(all[0], g));
        // Nodes of one group without links among them must be joined by another group.
        let alone = (all.len() == 1 && self.groups[all[0]].count > 1 && self.links[all[0]][all[0]] == 0.0)
            .then(|| self.names(all[0], all[0]));
        lost.or(alone).map_or(Ok(()), |apart| Err(WeightsError::Disconnected { apart }))
    }

    /// Whether nodes of the two groups are interchangeable.
    fn alike(&self, g: usize, h: usize) -> bool {
        let [a, b] = [g, h].map(|at| &self.groups[at]);
        let inside = |at: usize| self.groups[at].count == 1 || self.links[at][at] == self.links[g][h];
        let same =
            (a.speed_gflops, a.memory_bytes, a.reserved_bytes) == (b.speed_gflops, b.memory_bytes, b.reserved_bytes);
        let others = |at: &usize| *at != g && *at != h;
        same && inside(g)
            && inside(h)
            && (0..self.groups.len()).filter(others).all(|at| self.links[g][at] == self.links[h][at])
    }
}

/// The ranks of each group of nodes, in the order in which layers count them.
fn ranks(nodes: &[Node]) -> Vec<Range<usize>> {
    let mut next: usize = 0;
    let of_node = |node: &Node| {
        let start = next;
        next = next.saturating_add(node.count.saturating_mul(node.ranks(1)).max(1));
        start..next
    };
    nodes.iter().map(of_node).collect()
}

fn group(node: &Node) -> Result<NodeGroup, WeightsError> {
    if node.memory_bytes == 0 {
        return Err(WeightsError::NoMemory { node: node.name.clone() });
    }
    let known = [node.rate_gflops, node.peak_gflops].into_iter().find(|speed| *speed > 0.0);
    Ok(NodeGroup {
        name: node.name.clone(),
        count: node.count,
        speed_gflops: known.ok_or_else(|| WeightsError::NoSpeed { node: node.name.clone() })?,
        memory_bytes: node.memory_bytes,
        reserved_bytes: node.reserved_bytes,
    })
}
