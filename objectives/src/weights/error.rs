//! Why there are no weights.

use super::slem::SlemError;

/// Why there are no weights.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum WeightsError {
    /// The list of nodes is empty.
    #[error("no nodes: give at least one [[node]] with count 1 or more")]
    NoNodes,
    /// More nodes than any machine has.
    #[error("{found} nodes are more than {most}; see count of [[node]]")]
    TooManyNodes {
        /// Their number.
        found: usize,
        /// The most there can be.
        most: usize,
    },
    /// More kinds of nodes than a table of their links can have.
    #[error("{found} [[node]] are more than {most}; write those that are alike once, with their count")]
    TooManyGroups {
        /// Their number.
        found: usize,
        /// The most there can be.
        most: usize,
    },
    /// The speed of a node is no speed.
    #[error("node {node}: its speed must be a finite number of at least 0, found {found}")]
    Speed {
        /// The group.
        node: String,
        /// Its speed.
        found: f64,
    },
    /// Nothing is known of a node's speed.
    #[error(
        "node {node} has neither rate_gflops nor peak_gflops; measure it with hpl-tune survey, or write one of them"
    )]
    NoSpeed {
        /// The group.
        node: String,
    },
    /// Nothing is known of a node's memory.
    #[error("node {node}: memory_bytes is missing; write it, as it limits the node's share")]
    NoMemory {
        /// The group.
        node: String,
    },
    /// No node can do anything.
    #[error("all speeds are 0; at least one node must be faster than that")]
    AllZero,
    /// Nothing is known of a link.
    #[error(
        "the bandwidth of the link {} – {} is unknown; write a [[link]] with gbytes_per_s, link_gbytes_per_s of both nodes, or a \
         [[layer]]", between[0], between[1]
    )]
    NoLink {
        /// The two groups.
        between: [String; 2],
    },
    /// A bandwidth is none.
    #[error("link {} – {}: its bandwidth must be a finite number of at least 0, found {found}", between[0], between[1])]
    Link {
        /// The two groups.
        between: [String; 2],
        /// The bandwidth in GB/s.
        found: f64,
    },
    /// The two directions of a link differ.
    #[error(
        "link {} – {} is asymmetric: {there} GB/s one way, {back} GB/s the other; measure it again, or give one [[link]]",
        between[0], between[1]
    )]
    Asymmetric {
        /// The two groups.
        between: [String; 2],
        /// First to second, in GB/s.
        there: f64,
        /// Second to first, in GB/s.
        back: f64,
    },
    /// Some nodes cannot be reached from others.
    #[error("no chain of links joins {} and {}; add a [[link]], or leave one side out", apart[0], apart[1])]
    Disconnected {
        /// Two groups that are apart.
        apart: [String; 2],
    },
    /// There are more or fewer numbers than groups of nodes.
    #[error("{found} {what} for {wanted} groups of nodes; give one of each group, in their order")]
    Count {
        /// What there is a wrong number of.
        what: &'static str,
        /// Groups of nodes.
        wanted: usize,
        /// Numbers found.
        found: usize,
    },
    /// The grid does not take every node once.
    #[error("P={p} Q={q} takes {} nodes, there are {nodes}; give P and Q with P·Q = {nodes}", p * q)]
    GridSize {
        /// Process rows.
        p: usize,
        /// Process columns.
        q: usize,
        /// Nodes.
        nodes: usize,
    },
    /// A node would have to hold more than it can.
    #[error(
        "node {node} holds {:.2} GB, its share at N={n} needs {:.2} GB; lower N to {largest_n}",
        *has_bytes / 1e9, *needed_bytes / 1e9
    )]
    Memory {
        /// The group.
        node: String,
        /// What one node has for the matrix.
        has_bytes: f64,
        /// What its share takes.
        needed_bytes: f64,
        /// Order.
        n: usize,
        /// Largest order with these shares.
        largest_n: usize,
    },
    /// The nodes together cannot hold the matrix.
    #[error("N={n} needs more memory than all nodes have; lower N to {largest_n}")]
    NoRoom {
        /// Order.
        n: usize,
        /// Largest order that fits.
        largest_n: usize,
    },
    /// A block of no columns.
    #[error("NB must be at least 1, found 0")]
    NoBlock,
    /// The SLEM method has no answer.
    #[error("SLEM: {0}")]
    Slem(#[from] SlemError),
}
