//! The program `xhpl` from the command line.

mod gpu;
mod gpu_memory;
#[cfg(not(feature = "mpi"))]
mod help;
mod memory;
mod result_file;
mod stamps;

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use space::DeviceChoice;
use tempfile::TempDir;

/// An HPL.dat of one small run, based on Netlib's sample.
const DAT: &str = "\
HPLinpack benchmark input file
Innovative Computing Laboratory, University of Tennessee
HPL.out      output file name (if any)
6            device out (6=stdout,7=stderr,file)
1            # of problems sizes (N)
100          Ns
1            # of NBs
16           NBs
0            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
1            Ps
1            Qs
16.0         threshold
1            # of panel fact
2            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
4            NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
1            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
1            DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
";

/// [`DAT`] with some of its lines, counted from 1, replaced.
fn dat(changes: &[(usize, &str)]) -> String {
    let mut lines: Vec<&str> = DAT.lines().collect();
    for &(number, text) in changes {
        lines[number - 1] = text;
    }
    lines.join("\n") + "\n"
}

/// A folder with this HPL.dat.
fn folder(dat: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("HPL.dat"), dat).unwrap();
    folder
}

fn command(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xhpl"));
    command.current_dir(folder).stdin(Stdio::null());
    command
}

fn xhpl(folder: &TempDir, args: &[&str]) -> Output {
    command(folder.path()).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Expects exit code `code`, nothing on stdout, and each of `words` on stderr.
fn refuses(output: &Output, code: i32, words: &[&str]) {
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    assert_eq!(text(&output.stdout), "");
    for word in words {
        assert!(stderr.contains(word), "'{word}' is not in: {stderr}");
    }
    assert!(!stderr.contains("panicked"), "{stderr}");
}

/// The stdout of a run that ends with exit code 0.
fn succeeds(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// N, NB, P, Q of the result lines, in order.
fn result_lines(out: &str) -> Vec<[usize; 4]> {
    let lines = out.lines().filter(|line| line.starts_with("WR") || line.starts_with("WC"));
    lines
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            [1, 2, 3, 4].map(|at| words[at].parse().unwrap())
        })
        .collect()
}

/// One run beside another, and what cannot be compared.
#[test]
fn a_reference_is_measured_in_turn() {
    let (folder, path) = (folder(DAT), "reference.dat");
    let with = |text: &str, args: &[&str]| {
        fs::write(folder.path().join(path), text).unwrap();
        xhpl(&folder, &[&["--reference", path, "--threads", "1"], args].concat())
    };
    let out = succeeds(&with(&dat(&[(8, "24")]), &["--result", "pair.json"]));
    assert!(out.contains("predicted, not measured: the rate of the first is "), "{out}");
    let result = fs::read_to_string(folder.path().join("pair.json")).unwrap();
    let result: space::windows::PairResult = serde_json::from_str(&result).unwrap();
    assert!(result.passed() && result.candidate.candidate.hpl.nb == 16 && result.reference.candidate.hpl.nb == 24);
    let [short, long] = ["1", "9"].map(|q| text(&with(&dat(&[(12, q)]), &[]).stderr));
    assert!(!short.contains("lcm(P, Q)") && long.contains("lcm(P, Q)"), "{long}");
    refuses(&with(&dat(&[(6, "99")]), &[]), 2, &["N=100", "N=99"]);
    refuses(&with(&dat(&[(7, "2"), (8, "8 24")]), &[]), 2, &["reference.dat describes 2 runs"]);
    refuses(&with("text", &[]), 2, &["--reference reference.dat: "]);
    refuses(&with(DAT, &["--windows", "auto"]), 2, &["--windows", "--reference"]);
    fs::write(folder.path().join("auto.toml"), "kernels = \"auto\"\n").unwrap();
    refuses(&with(DAT, &["--reference-params", "auto.toml"]), 2, &["kernels auto differ from builtin"]);
    fs::remove_file(folder.path().join(path)).unwrap();
    refuses(&xhpl(&folder, &["--reference", path]), 2, &["cannot read --reference reference.dat"]);
}

