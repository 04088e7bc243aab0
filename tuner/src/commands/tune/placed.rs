//! Where the ranks of a session run: in this process, or on the nodes of a job.

use std::path::Path;

use objectives::foreign::Foreign;
use objectives::launcher::{self, MpiJob};
use objectives::simulated::SimulatedCluster;
use space::Unequal;
use space::machine::{Machine, Node};

use crate::cli::TuneArgs;
use crate::cluster::allocation::Allocation;
use crate::cluster::launched::bindings::bindings;
use crate::cluster::launched::nodes::{self, Reached, Used};
use crate::exit::bad_input;
use crate::search::progress::say;
use crate::session::engine::Engine;
use crate::session::engine::programs::xhpl_beside;

/// An engine where its ranks can run.
pub(super) struct PlacedEngine {
    pub(super) engine: Engine,
    /// The nodes that its processes have found; none where the ranks are on this one alone, or `--machine` says their nodes.
    pub(super) nodes: Vec<Node>,
    /// Their names.
    pub(super) hosts: Vec<String>,
    /// Names of the nodes that are kept to replace one of them.
    pub(super) spares: Vec<String>,
}

impl PlacedEngine {
    /// Where its own launcher, or this process, starts its ranks.
    fn unplaced(engine: Engine) -> Self {
        Self { engine, nodes: Vec::new(), hosts: Vec::new(), spares: Vec::new() }
    }

    /// `machine`, or nothing known but the nodes, with the nodes that were found.
    pub(super) fn described(&self, machine: Option<Machine>) -> Option<Machine> {
        if self.nodes.is_empty() {
            return machine;
        }
        Some(Machine { nodes: self.nodes.clone(), ..machine.unwrap_or_default() })
    }
}

/// Why so many nodes cannot be kept apart.
pub(super) fn no_spares(spares: u64) -> anyhow::Error {
    bad_input(format!(
        "--spares {spares}: only nodes of a job, or of --nodes, can be kept; start it in a job of several nodes, or leave --spares out"
    ))
}

/// Whether groups are of several nodes.
///
/// # Errors
/// `--groups` where there is only one.
pub(super) fn check_groups(args: &TuneArgs, nodes: usize) -> anyhow::Result<()> {
    if args.groups.is_some() && nodes < 2 {
        return Err(bad_input(
            "--groups: there is one node; start it in a job of several nodes, or leave --groups out",
        ));
    }
    Ok(())
}

/// Our engine on all nodes of `job`, unless the user wants it otherwise; processes are tried before they are relied on.
///
/// # Errors
/// Programs or nodes that are not there, and the way out.
pub(super) fn placed(
    engine: Engine,
    args: &TuneArgs,
    program: &Path,
    job: Option<&Allocation>,
    machine: Option<&Machine>,
    cores: usize,
) -> anyhow::Result<PlacedEngine> {
    let nodes_of_machine = machine.map_or(0, |machine| machine.nodes.iter().map(|node| node.count).sum());
    let described = nodes_of_machine > 1;
    if let Some(job) = job.filter(|job| described && job.manager.is_empty()) {
        return Err(bad_input(format!("{job}: --machine describes the nodes; leave one of them out")));
    }
    if let Some(job) = job {
        on_a_node(job, &engine)?;
    }
    let on_all = |job: &Allocation| matches!(engine, Engine::Ours) && job.nodes() > 1 && !args.local;
    if let Some(job) = job.filter(|job| on_all(job) && described && nodes_of_machine != job.nodes()) {
        return Err(bad_input(format!(
            "--machine describes {nodes_of_machine} nodes, and {job} has {}; give the description of as many, or leave --machine out",
            job.nodes()
        )));
    }
    let job = job.filter(|job| on_all(job) || !described);
    let used = Used::AllBut(args.spares as usize);
    let Reached { job, nodes, hosts, spares } = match (&engine, job) {
        (Engine::Ours, Some(job)) if on_all(job) => nodes::found(xhpl_beside(program), job, cores, used)?,
        (Engine::Launched(mpi), Some(job)) if args.launcher.is_none() => {
            nodes::found(mpi.program.clone(), job, cores, used)?
        }
        _ if args.spares > 0 && !matches!((&engine, job), (Engine::Launched(_), Some(_))) => {
            return Err(no_spares(args.spares));
        }
        _ => {
            engine.check_programs()?;
            match (&engine, job) {
                (Engine::Launched(mpi), Some(job)) => nodes::reached(mpi, job, cores, used)?,
                (Engine::Launched(mpi), None) => {
                    bindings(mpi, args.ranks.map_or(cores, |ranks| ranks as usize).min(2), 1)?;
                    return Ok(PlacedEngine::unplaced(engine));
                }
                (Engine::Foreign(foreign), Some(job)) if job.nodes() > 1 && reaches_nodes(foreign) => {
                    let nodes = with_accelerators(nodes::granted(job, &hpl::machine::host::facts_of_node()), machine);
                    let said: Vec<String> = nodes.iter().map(words).collect();
                    say(&format!(
                        "{job}: {} (as granted to the job, else as this node; describe them with --machine if that is wrong)",
                        said.join(", ")
                    ));
                    let machine = Machine { nodes: nodes.clone(), ..Machine::default() };
                    return Ok(PlacedEngine { nodes, ..PlacedEngine::unplaced(engine.on(Some(&machine))) });
                }
                _ => return Ok(PlacedEngine::unplaced(engine)),
            }
        }
    };
    let kept = if spares.is_empty() { String::new() } else { format!("; spares: {}", spares.join(" ")) };
    say(&format!("{} nodes, reached by {}: {}{kept}", hosts.len(), job.launcher, hosts.join(" ")));
    Ok(PlacedEngine { engine: Engine::Launched(job), nodes, hosts, spares })
}

