//! The nodes of a job that our engine's ranks can run on, and the launcher that starts them there.

use std::path::PathBuf;

use hpl::machine::bindings::Bindings;
use hpl::machine::host::HostFacts;
use objectives::launcher::{MpiJob, is_srun, words};
use space::machine::Node;

use super::bindings::bindings;
use crate::cluster::allocation::Allocation;
use crate::exit::bad_input;
use crate::session::engine::programs;

/// Nodes are described together while their memory differs by less than this part.
const ALIKE: f64 = 0.1;
/// Lines that are printed of each launcher that does not start a program.
const LINES: usize = 5;
/// Part of a node's memory that is kept free of the matrix.
const RESERVED: u64 = 20;

/// How ranks are started on the nodes of an allocation, and what the nodes have.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reached {
    /// What starts them.
    pub(crate) job: MpiJob,
    /// The nodes that are used, equal ones together, in the order of the ranks.
    pub(crate) nodes: Vec<Node>,
    /// Names of these nodes, in that order.
    pub(crate) hosts: Vec<String>,
    /// Names of the nodes that are kept to replace one of these.
    pub(crate) spares: Vec<String>,
}

/// A node as the processes of a job found it.
struct FoundNode {
    host: String,
    cores: usize,
    /// Logical CPUs of a core.
    cpus_per_core: usize,
    memory_bytes: u64,
}

impl Reached {
    /// The nodes of `found` by `job`: those in `used`, in that order, and the others as spares.
    fn new(job: &MpiJob, found: &[FoundNode], used: &[String]) -> Self {
        let each = || used.iter().filter_map(|host| found.iter().find(|node| node.host == *host));
        let nodes = grouped(each().map(|node| (node.host.clone(), node.cores, node.memory_bytes)));
        let spares: Vec<String> =
            found.iter().map(|node| node.host.clone()).filter(|host| !used.contains(host)).collect();
        // Where all are used, the words of the user are left as they are.
        let kept_to = if spares.is_empty() { Vec::new() } else { used.to_vec() };
        let job = MpiJob {
            most_threads: nodes.iter().map(|node| node.cores).min(),
            cpus_per_core: each().map(|node| node.cpus_per_core).min().filter(|&cpus| cpus > 1),
            nodes: kept_to,
            ..job.clone()
        };
        Self { job, nodes, hosts: used.to_vec(), spares }
    }
}

/// Which of the nodes that a job reaches are used.
#[derive(Clone, Copy)]
pub(crate) enum Used<'a> {
    /// All but the last so many.
    AllBut(usize),
    /// These, or where they are not all there as many of those that are.
    Before(&'a [String]),
}

/// The nodes of `allocation` as the processes of `job` find them; `here_cores`: cores of this node.
///
/// # Errors
/// A job that is none, or does not reach all nodes, and the way out.
pub(crate) fn reached(
    job: &MpiJob,
    allocation: &Allocation,
    here_cores: usize,
    used: Used<'_>,
) -> anyhow::Result<Reached> {
    let (ranks, threads) = probe(job, allocation, here_cores);
    let found = bindings(job, ranks, threads)?;
    let hosts: Vec<String> = found.hosts().into_iter().map(|(host, _)| host.to_owned()).collect();
    let wanted = allocation.nodes();
    if hosts.len() < wanted {
        return Err(bad_input(format!(
            "--launcher {}: {ranks} ranks of {threads} threads run on {} of the {wanted} nodes of {allocation}: {}; give a \
            launch command that spreads them over the nodes, as in 'srun --ntasks={{np}} --cpus-per-task={{threads}}', or the \
            nodes to a session by --machine",
            job.launcher,
            hosts.len(),
            hosts.join(", ")
        )));
    }
    let count = match used {
        Used::AllBut(spares) => hosts.len().saturating_sub(spares),
        Used::Before(before) => before.len().min(hosts.len()),
    };
    if count == 0 {
        return Err(bad_input(format!("--spares: of the {wanted} nodes of {allocation} none is left to run on")));
    }
    let chosen = match used {
        Used::Before(before) if before.iter().all(|host| hosts.contains(host)) => before,
        _ => &hosts[..count],
    };
    if chosen.len() < hosts.len() && !job.chooses_nodes() {
        return Err(bad_input(format!(
            "--spares: hpl-tune does not know how --launcher {} is told the nodes of its ranks; use srun, mpirun or mpiexec",
            job.launcher
        )));
    }
    Ok(Reached::new(job, &nodes(&found, allocation), chosen))
}

