//! Nodes that answer no more.

use std::thread;
use std::time::Duration;

use objectives::launcher::MpiJob;

use super::bindings::bindings_within;

/// Time that a node has to start a process and let it answer.
const ANSWERS: Duration = Duration::from_secs(20);

/// Nodes that are asked at the same time, at most.
const AT_ONCE: usize = 32;

/// Those of `hosts` that answer no more. None where all answer together, or none answers alone: then it is no fault of a node.
pub(crate) fn lost(job: &MpiJob, hosts: &[String]) -> Vec<String> {
    if !job.chooses_nodes() || hosts.len() < 2 || answer(job, hosts) {
        return Vec::new();
    }
    let silent = silent(job, hosts);
    if silent.len() == hosts.len() { Vec::new() } else { silent }
}

/// Those of `hosts` on which `job` starts nothing, each asked by itself.
pub(crate) fn silent(job: &MpiJob, hosts: &[String]) -> Vec<String> {
    let mut silent = Vec::new();
    for some in hosts.chunks(AT_ONCE) {
        let asked = thread::scope(|scope| {
            let asked: Vec<_> =
                some.iter().map(|host| scope.spawn(move || answer(job, std::slice::from_ref(host)))).collect();
            asked.into_iter().map(|one| one.join().unwrap_or(false)).collect::<Vec<bool>>()
        });
        silent.extend(some.iter().zip(asked).filter(|(_, answers)| !answers).map(|(host, _)| host.clone()));
    }
    silent
}

/// Whether `job` starts a rank on each of `hosts`.
fn answer(job: &MpiJob, hosts: &[String]) -> bool {
    let found = bindings_within(&job.on(hosts), hosts.len(), 1, ANSWERS);
    found.is_ok_and(|found| found.hosts().len() == hosts.len())
}