#[test]
fn one_run_passes() {
    let out = succeeds(&xhpl(&folder(DAT), &[]));
    assert_eq!(result_lines(&out), [[100, 16, 1, 1]]);
    assert!(out.lines().any(|line| line.starts_with("WR11C2R4 ")), "{out}");
    assert!(out.contains("PASSED") && out.contains("      1 tests completed and passed residual checks"), "{out}");
}

#[test]
fn runs_are_in_netlibs_order() {
    let lists = [
        (5, "2"),
        (6, "30 33"),
        (7, "2"),
        (8, "8 5"),
        (9, "1"),
        (10, "3"),
        (11, "1 2 3"),
        (12, "2 1 2"),
        (14, "3"),
        (15, "0 1 2"),
        (24, "2"),
        (25, "0 1"),
    ];
    let out = succeeds(&xhpl(&folder(&dat(&lists)), &[]));
    let mut expected = Vec::new();
    for [p, q] in [[1, 2], [2, 1], [3, 2]] {
        for n in [30, 33] {
            for nb in [8, 5] {
                expected.extend([[n, nb, p, q]; 6]);
            }
        }
    }
    assert_eq!(result_lines(&out), expected);
    let codes: Vec<&str> = out.lines().filter(|line| line.starts_with("WC")).map(|line| &line[..8]).collect();
    assert_eq!(codes[..6], ["WC01C2L4", "WC01C2C4", "WC01C2R4", "WC11C2L4", "WC11C2C4", "WC11C2R4"]);
    assert_eq!(out.matches("PASSED").count(), 72, "{out}");
    assert_eq!(out.matches("FAILED").count(), 0, "{out}");
    assert!(out.contains("Finished     72 tests"), "{out}");
}

#[test]
fn hpl_dat_missing() {
    let folder = tempfile::tempdir().unwrap();
    let output = xhpl(&folder, &[]);
    refuses(&output, 2, &["HPL.dat", folder.path().canonicalize().unwrap().to_str().unwrap()]);
}

#[test]
fn hpl_dat_malformed() {
    let malformed: [(usize, &str); 10] = [
        (4, "six"),
        (5, "0"),
        (5, "21"),
        (6, "-1"),
        (8, "0 NBs"),
        (12, "Qs"),
        (13, "sixteen"),
        (15, "3"),
        (19, "1"),
        (31, "0"),
    ];
    for (line, value) in malformed {
        refuses(&xhpl(&folder(&dat(&[(line, value)])), &[]), 2, &[&format!("HPL.dat line {line}")]);
    }
    let short: String = DAT.lines().take(20).map(|line| format!("{line}\n")).collect();
    refuses(&xhpl(&folder(&short), &[]), 2, &["HPL.dat line 21"]);
    let binary = tempfile::tempdir().unwrap();
    fs::write(binary.path().join("HPL.dat"), [0xff, 0xfe, 0, 10]).unwrap();
    refuses(&xhpl(&binary, &[]), 2, &["HPL.dat line 2"]);
}

#[test]
fn comments_in_latin_1() {
    let folder = folder("");
    let bytes = [b"Universit\xe4t\n", &DAT.as_bytes()[DAT.find('\n').unwrap() + 1..]].concat();
    fs::write(folder.path().join("HPL.dat"), bytes).unwrap();
    assert!(succeeds(&xhpl(&folder, &[])).contains("PASSED"));
}

#[test]
fn all_six_broadcasts() {
    let six = dat(&[(12, "4"), (6, "60"), (8, "8"), (22, "6"), (23, "0 1 2 3 4 5")]);
    let out = succeeds(&xhpl(&folder(&six), &[]));
    assert_eq!(out.matches("PASSED").count(), 6);
    // The BCAST digit of the result lines.
    let digits: String = out.lines().filter(|line| line.starts_with("WR")).map(|line| &line[3..4]).collect();
    assert_eq!(digits, "012345");
}

