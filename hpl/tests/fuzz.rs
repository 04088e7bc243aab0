//! Malformed HPL.dat files: the program ends, names the line, and never panics.

#[path = "../../space/tests/space/mutate.rs"]
mod mutate;

use std::fs;
use std::io::Read;
use std::ops::Range;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use space::dat::HplDat;

/// Time after which the program counts as hanging.
const DEADLINE: Duration = Duration::from_secs(60);

/// Exit code and stderr of the program.
fn xhpl(bytes: &[u8]) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("HPL.dat"), bytes).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_xhpl"));
    command.current_dir(folder.path()).args(["--threads", "1"]);
    let file = fs::File::create(folder.path().join("stderr")).unwrap();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file).spawn().unwrap();
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if start.elapsed() > DEADLINE {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("still running after {DEADLINE:?}:\n{}", String::from_utf8_lossy(bytes));
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    let mut stderr = String::new();
    fs::File::open(folder.path().join("stderr")).unwrap().read_to_string(&mut stderr).unwrap();
    (status.code(), stderr)
}

/// Whether all runs of this file are small.
fn is_small(dat: &HplDat) -> bool {
    let runs = dat.runs();
    runs.len() <= 40 && runs.iter().all(|run| run.n <= 300 && run.ranks() <= 8)
}

/// Runs the cases; returns how many were refused, run, and left out as too long to run.
fn run(cases: Range<u64>) -> [usize; 3] {
    let mut count = [0; 3];
    for case in cases {
        let bytes = mutate::malformed(case);
        let text = String::from_utf8_lossy(&bytes);
        match HplDat::parse(&text) {
            Err(error) => {
                let (code, stderr) = xhpl(&bytes);
                assert_eq!(code, Some(2), "case {case}: {stderr}\n{text}");
                assert_eq!(stderr, format!("xhpl: {error}\n"), "case {case}:\n{text}");
                count[0] += 1;
            }
            Ok(dat) if is_small(&dat) => {
                let (code, stderr) = xhpl(&bytes);
                assert!(matches!(code, Some(0..=2)) && !stderr.contains("panicked"), "case {case}: {stderr}\n{text}");
                assert!(code == Some(0) || stderr.contains("HPL.dat line"), "case {case}: {code:?} {stderr}\n{text}");
                count[1] += 1;
            }
            Ok(_) => count[2] += 1,
        }
    }
    count
}

#[test]
fn a_few_malformed_files() {
    let [refused, run, _] = run(0..100);
    assert!(refused > 60 && run > 2, "{refused} {run}");
}

/// More: `cargo test --release -p hpl --test fuzz -- --ignored --nocapture`.
#[test]
#[ignore = "three thousand programs"]
fn three_thousand_malformed_files() {
    let start = Instant::now();
    let [refused, run, left_out] = run(1_000_000..1_003_000);
    println!(
        "{refused} refused with their line, {run} run, {left_out} too long to run, in {:.0} s",
        start.elapsed().as_secs_f64()
    );
}