/// Exactly `hosts` as the processes of `job` find them.
///
/// # Errors
/// A job that does not start on them.
pub(crate) fn of_hosts(
    job: &MpiJob,
    allocation: &Allocation,
    hosts: &[String],
    threads: usize,
) -> anyhow::Result<Reached> {
    let job = job.on(hosts);
    kept_to(&job, &bindings(&job, hosts.len(), threads)?, allocation, hosts)
}

/// `hosts` as `found` by `job`, which has a rank on each.
fn kept_to(job: &MpiJob, found: &Bindings, allocation: &Allocation, hosts: &[String]) -> anyhow::Result<Reached> {
    // Slurm's ranks are in the order of the nodes of the job, however they are named.
    let in_order: Vec<String> = found.hosts().into_iter().map(|(host, _)| host.to_owned()).collect();
    if let Some(absent) = hosts.iter().find(|host| !in_order.contains(host)) {
        return Err(bad_input(format!(
            "--launcher {}: of the ranks that are meant for {} none runs on {absent}, but on {}; look at what the words of the launcher say of \
             nodes",
            job.launcher,
            hosts.join(" "),
            in_order.join(" ")
        )));
    }
    let reached = Reached::new(job, &nodes(found, allocation), &in_order);
    // Other nodes of the job may be down: its ranks are kept to these.
    Ok(Reached { job: MpiJob { nodes: in_order, ..reached.job }, ..reached })
}

/// The first launcher that starts `program` as one job on all nodes of `allocation`.
///
/// # Errors
/// What each of them said, and the way out.
pub(crate) fn found(
    program: PathBuf,
    allocation: &Allocation,
    here_cores: usize,
    used: Used<'_>,
) -> anyhow::Result<Reached> {
    if programs::found(&program).is_none() {
        return Err(bad_input(format!(
            "{allocation} has {} nodes, and there is no program {} to run on them: make one with the mpicc of this cluster by hpl-tune \
             mpi-setup, give the path of another with --program; hpl-tune --local runs on this node alone",
            allocation.nodes(),
            program.display()
        )));
    }
    let mut said = Vec::new();
    for launcher in allocation.launchers() {
        // All of its words: a session that goes on later is to have those that were tried.
        let launcher = words(&programs::launcher_here(&launcher).map_err(bad_input)?).join(" ");
        let job = MpiJob::new(&launcher, program.clone());
        match reached(&job, allocation, here_cores, used) {
            Ok(found) => return Ok(found),
            Err(error) => said.extend(error.to_string().lines().take(LINES).map(str::to_owned)),
        }
    }
    Err(bad_input(format!(
        "{allocation} has {} nodes, and no launcher starts {} on them:\n{}\nmake an xhpl for the launcher's MPI library \
         by hpl-tune mpi-setup, or give --launcher and --program; hpl-tune --local runs on this node alone",
        allocation.nodes(),
        program.display(),
        said.join("\n")
    )))
}

/// Ranks and threads of a job that shows all nodes and whether it is one job: a rank for each node with all its cores, on a single node as
/// few as share its cores without a rest, at least two.
fn probe(job: &MpiJob, allocation: &Allocation, here_cores: usize) -> (usize, usize) {
    let granted = allocation.least_cpus().unwrap_or(here_cores);
    // Slurm counts logical CPUs, Open MPI and others cores.
    let threads = if is_srun(&words(&job.launcher)) { granted } else { granted.min(here_cores) };
    // Of ranks that are bound to cores, one that is left over would be seen by none.
    let shared = |ranks: &usize| threads.is_multiple_of(*ranks);
    match (allocation.nodes(), (2..=threads).find(shared)) {
        (1, Some(ranks)) => (ranks, threads / ranks),
        (nodes, _) => (nodes, threads.max(1)),
    }
}

/// What the hosts of `found` have, as far as it is granted.
fn nodes(found: &Bindings, allocation: &Allocation) -> Vec<FoundNode> {
    let hosts = found.hosts();
    // Which of the nodes it is, where these are not all of them, is not known.
    let granted = |index: usize| match hosts.len() == allocation.nodes() {
        true => allocation.cpus[index],
        false => allocation.least_cpus(),
    };
    let each = hosts.iter().enumerate().map(|(index, (host, ranks))| {
        let mut cores: Vec<usize> = ranks.iter().flat_map(|rank| rank.cores_allowed.iter().copied()).collect();
        cores.sort_unstable();
        cores.dedup();
        let granted = granted(index).unwrap_or(cores.len());
        // Others than Slurm count cores.
        let cpus_per_core = if allocation.manager == "Slurm" { granted / cores.len().max(1) } else { 1 };
        let cores = cores.len().min(granted);
        let free_bytes = ranks.iter().map(|rank| rank.memory_bytes).min().unwrap_or(0);
        let memory_bytes = free_bytes.min(allocation.memory_bytes.unwrap_or(u64::MAX));
        FoundNode { host: (*host).to_owned(), cores, cpus_per_core, memory_bytes }
    });
    each.collect()
}

