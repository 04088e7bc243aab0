//! A session on nodes that is resumed where not all that it had are used: its launcher is a script.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use objectives::launcher::MpiJob;
use space::machine::Node;
use tuner::record::session::Session;
use tuner::record::{Row, journal};

use crate::docs::pages::root;
use crate::hostile::until;
use crate::program::{err, hpl_tune, out};

/// Ranks on the nodes that are named, where none of them is that of `MPIRUN_DOWN`, after `MPIRUN_TAKES_S` seconds; without names one that is
/// down is meant, too. Its words are a line of `mpirun.log` each.
const MPIRUN: &str = concat!(
    r#"#!/bin/sh
echo "$*" >> "$0.log"
before= hosts= ranks=
for word in "$@"; do
  [ "$before" != --host ] || hosts=$word
  before=$word
done
case ",$hosts" in
  ,|*,"$MPIRUN_DOWN":*) echo "a node is down" >&2; exit 1 ;;
esac
sleep "${MPIRUN_TAKES_S:-0}"
for host in $(echo "$hosts" | tr , ' '); do
  rank='"cores_allowed":[0],"cores":[0],"memory_bytes":1000000000}'
  ranks="$ranks${ranks:+,}"'{"host":"'"${host%:*}"'",'"$rank"
done
echo '{"version":"'"#,
    env!("CARGO_PKG_VERSION"),
    r#"'","threads":1,"ranks":['"$ranks"']}'
"#
);

/// Seconds that are left of a session, and that its launcher takes: then no time is left for a run.
const SHORT_S: f64 = 3.0;

fn names(of: &[&str]) -> Vec<String> {
    of.iter().map(|&name| name.to_owned()).collect()
}

/// A run folder that is kept.
fn kept() -> PathBuf {
    root().join("tests/data/run-folder-1")
}

/// The folder below `home` of a session on n1 and n2 with `left_s` seconds of an hour left, with these spares and lost nodes.
fn session(home: &Path, left_s: f64, spares: &[&str], lost: &[&str]) -> PathBuf {
    let mpirun = home.join("mpirun");
    fs::write(&mpirun, MPIRUN).unwrap();
    fs::set_permissions(&mpirun, fs::Permissions::from_mode(0o755)).unwrap();
    let folder = home.join("run");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    let session = Session::load(&kept().join("session.toml")).unwrap();
    let job = MpiJob::new(&format!("{} -np {{np}}", mpirun.display()), "xhpl".into());
    let session = Session {
        budget_s: 3600.0,
        elapsed_s: 3600.0 - left_s,
        hosts: names(&["n1", "n2"]),
        nodes: vec![Node { name: "n1…n2".to_owned(), count: 2, cores: 1, ..Node::default() }],
        spares: names(spares),
        lost: names(lost),
        mpi_job: Some(job.on(&names(&["n1", "n2"]))),
        ..session
    };
    session.save(&folder.join("session.toml")).unwrap();
    folder
}

/// The command that resumes the session in `folder`, in no job but that of `variables`.
fn resume(folder: &Path, variables: &[(&str, &str)]) -> Command {
    let mut command = hpl_tune();
    command.arg("--resume").arg(folder).env_remove("SLURM_JOB_ID").envs(variables.iter().copied());
    command
}

/// What is printed when a session is resumed whose time is over once its nodes are found, and the session afterwards.
fn resumed(folder: &Path, variables: &[(&str, &str)]) -> (Output, Session) {
    let takes_s = SHORT_S.to_string();
    let output = resume(folder, variables).env("MPIRUN_TAKES_S", takes_s).output().unwrap();
    let said = err(&output);
    assert!(said.contains("no trial fitted into the budget") && !said.contains("nothing is run"), "{said}");
    (output, Session::load(&folder.join("session.toml")).unwrap())
}

/// Outside of a job the spare was forgotten.
#[test]
fn a_resumed_session_has_its_spares_still() {
    let home = tempfile::tempdir().unwrap();
    let (output, session) = resumed(&session(home.path(), SHORT_S, &["n3"], &[]), &[]);
    assert_eq!((session.hosts, session.spares), (names(&["n1", "n2"]), names(&["n3"])), "{}", err(&output));
}

/// A job of three nodes, of which this is the first.
const JOB: [(&str, &str); 3] = [("SLURM_JOB_ID", "17"), ("SLURM_JOB_NUM_NODES", "3"), ("SLURMD_NODENAME", "n1")];

/// In the job in which a node was lost, the launcher was asked for all nodes, and the resume ended with its refusal.
#[test]
fn a_session_is_resumed_in_the_job_that_has_lost_a_node() {
    let home = tempfile::tempdir().unwrap();
    let (output, session) = resumed(&session(home.path(), SHORT_S, &[], &["n3"]), &JOB);
    assert_eq!((session.hosts, session.lost), (names(&["n1", "n2"]), names(&["n3"])), "{}", err(&output));
    assert_eq!(session.mpi_job.map(|job| job.nodes), Some(names(&["n1", "n2"])));
}

