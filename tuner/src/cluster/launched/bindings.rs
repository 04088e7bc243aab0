//! Whether the processes of an MPI job are one job, and on which cores its ranks run.

use std::path::Path;
use std::time::Duration;

use hpl::machine::bindings::{Bindings, RankBinding};
use objectives::launcher::MpiJob;
use space::{Candidate, EngineParams, HplParams, counted};

use super::said;
use crate::exit::bad_input;
use crate::session::preflight::{listed, ranges};

/// Time that a job has to start and say where its ranks are, and more for each of its ranks: that of 100 000 takes minutes.
const STARTS: Duration = Duration::from_secs(60);
const STARTS_A_RANK_MS: u64 = 1;

/// Where `ranks` ranks of `threads` threads run.
///
/// # Errors
/// A job that cannot be started or does not end, processes that are no job, or a program of another version, and the way out.
pub(crate) fn bindings(job: &MpiJob, ranks: usize, threads: usize) -> anyhow::Result<Bindings> {
    bindings_within(job, ranks, threads, STARTS + Duration::from_millis(STARTS_A_RANK_MS * ranks as u64))
}

/// As [`bindings`], of a job that has the time `limit` to start and answer.
///
/// # Errors
/// As of [`bindings`].
pub(crate) fn bindings_within(job: &MpiJob, ranks: usize, threads: usize, limit: Duration) -> anyhow::Result<Bindings> {
    let engine = EngineParams { threads, ..EngineParams::default() };
    let candidate = Candidate { hpl: HplParams::baseline(1, 1, ranks), engine };
    let flags = ["--report-bindings", "--threads", &threads.to_string()];
    let way_out = "is the job waiting for nodes, or the launcher for input?";
    let (line, said) = said(job, &candidate, &flags, Path::new("."), limit, way_out)?;
    found(&said, ranks).map_err(|problem| bad_input(format!("{line}: {problem}")))
}

/// What one job of `ranks` processes has printed.
fn found(said: &[u8], ranks: usize) -> Result<Bindings, String> {
    let text = String::from_utf8_lossy(said);
    let mut found: Vec<Bindings> = text.lines().filter_map(|line| serde_json::from_str(line.trim()).ok()).collect();
    let this = env!("CARGO_PKG_VERSION");
    let answers = found.len();
    match found.pop() {
        None => Err("it does not say where its ranks are; is it our xhpl?".to_owned()),
        Some(_) if answers > 1 => Err(format!(
            "{answers} processes ran as separate jobs, in place of one; make an xhpl with the mpicc of the launcher's MPI library by \
             hpl-tune mpi-setup, or give the launcher what its library needs, as in srun --mpi=pmix"
        )),
        Some(one) if one.version != this => Err(format!(
            "it is xhpl {}, this is hpl-tune {this}; make it anew by hpl-tune mpi-setup, or build both from the same \
             source",
            one.version
        )),
        Some(one) if one.ranks.len() != ranks => Err(format!(
            "{} processes started in place of {ranks}; is {{np}} where the launcher reads it?",
            one.ranks.len()
        )),
        Some(one) => Ok(one),
    }
}

/// Where the ranks run, in one line: `rank 0 on n1: core 0-7, rank 1 on n1: core 8-15, … 6 more`.
pub(crate) fn sentence(found: &Bindings) -> String {
    let of = |(rank, binding): (usize, &RankBinding)| match binding.cores[..] {
        [] => format!("rank {rank} on {}: not bound", binding.host),
        ref cores => format!("rank {rank} on {}: core {}", binding.host, ranges(cores)),
    };
    listed(found.ranks.iter().enumerate().map(of))
}

/// What is wrong with where the ranks run, a sentence each.
pub(crate) fn doubts(found: &Bindings) -> Vec<String> {
    let hosts = found.hosts();
    let shared = hosts.iter().filter_map(|(host, ranks)| {
        let loose = ranks.iter().filter(|rank| rank.cores.is_empty()).count();
        let mut cores: Vec<usize> = ranks.iter().flat_map(|rank| rank.cores_allowed.iter().copied()).collect();
        cores.sort_unstable();
        cores.dedup();
        (loose > 0).then(|| {
            format!(
                "{host}: {loose} of {} with {} each have to share cores ({} seen): the launcher should give each rank \
                 cores of its own",
                counted(ranks.len(), "rank"),
                counted(found.threads, "thread"),
                ranges(&cores)
            )
        })
    });
    let counts = || hosts.iter().map(|(_, ranks)| ranks.len());
    let (least, most) = (counts().min().unwrap_or(0), counts().max().unwrap_or(0));
    let uneven = (most > least + 1).then(|| {
        let at = |count| hosts.iter().find(|(_, ranks)| ranks.len() == count).map_or("", |(host, _)| host);
        format!("{} has {most} ranks, {} {least}: the launcher fills node by node", at(most), at(least))
    });
    shared.chain(uneven).collect()
}

