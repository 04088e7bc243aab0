//! Where the ranks of another engine run: processes of this program, started as its own would be, say it.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use hpl::machine::bindings::{Bindings, RankBinding};
use hpl::machine::host;
use objectives::foreign::Foreign;
use objectives::real::slurm;
use serde::{Deserialize, Serialize};
use space::{Candidate, EngineParams, HplParams, counted};

use super::launched::answer;
use crate::exit::bad_input;

/// The hidden verb of a process that says where it runs, as the program must dispatch it to [`main`].
pub const VERB: &str = "__where";

/// Time that the job has to start and say it.
const STARTS: Duration = Duration::from_secs(60);

/// Variables in which launchers give a process its rank: PMIx, Open MPI, PMI, MVAPICH, Slurm, Flux, ALPS.
const RANKS: [&str; 7] = [
    "PMIX_RANK",
    "OMPI_COMM_WORLD_RANK",
    "PMI_RANK",
    "MV2_COMM_WORLD_RANK",
    "SLURM_PROCID",
    "FLUX_TASK_RANK",
    "ALPS_APP_PE",
];

/// What one process says, in a line: srun passes on 1024 bytes at a time, and mixes those of several processes between them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct PlacedProcess {
    /// Its rank, where its launcher says it.
    rank: Option<usize>,
    host: String,
    /// Its cores, each by the number of its first logical CPU, ascending.
    #[serde(with = "as_ranges")]
    cores_allowed: Vec<usize>,
    memory_bytes: u64,
}

/// Numbers as `0-3,8`.
mod as_ranges {
    use hpl::machine::host::cpu_list;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use crate::session::preflight::ranges;

    pub(super) fn serialize<S: Serializer>(numbers: &[usize], to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&ranges(numbers))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<usize>, D::Error> {
        let text = String::deserialize(from)?;
        cpu_list(&text).ok_or_else(|| D::Error::custom(format_args!("'{text}' is no list of cores, as 0-3,8")))
    }
}

/// Prints where this process runs, in one line of JSON.
pub fn main() -> ExitCode {
    let facts = host::facts_of_node();
    let mut cores_allowed = host::physical_cores(&facts.cores_allowed);
    cores_allowed.sort_unstable();
    let rank = RANKS.iter().find_map(|name| std::env::var(name).ok()?.parse().ok());
    let here = PlacedProcess { rank, host: facts.hostname, cores_allowed, memory_bytes: facts.memory_available_bytes };
    match serde_json::to_string(&here) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(_) => ExitCode::FAILURE,
    }
}

/// Where the ranks of `candidate` are started by the command of `engine`; `program` is the path of this program.
///
/// # Errors
/// A command in which the program is no word of its own, a job that cannot be started, or one of another number of processes.
pub(crate) fn placed(engine: &Foreign, candidate: &Candidate, program: &Path) -> anyhow::Result<Bindings> {
    let folder = Path::new(".");
    let words = [OsString::from(program), OsString::from(VERB)];
    let Some(words) = engine.started_in_its_place(candidate, folder, &words) else {
        return Err(bad_input("no word of its command is {program} alone"));
    };
    let environment = engine.environment(candidate, folder);
    let way_out = "is the job waiting for nodes, or the launcher for input?";
    let cancel = |begun| slurm::cancel_steps(program, &[], Some(begun));
    let (line, said) = answer(&words, &environment, folder, STARTS, way_out, cancel)?;
    let found = bindings(&said, candidate.engine.threads);
    match found.ranks.len() {
        count if count == candidate.hpl.ranks() => Ok(found),
        count => Err(bad_input(format!(
            "{line}: {count} processes said where they run, {} were asked for",
            candidate.hpl.ranks()
        ))),
    }
}

/// Where as many ranks as there are `nodes` are started, each with the threads of one node.
///
/// # Errors
/// As of [`placed`].
pub(crate) fn one_rank_on_each(
    engine: &Foreign,
    (nodes, threads): (usize, usize),
    program: &Path,
) -> anyhow::Result<Bindings> {
    let params = EngineParams { threads, ..EngineParams::default() };
    placed(engine, &Candidate { hpl: HplParams::baseline(1, 1, nodes), engine: params }, program)
}

