//! A node that is gone in the middle of a session.

use super::*;

/// A session of three nodes that loses its second one after some trials, with more `flags`; what it printed, and its rows.
fn without_the_second(flags: &str) -> (String, Vec<Row>) {
    let cluster = Cluster::start(3);
    let folder = cluster.folder.path().join("run");
    let job = cluster.submit_to("n1,n2,n3", &format!("#SBATCH --no-kill\nexec {} {flags}", session(&folder, "150s")));
    let said = || std::fs::read_to_string(cluster.folder.path().join(format!("{job}.txt"))).unwrap_or_default();
    assert!(within(Duration::from_secs(100), || recorded(&folder).len() >= 4), "no trials: {}", said());
    let before = recorded(&folder);
    cluster.script(&["crash", "n2"]);
    let said = cluster.printed(&job);
    let rows = rows(&folder);
    assert!(rows.starts_with(&before), "{said}");
    let trials: std::collections::BTreeSet<u64> = rows.iter().map(|row| row.trial).collect();
    assert_eq!(trials.len(), rows.len(), "{said}");
    assert!(within(Duration::from_secs(20), || processes(&folder, &["xhpl", "srun", "hpl-tune"]).is_empty()));
    (said, rows)
}

#[test]
#[ignore = "needs Slurm: tests/run --install"]
fn a_spare_takes_the_place_of_a_node_that_is_gone() {
    let (said, rows) = without_the_second("--spares 1");
    assert!(said.contains(": n1 n2; spares: n3"), "{said}");
    assert!(said.contains("n2 answers no more: one spare takes the place, the session goes on on n1 n3"), "{said}");
    let on = |nodes: &str| rows.iter().filter(|row| row.nodes.as_deref() == Some(nodes)).collect::<Vec<_>>();
    let (before, after) = (on("n1 n2"), on("n1 n3"));
    assert_eq!(before.len() + after.len(), rows.len(), "{said}");
    assert!(before.iter().filter(|row| row.passed).count() >= 3, "{said}");
    // What the lost node cost: the trial under way, and at most one that was started before Slurm knew.
    assert!(before.iter().filter(|row| !row.passed).count() <= 2, "{said}");
    assert!(after.iter().all(|row| row.p * row.q * row.threads == 2), "{said}");
    assert!(after.iter().any(|row| row.strategy == "final" && row.passed), "{said}");
}

#[test]
#[ignore = "needs Slurm: tests/run --install"]
fn without_a_spare_the_session_goes_on_on_the_nodes_that_are_left() {
    let (said, rows) = without_the_second("");
    assert!(said.contains("n2 answers no more: the session goes on on 2 nodes: n1 n3"), "{said}");
    let (before, after): (Vec<&Row>, Vec<&Row>) =
        rows.iter().partition(|row| row.nodes.as_deref() == Some("n1 n2 n3"));
    assert!(before.iter().all(|row| row.p * row.q * row.threads == 3), "{said}");
    assert!(after.iter().all(|row| row.p * row.q * row.threads == 2), "{said}");
    assert!(after.iter().any(|row| row.strategy == "final" && row.passed), "{said}");
}
