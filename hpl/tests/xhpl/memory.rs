//! Runs that do not fit in main memory.

use std::fs;
use std::process::{Command, Output};

use tempfile::TempDir;

use super::{DAT, dat, folder, refuses, succeeds, text, xhpl};

#[test]
fn memory_too_small() {
    let output = xhpl(&folder(&dat(&[(5, "2"), (6, "100 3000000")])), &[]);
    refuses(&output, 2, &["HPL.dat line 6", "N=3000000", "GiB", "lower N to", "--force"]);

    let output = xhpl(&folder(&dat(&[(31, "2147483647")])), &[]);
    refuses(&output, 2, &["HPL.dat line 31", "ALIGN=2147483647", "GiB", "lower ALIGN"]);
    // A look-ahead beyond the number of panels needs no more memory.
    assert!(succeeds(&xhpl(&folder(&dat(&[(25, "2147483647")])), &[])).contains("PASSED"));
    // With more panels the messages of two would have one tag.
    let deep = dat(&[(6, "4097"), (8, "1"), (12, "2"), (25, "4096")]);
    refuses(&xhpl(&folder(&deep), &[]), 2, &["HPL.dat line 25", "DEPTH must be at most 4095", "found 4096"]);

    // With --force, the system refuses the memory, and the next run follows.
    let refused = folder(&dat(&[(5, "2"), (6, "3000000 100")]));
    let out = succeeds(&xhpl(&refused, &["--force"]));
    assert!(out.contains("N=3000000 P=1 Q=1 NB=16: rank 0: no memory") && out.contains("PASSED"), "{out}");
    let last = xhpl(&folder(&dat(&[(6, "3000000")])), &["--force", "--result", "result.json"]);
    assert!(last.status.code() == Some(1) && text(&last.stderr).contains("bytes"), "{}", text(&last.stderr));
}

/// Rows were those of the run before, and the picture was an empty file.
#[test]
fn a_skipped_run_counts_in_the_phases_and_has_a_picture() {
    let flags = ["--force", "--threads", "1", "--phases", "phases.csv", "--timeline", "timeline.svg"];
    for (orders, run, words) in
        [("3000000 100", "2,100,16,1,1,", "HPL timeline: N=100"), ("100 3000000", "1,100,16,1,1,", "run was skipped")]
    {
        let folder = folder(&dat(&[(5, "2"), (6, orders)]));
        succeeds(&xhpl(&folder, &flags));
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        let (phases, timeline) = (read("phases.csv"), read("timeline.svg"));
        assert!(phases.lines().count() > 1 && phases.lines().skip(1).all(|row| row.starts_with(run)), "{phases}");
        assert!(timeline.starts_with("<svg ") && timeline.contains(words), "{timeline}");
    }
}

/// The system refused the matrix when the run had begun.
#[test]
fn a_limit_of_address_space_is_one_of_memory() {
    let limited = |folder: &TempDir| -> Output {
        let script = "ulimit -v 3000000 && exec \"$0\" --threads 1";
        let words = ["-c", script, env!("CARGO_BIN_EXE_xhpl")];
        Command::new("sh").args(words).current_dir(folder.path()).output().unwrap()
    };
    // It needs 7 GB.
    refuses(&limited(&folder(&dat(&[(6, "30000")]))), 2, &["HPL.dat line 6", "N=30000", "lower N to"]);
    assert!(succeeds(&limited(&folder(DAT))).contains("PASSED"));
}
