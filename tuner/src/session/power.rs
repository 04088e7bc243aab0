//! Who reads the power of a session's runs.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use hpl::machine::accelerators::Accelerators;
use objectives::launcher::MpiJob;
use space::machine::Node;

use crate::agents::{AgentCommand, NodeAgents, agent, root_of, short};
use crate::power::{MeterLog, PowerReader, RunsOn};
use crate::record::Objective;
use crate::record::session::Session;
use crate::session::engine::Engine;
use crate::session::node_count::node_count;

/// The way out of what one node alone has: `--local` excludes the flags that say how others are reached.
pub const ONE_NODE: &str = "run on one node, as by --local in place of --launcher, --program and --engine";

/// The nodes of the runs of a session, as far as something says which they are.
#[derive(Debug, Clone, Copy)]
pub struct SessionNodes<'a> {
    /// The session.
    pub session: &'a Session,
    /// Its engine.
    pub engine: &'a Engine,
    /// The nodes that its machine.toml describes; none where there is none yet.
    pub described: &'a [Node],
}

impl SessionNodes<'_> {
    /// Whether all runs are on this node alone.
    pub fn are_this_one(&self) -> bool {
        self.runs_on() == RunsOn::ThisNode
    }

    /// Where the runs are. Without names the nodes are described or granted ones, this one among them.
    fn runs_on(&self) -> RunsOn {
        let Self { session, engine, described } = *self;
        let this = session.host.clone();
        if !session.hosts.is_empty() && !session.hosts.iter().any(|host| short(host) == short(&this)) {
            return RunsOn::Others { this };
        }
        match node_count(session, engine, described) {
            None | Some(0 | 1) => RunsOn::ThisNode,
            Some(nodes) => RunsOn::Several { this, nodes },
        }
    }
}

/// The reader of a session, with the sensors below `root`.
pub fn reader(nodes: &SessionNodes<'_>, root: &Path) -> PowerReader {
    let session = nodes.session;
    if session.is_simulated() {
        return PowerReader::nothing();
    }
    PowerReader::new(&root_of(root, &session.host), session.power_log.clone(), nodes.runs_on())
}

/// How a process is started on each node of the runs of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeProcesses {
    /// Names of the nodes.
    pub nodes: Vec<String>,
    /// The words that start it on all of them.
    pub words: Vec<OsString>,
}

impl NodeProcesses {
    /// Starts them, with the sensors below `root`; `folder`: that of the session.
    pub fn start(self, root: &Path, folder: &Path) -> Arc<NodeAgents> {
        // The processes are in other folders.
        let [root, folder] = [root, folder].map(|path| std::path::absolute(path).unwrap_or(path.to_owned()));
        Arc::new(NodeAgents::start(AgentCommand { nodes: self.nodes, words: self.words, root, folder }))
    }
}

/// The [`reader`] of a session with the processes on the nodes of its runs, where their sensors are to be read.
pub fn reader_of_nodes(nodes: &SessionNodes<'_>, root: &Path, agents: Option<&Arc<NodeAgents>>) -> PowerReader {
    let power = reader(nodes, root);
    match agents.filter(|_| power.needs_nodes()) {
        Some(agents) => power.with_nodes(Arc::clone(agents)),
        None => power,
    }
}

/// What starts a process of `program` on each of `nodes`, by the launcher of `engine`; `None` where it is not known how.
pub fn words(engine: &Engine, nodes: &[String], program: &Path) -> Option<Vec<OsString>> {
    if nodes.is_empty() {
        return None;
    }
    let job = match engine {
        Engine::Launched(job) if job.simulated.is_none() => job.clone(),
        Engine::Foreign(foreign) => MpiJob::new(&foreign.profile().launcher, program.to_owned()),
        Engine::Ours | Engine::Launched(_) => return None,
    };
    let in_slurm = std::env::var_os("SLURM_JOB_ID").is_some();
    job.once_on_each(nodes, &[program.into(), agent::VERB.into()], in_slurm)
}

/// Whether the nodes of a session can be asked for their power, as far as its launcher goes. Those of another engine are found when the
/// session begins.
pub fn can_be_asked(session: &Session, engine: &Engine) -> bool {
    let found_later = session.hosts.is_empty() && matches!(engine, Engine::Foreign(_));
    let nodes = if found_later { std::slice::from_ref(&session.host) } else { &session.hosts };
    words(engine, nodes, Path::new("hpl-tune")).is_some()
}

/// What is said of it before the first run.
pub fn sentences(session: &Session, power: &PowerReader) -> Vec<String> {
    if session.is_simulated() { Vec::new() } else { power.sentences() }
}

/// Makes sure that the objective of a session can be read. `simulated`: whether its cluster has a power, where it is simulated.
///
/// # Errors
/// Why it cannot, with the way out.
pub fn check(nodes: &SessionNodes<'_>, root: &Path, simulated: Option<bool>) -> Result<(), String> {
    let SessionNodes { session, engine, .. } = *nodes;
    let Some(flag) = flag_of(session.objective) else { return Ok(()) };
    if let Some(has_power) = simulated {
        return if has_power { Ok(()) } else { Err(format!("{flag}: the simulated cluster has no [power]")) };
    }
    let power = reader(nodes, root);
    if power.needs_nodes() && can_be_asked(session, engine) {
        // They are asked when the session begins.
        return Ok(());
    }
    readable(&power, flag)
}

