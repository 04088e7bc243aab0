//! How many nodes the runs of a session are on.

use space::machine::Node;

use crate::record::session::Session;
use crate::session::engine::Engine;

/// Nodes of the runs of `session` by `engine`, where `described` are those of the machine.toml in its folder, none where it has none yet.
/// `None` where nothing says: another engine's launcher may reach nodes that are not described.
pub fn node_count(session: &Session, engine: &Engine, described: &[Node]) -> Option<usize> {
    if !session.hosts.is_empty() {
        return Some(session.hosts.len());
    }
    let sum = |nodes: &[Node]| nodes.iter().map(|node| node.count).fold(0, usize::saturating_add);
    let found = [&session.nodes[..], described].into_iter().map(sum).find(|nodes| *nodes > 0);
    match engine {
        // Its ranks are threads of one process, whatever is described.
        Engine::Ours => Some(1),
        Engine::Launched(_) => found,
        Engine::Foreign(foreign) => match foreign.profile().nodes {
            Some(1) => Some(1),
            Some(most) => found.map(|nodes| nodes.min(most)),
            None => found,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use objectives::foreign::{Foreign, PROFILE_SCHEMA, Profile, SHIPPED};
    use objectives::launcher::MpiJob;

    use super::*;
    use crate::report::summary::tests::session;

    fn foreign(nodes: Option<usize>) -> Engine {
        let profile = Profile::parse(SHIPPED[0].1).unwrap();
        Engine::Foreign(Box::new(Foreign::new(Profile { nodes, schema_version: PROFILE_SCHEMA, ..profile }).unwrap()))
    }

    #[test]
    fn nodes_that_only_the_description_names_are_counted() {
        let four = [Node { name: "n".to_owned(), count: 4, cores: 2, ..Node::default() }];
        let launched = Engine::Launched(MpiJob::new("mpirun -np {np}", PathBuf::from("xhpl")));
        assert_eq!(node_count(&session(), &launched, &four), Some(4));
        assert_eq!(node_count(&session(), &foreign(None), &four), Some(4));
        assert_eq!(node_count(&session(), &foreign(Some(2)), &four), Some(2));
        assert_eq!(node_count(&session(), &Engine::Ours, &four), Some(1), "ranks are threads of one process");
        assert_eq!(
            (node_count(&session(), &launched, &[]), node_count(&session(), &foreign(Some(1)), &[])),
            (None, Some(1))
        );
        let granted = Session { nodes: four.to_vec(), ..session() };
        assert_eq!(node_count(&granted, &foreign(None), &[]), Some(4));
        let named = Session { hosts: vec!["n1".to_owned(), "n2".to_owned()], ..session() };
        assert_eq!(node_count(&named, &launched, &four), Some(2));
    }
}
