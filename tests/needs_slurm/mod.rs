//! Sessions inside jobs of a real Slurm, whose nodes are namespaces of this machine (`tests/slurm_nodes.sh`).

mod clock;
mod hosts;
mod kill;
mod lost;
mod power;

use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use objectives::real::Extent;
use tuner::record::{Outcome, Row};

use crate::mpi::Mpi;
use crate::program::{err, machine_toml, out, tune};
use crate::tune::rows;

/// A cluster of nodes with a core each; gone when dropped. One at a time: they would share the cores.
pub(crate) struct Cluster {
    folder: tempfile::TempDir,
    nodes: usize,
    /// Threads that each core claims to have.
    smt: usize,
    more: &'static str,
    _alone: MutexGuard<'static, ()>,
}

static ALONE: Mutex<()> = Mutex::new(());

impl Cluster {
    fn start(nodes: usize) -> Self {
        Self::start_with(nodes, "")
    }

    /// The same with more lines of slurm.conf.
    pub(crate) fn start_with(nodes: usize, more: &'static str) -> Self {
        Self::start_of(nodes, 1, more)
    }

    fn start_of(nodes: usize, smt: usize, more: &'static str) -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let cluster = Self { folder: tempfile::tempdir().unwrap(), nodes, smt, more, _alone: alone };
        let started = cluster.script(&["start"]);
        assert!(started.status.success(), "{}{}", out(&started), err(&started));
        cluster
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn script(&self, words: &[&str]) -> Output {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("tests/slurm_nodes.sh");
        let mut command = Command::new(script);
        command.args(words).current_dir(self.folder.path());
        command.env("SLURM_NODES", self.nodes.to_string()).env("SLURM_NODES_SMT", self.smt.to_string());
        command.envs([("SLURM_NODES_CPUS", "1"), ("SLURM_NODES_TTL", "900"), ("SLURM_NODES_EXTRA", self.more)]);
        command.env("SLURM_NODES_DIR", self.folder.path().join("slurm")).output().unwrap()
    }

    /// What a command of Slurm prints.
    fn slurm(&self, words: &[&str]) -> String {
        let output = self.script(&[&["run"], words].concat());
        assert!(output.status.success(), "{words:?}: {}{}", out(&output), err(&output));
        out(&output)
    }

    /// Submits `lines` as a script of n1 and n2; the number of the job.
    fn submit(&self, lines: &str) -> String {
        self.submit_to("n1,n2", lines)
    }

    /// The same for some nodes.
    pub(crate) fn submit_to(&self, nodes: &str, lines: &str) -> String {
        let path = self.folder.path().join("job.sh");
        std::fs::write(&path, format!("#!/bin/bash\n#SBATCH --nodelist={nodes} --exclusive --time=10\n{lines}\n"))
            .unwrap();
        self.slurm(&["sbatch", "--parsable", "--output=%j.txt", path.to_str().unwrap()]).trim().to_owned()
    }

    /// What a session in `folder` printed that was cancelled with its job after its third trial.
    fn cancelled(&self, folder: &Path, budget: &str) -> String {
        let job = self.submit(&format!("exec {}", session(folder, budget)));
        assert!(within(Duration::from_secs(100), || recorded(folder).len() >= 3), "no trials");
        self.slurm(&["scancel", &job]);
        let said = self.printed(&job);
        // The run that was ended with its job is mostly run again; where its end comes much earlier than that of the tuner it has failed.
        let crashed = recorded(folder).iter().filter(|row| row.outcome == Outcome::Crashed).count();
        println!("{crashed} runs crashed: {said}");
        said
    }

    /// What Slurm says of its nodes and jobs, and the end of what `job` printed.
    fn state_of(&self, job: &str) -> String {
        let (nodes, jobs) = (self.slurm(&["sinfo", "--Node", "--format=%N %T %E"]), self.slurm(&["squeue", "--steps"]));
        let queue = self.slurm(&["squeue"]);
        let said = std::fs::read_to_string(self.folder.path().join(format!("{job}.txt"))).unwrap_or_default();
        let last: Vec<&str> = said.lines().rev().take(40).collect();
        format!("{nodes}{queue}{jobs}{}", last.into_iter().rev().collect::<Vec<_>>().join("\n"))
    }

    /// Waits until the job has ended; what it printed.
    pub(crate) fn printed(&self, job: &str) -> String {
        let ended = || self.slurm(&["squeue", "--noheader", "--jobs", job]).trim().is_empty();
        assert!(within(Duration::from_secs(300), ended), "job {job} does not end");
        std::fs::read_to_string(self.folder.path().join(format!("{job}.txt"))).unwrap()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.script(&["stop"]);
    }
}

/// Whether something happens within `time`.
pub(crate) fn within(time: Duration, mut happened: impl FnMut() -> bool) -> bool {
    let started = Instant::now();
    while !happened() {
        if started.elapsed() > time {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}

/// A session of our engine in `folder`, on rates that were measured before.
pub(crate) fn session(folder: &Path, budget: &str) -> String {
    session_of(&Mpi::Open.built("xhpl"), folder, budget)
}

/// The same with another program.
fn session_of(program: &Path, folder: &Path, budget: &str) -> String {
    let words: Vec<String> = [
        env!("CARGO_BIN_EXE_hpl-tune"),
        "--budget",
        budget,
        "--n",
        "3000",
        "--blas",
        "builtin",
        "--program",
        program.to_str().unwrap(),
        "--machine",
        machine_toml().to_str().unwrap(),
        "--out",
        folder.to_str().unwrap(),
    ]
    .map(str::to_owned)
    .to_vec();
    words.join(" ")
}

/// The command that goes on with the session in `folder`.
fn resumed(folder: &Path) -> String {
    format!("{} --resume {}", env!("CARGO_BIN_EXE_hpl-tune"), folder.display())
}

/// Rows that are in the journal by now.
pub(crate) fn recorded(folder: &Path) -> Vec<Row> {
    let there = folder.join("journal.jsonl").exists();
    if there {
        tuner::record::journal::read(&folder.join("journal.jsonl")).map_or(Vec::new(), |read| read.rows)
    } else {
        Vec::new()
    }
}

/// Processes of the programs `names` that are told of `folder`.
fn processes(folder: &Path, names: &[&str]) -> Vec<i32> {
    let words = |pid: i32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).split('\0').map(str::to_owned).collect::<Vec<_>>()
    };
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let of_folder = |pid: &i32| {
        let words = words(*pid);
        let named = Path::new(&words[0]).file_name().is_some_and(|name| names.iter().any(|known| name == *known));
        named && words.iter().any(|word| word.contains(folder.to_str().unwrap()))
    };
    numbers.filter(of_folder).collect()
}

#[test]
#[ignore = "needs Slurm: tests/run --install"]
fn a_batch_script_uses_all_nodes_of_its_job_without_a_launcher() {
    let cluster = Cluster::start(2);
    let root = cluster.folder.path();
    let (script, folder) = (root.join("tune.sh"), root.join("run"));
    let xhpl = Mpi::Open.built("xhpl");
    let fixed = ["--budget", "60s", "--blas", "builtin", "--nodes", "2", "--program", xhpl.to_str().unwrap()];
    let paths = ["--sbatch", script.to_str().unwrap(), "--out", folder.to_str().unwrap()];
    let written = tune(fixed.into_iter().chain(paths));
    assert_eq!(written.status.code(), Some(0), "{}", err(&written));
    assert!(out(&written).contains("asks for 2 nodes"), "{}", out(&written));
    let job = cluster.slurm(&["sbatch", "--parsable", "--output=%j.txt", script.to_str().unwrap()]);
    let said = cluster.printed(job.trim());
    assert!(said.contains("2 nodes, reached by srun") && said.contains("--mpi=pmix: n1 n2"), "{said}");
    assert!(said.contains("survey: HPL of N=") && said.contains(" on 2 nodes at once"), "{said}");
    assert!(said.contains("binding of the default: rank 0 on n1: core"), "{said}");
    let rows = rows(&folder);
    assert!(rows.iter().any(|row| row.strategy == "final" && row.passed), "{said}");
    assert!(rows.iter().any(|row| row.extent == Extent::Windows), "{said}");
    assert!(rows.iter().all(|row| row.p * row.q * row.threads == 2), "{said}");
    let machine = std::fs::read_to_string(folder.join("machine.toml")).unwrap();
    assert!(machine.contains("n1…n2") && machine.contains("name = \"network\""), "{machine}");
}

#[test]
#[ignore = "needs Slurm: tests/run --install"]
fn a_cancelled_job_keeps_its_trials_and_goes_on_when_it_is_submitted_again() {
    let cluster = Cluster::start(2);
    let folder = cluster.folder.path().join("run");
    let said = cluster.cancelled(&folder, "40s");
    assert!(within(Duration::from_secs(20), || processes(&folder, &["xhpl", "srun", "hpl-tune"]).is_empty()));
    let before = recorded(&folder);
    assert!(before.len() >= 3 && said.contains("--resume"), "{said}");
    let again = cluster.submit(&format!("exec {}", resumed(&folder)));
    let said = cluster.printed(&again);
    let after = rows(&folder);
    assert_eq!(after[..before.len()], before[..], "{said}");
    assert!(after.last().unwrap().strategy == "final" || after.len() > before.len(), "{said}");
}

#[test]
#[ignore = "needs Slurm: tests/run --install"]
fn a_step_whose_launcher_was_killed_is_cancelled_by_the_resumed_session() {
    let cluster = Cluster::start(2);
    let folder = cluster.folder.path().join("run");
    let job = cluster.submit(&format!("{}\n{}", session(&folder, "40s"), resumed(&folder)));
    // Killed while ranks run: they live on without the two processes of srun.
    let mut left = Vec::new();
    let orphaned = within(Duration::from_secs(100), || {
        if recorded(&folder).len() < 2 || processes(&folder, &["xhpl"]).len() < 2 {
            return false;
        }
        // Looked up once: the script goes on with the resumed session, whose processes are not meant.
        for pid in processes(&folder, &["srun", "hpl-tune"]) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
        left = processes(&folder, &["xhpl"]);
        true
    });
    assert!(orphaned, "no ranks ran");
    let gone = || left.iter().all(|pid| !processes(&folder, &["xhpl"]).contains(pid));
    let started = Instant::now();
    assert!(within(Duration::from_secs(30), gone), "{left:?} are left");
    println!("{} ranks gone after {:.1} s", left.len(), started.elapsed().as_secs_f64());
    let said = cluster.printed(&job);
    let rows = rows(&folder);
    assert!(rows.iter().any(|row| row.strategy == "final" && row.passed), "{said}");
    let trials: std::collections::BTreeSet<u64> = rows.iter().map(|row| row.trial).collect();
    assert_eq!(trials.len(), rows.len());
    assert!(processes(&folder, &["xhpl", "srun"]).is_empty());
}

#[test]
#[ignore = "needs Slurm: tests/run --install"]
fn trials_on_other_nodes_are_kept_and_are_no_part_of_the_result() {
    let cluster = Cluster::start(3);
    let folder = cluster.folder.path().join("run");
    cluster.cancelled(&folder, "60s");
    let before = recorded(&folder);
    let again = cluster.submit_to("n2,n3", &format!("exec {}", resumed(&folder)));
    let said = cluster.printed(&again);
    assert!(said.contains("the session was on n1 n2, now it is on n2 n3"), "{said}");
    assert!(said.contains("earlier runs are used"), "{said}");
    let rows = rows(&folder);
    assert_eq!(rows[..before.len()], before[..], "{said}");
    let (here, elsewhere): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| row.nodes.as_deref() == Some("n2 n3"));
    // And at most the trial that ended with the job, which the resumed session found done.
    assert!(
        (before.len()..=before.len() + 1).contains(&elsewhere.len()),
        "{} of {}: {said}",
        elsewhere.len(),
        before.len()
    );
    // Passed or not: on a machine that others use it may be ended at its limit.
    assert!(here[0].strategy == "baseline" && here.iter().any(|row| row.strategy == "final"), "{said}");
    assert!(said.contains(&format!("Trials        {}, of", here.len())), "{said}");
    // The record has all of them, with numbers of their own.
    let trials = tuner::record::parquet::read::<Row>(&folder.join("trials.parquet")).unwrap();
    assert_eq!(trials, rows);
    let report = tune(["report", folder.to_str().unwrap()]);
    assert!(err(&report).contains("trials on other nodes are in the record"), "{}", err(&report));
}

