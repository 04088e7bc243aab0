//! `xhpl` under mpirun, built for Open MPI and for MPICH.

mod devices;
mod sessions;
mod setup;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::mpi::Mpi;
use crate::program::{err, hpl_tune, out};

/// The lists of an HPL.dat; the other lines do not vary.
struct Dat<'a> {
    n: &'a str,
    nb: &'a str,
    p: &'a str,
    q: &'a str,
    bcast: &'a str,
    depth: &'a str,
}

const SMALL: Dat<'_> = Dat { n: "100", nb: "16", p: "1", q: "2", bcast: "1", depth: "1" };

impl Dat<'_> {
    /// A folder that has it as HPL.dat.
    fn folder(&self) -> TempDir {
        let Self { n, nb, p, q, bcast, depth } = self;
        let list = |text: &str| format!("{}\n{text}", text.split(' ').count());
        let (lists, p_and_q) = ([n, nb].map(|text| list(text)).join("\n"), format!("{}\n{q}", list(p)));
        let text = format!(
            "one\ntwo\nHPL.out\n6\n{lists}\n0\n{p_and_q}\n16.0\n1\n2\n1\n4\n1\n2\n1\n1\n{}\n{}\n2\n64\n0\n0\n1\n8\n",
            list(bcast),
            list(depth)
        );
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("HPL.dat"), text).unwrap();
        folder
    }
}

/// Runs `xhpl` and expects it to end well, all residuals PASSED; its output.
fn passes(mpi: Mpi, ranks: usize, dat: &Dat<'_>, args: &[&str]) -> String {
    let folder = dat.folder();
    let output = mpi.run(ranks, &mpi.built("xhpl")).args(args).current_dir(&folder).output().unwrap();
    assert!(output.status.success(), "{mpi:?}, {ranks} ranks: {}", err(&output));
    nothing_is_left(folder.path());
    out(&output)
}

/// Expects exit code 2 and each of `words` once on stderr, told by one rank.
fn refuses(mpi: Mpi, ranks: usize, dat: &Dat<'_>, args: &[&str], words: &[&str]) {
    let folder = dat.folder();
    let output = mpi.run(ranks, &mpi.built("xhpl")).args(args).current_dir(&folder).output().unwrap();
    let stderr = err(&output);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert_eq!(out(&output), "");
    for word in words {
        assert_eq!(stderr.matches(word).count(), 1, "'{word}' once in: {stderr}");
    }
    nothing_is_left(folder.path());
}

/// Processes that run in `folder`, the launcher aside.
fn ranks_in(folder: &Path) -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let here = |pid: &u32| {
        let link = |name: &str| fs::read_link(format!("/proc/{pid}/{name}")).ok();
        link("cwd").is_some_and(|cwd| cwd == folder) && link("exe").is_some_and(|exe| exe.ends_with("xhpl"))
    };
    pids.filter(here).collect()
}

