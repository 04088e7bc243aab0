//! How a session goes on: on the nodes that its job has now, and without those that answer no more.

use std::path::Path;

use objectives::launcher::MpiJob;
use objectives::real::quoted;
use space::Unequal;
use space::machine::Node;

use super::placed::on_a_node;
use crate::cluster::allocation::Allocation;
use crate::cluster::launched::bindings::bindings;
use crate::cluster::launched::lost::{lost, silent};
use crate::cluster::launched::nodes::{self, Reached, Used};
use crate::exit::bad_input;
use crate::record::Finished;
use crate::record::folder::{Lock, RunFolder, remove_file, replace_file};
use crate::record::session::Session;
use crate::record::store::Store;
use crate::search::budget::{Budget, SMALLEST_BUDGET_S};
use crate::search::interrupt::Interrupt;
use crate::search::progress::say;
use crate::session::engine::Engine;
use crate::session::input::read_machine;

/// Trials as long as the longest one that have to fit into the time left, beside the shortest budget and a survey: for less it is not worth to
/// go on.
const WORTH_TRIALS: f64 = 4.0;

/// Part of the memory by which nodes may have less than before without another N.
const LESS_MEMORY: f64 = 0.05;

/// The folder at `path`, and the session in it.
///
/// # Errors
/// A folder that holds none, or is not this user's alone.
pub(super) fn stored(path: &Path) -> anyhow::Result<(RunFolder, Lock, Session)> {
    let folder = RunFolder::open(path)?;
    folder.check_owner()?;
    let lock = folder.lock()?;
    let session = Session::load(&folder.session_toml())?;
    Ok((folder, lock, session))
}

/// What a session that is resumed finds of its nodes.
pub(super) enum Found {
    /// What it knows of them holds.
    AsBefore,
    /// The session on those that it has now, saved.
    Now(Box<Session>),
    /// These of them answer no more.
    Silent(Vec<String>),
}

/// Makes sure that the processes of a session can be started. On other nodes than before it goes on with these: they are calibrated
/// anew, unless their rates were given, and what was measured before belongs to another machine.
///
/// # Errors
/// Processes that cannot be started any more, though all nodes of the session answer, or none.
pub(super) fn on_nodes_of_job(store: &Store, interrupt: &Interrupt) -> anyhow::Result<Found> {
    let (session, folder) = (store.session(), store.folder());
    let Some(mpi) = &session.mpi_job else { return Ok(Found::AsBefore) };
    let cores = hpl::machine::host::facts().cores_allowed.len();
    let before = session.hosts.len();
    let job = Allocation::here().or_else(|| (before > 1).then(|| Allocation::reached(before)));
    let job = job.filter(|_| before > 0 && !session.is_simulated());
    // Its nodes were those of its job, not such as the user's launcher reaches.
    let given = |word: &String| word == "--launcher" || word.starts_with("--launcher=");
    let words = shlex::split(&session.command).unwrap_or_default();
    let was_in_job = mpi.launcher.starts_with("srun") && !words.iter().any(given);
    if was_in_job && job.as_ref().is_some_and(|job| job.manager.is_empty()) {
        let root = quoted([folder.root()]).concat();
        return Err(bad_input(format!(
            "{root}: the session ran on {before} nodes of a Slurm job, and this is none: submit its script again, or resume it in a job; \
             hpl-tune report {root} shows what it has"
        )));
    }
    if let Some(job) = &job {
        on_a_node(job, &Engine::Launched(mpi.clone()))?;
    }
    let Some(job) = job else {
        bindings(mpi, session.ranks.unwrap_or(cores).min(2), 1)?;
        return Ok(Found::AsBefore);
    };
    let now = match nodes_now(session, mpi, &job, cores) {
        Ok(now) => now,
        Err(error) => {
            // What was verified stays the result.
            let gone = if store.final_passed() { Vec::new() } else { lost(mpi, &session.hosts, interrupt) };
            return if gone.is_empty() { Err(error) } else { Ok(Found::Silent(gone)) };
        }
    };
    let (before, found) = (all_cores(&session.nodes), all_cores(&now.nodes));
    if found != before {
        return Err(bad_input(format!(
            "the session uses {before} cores on {}, {job} has {found} on {}; resume it in a job like the first, or start a new one with \
             --warm-start {}",
            session.hosts.join(" "),
            now.hosts.join(" "),
            quoted([folder.root()]).concat()
        )));
    }
    let other = on_nodes(session, now);
    if other.node_names() == session.node_names() {
        // The job may have other nodes beside them, on which no rank may be.
        let same = Session { mpi_job: other.mpi_job, spares: other.spares, lost: other.lost, ..session.clone() };
        same.save(&folder.session_toml())?;
        return Ok(Found::Now(Box::new(same)));
    }
    say(&format!(
        "warning: the session was on {}, now it is on {}: its trials there influence what is tried first, and are not part of the result",
        session.hosts.join(" "),
        other.hosts.join(" ")
    ));
    if folder.calibrated_node().exists() {
        for measured in [folder.calibrated_node(), folder.machine_toml()] {
            remove_file(&measured)?;
        }
    } else {
        describe(folder, &other.nodes)?;
    }
    let other = Session { host: hpl::machine::host::facts().hostname, ..at_own_n(other, session) };
    other.save(&folder.session_toml())?;
    Ok(Found::Now(Box::new(other)))
}