#[test]
#[ignore = "needs Slurm: tests/run --install"]
fn a_slow_node_is_named_and_the_nodes_are_not_accepted() {
    let cluster = Cluster::start(2);
    let root = cluster.folder.path();
    let slow = root.join("engine.toml");
    std::fs::write(&slow, "rank_kernels = [\"builtin\", \"builtin-portable\"]\n").unwrap();
    let words = |more: &str| {
        let (tuner, xhpl) = (env!("CARGO_BIN_EXE_hpl-tune"), Mpi::Open.built("xhpl"));
        format!(
            "{tuner} nodes --program {} --n 1500 --repeats 5 --out {} {more}; echo ended $?",
            xhpl.display(),
            root.display()
        )
    };
    // Others on this machine may hide how slow it is.
    let looked = || cluster.printed(&cluster.submit(&words(&format!("--engine-params {}", slow.display()))));
    let mut looks = (0..6).map(|_| looked());
    let said = looks.find(|said| said.contains("ended 6") && said.contains("--exclude=n2")).unwrap_or_default();
    assert!(said.contains("ended 6") && said.contains("--exclude=n2"), "{said}");
    let found: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(root.join("nodes.json")).unwrap()).unwrap();
    assert_eq!((found["accepted"].as_bool(), &found["left_out"][0]), (Some(false), &"n2".into()));
    let causes = found["nodes"][1]["causes"].as_array().unwrap();
    assert!(causes.iter().any(|cause| cause.as_str().unwrap().contains("portable")), "{found}");
    assert!(std::fs::read_to_string(root.join("nodes.html")).unwrap().contains("slower than typical"));
    // Alike, as far as a shared machine lets them be.
    let looked = || cluster.printed(&cluster.submit(&words("--tolerance 80% --json")));
    let mut looks = (0..3).map(|_| looked());
    let said = looks.find(|said| said.contains("ended 0")).unwrap_or_default();
    assert!(said.contains("ended 0") && said.contains("\"accepted\": true"), "{said}");
    // Outside of a job there are no nodes to look at.
    let output = tune(["nodes"]);
    assert!(output.status.code() == Some(2) && err(&output).contains("salloc"), "{}", err(&output));
}