/// A doubt where speeds are known of `hosts` of `cores` cores each and the ranks do not fill them one after the other.
pub(crate) fn out_of_order(found: &Bindings, hosts: &[String], cores: usize) -> Option<String> {
    let each = (cores / found.threads.max(1)).max(1);
    let expected = |rank: usize| &hosts[(rank / each).min(hosts.len() - 1)];
    let mut ranks = found.ranks.iter().enumerate().filter(|_| !hosts.is_empty());
    let (rank, at) = ranks.find(|(rank, at)| *expected(*rank) != at.host)?;
    Some(format!(
        "rank {rank} runs on {}, where ranks that fill the nodes one after the other have it on {}: the weights of slow nodes go to \
         other ranks than theirs; the launcher should place ranks node by node",
        at.host,
        expected(rank)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(host: &str, allowed: &[usize], cores: &[usize]) -> RankBinding {
        RankBinding { host: host.into(), cores_allowed: allowed.to_vec(), cores: cores.to_vec(), memory_bytes: 1 << 30 }
    }

    fn of(ranks: Vec<RankBinding>) -> Bindings {
        Bindings { version: env!("CARGO_PKG_VERSION").into(), mpi: None, threads: 2, ranks }
    }

    #[test]
    fn one_job_of_this_version_is_found_among_other_lines() {
        let two = of(vec![rank("n1", &[0, 1], &[0, 1]), rank("n2", &[0, 1], &[0, 1])]);
        let line = serde_json::to_string(&two).unwrap();
        assert_eq!(found(format!("srun: hello\n{line}\n").as_bytes(), 2).unwrap(), two);
        let problem = |said: &str, ranks| found(said.as_bytes(), ranks).unwrap_err();
        assert!(problem("xhpl 0.0\n", 2).contains("our xhpl"));
        let alone = serde_json::to_string(&of(vec![rank("n1", &[0], &[0])])).unwrap();
        assert!(problem(&format!("{alone}\n{alone}\n"), 2).contains("2 processes ran as separate jobs"));
        assert!(problem(&line, 3).contains("2 processes started in place of 3"));
        let other = Bindings { version: "0.0.1".into(), ..two };
        let older = problem(&serde_json::to_string(&other).unwrap(), 2);
        assert!(older.contains("xhpl 0.0.1") && older.contains("anew by hpl-tune mpi-setup"), "{older}");
    }

    #[test]
    fn ranks_that_do_not_fill_the_nodes_of_known_speed_in_turn_are_told() {
        let on = |hosts: &[&str]| of(hosts.iter().map(|host| rank(host, &[0], &[0])).collect());
        let hosts = ["n1", "n2"].map(String::from);
        // Two threads a rank: two ranks on four cores.
        assert_eq!(out_of_order(&on(&["n1", "n1", "n2", "n2"]), &hosts, 4), None);
        let warning = out_of_order(&on(&["n1", "n2", "n1", "n2"]), &hosts, 4).unwrap();
        assert!(warning.contains("rank 1 runs on n2"), "{warning}");
        assert_eq!(out_of_order(&on(&["n2"]), &[], 4), None);
    }

    #[test]
    fn ranks_without_cores_of_their_own_and_uneven_nodes_are_told() {
        let good = of(vec![rank("n1", &[0, 1, 2, 3], &[0, 1]), rank("n1", &[0, 1, 2, 3], &[2, 3])]);
        assert_eq!(doubts(&good), [""; 0]);
        assert_eq!(sentence(&good), "rank 0 on n1: core 0-1, rank 1 on n1: core 2-3");
        let one_core = || rank("n1", &[0], &[]);
        let crowded = of(vec![one_core(), one_core(), one_core(), rank("n2", &[0, 5], &[0, 5])]);
        let said = doubts(&crowded);
        assert!(said[0].starts_with("n1: 3 of 3 ranks with 2 threads"), "{said:?}");
        assert!(said[1].starts_with("n1 has 3 ranks, n2 1"), "{said:?}");
        assert!(sentence(&crowded).ends_with("rank 3 on n2: core 0,5"), "{}", sentence(&crowded));
    }
}