fn nothing_is_left(folder: &Path) {
    let folder = folder.canonicalize().unwrap();
    let start = Instant::now();
    while !ranks_in(&folder).is_empty() {
        assert!(start.elapsed() < Duration::from_secs(60), "ranks are left: {:?}", ranks_in(&folder));
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
#[ignore = "needs MPI: tests/run --install"]
fn every_comm_case_on_processes() {
    for (mpi, ranks) in [1, 2, 3, 5, 6].map(|ranks| (Mpi::Open, ranks)).into_iter().chain([(Mpi::Mpich, 3)]) {
        let output = mpi.run(ranks, &mpi.built("examples/mpi_conformance")).output().unwrap();
        assert!(output.status.success(), "{mpi:?}, {ranks} ranks: {}", err(&output));
        assert!(out(&output).matches("spin true").count() >= 9, "{}", out(&output));
    }
}

#[test]
#[ignore = "needs MPI: tests/run --install"]
fn windows_are_measured_on_processes() {
    for mpi in [Mpi::Open, Mpi::Mpich] {
        let text = passes(mpi, 2, &Dat { n: "600", ..SMALL }, &["--json", "--windows", "3:4,20:3"]);
        let result: space::WindowsResult = serde_json::from_str(&text).unwrap();
        assert!(result.passed && result.predicted_time_s > 0.0);
        assert!(result.windows.iter().all(|window| window.residual.is_some()));
        assert_eq!(result.phases.len(), 7 * 2, "each step on each rank");
    }
}

/// Two candidates of other shapes on the same processes.
#[test]
#[ignore = "needs MPI: tests/run --install"]
fn two_candidates_are_measured_in_turn_on_the_same_processes() {
    let reference = Dat { n: "600", nb: "24", p: "2", q: "1", ..SMALL }.folder();
    let reference = reference.path().join("HPL.dat");
    let args = ["--json", "--threads", "1", "--reference", reference.to_str().unwrap()];
    for mpi in [Mpi::Open, Mpi::Mpich] {
        let text = passes(mpi, 2, &Dat { n: "600", ..SMALL }, &args);
        let pair: space::windows::PairResult = serde_json::from_str(&text).unwrap();
        assert!(pair.passed() && pair.predicted_log_ratio.is_finite() && pair.predicted_log_ratio_sd > 0.0, "{text}");
        let shape = |of: &space::WindowsResult| (of.candidate.hpl.nb, of.candidate.hpl.p, of.windows.len() % 2);
        assert_eq!([&pair.candidate, &pair.reference].map(shape), [(16, 1, 0), (24, 2, 0)], "each window twice");
        let steps = pair.candidate.windows.iter().map(|window| window.steps).sum::<usize>();
        assert_eq!(pair.candidate.phases.len(), 2 * steps, "each step on each rank");
    }
    refuses(Mpi::Open, 2, &Dat { n: "601", ..SMALL }, &args, &["windows of N=601 and of a reference of N=600"]);
}

/// The processes of a job, of which one is held to fewer instructions: what `hpl-tune survey` finds of them.
#[test]
#[ignore = "needs MPI: tests/run --install"]
fn processes_are_surveyed() {
    let folder = tempfile::tempdir().unwrap();
    let engine = folder.path().join("engine.toml");
    fs::write(&engine, "rank_kernels = [\"builtin\", \"builtin-portable\"]\n").unwrap();
    for mpi in [Mpi::Open, Mpi::Mpich] {
        let survey = |program: &Path, launcher: &str, ranks: &str| {
            let mut command = hpl_tune();
            command.args(["survey", "--n", "200", "--repeats", "3", "--ranks", ranks, "--out", "machine.toml"]);
            command.arg("--engine-params").arg(&engine).arg("--program").arg(program).args(["--launcher", launcher]);
            command.current_dir(&folder).output().unwrap()
        };
        let output = survey(&mpi.built("xhpl"), mpi.launcher(), "2");
        assert!(output.status.success(), "{mpi:?}: {}", err(&output));
        assert!(out(&output).contains("weights for it: hpl-tune weights --machine machine.toml"), "{}", out(&output));
        let machine = fs::read_to_string(folder.path().join("machine.toml")).unwrap();
        let machine = space::machine::Machine::parse(&machine).unwrap();
        assert!(machine.nodes.len() == 2 && machine.nodes.iter().all(|node| node.rate_gflops > 0.0));
        assert!(machine.links.is_empty() && machine.layers.len() == 1 && machine.layers[0].ranks == 2);
        // Three processes for two kernels; a program that is none of ours.
        let output = survey(&mpi.built("xhpl"), mpi.launcher(), "3");
        assert!(output.status.code() == Some(2) && err(&output).contains("rank_kernels"), "{}", err(&output));
        let output = survey(Path::new("/bin/echo"), "none", "2");
        assert!(output.status.code() == Some(2) && err(&output).contains("no survey"), "{}", err(&output));
        // Only the description is left.
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2);
    }
}

/// Those of another rank may not run on the node of rank 0.
#[test]
#[ignore = "needs MPI: tests/run --install"]
fn each_process_loads_its_own_kernels() {
    let folder = tempfile::tempdir().unwrap();
    let engine = folder.path().join("engine.toml");
    let args = ["--json", "--threads", "1", "--engine-params", engine.to_str().unwrap()];
    for mpi in [Mpi::Open, Mpi::Mpich] {
        fs::write(&engine, "rank_kernels = [\"builtin\", \"builtin-portable\"]\n").unwrap();
        let result: space::RunResult = serde_json::from_str(&passes(mpi, 2, &SMALL, &args)).unwrap();
        assert!(result.kernel.ends_with("portable)"), "{}", result.kernel);
        fs::write(&engine, "rank_kernels = [\"builtin\", \"/no/such/libblas.so\"]\n").unwrap();
        refuses(mpi, 2, &SMALL, &args, &["rank 1: /no/such/libblas.so cannot be loaded"]);
    }
}

#[test]
#[ignore = "needs MPI: tests/run --install"]
fn a_failing_rank_ends_the_job() {
    let failures = [
        ("panic", "rank 2 ends the job: it panicked"),
        ("poison", "rank 2 ends the job: boom"),
        ("too long", "rank 0 sent more than 4 doubles with tag 2 where rank 2 expects 4"),
        ("too short", "rank 0 sent 3 doubles with tag 2 where rank 2 expects 4"),
        ("never received", "rank 2 ends the job: 1 dropped sends or receives were never matched"),
        ("thread", "rank 2 ends the job: it panicked"),
        ("leaves", "rank 2 ends the job: it leaves while other ranks stay"),
    ];
    for (failure, words) in failures {
        for mpi in [Mpi::Open, Mpi::Mpich] {
            let program = mpi.built("examples/mpi_conformance");
            let output = mpi.run(3, &program).arg(failure).output().unwrap();
            assert!(!output.status.success() && err(&output).contains(words), "{mpi:?}, {failure}: {}", err(&output));
        }
    }
}

#[test]
#[ignore = "needs MPI: tests/run --install"]
fn variants_on_1_2_4_and_6_ranks() {
    let samples = [
        (1, "1 1", "1 1", 2),
        (2, "1 2", "2 1", 2),
        (4, "2 1 4", "2 4 1", 3),
        (6, "2 3 1", "3 2 6", 3),
        // Fewer ranks than processes.
        (4, "1 1", "2 3", 2),
    ];
    for (ranks, p, q, grids) in samples {
        let dat = Dat { n: "50 117", p, q, bcast: "0 3", depth: "0 1", ..SMALL };
        let text = passes(Mpi::Open, ranks, &dat, &[]);
        assert_eq!(text.matches(" PASSED").count(), grids * 8, "{text}");
        assert_eq!(text.matches("End of Tests.").count(), 1, "one rank writes");
    }
}

#[test]
#[ignore = "needs MPI: tests/run --install"]
fn mpich() {
    let dat = Dat { p: "2 1", q: "1 2", bcast: "0 3", depth: "0 1", ..SMALL };
    let text = passes(Mpi::Mpich, 2, &dat, &[]);
    assert_eq!(text.matches(" PASSED").count(), 8, "{text}");
    refuses(Mpi::Mpich, 2, &Dat { q: "3", ..SMALL }, &[], &["P=1 Q=3 needs 3 ranks, mpirun started 2 processes"]);
}

/// The hashes of x of all runs of a JSON output.
fn x_hashes(text: &str) -> Vec<String> {
    let hash = |line: &str| {
        let result: serde_json::Value = serde_json::from_str(line).unwrap();
        result["x_hash"].as_str().unwrap().to_owned()
    };
    text.lines().map(hash).collect()
}

#[test]
#[ignore = "needs MPI: tests/run --install"]
fn x_is_that_of_in_process_ranks_bit_for_bit() {
    for (ranks, p, q, threads) in
        [(2, "1 2", "2 1", "1"), (2, "1 2", "2 1", "2"), (4, "2 1 4", "2 4 1", "1"), (6, "2 3", "3 2", "1")]
    {
        let dat = Dat { n: "203", p, q, bcast: "0 1 2 3 4 5", depth: "0 1 2", ..SMALL };
        let args = ["--json", "--threads", threads];
        let folder = dat.folder();
        let alone = Command::new(Mpi::Open.built("xhpl")).args(args).current_dir(&folder).output().unwrap();
        let expected = x_hashes(&out(&alone));
        assert_eq!(expected.len(), p.split(' ').count() * 18, "{}", err(&alone));
        assert_eq!(x_hashes(&passes(Mpi::Open, ranks, &dat, &args)), expected, "{p} x {q}, {threads} threads");
    }
}

#[test]
#[ignore = "needs MPI: tests/run --install"]
fn errors_are_told_once() {
    refuses(Mpi::Open, 3, &Dat { nb: "0", ..SMALL }, &[], &["HPL.dat line 8"]);
    refuses(Mpi::Open, 3, &SMALL, &["--thread"], &["unexpected argument"]);
    let grid = ["HPL.dat line 11", "P=2 Q=2 needs 4 ranks, mpirun started 3 processes", "mpirun -np 4"];
    refuses(Mpi::Open, 3, &Dat { p: "1 2", q: "2 2", ..SMALL }, &[], &grid);
    let memory = ["HPL.dat line 6", "N=3000000", "lower N to", "--force"];
    refuses(Mpi::Open, 2, &Dat { n: "100 3000000", ..SMALL }, &[], &memory);
    refuses(Mpi::Open, 2, &SMALL, &["--blas", "/nowhere/libblas.so"], &["/nowhere/libblas.so"]);
}

#[test]
#[ignore = "needs MPI: tests/run --install"]
fn memory_refused_in_mid_run_ends_the_job() {
    let folder = Dat { n: "3000000", ..SMALL }.folder();
    let program = Mpi::Open.built("xhpl");
    let output = Mpi::Open.run(2, &program).arg("--force").current_dir(&folder).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", err(&output));
    assert!(err(&output).contains("ends the job: no memory for a buffer of"), "{}", err(&output));
    nothing_is_left(folder.path());
}

/// Resident memory of a process in MB; 0 when it is gone.
fn resident_mb(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) / 1000
}

