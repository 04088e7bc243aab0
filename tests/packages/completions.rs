//! Completions and pages of the manual, as the program writes them.

use std::process::Command;

use crate::program::{err, out, tune};

#[test]
fn a_shell_completes_verbs_and_flags() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("hpl-tune.bash");
    std::fs::write(&script, tune(["completions", "bash"]).stdout).unwrap();
    // As bash calls the function that is registered for the program: its name, the word, the word before.
    let ask = r#"source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); registered=$(complete -p hpl-tune)
        [[ $registered =~ "-F "([^ ]+) ]]
        "${BASH_REMATCH[1]}" hpl-tune "${!#}" "${COMP_WORDS[COMP_CWORD - 1]}"; echo "${COMPREPLY[@]}""#;
    let completed = |words: &[&str]| {
        let output =
            Command::new("bash").args(["--norc", "-c", ask, "bash"]).arg(&script).args(words).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{}", err(&output));
        out(&output)
    };
    assert_eq!(completed(&["hpl-tune", "doc"]).trim(), "doctor");
    assert_eq!(completed(&["hpl-tune", "--bud"]).trim(), "--budget");
    assert_eq!(completed(&["hpl-tune", "compare", "--tol"]).trim(), "--tolerance");
    assert_eq!(completed(&["hpl-tune", "mpi-setup", "--mpi"]).trim(), "--mpicc");
    assert!(completed(&["hpl-tune", "--strategy", ""]).contains("bayes"));
}

#[test]
fn each_shell_has_completions_and_another_is_refused() {
    for (shell, words) in [
        ("zsh", "#compdef hpl-tune"),
        ("fish", "complete -c hpl-tune"),
        ("elvish", "edit:"),
        ("powershell", "Register-"),
    ] {
        let output = tune(["completions", shell]);
        assert!(output.status.success() && out(&output).contains(words), "{shell}");
    }
    let output = tune(["completions", "cmd"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("bash"), "{}", err(&output));
}

#[test]
fn a_folder_that_takes_no_pages_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let output = tune(["man", "--out", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(5));
    assert!(err(&output).contains("--out") && err(&output).contains("file"), "{}", err(&output));
    let output = tune(["man", "--out", folder.path().join("new/man1").to_str().unwrap()]);
    assert!(output.status.success() && out(&output).contains("pages in"), "{}", err(&output));
    let page = std::fs::read_to_string(folder.path().join("new/man1/hpl-tune-doctor.1")).unwrap();
    assert!(page.contains(".TH hpl-tune-doctor 1") && page.contains("hpl\\-tune doctor"), "{page}");
}