/// What processes of `threads` threads each have printed, by their ranks.
fn bindings(said: &[u8], threads: usize) -> Bindings {
    let text = String::from_utf8_lossy(said);
    let mut processes: Vec<PlacedProcess> =
        text.lines().filter_map(|line| serde_json::from_str(line.trim()).ok()).collect();
    processes.sort_by(|a, b| (a.rank, &a.host).cmp(&(b.rank, &b.host)));
    // How many processes may use each core.
    let mut users: HashMap<(&str, usize), usize> = HashMap::new();
    for process in &processes {
        for core in &process.cores_allowed {
            *users.entry((process.host.as_str(), *core)).or_default() += 1;
        }
    }
    let own = |process: &PlacedProcess| {
        process.cores_allowed.iter().all(|core| users.get(&(process.host.as_str(), *core)) == Some(&1))
    };
    let rank = |process: &PlacedProcess| RankBinding {
        host: process.host.clone(),
        cores_allowed: process.cores_allowed.clone(),
        cores: if own(process) { process.cores_allowed.clone() } else { Vec::new() },
        memory_bytes: process.memory_bytes,
    };
    let ranks = processes.iter().map(rank).collect();
    Bindings { version: env!("CARGO_PKG_VERSION").to_owned(), mpi: None, threads, ranks }
}

/// What is wrong with where the ranks run, a sentence for each host: cores that are fewer than the threads. Ranks that may run on
/// any core may still bind their threads themselves.
pub(crate) fn doubts(found: &Bindings) -> Vec<String> {
    let doubt = |(host, ranks): &(&str, Vec<&RankBinding>)| {
        let mut cores: Vec<usize> = ranks.iter().flat_map(|rank| rank.cores_allowed.iter().copied()).collect();
        cores.sort_unstable();
        cores.dedup();
        let threads = ranks.len() * found.threads;
        let narrow = ranks.iter().filter(|rank| !rank.cores.is_empty() && rank.cores.len() < found.threads).count();
        if cores.len() < threads {
            return Some(format!(
                "{host}: {} of {} have {}: the launcher should give each rank cores of its own",
                counted(ranks.len(), "rank"),
                counted(found.threads, "thread"),
                counted(cores.len(), "core")
            ));
        }
        (narrow > 0).then(|| {
            format!(
                "{host}: {narrow} of {} ranks have fewer cores than their {} threads: the launcher should give a rank {{threads}} cores",
                ranks.len(),
                found.threads
            )
        })
    };
    found.hosts().iter().filter_map(doubt).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(processes: &[(Option<usize>, &str, &[usize])]) -> Vec<u8> {
        let line = |&(rank, host, cores): &(Option<usize>, &str, &[usize])| {
            let host = host.to_owned();
            let process = PlacedProcess { rank, host, cores_allowed: cores.to_vec(), memory_bytes: 1 << 30 };
            format!("{}\nnoise of a launcher\n", serde_json::to_string(&process).unwrap())
        };
        processes.iter().map(line).collect::<String>().into_bytes()
    }

    #[test]
    fn processes_are_in_the_order_of_their_ranks_and_own_what_no_other_may_use() {
        let found = bindings(&said(&[(Some(1), "n1", &[2, 3]), (Some(0), "n1", &[0, 1]), (Some(2), "n2", &[0, 1])]), 2);
        let cores: Vec<&[usize]> = found.ranks.iter().map(|rank| rank.cores.as_slice()).collect();
        assert_eq!(cores, [[0, 1], [2, 3], [0, 1]]);
        assert_eq!(doubts(&found), [""; 0]);
    }

    /// Of nodes with some 250 cores and more the lines of processes under srun were mixed, and their ranks missing.
    #[test]
    fn no_line_of_a_node_with_many_cores_is_split_on_its_way() {
        let (host, memory_bytes) = ("n".repeat(64), u64::MAX);
        let process = PlacedProcess { rank: Some(1_000_000), host, cores_allowed: (0..1024).collect(), memory_bytes };
        let line = serde_json::to_string(&process).unwrap();
        assert!(line.len() < 200, "{line}");
        assert_eq!(serde_json::from_str::<PlacedProcess>(&line).unwrap(), process);
    }

    #[test]
    fn ranks_without_enough_cores_are_told() {
        let all: &[usize] = &[0, 1, 2, 3];
        let loose = bindings(&said(&[(Some(0), "n1", all), (Some(1), "n1", all)]), 2);
        assert!(loose.ranks.iter().all(|rank| rank.cores.is_empty()));
        assert_eq!(doubts(&loose), [""; 0], "they may bind their threads themselves");
        let crowded = doubts(&bindings(&said(&[(Some(0), "n1", &[0]), (Some(1), "n1", &[0])]), 1));
        assert!(crowded[0].starts_with("n1: 2 ranks of 1 thread have 1 core:"), "{crowded:?}");
        let narrow = doubts(&bindings(&said(&[(Some(0), "n1", &[0]), (Some(1), "n1", &[1, 2, 3])]), 2));
        assert!(narrow[0].starts_with("n1: 1 of 2 ranks have fewer cores than their 2 threads"), "{narrow:?}");
    }
}