/// Slurm counts the threads of cores: a rank of one thread asks for the two of its core.
#[test]
#[ignore = "needs Slurm: tests/run --install"]
fn ranks_ask_slurm_for_whole_cores() {
    let cluster = Cluster::start_of(2, 2, "");
    let folder = cluster.folder.path().join("run");
    let said = cluster.printed(&cluster.submit(&format!("exec {}", session(&folder, "40s"))));
    let rows = rows(&folder);
    assert!(rows.iter().filter(|row| row.passed).count() >= 3, "{said}");
    assert!(rows.iter().all(|row| row.threads == 1 && row.command.contains("--cpus-per-task=2")), "{said}");
}

/// By `srun`, and by `mpirun`.
const LAUNCHERS: [&str; 2] = ["", "--launcher 'mpirun.openmpi --allow-run-as-root --bind-to none -np {np}'"];

/// Four nodes run trials at the same time, each of its own; the runs on all of them follow.
#[test]
#[ignore = "needs Slurm: tests/run --install"]
fn single_nodes_of_a_job_are_tried_at_the_same_time() {
    let cluster = Cluster::start(4);
    for launcher in LAUNCHERS {
        let folder = cluster.folder.path().join(format!("run{}", launcher.len()));
        let job = cluster.submit_to("n1,n2,n3,n4", &format!("exec {} {launcher}", session(&folder, "90s")));
        let said = cluster.printed(&job);
        assert!(said.contains(" trials on 4 single nodes passed"), "{said}");
        let run_s = tried_at_the_same_time(&folder, &["n1", "n2", "n3", "n4"], &said);
        assert!(run_s > 1.5, "{run_s} s of runs in a second: {said}");
    }
}

