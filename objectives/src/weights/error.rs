//! Errors of the weights.

use super::slem::SlemError;

/// Why no weights could be computed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum WeightsError {
    /// The list of nodes is empty.
    #[error("no nodes: give at least one [[node]] with count 1 or more")]
    NoNodes,
    /// Too many nodes.
    #[error("{found} nodes are more than {most}; see count of [[node]]")]
    TooManyNodes {
        /// Their number.
        found: usize,
        /// Maximum number.
        most: usize,
    },
    /// Too many groups of nodes for a table of their links.
    #[error("{found} [[node]] are more than {most}; write those that are alike once, with their count")]
    TooManyGroups {
        /// Their number.
        found: usize,
        /// Maximum number.
        most: usize,
    },
    /// The speed of a node is invalid.
    #[error("node {node}: its speed must be a finite number of at least 0, found {found}")]
    Speed {
        /// The group.
        node: String,
        /// Its speed.
        found: f64,
    },
    /// The speed of a node is missing.
    #[error(
        "node {node} has neither rate_gflops nor peak_gflops; measure it with hpl-tune survey, or write one of them"
    )]
    NoSpeed {
        /// The group.
        node: String,
    },
    /// The memory of a node is missing.
    #[error("node {node}: memory_bytes is missing; write it, as it limits the node's share")]
    NoMemory {
        /// The group.
        node: String,
    },
    /// All speeds are 0.
    #[error("all speeds are 0; give at least one node a speed above 0")]
    AllZero,
    /// A link is missing.
    #[error(
        "the bandwidth of the link {} – {} is unknown; write a [[link]] with gbytes_per_s, link_gbytes_per_s of both nodes, or a \
         [[layer]]", between[0], between[1]
    )]
    NoLink {
        /// The two groups.
        between: [String; 2],
    },
    /// A bandwidth is invalid.
    #[error("link {} – {}: its bandwidth must be a finite number of at least 0, found {found}", between[0], between[1])]
    Link {
        /// The two groups.
        between: [String; 2],
        /// The bandwidth in GB/s.
        found: f64,
    },
    /// The two directions of a link differ too much.
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
        /// Two groups that are not joined.
        apart: [String; 2],
    },
    /// The number of values differs from the number of groups.
    #[error("{found} {what} for {wanted} groups of nodes; give one of each group, in their order")]
    Count {
        /// Name of the values.
        what: &'static str,
        /// Groups of nodes.
        wanted: usize,
        /// Number of values found.
        found: usize,
    },
    /// P·Q differs from the number of nodes.
    #[error("P={p} Q={q} takes {} nodes, there are {nodes}; give P and Q with P·Q = {nodes}", p * q)]
    GridSize {
        /// Process rows.
        p: usize,
        /// Process columns.
        q: usize,
        /// Nodes.
        nodes: usize,
    },
    /// A node has too little memory for its share.
    #[error(
        "node {node} holds {:.2} GB, its share at N={n} needs {:.2} GB; lower N to {largest_n}",
        *has_bytes / 1e9, *needed_bytes / 1e9
    )]
    Memory {
        /// The group.
        node: String,
        /// Memory of one node for the matrix.
        has_bytes: f64,
        /// Memory of its share.
        needed_bytes: f64,
        /// Order.
        n: usize,
        /// Largest order with these shares.
        largest_n: usize,
    },
    /// All nodes together have too little memory.
    #[error("N={n} needs more memory than all nodes have; lower N to {largest_n}")]
    NoRoom {
        /// Order.
        n: usize,
        /// Largest order that fits.
        largest_n: usize,
    },
    /// NB is 0.
    #[error("NB must be at least 1, found 0")]
    NoBlock,
    /// The SLEM method failed.
    #[error("SLEM: {0}")]
    Slem(#[from] SlemError),
}
