//! `hpl-tune watch` without a terminal: one text.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::program::{err, hpl_tune, out, tune};

/// A session on a simulated cluster of four nodes, one of them slow, shared by the tests.
pub(crate) fn simulated() -> &'static Path {
    static DONE: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, folder) = DONE.get_or_init(|| {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("runs/night");
        let cluster = format!("{}/../datasets/simulated/four-nodes.toml", env!("CARGO_MANIFEST_DIR"));
        let words = ["--budget", "5m", "--quiet", "--simulate", &cluster, "--out", folder.to_str().unwrap()];
        let output = tune(words);
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        (home, folder)
    });
    folder
}

/// A copy of what a watcher reads of it.
fn copy(to: &Path) {
    fs::create_dir_all(to).unwrap();
    for name in ["session.toml", "journal.jsonl", "lock", "machine.toml", "report.html"] {
        fs::copy(simulated().join(name), to.join(name)).unwrap();
    }
}

fn watch(folder: &Path) -> Command {
    let mut command = hpl_tune();
    command.arg("watch").arg(folder).env("LC_ALL", "C.UTF-8");
    command
}

fn said(mut command: Command) -> String {
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    out(&output)
}

#[test]
fn without_a_terminal_it_prints_one_text_and_ends() {
    let text = said(watch(simulated()));
    for word in [
        "simulated, nothing is measured · ended · with a verified run · night",
        "of 5 min used",
        "\nResult        ",
        "verified by the final run",
        "\nDefault       ",
        "\nBest/default  ",
        "\nTrials        ",
        "\nNodes         ",
        "simulated-node-3 0.",
        "\nBest so far   ",
    ] {
        assert!(text.contains(word), "'{word}' is not in:\n{text}");
    }
    assert!(!text.contains('\x1b'), "no escape sequences: {text}");
}

/// What it says of best and default is what the report says.
#[test]
fn its_figures_are_those_of_the_report() {
    let report = out(&tune(["report", simulated().to_str().unwrap()]));
    let text = said(watch(simulated()));
    let line = |text: &str, name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{name}: {text}")).to_owned()
    };
    assert_eq!(line(&text, "Best/default  "), line(&report, "Best/default  "));
    let rate = |line: String| line.split(" GFLOP/s").next().unwrap().to_owned();
    assert_eq!(rate(line(&text, "Default       ")), rate(line(&report, "Default       ")));
    assert_eq!(rate(line(&text, "Result        ")), rate(line(&report, "Final run     ")));
}

#[test]
fn in_ascii_there_is_nothing_else() {
    let mut flag = watch(simulated());
    flag.arg("--ascii");
    let mut locale = watch(simulated());
    locale.env("LC_ALL", "C");
    for command in [flag, locale] {
        let text = said(command);
        assert!(text.is_ascii() && text.contains("simulated, nothing is measured * ended"), "{text}");
    }
}

#[test]
fn the_newest_folder_in_runs_is_the_default() {
    let mut command = hpl_tune();
    command.arg("watch").current_dir(simulated().parent().unwrap().parent().unwrap());
    assert!(said(command).contains("night"));
    let elsewhere = tempfile::tempdir().unwrap();
    let output = hpl_tune().arg("watch").current_dir(elsewhere.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("no run folder in runs/"), "{}", err(&output));
}

#[test]
fn what_is_no_run_folder_is_named() {
    let home = tempfile::tempdir().unwrap();
    let newer = home.path().join("newer");
    copy(&newer);
    fs::write(newer.join("journal.jsonl"), "{\"schema_version\":99}\n").unwrap();
    for (folder, word) in [(home.path(), "session.toml"), (&home.path().join("none"), "none"), (&newer, "schema 99")] {
        let output = watch(folder).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", err(&output));
        let text = err(&output);
        assert!(text.contains(folder.to_str().unwrap()) && text.contains(word), "{text}");
    }
}

#[test]
fn damaged_journals_are_shown_as_far_as_they_go() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("torn");
    copy(&folder);
    let whole = fs::read_to_string(folder.join("journal.jsonl")).unwrap();
    // On all nodes: those on single nodes are counted apart.
    let on_all = |line: &&str| !line.contains("\"started\":") && line.contains("\"nodes\":\"simulated-node-1 ");
    let trials = whole.lines().filter(on_all).count();
    let shown = |journal: &str| {
        fs::write(folder.join("journal.jsonl"), journal).unwrap();
        // Its end is long ago.
        fs::copy(simulated().join("report.html"), folder.join("report.html")).unwrap();
        said(watch(&folder))
    };
    let torn = shown(&whole[..whole.len() - 100]);
    assert!(torn.contains(&format!("\nTrials        {}, ", trials - 1)), "{torn}");
    assert!(torn.contains("the last line of journal.jsonl is incomplete"), "{torn}");
    let damaged = shown(&whole.replacen("schema_version", "\u{1}", 1));
    assert!(damaged.contains("journal.jsonl line 1: damaged"), "{damaged}");
    let empty = shown("");
    assert!(empty.contains("no trial has passed") && empty.contains("\nTrials        none yet"), "{empty}");
    fs::remove_file(folder.join("journal.jsonl")).unwrap();
    assert!(said(watch(&folder)).contains("\nTrials        none yet"));
}

#[test]
fn nothing_is_written() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("run");
    copy(&folder);
    let state = || {
        let mut files: Vec<_> = fs::read_dir(&folder).unwrap().map(Result::unwrap).collect();
        files.sort_by_key(|file| file.file_name());
        let about = |file: &fs::DirEntry| (file.file_name(), file.metadata().unwrap().modified().unwrap());
        files.iter().map(about).collect::<Vec<_>>()
    };
    let before = state();
    said(watch(&folder));
    assert_eq!(state(), before);
}

#[test]
fn a_closed_pipe_is_no_error() {
    let mut child = watch(simulated()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), err(&output).as_str()), (Some(0), ""));
}
