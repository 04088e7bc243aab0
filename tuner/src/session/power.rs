//! Who reads the power of a session's runs.

use std::path::Path;

use crate::power::{PowerReader, RunsOn};
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
