//! The nodes of a run, one by one.

use serde::{Deserialize, Serialize};
use space::machine::Node;

use super::facts::Facts;
use crate::record::folder::RunFolder;
use crate::record::plain::{self, TEXT_BYTES};
use crate::record::session::Session;

/// A node, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeFacts {
    /// Its name.
    pub host: String,
    /// Model of its processors.
    #[serde(default)]
    pub cpu: Option<String>,
    /// Physical cores.
    #[serde(default)]
    pub cores: Option<usize>,
    /// Memory that runs could fill, in bytes.
    #[serde(default)]
    pub memory_bytes: Option<u64>,
    /// Median rate of the short HPL runs that it made while all nodes worked, in GFLOP/s.
    #[serde(default)]
    pub hpl_gflops: Option<f64>,
    /// Median rate of its matrix products, in GFLOP/s.
    #[serde(default)]
    pub dgemm_gflops: Option<f64>,
    /// Its HPL rate over the typical one.
    #[serde(default)]
    pub of_typical: Option<f64>,
}

/// `nodes.json` of a session, as far as it is used here.
#[derive(Deserialize)]
struct Surveyed {
    nodes: Vec<NodeFacts>,
}

/// The nodes of a run of the session in `folder`: as its survey found them, else by name; of a session that names none the `host` of the run with
/// what `facts` know of it. None where the runs were on another `count` of nodes than one, and nothing names these.
pub fn nodes(
    folder: &RunFolder,
    session: &Session,
    host: &str,
    count: Option<usize>,
    facts: Option<&Facts>,
) -> Vec<NodeFacts> {
    let surveyed = plain::read(&folder.nodes("json"), TEXT_BYTES).ok();
    let surveyed = surveyed.and_then(|json| serde_json::from_slice::<Surveyed>(&json).ok());
    // A session that was resumed on other nodes has a survey of these.
    if let Some(surveyed) = surveyed.filter(|survey| survey.nodes.iter().map(|node| &node.host).eq(&session.hosts)) {
        return surveyed.nodes;
    }
    if !session.hosts.is_empty() {
        return session.hosts.iter().map(|host| NodeFacts { host: host.clone(), ..NodeFacts::default() }).collect();
    }
    if count != Some(1) {
        return Vec::new();
    }
    vec![NodeFacts {
        host: host.to_owned(),
        cpu: facts.and_then(|facts| facts.processor.model.clone()),
        cores: facts.and_then(|facts| facts.processor.cores()),
        memory_bytes: facts.and_then(|facts| facts.memory_bytes),
        ..NodeFacts::default()
    }]
}

/// Whether nodes are known to have other processors, cores or accelerators than the first: by `nodes`, or by the groups that are `described`.
pub fn differ(nodes: &[NodeFacts], described: &[Node]) -> bool {
    fn others<T: PartialEq>(mut values: impl Iterator<Item = T>) -> bool {
        values.next().is_some_and(|first| values.any(|value| value != first))
    }
    others(nodes.iter().filter_map(|node| node.cpu.as_ref()))
        || others(nodes.iter().filter_map(|node| node.cores))
        || others(described.iter().map(|node| (node.cores, node.accelerators)))
}

/// (fastest − slowest) / fastest of the nodes' HPL rates; `None` of one node, and where they were not measured.
pub fn spread(nodes: &[NodeFacts]) -> Option<f64> {
    let rates: Vec<f64> = nodes.iter().map(|node| node.hpl_gflops).collect::<Option<_>>()?;
    let fastest = rates.iter().copied().reduce(f64::max)?;
    let slowest = rates.iter().copied().reduce(f64::min)?;
    (rates.len() > 1 && fastest > 0.0).then(|| (fastest - slowest) / fastest)
}

/// `nodes.csv`.
///
/// # Errors
/// None that a text in memory can have.
pub fn table(nodes: &[NodeFacts]) -> Result<Vec<u8>, csv::Error> {
    let mut table = csv::Writer::from_writer(Vec::new());
    table.write_record(["host", "cpu", "cores", "memory_bytes", "hpl_gflops", "dgemm_gflops", "of_typical"])?;
    for node in nodes {
        let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
        table.write_record([
            node.host.clone(),
            node.cpu.clone().unwrap_or_default(),
            node.cores.map_or(String::new(), |cores| cores.to_string()),
            node.memory_bytes.map_or(String::new(), |bytes| bytes.to_string()),
            number(node.hpl_gflops),
            number(node.dgemm_gflops),
            number(node.of_typical),
        ])?;
    }
    table.into_inner().map_err(|error| error.into_error().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::summary::tests::session;

    #[test]
    fn nodes_are_those_of_the_survey_of_this_session() {
        let parent = tempfile::tempdir().unwrap();
        let (folder, _lock) = RunFolder::create(&parent.path().join("run")).unwrap();
        let hosts = vec!["n1".to_owned(), "n2".to_owned()];
        let session = Session { hosts, ..session() };
        assert_eq!(nodes(&folder, &session, "n1", Some(2), None).len(), 2);
        assert_eq!(spread(&nodes(&folder, &session, "n1", Some(2), None)), None, "they were not measured");
        let json = r#"{"schema_version":1,"nodes":[{"host":"n1","cpu":"C","cores":8,"memory_bytes":1,"hpl_gflops":100.0},
            {"host":"n2","cpu":"C","cores":8,"memory_bytes":1,"hpl_gflops":92.0,"slow":true}]}"#;
        std::fs::write(folder.nodes("json"), json).unwrap();
        let found = nodes(&folder, &session, "n1", Some(2), None);
        assert_eq!((found[1].cores, spread(&found)), (Some(8), Some(0.08)));
        assert_eq!(String::from_utf8(table(&found).unwrap()).unwrap().lines().count(), 3);
        let moved = Session { hosts: vec!["n1".to_owned(), "n3".to_owned()], ..session };
        assert_eq!(nodes(&folder, &moved, "n1", Some(2), None)[1].hpl_gflops, None);
    }

    #[test]
    fn nodes_with_other_processors_or_cores_differ() {
        let node = |cpu: Option<&str>, cores: Option<usize>| NodeFacts {
            cpu: cpu.map(str::to_owned),
            cores,
            ..NodeFacts::default()
        };
        assert!(!differ(&[node(Some("C"), Some(64)), node(Some("C"), Some(64)), node(None, None)], &[]));
        assert!(differ(&[node(Some("C"), Some(64)), node(Some("D"), Some(64))], &[]));
        assert!(differ(&[node(None, Some(64)), node(None, Some(32))], &[]));
        let group = |cores: usize, memory_bytes: u64| Node { count: 2, cores, memory_bytes, ..Node::default() };
        assert!(!differ(&[], &[group(64, 1), group(64, 2)]), "memory is no part of a peak");
        assert!(differ(&[], &[group(64, 1), group(48, 1)]));
    }

    #[test]
    fn nodes_that_nothing_names_are_not_this_host_alone() {
        let parent = tempfile::tempdir().unwrap();
        let (folder, _lock) = RunFolder::create(&parent.path().join("run")).unwrap();
        let of = |count: Option<usize>| nodes(&folder, &session(), "n7", count, None);
        assert_eq!(of(Some(1))[0].host, "n7", "a resume may have been on another one since");
        assert!(of(Some(4)).is_empty() && of(None).is_empty());
    }
}
