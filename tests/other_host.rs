//! Sessions that name no nodes, resumed on another host: rates of two machines are in no score, or the report says so.

use std::fs;
use std::path::Path;
use std::process::Command;

use hpl::machine::host::facts;
use space::machine::Machine;
use tuner::record::session::Session;
use tuner::record::{Identity, Row};

use crate::engine::{Fake, GOOD, run_until};
use crate::program::{err, hpl_tune, machine_toml, out};

/// Trials before the resume, at least.
const TRIALS: usize = 3;

/// A session of our engine in `folder`, with the machine's rates given.
fn begun(folder: &Path) -> Vec<Row> {
    let mut command = hpl_tune();
    command.args(["--budget", "5m", "--n", "100", "--machine"]).arg(machine_toml()).arg("--out").arg(folder);
    run_until(&mut command, folder, TRIALS)
}

/// Makes of what the session in `folder` has recorded something of the host `other`.
fn as_if_on(folder: &Path, other: &str) {
    let path = folder.join("session.toml");
    let session = Session::load(&path).unwrap();
    Session { host: other.to_owned(), ..session }.save(&path).unwrap();
    let path = folder.join("journal.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let changed = text.replace(&format!("\"host\":\"{}\"", facts().hostname), &format!("\"host\":\"{other}\""));
    assert_ne!(changed, text);
    fs::write(&path, changed).unwrap();
    // What has ended since the last row would be taken in as a run on this host.
    fs::remove_dir_all(folder.join("trials")).unwrap();
}

/// Makes of the description in `folder` one of the host `other`, and of another processor where one is given.
fn described_as(folder: &Path, other: &str, cpu: Option<&str>) {
    let path = folder.join("machine.toml");
    let mut machine = Machine::parse(&fs::read_to_string(&path).unwrap()).unwrap();
    machine.host.name = other.to_owned();
    if let Some(cpu) = cpu {
        machine.host.cpu = cpu.to_owned();
    }
    fs::write(&path, machine.to_toml().unwrap()).unwrap();
}

fn resumed(folder: &Path) -> Command {
    let mut command = hpl_tune();
    command.arg("--resume").arg(folder);
    command
}

/// What `hpl-tune report` prints: the summary, and what it says besides.
fn report(folder: &Path, flags: &[&str]) -> (String, String) {
    let output = hpl_tune().arg("report").arg(folder).args(flags).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    (out(&output), err(&output))
}

#[test]
fn a_session_of_one_node_that_goes_on_on_another_machine_begins_anew() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("session");
    let before = begun(&folder).len();
    as_if_on(&folder, "other");
    described_as(&folder, "other", Some("another processor"));
    let rows = run_until(&mut resumed(&folder), &folder, before + TRIALS);
    let session = Session::load(&folder.join("session.toml")).unwrap();
    assert_eq!((&session.host, &session.moved_from), (&facts().hostname, &vec!["other".to_owned()]));
    assert!(folder.join("machine.toml").exists(), "its rates were given");
    let split = session.split(rows);
    assert_eq!(split.elsewhere.len(), before);
    assert!(split.all.len() >= TRIALS && split.all[0].strategy == Identity::BASELINE, "{:?}", split.all[0]);
    let (summary, said) = report(&folder, &[]);
    assert!(said.contains(&format!("{before} trials on other nodes are in the record")), "{said}");
    assert!(summary.contains(&format!("Trials        {}, ", split.all.len())), "{summary}");
    assert!(!summary.contains("the trials ran on"), "{summary}");
}

#[test]
fn on_a_host_that_differs_by_its_name_alone_all_trials_count_and_the_report_names_both() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("session");
    let before = begun(&folder).len();
    as_if_on(&folder, "other");
    described_as(&folder, "other", None);
    both_are_named(&folder, before);
}

#[test]
fn of_another_engine_all_trials_count_and_the_report_names_the_hosts() {
    let fake = Fake::new(GOOD);
    let before = run_until(&mut fake.session(), &fake.folder(), TRIALS).len();
    as_if_on(&fake.folder(), "other");
    both_are_named(&fake.folder(), before);
}

/// Resumes the session in `folder`, which has so many trials of the host `other`.
fn both_are_named(folder: &Path, before: usize) {
    let rows = run_until(&mut resumed(folder), folder, before + TRIALS);
    let session = Session::load(&folder.join("session.toml")).unwrap();
    let here = facts().hostname;
    assert_eq!((&session.host, session.moved_from.len()), (&here, 0));
    assert_eq!(session.split(rows.clone()).all, rows);
    let note = format!("the trials ran on other, {here}: rates of different hosts may not compare");
    let (summary, _) = report(folder, &[]);
    assert!(summary.contains(&note), "{summary}");
    assert!(fs::read_to_string(folder.join("report.html")).unwrap().contains(&note));
    let json: serde_json::Value = serde_json::from_str(&report(folder, &["--json"]).0).unwrap();
    assert_eq!(json["hosts"], serde_json::json!(["other", here]));
}
