//! The file of `--result`, and those of `--phases` and `--timeline`.

use std::process::Stdio;

use super::{DAT, command, dat, folder, refuses, text, xhpl};

#[test]
fn a_result_that_cannot_be_written_is_refused_before_the_run() {
    let folder = folder(DAT);
    let flags: [&[&str]; 2] = [&[], &["--windows", "auto"]];
    for flags in flags {
        let refused = xhpl(&folder, &[&["--result", "none/result.json"], flags].concat());
        refuses(&refused, 5, &["cannot write to --result none/result.json", "No such file"]);
    }
}

/// Runs were missing, and the files, and scripts took them for complete.
#[test]
fn a_closed_pipe_is_an_error_where_files_are_asked_for() {
    let folder = folder(&dat(&[(5, "3"), (6, "10 20 30")]));
    for flag in ["--result", "--phases", "--timeline"] {
        let mut command = command(folder.path());
        let mut child = command.args([flag, "file"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(5), "{flag}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains("cannot write to stdout"), "{flag}: {}", text(&output.stderr));
    }
}
