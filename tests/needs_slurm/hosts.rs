//! Sessions by plain `mpirun` on two hosts: the nodes of the cluster without its Slurm, their link held to 1 Gbit/s.

use std::os::unix::fs::PermissionsExt;

use super::{Cluster, session};
use crate::program::{err, out};
use crate::tune::rows;

/// Starts a command on a node as ssh would, on the node's only core.
const AGENT: &str = "#!/bin/sh
pid=$(cat /run/slurmd.$1.pid); core=$((${1#n} - 1)); shift
exec nsenter -t $pid -n -u taskset -c $core sh -c \"$*\"
";

#[test]
#[ignore = "needs Slurm: tests/run --install"]
fn two_hosts_are_reached_by_mpirun_alone() {
    let cluster = Cluster::start(2);
    for link in ["v1", "v2"] {
        cluster.slurm(&[
            "tc", "qdisc", "add", "dev", link, "root", "tbf", "rate", "1gbit", "burst", "256kb", "latency", "50ms",
        ]);
    }
    let (agent, folder) = (cluster.folder.path().join("agent"), cluster.folder.path().join("run"));
    std::fs::write(&agent, AGENT).unwrap();
    std::fs::set_permissions(&agent, std::fs::Permissions::from_mode(0o755)).unwrap();
    let launcher = format!(
        "mpirun.openmpi --allow-run-as-root --host n1,n2 --mca plm rsh --mca plm_rsh_agent {} --mca btl_tcp_if_include eth0 \
         --mca oob_tcp_if_include eth0 --bind-to none -np {{np}}",
        agent.display()
    );
    let started = |nodes: &str| {
        let words = format!("exec taskset -c 0 {} --nodes {nodes} --launcher '{launcher}'", session(&folder, "40s"));
        cluster.script(&["on", "n1", "sh", "-c", &words])
    };
    let output = started("3");
    assert_eq!(output.status.code(), Some(2), "{}", out(&output));
    assert!(err(&output).contains("slots") && !folder.exists(), "{}", err(&output));
    let output = started("2");
    let said = err(&output);
    assert!(said.contains("2 nodes, reached by mpirun.openmpi") && said.contains(": n1 n2"), "{said}");
    assert!(said.contains("binding of the default: rank 0 on n1: core 0, rank 1 on n2: core 1"), "{said}");
    let rows = rows(&folder);
    assert!(rows.iter().filter(|row| row.passed && row.p * row.q == 2).count() >= 3, "{said}");
    assert!(rows.iter().all(|row| row.nodes.as_deref() == Some("n1 n2") && row.command.contains("--host 'n1,n2'")));
}