#[test]
fn wrong_flags() {
    let folder = folder(DAT);
    let flag = xhpl(&folder, &["--thread"]);
    refuses(&flag, 2, &["--thread"]);
    assert!(!text(&flag.stderr).contains("in the folder of HPL.dat"));
    refuses(&xhpl(&folder, &["--threads", "0"]), 2, &["--threads"]);
    refuses(&xhpl(&folder, &["--threads", "100000"]), 2, &["threads"]);
    refuses(&xhpl(&folder, &["my.dat"]), 2, &["'my.dat'", "start xhpl in the folder of HPL.dat"]);
    refuses(&xhpl(&folder, &["--blas", "/nowhere/libblas.so"]), 2, &["/nowhere/libblas.so"]);
}

#[test]
fn engine_parameters_from_a_file() {
    let folder = folder(&dat(&[(6, "200"), (11, "2"), (12, "2")]));
    let with = |text: &str, flags: &[&str]| {
        fs::write(folder.path().join("engine.toml"), text).unwrap();
        xhpl(&folder, &[&["--engine-params", "engine.toml"], flags].concat())
    };
    let uneven = with("threads = 2\nsplit = 0.5\n[weights]\nrows = [0, 1]\ncolumns = [0.99, 0.01]", &[]);
    assert!(succeeds(&uneven).contains("PASSED"));
    // A flag overrides the file.
    let many = with("threads = 9", &[]);
    assert!(text(&many.stderr).contains("4 ranks × 9 threads"), "{}", text(&many.stderr));
    let one = with("threads = 9", &["--threads", "7"]);
    assert!(text(&one.stderr).contains("4 ranks × 7 threads"), "{}", text(&one.stderr));
    refuses(&with("[weights]\nrows = [1, 2, 3]", &[]), 2, &["weights.rows must hold P=2 speeds or none, found 3"]);
    refuses(&with("split = -1", &[]), 2, &["engine.toml", "at least 0", "-1"]);
    refuses(&with("thread = 1", &[]), 2, &["engine.toml", "thread"]);
    refuses(&with("split = 1", &["--split", "1.5"]), 2, &["split must be at least 0 and below 1, found 1.5"]);
    refuses(&xhpl(&folder, &["--engine-params", "nowhere.toml"]), 2, &["nowhere.toml"]);
    refuses(&xhpl(&folder, &["--split", "half"]), 2, &["--split", "half is not a number"]);
}

/// The same x as on the host, for a whole run, and windows that pass.
#[test]
fn on_the_reference_device() {
    let folder = folder(&dat(&[(6, "200"), (11, "2"), (12, "2")]));
    let hash = |device: &str| {
        let line = succeeds(&xhpl(&folder, &["--device", device, "--threads", "1", "--json"]));
        let result: space::RunResult = serde_json::from_str(&line).unwrap();
        assert!(result.passed);
        (result.candidate.engine.device, result.x_hash.unwrap())
    };
    let (host, device) = (hash("none"), hash("reference"));
    assert_eq!((host.0, device.0), (DeviceChoice::None, DeviceChoice::Reference));
    assert_eq!(host.1, device.1);
    succeeds(&xhpl(&folder, &["--device", "reference", "--windows", "0:3,5:2"]));
    refuses(
        &xhpl(&folder, &["--device", "gpu"]),
        2,
        &["--device", "gpu is not a device; use auto, none, reference, cuda or hip"],
    );
    refuses(&xhpl(&folder, &["--device", "reference", "--survey", "1"]), 2, &["--survey"]);
}

/// The cores are divided among the ranks also with a file of engine parameters without threads.
#[test]
fn without_threads_in_the_file_the_cores_are_divided() {
    let folder = folder(DAT);
    let cores = hpl::machine::host::facts().cores_allowed.len();
    for (text, expected) in [("huge_pages = false\n", cores), ("threads = 1\n", 1)] {
        fs::write(folder.path().join("engine.toml"), text).unwrap();
        let line = succeeds(&xhpl(&folder, &["--engine-params", "engine.toml", "--json"]));
        assert!(line.contains(&format!("\"threads\":{expected},")), "{text}: {line}");
    }
}