#[test]
#[ignore = "needs MPI: tests/run --install"]
fn a_rank_outside_of_the_grid_keeps_no_matrix() {
    // Each of two ranks has 256 MB of the matrix; then rank 0 has all of it.
    let dat = Dat { n: "8000", nb: "128", q: "2 1", p: "1 1", ..SMALL };
    for mpi in [Mpi::Open, Mpi::Mpich] {
        let folder = dat.folder();
        let mut command = mpi.run(2, &mpi.built("xhpl"));
        command.args(["--json", "--threads", "1"]).current_dir(&folder).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut job = Job(command.spawn().unwrap());
        let (mut results, mut first) = (BufReader::new(job.0.stdout.take().unwrap()), String::new());
        results.read_line(&mut first).unwrap();
        assert!(first.contains("\"passed\":true"), "{mpi:?}: {first}");
        let ranks = ranks_in(&folder.path().canonicalize().unwrap());
        loop {
            let mut memory_mb: Vec<u64> = ranks.iter().map(|&pid| resident_mb(pid)).collect();
            memory_mb.sort_unstable();
            if matches!(memory_mb[..], [least, most] if (1..150).contains(&least) && most > 400) {
                break;
            }
            assert!(job.0.try_wait().unwrap().is_none(), "{mpi:?}: at last {memory_mb:?} MB");
            std::thread::sleep(Duration::from_millis(5));
        }
        drop((job, results));
        nothing_is_left(folder.path());
    }
}

