//! Nodes that are gone in the middle of a session.

use super::*;

/// One has a spare, the second one has none.
#[test]
#[ignore = "needs Slurm: tests/run --install"]
fn a_session_goes_on_without_the_nodes_that_it_loses() {
    let cluster = Cluster::start(4);
    let folder = cluster.folder.path().join("run");
    let session = session(&folder, "170s");
    let job = cluster.submit_to("n1,n2,n3,n4", &format!("#SBATCH --no-kill\nexec {session} --spares 1"));
    let said = || std::fs::read_to_string(cluster.folder.path().join(format!("{job}.txt"))).unwrap_or_default();
    let passed_on = |nodes: &str| {
        let rows = recorded(&folder);
        rows.iter().filter(|row| row.passed && row.nodes.as_deref() == Some(nodes)).count()
    };
    for (nodes, loses) in [("n1 n2 n3", "n2"), ("n1 n3 n4", "n3")] {
        assert!(within(Duration::from_secs(60), || passed_on(nodes) >= 3), "no trials on {nodes}: {}", said());
        cluster.script(&["crash", loses]);
    }
    let said = cluster.printed(&job);
    assert!(said.contains(": n1 n2 n3; spares: n4"), "{said}");
    assert!(said.contains("n2 answers no more: one spare takes the place, the session goes on on n1 n3 n4"), "{said}");
    assert!(said.contains("n3 answers no more: the session goes on on 2 nodes: n1 n4"), "{said}");
    let rows = rows(&folder);
    let trials: std::collections::BTreeSet<u64> = rows.iter().map(|row| row.trial).collect();
    assert_eq!(trials.len(), rows.len(), "{said}");
    for (nodes, cores) in [("n1 n2 n3", 3), ("n1 n3 n4", 3), ("n1 n4", 2)] {
        let there = || rows.iter().filter(|row| row.nodes.as_deref() == Some(nodes));
        assert!(there().count() > 0 && there().all(|row| row.p * row.q * row.threads == cores), "{nodes}: {said}");
        // What a lost node costs: the trial under way, and one that is started before Slurm knows.
        assert!(there().filter(|row| !row.passed).count() <= 2, "{nodes}: {said}");
    }
    let last = rows.iter().rfind(|row| row.strategy == "final" && row.passed);
    assert_eq!(last.and_then(|row| row.nodes.as_deref()), Some("n1 n4"), "{said}");
    assert!(said.contains("nodes that answered no more: n2, n3"), "{said}");
    let left = || processes(&folder, &["xhpl", "srun", "hpl-tune"]);
    assert!(
        within(Duration::from_secs(60), || left().is_empty()),
        "{:?}",
        left().iter().map(|pid| std::fs::read_to_string(format!("/proc/{pid}/cmdline"))).collect::<Vec<_>>()
    );
}