/// On nodes with two logical CPUs for each core the ranks asked for twice as many as a node has, and all other nodes were refused.
#[test]
fn a_resume_asks_for_the_cpus_that_a_node_has() {
    let home = tempfile::tempdir().unwrap();
    let folder = session(home.path(), SHORT_S, &[], &[]);
    let path = folder.join("session.toml");
    let known = Session::load(&path).unwrap();
    let job = known.mpi_job.clone().unwrap();
    let job = MpiJob { launcher: format!("{} -x CPUS={{cpus}}", job.launcher), cpus_per_core: Some(2), ..job };
    Session { mpi_job: Some(job), ..known }.save(&path).unwrap();
    resumed(&folder, &[&JOB[..], &[("SLURM_JOB_CPUS_PER_NODE", "1(x3)")]].concat());
    let words = fs::read_to_string(home.path().join("mpirun.log")).unwrap();
    assert!(words.lines().next().unwrap().contains("CPUS=1"), "{words}");
}

/// A spare that was down ended the resume with the refusal of the launcher.
#[test]
fn a_session_is_resumed_in_the_job_whose_spare_is_down() {
    let home = tempfile::tempdir().unwrap();
    let (output, session) = resumed(&session(home.path(), SHORT_S, &["n3"], &[]), &JOB);
    assert_eq!((session.hosts, session.spares), (names(&["n1", "n2"]), names(&["n3"])), "{}", err(&output));
}

/// The launcher starts ranks on all of its nodes or on none, and the resume ended with its refusal.
#[test]
fn a_session_is_resumed_without_a_node_that_is_down() {
    let home = tempfile::tempdir().unwrap();
    let folder = session(home.path(), 3600.0, &[], &[]);
    fs::copy(kept().join("machine.toml"), folder.join("machine.toml")).unwrap();
    let mut command = resume(&folder, &[("MPIRUN_DOWN", "n2")]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let now = || Session::load(&folder.join("session.toml")).unwrap();
    until("the loss", || !now().lost.is_empty() || child.try_wait().unwrap().is_some());
    // It may have ended.
    let _ = kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM);
    let said = err(&child.wait_with_output().unwrap());
    let session = now();
    assert_eq!((session.hosts, session.lost), (names(&["n1"]), names(&["n2"])), "{said}");
    assert!(said.contains("n2 answers no more: the session goes on on 1 nodes: n1"), "{said}");
}

/// It was told to resume the session, which was refused.
#[test]
fn a_session_without_time_to_go_on_without_a_node_stays_on_its_nodes() {
    let home = tempfile::tempdir().unwrap();
    let folder = session(home.path(), 25.0, &[], &[]);
    let output = resume(&folder, &[("MPIRUN_DOWN", "n2")]).output().unwrap();
    assert!(err(&output).contains("n2: no answer any more, and too little time is left"), "{}", err(&output));
    let session = Session::load(&folder.join("session.toml")).unwrap();
    assert_eq!((session.hosts, session.lost), (names(&["n1", "n2"]), names(&[])), "{}", err(&output));
}

/// In a job of other nodes its result was taken away, or refused where they have another number of cores.
#[test]
fn a_session_that_is_over_is_shown_again_on_whatever_nodes() {
    let home = tempfile::tempdir().unwrap();
    let folder = session(home.path(), 0.0, &[], &[]);
    let rows = journal::read(&kept().join("journal.jsonl")).unwrap().rows;
    let on_nodes = rows.into_iter().map(|row| Row { nodes: Some("n1 n2".to_owned()), ..row });
    let lines: String = on_nodes.map(|row| serde_json::to_string(&row).unwrap() + "\n").collect();
    fs::write(folder.join("journal.jsonl"), lines).unwrap();
    fs::copy(kept().join("machine.toml"), folder.join("machine.toml")).unwrap();
    let before = Session::load(&folder.join("session.toml")).unwrap();
    let output = resume(&folder, &JOB).output().unwrap();
    assert!(out(&output).contains("1.631 GFLOP/s"), "{}{}", out(&output), err(&output));
    assert!(err(&output).contains("nothing is run"), "{}", err(&output));
    assert!(!home.path().join("mpirun.log").exists(), "nothing is started");
    let after = Session::load(&folder.join("session.toml")).unwrap();
    assert_eq!(Session { elapsed_s: before.elapsed_s, ..after }, before);
    assert!(folder.join("machine.toml").exists());
}

/// Of trials on the nodes that it had before nothing was said, but that none had fitted into the budget.
#[test]
fn trials_on_the_nodes_before_are_told_where_no_time_is_left_for_others() {
    let home = tempfile::tempdir().unwrap();
    let folder = session(home.path(), 0.0, &[], &["n3"]);
    fs::copy(kept().join("journal.jsonl"), folder.join("journal.jsonl")).unwrap();
    let said = err(&resume(&folder, &[]).output().unwrap());
    let told = "no time was left for a trial on the nodes that the session has now; 4 trials on those before are in the record";
    assert!(said.contains(told) && said.contains("--warm-start ") && !said.contains("longer --budget"), "{said}");
}