/// The nodes of `job` on which a session can go on, as its processes find them; `cores`: of this node.
///
/// # Errors
/// Processes that cannot be started, neither on all nodes of the job nor on those of the session.
fn nodes_now(session: &Session, mpi: &MpiJob, job: &Allocation, cores: usize) -> anyhow::Result<Reached> {
    // Its spares are not among the nodes of that job.
    let on_same = || -> anyhow::Result<Reached> {
        let same = nodes::of_hosts(mpi, job, &session.hosts, least_cores(&session.nodes))?;
        Ok(Reached { spares: session.spares.clone(), ..same })
    };
    if job.manager.is_empty() && !mpi.nodes.is_empty() {
        return on_same();
    }
    // Nodes that were left out may be back. What is granted is not known in cores before they are looked at.
    let all = MpiJob { nodes: Vec::new(), cpus_per_core: None, ..mpi.clone() };
    match nodes::reached(&all, job, cores, Used::Before(&session.hosts)) {
        // Or still be nodes of the job that do not answer, as a spare may.
        Err(error) if mpi.chooses_nodes() => on_same().map_err(|_| error),
        found => found,
    }
}

/// The session without the nodes `lost`, each of them replaced by a spare where one answers; `rows`: its trials on all of them.
/// `None` where too little is left of its `budget` to go on.
///
/// # Errors
/// Nodes that cannot be used without them, or files that cannot be written.
pub(super) fn without(
    session: &Session,
    folder: &RunFolder,
    lost: &[String],
    rows: &[impl Finished],
    budget: &Budget,
) -> anyhow::Result<Option<Session>> {
    let Some(mpi) = &session.mpi_job else { return Ok(None) };
    // Nodes of which this one was calibrated are surveyed anew.
    let survey_s = if folder.calibrated_node().exists() { budget.survey_s() } else { 0.0 };
    if budget.left_s() < least_s(rows, survey_s) {
        return Ok(None);
    }
    let dead = silent(mpi, &session.spares, &|| false);
    let mut answering = session.spares.iter().filter(|spare| !dead.contains(spare)).cloned();
    let hosts: Vec<String> = session
        .hosts
        .iter()
        .filter_map(|host| if lost.contains(host) { answering.next() } else { Some(host.clone()) })
        .collect();
    let allocation = Allocation::here().unwrap_or_else(|| Allocation::reached(session.hosts.len()));
    let now = nodes::of_hosts(mpi, &allocation, &hosts, least_cores(&session.nodes))?;
    let (fewer, replaced) = (session.hosts.len() - hosts.len(), lost.len() + hosts.len() - session.hosts.len());
    say(&format!(
        "warning: {} answer{} no more: {}the session goes on on {}; its trials before influence what is tried first, and are not part of \
         the result",
        lost.join(", "),
        if lost.len() == 1 { "s" } else { "" },
        match replaced {
            0 => String::new(),
            1 => "one spare takes the place, ".to_owned(),
            count => format!("{count} spares take the places, "),
        },
        if fewer == 0 { now.hosts.join(" ") } else { format!("{} nodes: {}", hosts.len(), now.hosts.join(" ")) },
    ));
    let spares = answering.collect();
    let mut other = on_nodes(session, Reached { spares, ..now });
    other.lost.extend(lost.iter().chain(&dead).cloned());
    other = at_own_n(other, session);
    // Speeds and kernels of ranks are those of their number.
    if let Some(ranks) = session.ranks.filter(|_| fewer > 0 && session.unequal.ranks().is_none()) {
        let left = ranks_on(ranks, session.hosts.len(), hosts.len());
        say(&format!("--ranks: {left} in place of {ranks}, as many on each node as before"));
        other.ranks = Some(left);
    }
    if folder.calibrated_node().exists() {
        // The calibration of this node holds, the survey of all does not.
        remove_file(&folder.machine_toml())?;
    } else {
        describe(folder, &other.nodes)?;
    }
    other.save(&folder.session_toml())?;
    Ok(Some(other))
}

