//! Who reads the power of a session's runs.

use std::path::Path;

use crate::power::{PowerReader, RunsOn};
use crate::record::Objective;
use crate::record::session::Session;

/// The reader of a session, with the sensors below `root`.
pub fn reader(session: &Session, root: &Path) -> PowerReader {
    if session.is_simulated() {
        return PowerReader::nothing();
    }
    PowerReader::new(root, session.power_log.clone(), runs_on(session))
}

/// What is said of it before the first run.
pub fn sentences(session: &Session, power: &PowerReader) -> Vec<String> {
    if session.is_simulated() { Vec::new() } else { power.sentences() }
}

/// Makes sure that the objective of a session can be read. `simulated`: whether its cluster has a power, where it is simulated.
///
/// # Errors
/// Why it cannot, with the way out.
pub fn check(session: &Session, root: &Path, simulated: Option<bool>) -> Result<(), String> {
    if session.objective.is_rate() {
        return Ok(());
    }
    let flag = match session.objective {
        Objective::GflopsWithin { .. } => "--power-limit",
        Objective::Gflops | Objective::GflopsPerWatt => "--objective gflops-per-watt",
    };
    if let Some(has_power) = simulated {
        return if has_power { Ok(()) } else { Err(format!("{flag}: the simulated cluster has no [power]")) };
    }
    let power = reader(session, root);
    if !power.is_of_all() {
        let why = "power is read on the node of hpl-tune alone, and the runs are on others, too";
        return Err(format!("{flag}: {why}; use --local, or leave that flag out"));
    }
    if !power.can_read() {
        return Err(format!("{flag}: {}", power.sentences().join("; ")));
    }
    Ok(())
}

/// Whether all runs of a session are on this node alone.
pub fn runs_on_this_node(session: &Session) -> bool {
    runs_on(session) == RunsOn::ThisNode
}

/// Where the runs are. Without names the nodes are described or granted ones, this one among them.
fn runs_on(session: &Session) -> RunsOn {
    let this = session.host.clone();
    let short = |name: &str| name.split('.').next().unwrap_or(name).to_owned();
    let named = !session.hosts.is_empty();
    if named && !session.hosts.iter().any(|host| short(host) == short(&this)) {
        return RunsOn::Others { this };
    }
    let described = || session.nodes.iter().map(|node| node.count).sum();
    match if named { session.hosts.len() } else { described() } {
        0 | 1 => RunsOn::ThisNode,
        nodes => RunsOn::Several { this, nodes },
    }
}

#[cfg(test)]
mod tests {
    use space::machine::Node;

    use super::*;
    use crate::report::summary::tests::session;

    #[test]
    fn an_objective_that_cannot_be_read_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let rate = session();
        assert_eq!(check(&rate, root.path(), None), Ok(()));
        let per_watt = Session { objective: Objective::GflopsPerWatt, ..rate };
        let message = check(&per_watt, root.path(), None).unwrap_err();
        assert!(message.contains("no sensor was found") && message.contains("--power-log"), "{message}");
        assert_eq!(check(&per_watt, root.path(), Some(true)), Ok(()));
        assert!(check(&per_watt, root.path(), Some(false)).unwrap_err().contains("has no [power]"));
        let counters = root.path().join("sys/cray/pm_counters");
        std::fs::create_dir_all(&counters).unwrap();
        std::fs::write(counters.join("energy"), "5 J 6 us").unwrap();
        assert_eq!(check(&per_watt, root.path(), None), Ok(()));
        let several = Session { hosts: vec!["host".into(), "other".into()], ..per_watt };
        assert!(check(&several, root.path(), None).unwrap_err().contains("--local"));
    }

    #[test]
    fn the_nodes_of_a_session_say_whose_power_is_read() {
        let on = |hosts: &[&str], count: usize| {
            let node: Node = toml::from_str(&format!("name = 'n'\ncount = {count}\ncores = 2")).unwrap();
            let nodes = if count > 0 { vec![node] } else { Vec::new() };
            runs_on(&Session { hosts: hosts.iter().map(|&host| host.to_owned()).collect(), nodes, ..session() })
        };
        assert_eq!((on(&[], 0), on(&["host.cluster"], 1)), (RunsOn::ThisNode, RunsOn::ThisNode));
        assert_eq!(on(&["host", "other"], 2), RunsOn::Several { this: "host".into(), nodes: 2 });
        assert_eq!(on(&[], 4), RunsOn::Several { this: "host".into(), nodes: 4 });
        assert_eq!(on(&["n1"], 1), RunsOn::Others { this: "host".into() });
    }
}