/// What the user should know of nodes with unequal numbers of CPUs, on which our engine runs.
pub(super) fn uneven(job: &Allocation, engine: &Engine) -> Option<String> {
    let unequal = job.unequal().filter(|_| matches!(engine, Engine::Launched(_)))?;
    Some(format!(
        "{unequal}: ranks have threads in numbers that divide the cores of every node, and weights are not searched"
    ))
}

/// Whether the launcher of another engine starts as many processes as it is asked for.
fn reaches_nodes(foreign: &Foreign) -> bool {
    launcher::says_processes(&launcher::words(&foreign.profile().launcher))
}

/// A group of nodes in words.
fn words(group: &Node) -> String {
    let gib = group.memory_bytes as f64 / f64::from(1 << 30);
    let places = group.accelerators.map_or(("core", group.cores), |count| ("accelerator", count));
    let [nodes, places] = [("node", group.count), places]
        .map(|(what, count)| format!("{count} {what}{}", if count == 1 { "" } else { "s" }));
    format!("{nodes} of {places} and {gib:.1} GiB")
}

/// The nodes with the accelerators of `here`, the description of this one, where it has some.
fn with_accelerators(nodes: Vec<Node>, here: Option<&Machine>) -> Vec<Node> {
    let own = here.and_then(|machine| machine.nodes.first()).filter(|node| node.accelerators.is_some());
    let Some(&Node { accelerators, memory_bytes, reserved_bytes, .. }) = own else { return nodes };
    nodes.into_iter().map(|node| Node { accelerators, memory_bytes, reserved_bytes, ..node }).collect()
}

/// Makes sure that what is measured here is a node of `job`.
///
/// # Errors
/// A host that is none of them; another engine starts its processes by itself, and is only warned of.
pub(super) fn on_a_node(job: &Allocation, engine: &Engine) -> anyhow::Result<()> {
    if job.is_here() {
        return Ok(());
    }
    let host = hpl::machine::host::facts().hostname;
    let is_none = format!("{job}: this host, {host}, is none of its nodes");
    if matches!(engine, Engine::Foreign(_)) {
        say(&format!("warning: {is_none}; what is measured before the first run is of this host"));
        return Ok(());
    }
    Err(bad_input(format!("{is_none}: let --sbatch FILE write a script with this command, and submit that")))
}

/// Makes sure that ranks of which each is named leave no node without work.
///
/// # Errors
/// Fewer ranks than nodes.
pub(super) fn enough_ranks(unequal: &Unequal, hosts: &[String]) -> anyhow::Result<()> {
    match unequal.ranks().filter(|ranks| *ranks < hosts.len()) {
        Some(ranks) => Err(bad_input(format!(
            "weights or rank_kernels are those of {ranks} ranks, and there are {} nodes: give those of one rank for each node at least, or use fewer nodes",
            hosts.len()
        ))),
        None => Ok(()),
    }
}

/// All nodes of a cluster that `program` simulates; where its file will be is not known yet.
pub(super) fn on_simulated(cluster: &SimulatedCluster, program: &Path) -> PlacedEngine {
    let node = cluster.node().clone();
    let job = MpiJob { most_threads: Some(node.cores), ..MpiJob::new("none", program.to_owned()) };
    PlacedEngine { engine: Engine::Launched(job), nodes: vec![node], hosts: cluster.hosts(), spares: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn granted_nodes_have_the_accelerators_of_this_one() {
        let granted =
            Node { name: "node 1…node 2".to_owned(), count: 2, cores: 64, memory_bytes: 1 << 40, ..Node::default() };
        let own = Node { accelerators: Some(4), memory_bytes: 320 << 30, reserved_bytes: 16 << 30, ..Node::default() };
        let here = Machine { nodes: vec![own], ..Machine::default() };
        let with = with_accelerators(vec![granted.clone()], Some(&here));
        assert_eq!((with[0].count, with[0].accelerators, with[0].memory_bytes), (2, Some(4), 320 << 30));
        assert_eq!(words(&with[0]), "2 nodes of 4 accelerators and 320.0 GiB");
        let without = with_accelerators(vec![granted.clone()], None);
        assert_eq!((without.len(), &without[0]), (1, &granted));
        assert_eq!(words(&granted), "2 nodes of 64 cores and 1024.0 GiB");
    }
}