/// Seconds of the budget that are worth to go on for after `rows`, where a survey may take `survey_s` of them.
pub(super) fn least_s(rows: &[impl Finished], survey_s: f64) -> f64 {
    let longest_s = rows.iter().filter(|row| row.passed()).map(Finished::wall_s).fold(0.0, f64::max);
    SMALLEST_BUDGET_S + WORTH_TRIALS * longest_s + survey_s
}

/// The session on other nodes: what belonged to the ones before is not known of these.
fn on_nodes(session: &Session, now: Reached) -> Session {
    let Reached { job, nodes, hosts, spares } = now;
    let mut other =
        Session { hosts, nodes, spares, mpi_job: Some(job), left: None, lead_of_search: None, ..session.clone() };
    other.lost.retain(|host| !other.hosts.contains(host));
    if other.unequal.node_cores.is_some() {
        other.unequal = Unequal { kernels: session.unequal.kernels.clone(), ..Unequal::default() };
    }
    other
}

/// The session on `other` nodes, at another N than on those `before` where they have other cores or less memory; an N of the user stays.
fn at_own_n(other: Session, before: &Session) -> Session {
    let has_memory = least_bytes(&other.nodes) >= (1.0 - LESS_MEMORY) * least_bytes(&before.nodes);
    if has_memory && all_cores(&other.nodes) == all_cores(&before.nodes) {
        return other;
    }
    Session { n: other.n.filter(|_| other.n_fixed), n_memory: None, expert: None, ..other }
}

/// Lets the description in `folder`, where there is one, be of these nodes; its rates hold for them, too, its links of other nodes do not.
fn describe(folder: &RunFolder, nodes: &[Node]) -> anyhow::Result<()> {
    let path = folder.machine_toml();
    if path.exists() {
        let (mut machine, _) = read_machine(&path)?;
        let is_here = |name: &String| nodes.iter().any(|node| node.name == *name);
        machine.links.retain(|link| link.nodes.iter().all(is_here));
        machine.nodes = nodes.to_vec();
        replace_file(&path, machine.to_toml()?.as_bytes())?;
    }
    Ok(())
}

/// As many of `ranks` on each of `now` nodes as there are on each of `before`.
fn ranks_on(ranks: usize, before: usize, now: usize) -> usize {
    (ranks.saturating_mul(now) / before.max(1)).max(1)
}

fn all_cores(nodes: &[Node]) -> usize {
    nodes.iter().map(|node| node.count * node.cores).sum()
}