/// Makes sure that an objective can be read where the runs are on `host`, this node, alone.
///
/// # Errors
/// Why it cannot, with the way out.
pub fn check_here(objective: Objective, host: &str, meter: Option<MeterLog>, root: &Path) -> Result<(), String> {
    let flag = flag_of(objective);
    flag.map_or(Ok(()), |flag| readable(&PowerReader::new(&root_of(root, host), meter, RunsOn::ThisNode), flag))
}

/// Makes sure that the objective of a session can be read of the nodes that were asked.
///
/// # Errors
/// Why it cannot, with the way out.
pub fn check_nodes(session: &Session, power: &PowerReader) -> Result<(), String> {
    flag_of(session.objective).filter(|_| !session.is_simulated()).map_or(Ok(()), |flag| readable(power, flag))
}

fn readable(power: &PowerReader, flag: &str) -> Result<(), String> {
    if !power.is_of_all() {
        let said = power.sentences().join("; ");
        let why = "power is not read on all nodes of the runs";
        return Err(format!("{flag}: {why} ({said}); {ONE_NODE}, or leave that flag out"));
    }
    if !power.can_read() {
        return Err(format!("{flag}: {}", power.sentences().join("; ")));
    }
    Ok(())
}

/// The flag by which an objective asks for power.
fn flag_of(objective: Objective) -> Option<&'static str> {
    match objective {
        Objective::Gflops => None,
        Objective::GflopsWithin { .. } => Some("--power-limit"),
        Objective::GflopsPerWatt => Some("--objective gflops-per-watt"),
    }
}

/// The accelerators that the runs are on, where these are all that this node has: those of the only node that is described.
pub fn accelerators(nodes: &SessionNodes<'_>, root: &Path) -> Accelerators {
    match nodes.described {
        [Node { count: 1, accelerators: Some(count), .. }] if !nodes.engine.calibrates() && nodes.are_this_one() => {
            Accelerators::find(root, *count)
        }
        _ => Accelerators::default(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::report::summary::tests::session;

    #[test]
    fn an_objective_that_cannot_be_read_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let check = |session: &Session, simulated: Option<bool>| {
            check(&SessionNodes { session, engine: &Engine::Ours, described: &[] }, root.path(), simulated)
        };
        let rate = session();
        assert_eq!(check(&rate, None), Ok(()));
        let per_watt = Session { objective: Objective::GflopsPerWatt, ..rate };
        let message = check(&per_watt, None).unwrap_err();
        assert!(message.contains("no sensor was found") && message.contains("--power-log"), "{message}");
        assert_eq!(check(&per_watt, Some(true)), Ok(()));
        assert!(check(&per_watt, Some(false)).unwrap_err().contains("has no [power]"));
        let counters = root.path().join("sys/cray/pm_counters");
        std::fs::create_dir_all(&counters).unwrap();
        std::fs::write(counters.join("energy"), "5 J 6 us").unwrap();
        assert_eq!(check(&per_watt, None), Ok(()));
        let several = Session { hosts: vec!["host".into(), "other".into()], ..per_watt };
        // With --engine, --local alone is refused.
        let way_out = "--local in place of --launcher, --program and --engine, or leave that flag out";
        assert!(check(&several, None).unwrap_err().ends_with(way_out));
    }

    #[test]
    fn the_nodes_of_a_session_say_whose_power_is_read() {
        let engine = launched();
        let on = |hosts: &[&str], count: usize| {
            let nodes = if count > 0 { vec![nodes_of_two_cores(count)] } else { Vec::new() };
            let hosts = hosts.iter().map(|&host| host.to_owned()).collect();
            let session = Session { hosts, nodes, ..session() };
            SessionNodes { session: &session, engine: &engine, described: &[] }.runs_on()
        };
        assert_eq!((on(&[], 0), on(&["host.cluster"], 1)), (RunsOn::ThisNode, RunsOn::ThisNode));
        assert_eq!(on(&["host", "other"], 2), RunsOn::Several { this: "host".into(), nodes: 2 });
        assert_eq!(on(&[], 4), RunsOn::Several { this: "host".into(), nodes: 4 });
        assert_eq!(on(&["n1"], 1), RunsOn::Others { this: "host".into() });
    }

    #[test]
    fn the_power_of_this_node_is_not_that_of_all_that_a_launcher_reaches() {
        let root = tempfile::tempdir().unwrap();
        let counters = root.path().join("sys/cray/pm_counters");
        std::fs::create_dir_all(&counters).unwrap();
        std::fs::write(counters.join("energy"), "5 J 6 us").unwrap();
        let session = Session { objective: Objective::GflopsPerWatt, ..session() };
        let (engine, four) = (launched(), [nodes_of_two_cores(4)]);
        let on = |engine: &Engine, described: &[Node]| {
            let nodes = SessionNodes { session: &session, engine, described };
            (reader(&nodes, root.path()).is_of_all(), check(&nodes, root.path(), None).is_ok())
        };
        assert_eq!(on(&engine, &four), (false, false), "four nodes that --machine describes");
        assert_eq!(on(&engine, &four[..0]), (true, true));
        assert_eq!(on(&Engine::Ours, &four), (true, true), "ranks are threads of one process");
    }

    fn launched() -> Engine {
        Engine::Launched(MpiJob::new("my-launcher -n {np}", PathBuf::from("xhpl")))
    }

    fn nodes_of_two_cores(count: usize) -> Node {
        Node { name: "n".to_owned(), count, cores: 2, ..Node::default() }
    }
}
