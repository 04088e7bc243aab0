//! Runs on GPUs with too little memory.

use space::workspace::{DEVICE_LISTS_BYTES, RunShape, Workspace};

use super::gpu::{CUDA, HIP, assert_all_is_freed, libraries, on_gpu};
use super::{dat, folder, result_lines, succeeds};

/// The line of a run that was skipped.
fn skipped(out: &str) -> &str {
    out.lines().find(|line| line.ends_with(", skip")).unwrap_or_else(|| panic!("no run was skipped: {out}"))
}

/// Like one that the memory of the host does not hold: the series goes on, also where only one of the ranks lacks memory.
#[test]
fn a_run_that_does_not_fit_is_skipped() {
    for (platform, p, q, bytes) in
        [(CUDA, "1", "1", "16000000"), (HIP, "2", "1", "16000000"), (CUDA, "1", "4", "64000000")]
    {
        let folder = folder(&dat(&[(5, "3"), (6, "150 3000 100"), (11, p), (12, q)]));
        let run = |more: &[&str]| {
            let args = [&["--device", platform.0, "--threads", "1"], more].concat();
            succeeds(&on_gpu(&folder, &libraries(platform), &args, &[("FAKE_GPU_BYTES", bytes)]))
        };
        let out = run(&[]);
        let n: Vec<usize> = result_lines(&out).iter().map(|line| line[0]).collect();
        assert_eq!(n, [150, 100], "{out}");
        assert!(out.contains("      2 tests completed and passed residual checks"), "{out}");
        assert!(out.contains("      1 tests skipped because of illegal input values."), "{out}");
        let line = skipped(&out);
        assert!(line.starts_with(&format!("N=3000 P={p} Q={q} NB=16: rank ")), "{line}");
        let reason = format!("{} 0 (Fake device) device: no memory for 0.0", platform.0);
        assert!(line.contains(&reason) && line.contains("lower N"), "{line}");
        let json = run(&["--json"]);
        let lines: Vec<&str> = json.lines().collect();
        assert!(lines.len() == 3 && lines[1].contains("\"skipped\":\"rank "), "{json}");
        assert!([0, 2].iter().all(|&at| lines[at].contains("\"passed\":true")), "{json}");
        assert_all_is_freed(&folder);
    }
}

/// Whoever asks for its result learns by the exit code and on stderr that there is none.
#[test]
fn a_run_that_does_not_fit_fails_where_its_result_is_asked_for() {
    for windows in [&[][..], &["--windows", "0:3"]] {
        let folder = folder(&dat(&[(5, "2"), (6, "150 3000")]));
        let args = [&["--device", "cuda", "--threads", "1", "--result", "result.json"], windows].concat();
        let output = on_gpu(&folder, &libraries(CUDA), &args, &[("FAKE_GPU_BYTES", "16000000")]);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(1) && stderr.contains("no memory for 0.0"), "{stderr}");
        assert!(!folder.path().join("result.json").exists());
    }
}

/// Any call of the driver may say so, before a run and in the middle of it.
#[test]
fn a_call_that_gets_no_memory_skips_the_run() {
    let calls = [
        (CUDA, "cuDevicePrimaryCtxRetain:1:2"),
        (CUDA, "cuStreamCreateWithPriority:2:2"),
        (CUDA, "cuMemAlloc_v2:5:2"),
        (CUDA, "cuMemHostAlloc:2:2"),
        (CUDA, "cuEventCreate:9:2"),
        (CUDA, "cublasCreate_v2:1:3"),
        (HIP, "hipMalloc:3:2"),
        (HIP, "rocblas_dgemm:2:5"),
    ];
    for (platform, call) in calls {
        let folder = folder(&dat(&[(5, "2"), (6, "150 100"), (11, "2"), (12, "1")]));
        let args = ["--device", platform.0, "--threads", "1"];
        let out = succeeds(&on_gpu(&folder, &libraries(platform), &args, &[("FAKE_GPU_FAIL", call)]));
        let name = call.split(':').next().unwrap();
        assert!(skipped(&out).contains(&format!("{name} failed: ")), "{call}: {out}");
        assert_eq!(result_lines(&out), [[100, 16, 2, 1]], "{call}: {out}");
        assert_all_is_freed(&folder);
    }
}

/// What the tuner counts with when it chooses N: a run has as much memory as it allocates, and not much more.
#[test]
fn the_memory_that_a_run_is_said_to_need_is_what_it_needs() {
    for (p, q, blocks, depth) in
        [(1, 1, "32", 1), (1, 1, "32", 3), (1, 1, "0", 1), (1, 2, "32", 1), (2, 1, "32", 1), (2, 2, "0", 2)]
    {
        let shape = RunShape { n: 768, p, q, nb: 64, depth, device_factors: blocks != "0", fact_threads: 1 };
        let lists = DEVICE_LISTS_BYTES * (p * q) as u64;
        let counted = Workspace::OurDevice.bytes(shape) - lists;
        let [p, q, depth] = [p, q, depth].map(|number| number.to_string());
        let folder = folder(&dat(&[(6, "768"), (8, "64"), (11, &p), (12, &q), (25, &depth)]));
        let run = |bytes: u64| {
            let args = ["--device", "cuda", "--threads", "1", "--fact-blocks", blocks];
            on_gpu(&folder, &libraries(CUDA), &args, &[("FAKE_GPU_BYTES", &bytes.to_string())])
        };
        let enough = succeeds(&run(counted + lists / 64));
        assert!(enough.contains("PASSED"), "{p}x{q}, {blocks} blocks, DEPTH {depth}: {enough}");
        let few = succeeds(&run(counted * 19 / 20));
        assert!(few.contains("no memory") && few.contains(", skip\n"), "{p}x{q}: {few}");
    }
}