fn least_cores(nodes: &[Node]) -> usize {
    nodes.iter().map(|node| node.cores).min().unwrap_or(1)
}

fn least_bytes(nodes: &[Node]) -> f64 {
    nodes.iter().map(|node| node.memory_bytes as f64).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use space::machine::{Link, Machine};

    use super::*;
    use crate::record::Row;
    use crate::record::arbitrary::row;
    use crate::report::summary::tests::session;
    use crate::search::schedule::tests::machine;

    /// The survey of the nodes that were left took the time that was left for trials.
    #[test]
    fn a_session_goes_on_without_a_node_where_time_is_left_beside_the_survey() {
        let parent = tempfile::tempdir().unwrap();
        let (folder, _lock) = RunFolder::create(&parent.path().join("run")).unwrap();
        std::fs::create_dir_all(folder.calibration()).unwrap();
        std::fs::write(folder.calibrated_node(), "").unwrap();
        let hosts = ["n1", "n2"].map(str::to_owned);
        let mpi_job = Some(MpiJob::new("mpirun -np {np}", "xhpl".into()));
        let session = Session { mpi_job, hosts: hosts.to_vec(), ..session() };
        let rows = [Row { wall_s: 5.0, ..row(0) }];
        assert_eq!([0.0, 3.0].map(|survey_s| least_s(&rows, survey_s)), [50.0, 53.0]);
        // The survey may take a tenth of these.
        let budget = Budget::new(Instant::now(), 7200.0, 7200.0 - 54.0);
        assert!(matches!(without(&session, &folder, &hosts[1..], &rows, &budget), Ok(None)));
    }

    /// Of a job on nodes with less memory the session said that its N does not fit, and ended.
    #[test]
    fn on_nodes_with_less_memory_another_n_is_chosen() {
        let with = |memory_bytes: u64| {
            let node = Node { count: 2, cores: 4, memory_bytes, ..Node::default() };
            Session { nodes: vec![node], ..session() }
        };
        let before = with(64 << 30);
        let n = |other: Session| at_own_n(other, &before).n;
        assert_eq!([62 << 30, 64 << 30, 128 << 30].map(|bytes| n(with(bytes))), [before.n; 3]);
        let other_cores = Session { nodes: [before.nodes.clone(), before.nodes.clone()].concat(), ..before.clone() };
        assert_eq!([n(with(48 << 30)), n(other_cores)], [None; 2]);
        assert_eq!(n(Session { n_fixed: true, ..with(48 << 30) }), before.n);
    }

    /// The description that the user gave was of the nodes before, with their memory.
    #[test]
    fn a_description_is_of_the_nodes_that_the_session_has_now() {
        let parent = tempfile::tempdir().unwrap();
        let (folder, _lock) = RunFolder::create(&parent.path().join("run")).unwrap();
        let nodes = [Node { name: "n3".into(), memory_bytes: 1 << 30, ..machine().nodes[0].clone() }];
        describe(&folder, &nodes).unwrap();
        assert!(!folder.machine_toml().exists(), "there was none");
        let links = vec![Link { nodes: ["host", "host"].map(str::to_owned), gbytes_per_s: 10.0 }];
        let given = Machine { links, ..machine() };
        std::fs::write(folder.machine_toml(), given.to_toml().unwrap()).unwrap();
        describe(&folder, &nodes).unwrap();
        let (found, _) = read_machine(&folder.machine_toml()).unwrap();
        assert_eq!((&found.nodes[..], &found.rates), (&nodes[..], &given.rates));
        assert!(found.links.is_empty(), "they are of other nodes");
    }

    /// The ranks of all nodes had no place on those that were left, and the session ended with that.
    #[test]
    fn fixed_ranks_are_as_many_on_each_node_that_is_left() {
        assert_eq!([ranks_on(64, 4, 3), ranks_on(4, 4, 3), ranks_on(6, 4, 3), ranks_on(1, 2, 1)], [48, 3, 4, 1]);
    }
}
