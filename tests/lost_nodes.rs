//! A session on nodes that is resumed where not all that it had are used: its launcher is a script.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;

use objectives::launcher::MpiJob;
use space::machine::Node;
use tuner::record::session::Session;

use crate::docs::pages::root;
use crate::program::{err, hpl_tune};

/// Ranks on n1 and n2, where these are named; n3 is down.
const MPIRUN: &str = concat!(
    r#"#!/bin/sh
case "$*" in *--host*) ;; *) echo "n3 is down" >&2; exit 1 ;; esac
rank='"cores_allowed":[0],"cores":[0],"memory_bytes":1000000000}'
echo '{"version":"'"#,
    env!("CARGO_PKG_VERSION"),
    r#"'","threads":1,"ranks":[{"host":"n1",'"$rank"',{"host":"n2",'"$rank"']}'
"#
);

fn names(of: &[&str]) -> Vec<String> {
    of.iter().map(|&name| name.to_owned()).collect()
}

/// The folder below `home` of a session on n1 and n2 whose budget is used, with n3 as a spare, or lost.
fn session(home: &Path, spares: &[&str], lost: &[&str]) -> PathBuf {
    let mpirun = home.join("mpirun");
    fs::write(&mpirun, MPIRUN).unwrap();
    fs::set_permissions(&mpirun, fs::Permissions::from_mode(0o755)).unwrap();
    let folder = home.join("run");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    let session = Session::load(&root().join("tests/data/run-folder-1/session.toml")).unwrap();
    let job = MpiJob::new(&format!("{} -np {{np}}", mpirun.display()), "xhpl".into());
    let session = Session {
        elapsed_s: session.budget_s,
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

fn resumed(folder: &Path, variables: &[(&str, &str)]) -> (Output, Session) {
    let mut command = hpl_tune();
    command.arg("--resume").arg(folder).env_remove("SLURM_JOB_ID").envs(variables.iter().copied());
    let output = command.output().unwrap();
    assert!(err(&output).contains("nothing is run"), "{}", err(&output));
    (output, Session::load(&folder.join("session.toml")).unwrap())
}

/// Outside of a job the spare was forgotten.
#[test]
fn a_resumed_session_has_its_spares_still() {
    let home = tempfile::tempdir().unwrap();
    let (output, session) = resumed(&session(home.path(), &["n3"], &[]), &[]);
    assert_eq!((session.hosts, session.spares), (names(&["n1", "n2"]), names(&["n3"])), "{}", err(&output));
}

/// In the job in which a node was lost, the launcher was asked for all nodes, and the resume ended with its refusal.
#[test]
fn a_session_is_resumed_in_the_job_that_has_lost_a_node() {
    let home = tempfile::tempdir().unwrap();
    let job = [("SLURM_JOB_ID", "17"), ("SLURM_JOB_NUM_NODES", "3"), ("SLURMD_NODENAME", "n1")];
    let (output, session) = resumed(&session(home.path(), &[], &["n3"]), &job);
    assert_eq!((session.hosts, session.lost), (names(&["n1", "n2"]), names(&["n3"])), "{}", err(&output));
    assert_eq!(session.mpi_job.map(|job| job.nodes), Some(names(&["n1", "n2"])));
}