/// Each process would solve the whole problem, and all would write the same file.
#[test]
#[ignore = "needs MPI: tests/run --install"]
fn processes_that_do_not_see_each_other_are_refused() {
    let without = std::env::current_exe().unwrap().ancestors().nth(2).unwrap().join("xhpl");
    let cases = [
        (Mpi::Open, without.clone(), "OMPI_COMM_WORLD_SIZE=2", "has no MPI"),
        (Mpi::Mpich, without, "PMI_SIZE=2", "has no MPI"),
        (Mpi::Mpich, Mpi::Open.built("xhpl"), "PMI_SIZE=2", "for another MPI"),
        (Mpi::Open, Mpi::Mpich.built("xhpl"), "OMPI_COMM_WORLD_SIZE=2", "for another MPI"),
    ];
    for (launcher, program, variable, built) in cases {
        let folder = SMALL.folder();
        let output = launcher.run(2, &program).current_dir(&folder).output().unwrap();
        let stderr = err(&output);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(variable) && stderr.contains(built) && out(&output).is_empty(), "{stderr}");
    }
}

#[test]
#[ignore = "needs MPI: tests/run --install"]
fn a_killed_rank_ends_the_job() {
    for mpi in [Mpi::Open, Mpi::Mpich] {
        let folder = Dat { n: "8000 8000 8000 8000", nb: "64", ..SMALL }.folder();
        let mut command = mpi.run(2, &mpi.built("xhpl"));
        command.args(["--force", "--threads", "1"]).current_dir(&folder).stdout(Stdio::null()).stderr(Stdio::null());
        let mut job = Job(command.spawn().unwrap());
        let ranks = wait_for_work(&mut job.0, &folder.path().canonicalize().unwrap());
        let victim = i32::try_from(*ranks.last().unwrap()).unwrap();
        let start = Instant::now();
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(victim), nix::sys::signal::Signal::SIGKILL).unwrap();
        let status = job.0.wait().unwrap();
        assert!(start.elapsed() < Duration::from_secs(60) && !status.success(), "{mpi:?}: {status}");
        nothing_is_left(folder.path());
    }
}

/// A job that ends with its test: mpirun passes SIGTERM on to its ranks.
struct Job(Child);

impl Drop for Job {
    fn drop(&mut self) {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(self.0.id()).unwrap());
        if matches!(self.0.try_wait(), Ok(None)) {
            let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM);
            let _ = self.0.wait();
        }
    }
}

/// Waits until both ranks have used some CPU time; their process ids.
fn wait_for_work(job: &mut Child, folder: &Path) -> Vec<u32> {
    let start = Instant::now();
    loop {
        assert!(start.elapsed() < Duration::from_secs(60) && job.try_wait().unwrap().is_none(), "it does not start");
        std::thread::sleep(Duration::from_millis(50));
        let ranks = ranks_in(folder);
        let ticks = |pid: &u32| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let numbers = stat.rsplit(')').next().unwrap_or("").split_whitespace().skip(11).take(2);
            numbers.filter_map(|ticks| ticks.parse::<u64>().ok()).sum::<u64>()
        };
        if ranks.len() == 2 && ranks.iter().all(|pid| ticks(pid) >= 30) {
            return ranks;
        }
    }
}
