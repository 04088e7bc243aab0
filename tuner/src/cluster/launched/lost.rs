//! Nodes that answer no more.

use std::thread;
use std::time::{Duration, Instant};

use objectives::launcher::MpiJob;

use super::bindings::bindings_within;
use crate::search::interrupt::Interrupt;

/// Time that a node has to start a process and let it answer.
const ANSWERS: Duration = Duration::from_secs(20);

/// Time after which a node that does not answer is asked again: its daemon may just be started anew.
const AGAIN: Duration = Duration::from_secs(5);

/// How often a signal is looked for meanwhile.
const LOOK: Duration = Duration::from_millis(50);

/// Nodes that are asked at the same time, at most.
const AT_ONCE: usize = 32;

/// Those of `hosts` that answer no more. None where many answer together, or none answers: then it is no fault of a node; nor where the
/// session is asked to end meanwhile.
pub(crate) fn lost(job: &MpiJob, hosts: &[String], interrupt: &Interrupt) -> Vec<String> {
    if !job.chooses_nodes() || hosts.len() < 2 || (hosts.len() > AT_ONCE && answer(job, hosts)) {
        return Vec::new();
    }
    let first = silent(job, hosts);
    if first.is_empty() {
        return first;
    }
    let begun = Instant::now();
    while begun.elapsed() < AGAIN {
        if interrupt.asked() {
            return Vec::new();
        }
        thread::sleep(LOOK);
    }
    let still = silent(job, &first);
    if still.len() == hosts.len() { Vec::new() } else { still }
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