#[test]
fn the_fastest_kernels_on_request() {
    let output = xhpl(&folder(DAT), &["--blas", "auto"]);
    assert!(succeeds(&output).contains("PASSED"));
    assert!(text(&output.stderr).contains("fastest") && text(&output.stderr).contains("builtin"));
}

#[test]
fn output_is_written_as_lines_3_and_4_specify() {
    let to_file = folder(&dat(&[(3, "result.txt"), (4, "8")]));
    assert_eq!(succeeds(&xhpl(&to_file, &[])), "");
    let file = fs::read_to_string(to_file.path().join("result.txt")).unwrap();
    assert!(file.contains("PASSED") && file.contains("End of Tests."), "{file}");

    let to_stderr = xhpl(&folder(&dat(&[(4, "7")])), &[]);
    assert_eq!(succeeds(&to_stderr), "");
    assert!(text(&to_stderr.stderr).contains("PASSED"));
}

#[test]
fn output_file_cannot_be_written() {
    let output = xhpl(&folder(&dat(&[(3, "/nowhere/HPL.out"), (4, "8")])), &[]);
    refuses(&output, 2, &["HPL.dat line 3", "/nowhere/HPL.out"]);
}

#[test]
fn output_file_on_a_full_disk() {
    let output = xhpl(&folder(&dat(&[(3, "/dev/full"), (4, "8")])), &[]);
    refuses(&output, 5, &["/dev/full"]);
}

#[test]
fn closed_pipe_ends_with_0() {
    let folder = folder(&dat(&[(5, "3"), (6, "10 20 30")]));
    let mut child = command(folder.path()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

#[test]
fn more_threads_than_cores() {
    let folder = folder(&dat(&[(6, "200"), (11, "3"), (12, "2")]));
    let output = xhpl(&folder, &["--threads", "3"]);
    assert!(succeeds(&output).contains("PASSED"));
    assert!(text(&output.stderr).contains("6 ranks × 3 threads"), "{}", text(&output.stderr));
}

#[test]
fn under_mpirun() {
    for variable in ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"] {
        let folder = folder(DAT);
        let output = command(folder.path()).env(variable, "2").output().unwrap();
        refuses(&output, 2, &[variable, "mpirun"]);
        assert!(succeeds(&command(folder.path()).env(variable, "1").output().unwrap()).contains("PASSED"));
    }
}

#[test]
fn a_failed_residual_is_reported_and_ends_with_0() {
    let out = succeeds(&xhpl(&folder(&dat(&[(13, "1e-9")])), &[]));
    assert!(out.contains("FAILED") && out.contains("||x||_oo"), "{out}");
    assert!(out.contains("      1 tests completed and failed residual checks"), "{out}");
}

#[test]
fn no_check_at_threshold_0() {
    let out = succeeds(&xhpl(&folder(&dat(&[(13, "0.0")])), &[]));
    assert!(!out.contains("PASSED") && !out.contains("FAILED"), "{out}");
    assert!(out.contains("      1 tests completed without checking"), "{out}");
}

#[test]
fn progress_lines() {
    // Long enough for a report: there is one every 50 ms.
    let out =
        succeeds(&xhpl(&folder(&dat(&[(5, "2"), (6, "2500 2500"), (8, "64")])), &["--progress", "--threads", "1"]));
    let lines: Vec<&str> = out.lines().filter(|line| line.starts_with("Column=")).collect();
    assert!(!lines.is_empty() && lines.iter().all(|line| line.contains(" Fraction=") && line.contains("% Gflops=")));
    // The heading of each run stands between its progress and its result.
    let starts = ["Column=", "T/V                N", "WR"];
    let mut order: Vec<&str> =
        out.lines().filter_map(|line| starts.into_iter().find(|start| line.starts_with(*start))).collect();
    order.dedup();
    assert_eq!(order, starts.repeat(2), "{out}");
}

#[test]
fn extreme_orders() {
    let out = succeeds(&xhpl(&folder(&dat(&[(5, "4"), (6, "0 1 2 17"), (11, "2"), (12, "2")])), &[]));
    assert_eq!(result_lines(&out).len(), 4);
    assert_eq!(out.matches("FAILED").count(), 0, "{out}");
}
