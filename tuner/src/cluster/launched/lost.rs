//! Nodes that answer no more.

use std::thread;
use std::time::{Duration, Instant};

use objectives::launcher::MpiJob;

use super::bindings::bindings_within;
use crate::search::interrupt::Interrupt;

/// Time that a node has to start a process and let it answer, and more for each of several nodes.
const ANSWERS: Duration = Duration::from_secs(20);
const ANSWERS_A_NODE_MS: u64 = 10;

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
    let asked_to_end = || interrupt.asked();
    let first = silent(job, hosts, &asked_to_end);
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
    let still = silent(job, &first, &asked_to_end);
    if still.len() == hosts.len() || interrupt.asked() { Vec::new() } else { still }
}

/// Those of `hosts` on which `job` starts nothing, each asked by itself, as far as they are asked before `ends`: of many nodes that takes minutes.
pub(crate) fn silent(job: &MpiJob, hosts: &[String], ends: &dyn Fn() -> bool) -> Vec<String> {
    without_answer(hosts, ends, |host| answer(job, std::slice::from_ref(host)))
}

/// Those of `hosts` that are asked before it `ends`, some at the same time, and give no answer.
fn without_answer(hosts: &[String], ends: &dyn Fn() -> bool, answers: impl Fn(&String) -> bool + Sync) -> Vec<String> {
    let mut silent = Vec::new();
    let answers = &answers;
    for some in hosts.chunks(AT_ONCE) {
        if ends() {
            break;
        }
        let asked = thread::scope(|scope| {
            let asked: Vec<_> = some.iter().map(|host| scope.spawn(move || answers(host))).collect();
            asked.into_iter().map(|one| one.join().unwrap_or(false)).collect::<Vec<bool>>()
        });
        silent.extend(some.iter().zip(asked).filter(|(_, answers)| !answers).map(|(host, _)| host.clone()));
    }
    silent
}

/// Whether `job` starts a rank on each of `hosts`.
fn answer(job: &MpiJob, hosts: &[String]) -> bool {
    let limit = ANSWERS + Duration::from_millis(ANSWERS_A_NODE_MS * hosts.len() as u64);
    let found = bindings_within(&job.on(hosts), hosts.len(), 1, limit);
    found.is_ok_and(|found| found.hosts().len() == hosts.len())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// The end of a job came while thousands of nodes were asked one after the other.
    #[test]
    fn no_more_nodes_are_asked_when_the_session_is_to_end() {
        let hosts = |count: usize| (0..count).map(|at| format!("n{at}")).collect::<Vec<String>>();
        let rounds = Cell::new(0);
        let ends = || rounds.replace(rounds.get() + 1) >= 2;
        let all = hosts(3 * AT_ONCE);
        assert_eq!(without_answer(&all, &ends, |host| host != "n1"), ["n1"]);
        rounds.set(0);
        assert_eq!(without_answer(&all, &ends, |_| false), hosts(2 * AT_ONCE));
        assert_eq!(without_answer(&all, &|| true, |_| false), [""; 0]);
    }
}