/// The same with two groups of two nodes. Shares of one size for all ranks are given: nodes on shared cores are not alike.
#[test]
#[ignore = "needs Slurm: tests/run --install"]
fn groups_of_nodes_of_a_job_are_tried_at_the_same_time() {
    let cluster = Cluster::start(4);
    let weights = cluster.folder.path().join("weights.toml");
    std::fs::write(&weights, "rows = [1.0, 1.0]\ncolumns = [1.0, 1.0]\n").unwrap();
    for launcher in LAUNCHERS {
        let folder = cluster.folder.path().join(format!("run{}", launcher.len()));
        let words = format!("--groups 2 --weights {} {launcher}", weights.display());
        let job = cluster.submit_to("n1,n2,n3,n4", &format!("exec {} {words}", session(&folder, "90s")));
        let said = cluster.printed(&job);
        assert!(said.contains(" trials on 2 groups of 2 nodes passed"), "{said}");
        let run_s = tried_at_the_same_time(&folder, &["n1 n2", "n3 n4"], &said);
        assert!(run_s > 1.2, "{run_s} s of runs in a second: {said}");
    }
}

/// Each of `groups` has run the reference and candidates of its own, on its nodes alone, and after them all four nodes have: seconds of
/// runs on the groups in a second.
fn tried_at_the_same_time(folder: &Path, groups: &[&str], said: &str) -> f64 {
    let (all, some): (Vec<Row>, Vec<Row>) =
        rows(folder).into_iter().partition(|row| row.nodes.as_deref() == Some("n1 n2 n3 n4"));
    for group in groups {
        let nodes: Vec<&str> = group.split(' ').collect();
        let passed = || some.iter().filter(|row| row.passed && row.nodes.as_deref() == Some(group));
        assert!(passed().any(|row| row.strategy == "reference"), "{group}: {said}");
        assert!(passed().any(|row| row.strategy == "bayes"), "{group}: {said}");
        assert!(passed().all(|row| nodes.contains(&row.host.as_str())), "{group}: {said}");
        assert!(passed().all(|row| row.p * row.q * row.threads == nodes.len()), "{group}: {said}");
        assert!(passed().all(|row| nodes.iter().all(|node| row.command.contains(node))), "{group}: {said}");
    }
    assert!(some.iter().all(|row| groups.contains(&row.nodes.as_deref().unwrap())), "{said}");
    assert!(all.iter().all(|row| row.p * row.q * row.threads == 4 && row.n > some[0].n), "{said}");
    assert!(all[0].strategy == "baseline" && all.iter().any(|row| row.strategy == "final" && row.passed), "{said}");
    assert!(within(Duration::from_secs(20), || processes(folder, &["xhpl", "srun", "hpl-tune"]).is_empty()));
    // One after the other they would have taken longer.
    let begun = some.iter().map(|row| row.budget_left_s + row.wall_s).fold(0.0, f64::max);
    let ended = some.iter().map(|row| row.budget_left_s).fold(f64::MAX, f64::min);
    some.iter().map(|row| row.wall_s).sum::<f64>() / (begun - ended)
}
