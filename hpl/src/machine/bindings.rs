//! Hosts and cores of the ranks of a job, as `xhpl --report-bindings` prints them.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

/// Host and cores of one rank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankBinding {
    /// Its host.
    pub host: String,
    /// Physical cores that it may use, each by the number of its first logical CPU, which the rank itself may lack.
    pub cores_allowed: Vec<usize>,
    /// Logical CPUs that its threads are bound to, one each on a core; empty if no thread is bound, because some would have to share a core.
    pub cores: Vec<usize>,
    /// Memory of its host that can be filled without swapping, in bytes.
    pub memory_bytes: u64,
}

/// Hosts and cores of all ranks of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bindings {
    /// Version of the program.
    pub version: String,
    /// Name and version of the MPI library; `None` where ranks are threads.
    pub mpi: Option<String>,
    /// Threads of each rank.
    pub threads: usize,
    /// The ranks, in order.
    pub ranks: Vec<RankBinding>,
}

impl Bindings {
    /// The hosts in the order of their first ranks, with the ranks of each.
    pub fn hosts(&self) -> Vec<(&str, Vec<&RankBinding>)> {
        let mut hosts: Vec<(&str, Vec<&RankBinding>)> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for rank in &self.ranks {
            let place = *places.entry(&rank.host).or_insert(hosts.len());
            if place == hosts.len() {
                hosts.push((&rank.host, Vec::new()));
            }
            hosts[place].1.push(rank);
        }
        hosts
    }
}