/// What the nodes of `allocation` have by what is granted, else as this one does: nobody has looked at them.
pub(crate) fn granted(allocation: &Allocation, here: &HostFacts) -> Vec<Node> {
    let cores_here = here.cores_allowed.len();
    let each = allocation.cpus.iter().enumerate().map(|(index, cpus)| {
        // Slurm grants logical CPUs, of which a core may have several.
        let cores = cpus.map_or(cores_here, |cpus| match allocation.manager {
            "Slurm" => cpus.saturating_mul(cores_here) / here.cpus_allowed.max(1),
            _ => cpus.min(cores_here),
        });
        let memory_bytes = allocation.memory_bytes.unwrap_or(here.memory_available_bytes);
        (format!("node {}", index + 1), cores, memory_bytes)
    });
    grouped(each)
}

/// Names of nodes with their cores and memory in bytes as groups of equal ones that follow each other.
fn grouped(each: impl Iterator<Item = (String, usize, u64)>) -> Vec<Node> {
    let mut groups: Vec<(Node, String)> = Vec::new();
    for (host, cores, memory_bytes) in each {
        let cores = cores.max(1);
        let alike = |group: &Node| {
            let ratio = memory_bytes as f64 / group.memory_bytes.max(1) as f64;
            group.cores == cores && (1.0 - ALIKE..1.0 + ALIKE).contains(&ratio)
        };
        match groups.last_mut().filter(|(group, _)| alike(group)) {
            Some((group, first)) => {
                group.count += 1;
                group.memory_bytes = group.memory_bytes.min(memory_bytes);
                group.name = format!("{first}…{host}");
            }
            None => groups.push((Node { name: host.clone(), count: 1, cores, memory_bytes, ..Node::default() }, host)),
        }
    }
    let kept = |(node, _): (Node, String)| Node { reserved_bytes: node.memory_bytes / RESERVED, ..node };
    groups.into_iter().map(kept).collect()
}

#[cfg(test)]
mod tests {
    use hpl::machine::bindings::RankBinding;

    use super::*;

    fn rank(host: &str, cores: usize, gigabytes: u64) -> RankBinding {
        let cores: Vec<usize> = (0..cores).collect();
        RankBinding { host: host.into(), cores_allowed: cores.clone(), cores, memory_bytes: gigabytes * 1_000_000_000 }
    }

    fn allocation(cpus: &[usize], gigabytes: Option<u64>) -> Allocation {
        let cpus = cpus.iter().map(|&cpus| Some(cpus)).collect();
        Allocation { cpus, memory_bytes: gigabytes.map(|size| size * 1_000_000_000), ..Allocation::slurm("17") }
    }

    #[test]
    fn nodes_have_what_is_there_and_granted() {
        let ranks = vec![rank("n1", 4, 100), rank("n2", 4, 98), rank("n3", 4, 50), rank("n4", 4, 50)];
        let found = Bindings { version: String::new(), mpi: None, threads: 4, ranks };
        let job = MpiJob::new("srun", "xhpl".into());
        let of = |allocation: &Allocation| {
            let of = |node: Node| (node.name, node.count, node.cores, node.memory_bytes / 1_000_000_000);
            let hosts = ["n1", "n2", "n3", "n4"].map(str::to_owned);
            let reached = Reached::new(&job, &nodes(&found, allocation), &hosts);
            assert!(reached.job.nodes.is_empty() && reached.spares.is_empty());
            // Eight logical CPUs are granted and four cores found: a rank asks for two CPUs for each of its threads.
            assert_eq!(reached.job.cpus_per_core, (allocation.least_cpus() == Some(8)).then_some(2));
            reached.nodes.into_iter().map(of).collect::<Vec<_>>()
        };
        let two = [("n1…n2".to_owned(), 2, 4, 98), ("n3…n4".to_owned(), 2, 4, 50)];
        assert_eq!(of(&allocation(&[8, 8, 8, 8], None)), two);
        // Less memory and fewer cores are granted than are there.
        let granted = of(&allocation(&[4, 2, 2, 4], Some(40)));
        let expected = [("n1", 1, 4), ("n2…n3", 2, 2), ("n4", 1, 4)];
        assert_eq!(granted, expected.map(|(name, count, cores)| (name.to_owned(), count, cores, 40)));
    }

    #[test]
    fn spares_are_kept_apart_and_ranks_are_kept_to_the_others() {
        let ranks = vec![rank("n1", 4, 100), rank("n2", 4, 98), rank("n3", 2, 50)];
        let found = Bindings { version: String::new(), mpi: None, threads: 4, ranks };
        let job = MpiJob::new("srun", "xhpl".into());
        let all = nodes(&found, &allocation(&[4, 4, 4], None));
        let hosts = ["n1", "n2"].map(str::to_owned);
        let reached = Reached::new(&job, &all, &hosts);
        assert_eq!((reached.hosts.as_slice(), reached.spares.as_slice()), (&hosts[..], &["n3".to_owned()][..]));
        assert_eq!((reached.job.nodes.as_slice(), reached.job.most_threads), (&hosts[..], Some(4)));
        assert_eq!((reached.nodes.len(), reached.nodes[0].count), (1, 2));
        // In the place of a node that is lost.
        let replaced = ["n1", "n3"].map(str::to_owned);
        let reached = Reached::new(&job, &all, &replaced);
        assert_eq!((reached.hosts.as_slice(), reached.job.most_threads), (&replaced[..], Some(2)));
    }

    /// The speed of a slow node was said of another one where a spare before it in the job had taken a place after it.
    #[test]
    fn nodes_that_are_left_are_in_the_order_of_the_ranks() {
        let named = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<String>>();
        let of = |ranks: &[&str], hosts: &[&str]| {
            let ranks = ranks.iter().map(|host| rank(host, 4, 100)).collect();
            let found = Bindings { version: String::new(), mpi: None, threads: 4, ranks };
            kept_to(&MpiJob::new("srun", "xhpl".into()), &found, &allocation(&[4; 4], None), &named(hosts))
        };
        let reached = of(&["n1", "n3", "n4"], &["n1", "n4", "n3"]).unwrap();
        assert_eq!(reached.hosts, named(&["n1", "n3", "n4"]));
        assert_eq!((&reached.job.nodes, reached.nodes[0].count), (&reached.hosts, 3));
        let error = of(&["n1", "n2"], &["n1", "n4"]).unwrap_err().to_string();
        assert!(error.contains("none runs on n4, but on n1 n2"), "{error}");
    }

    #[test]
    fn nodes_that_nobody_looked_at_have_what_is_granted() {
        // This node has two logical CPUs on each core.
        let here = HostFacts {
            cores_allowed: (0..64).collect(),
            cpus_allowed: 128,
            memory_available_bytes: 500_000_000_000,
            ..hpl::machine::host::facts()
        };
        let found = granted(&allocation(&[128, 128, 32], None), &here);
        let of: Vec<_> = found.iter().map(|node| (node.name.as_str(), node.count, node.cores)).collect();
        assert_eq!(of, [("node 1…node 2", 2, 64), ("node 3", 1, 16)]);
        assert!(found.iter().all(|node| node.memory_bytes == 500_000_000_000));
        assert_eq!(granted(&allocation(&[128], Some(100)), &here)[0].memory_bytes, 100_000_000_000);
    }

    #[test]
    fn a_probe_has_a_rank_on_each_node_and_several_on_one() {
        let job = |launcher: &str| MpiJob::new(launcher, "xhpl".into());
        assert_eq!(probe(&job("srun"), &allocation(&[128, 128], None), 64), (2, 128));
        // By its path it was asked for half of the CPUs, and half of the cores were found.
        assert_eq!(probe(&job("/opt/slurm/bin/srun"), &allocation(&[128, 128], None), 64), (2, 128));
        assert_eq!(probe(&job("mpirun"), &allocation(&[128, 128], None), 64), (2, 64));
        assert_eq!(probe(&job("mpirun"), &allocation(&[128], None), 64), (2, 32));
        // Of an odd number of cores one was seen by no rank, and not used.
        let odd = [63, 3, 7].map(|cores| probe(&job("mpirun"), &allocation(&[cores], None), 64));
        assert_eq!(odd, [(3, 21), (3, 1), (7, 1)]);
        assert_eq!(probe(&job("srun"), &allocation(&[1], None), 1), (1, 1));
    }
}
