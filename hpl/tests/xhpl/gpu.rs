//! Runs on GPUs whose driver, BLAS and compiler are those of `fake_gpu.c`: the real loading code, and all calls with their errors.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use hpl::backend::device::FoundGpus;
use space::{DeviceChoice, RunResult};
use tempfile::TempDir;

use super::{command, dat, folder, refuses, result_lines, succeeds, text};

/// Name of a platform, its libraries, and what the compiler needs to know to make the fake one.
pub(super) type Platform = (&'static str, [&'static str; 3], &'static [&'static str]);

pub(super) const CUDA: Platform = ("cuda", ["libcuda.so.1", "libcublas.so.12", "libnvrtc.so.12"], &[]);
pub(super) const HIP: Platform = ("hip", ["libamdhip64.so.6", "librocblas.so.4", "libhiprtc.so.6"], &["-DHIP"]);

/// The folder with the libraries of a platform, built once.
pub(super) fn libraries(platform: Platform) -> PathBuf {
    static BUILT: OnceLock<TempDir> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        [CUDA, HIP].into_iter().for_each(|platform| build(platform, folder.path(), &[]));
        folder
    });
    built.path().join(platform.0)
}

/// Builds the libraries of a platform in a folder of its name; all three are one file.
fn build((name, libraries, flags): Platform, within: &Path, more: &[&str]) {
    let folder = within.join(name);
    fs::create_dir_all(&folder).unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/xhpl/fake_gpu.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread"]).args(flags).args(more);
    let built = compiler.arg("-o").arg(folder.join("libfake.so")).arg(source).output().unwrap();
    assert!(built.status.success(), "{}", text(&built.stderr));
    for library in libraries {
        symlink("libfake.so", folder.join(library)).unwrap();
    }
}

/// Runs xhpl on the device of these libraries with this environment.
pub(super) fn on_gpu(folder: &TempDir, libraries: &Path, args: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut program = command(folder.path());
    program.args(args).env("LD_LIBRARY_PATH", libraries).env("FAKE_GPU_LOG", folder.path().join("left"));
    program.env("XDG_CACHE_HOME", folder.path().join("cache"));
    program.envs(environment.iter().copied()).output().unwrap()
}

/// What the runs in a folder have not freed; fails when no run has used the library.
pub(super) fn assert_all_is_freed(folder: &TempDir) {
    let left = fs::read_to_string(folder.path().join("left")).unwrap();
    let none = "contexts 0 memories 0 pinned 0 ranges 0 streams 0 events 0 modules 0 handles 0 programs 0";
    assert!(!left.is_empty() && left.lines().all(|line| line == none), "{left}");
}

/// Runs of all broadcasts, both forms of L1 and U, row swaps, depths.
fn variants(n: &str, (p, q): (&str, &str)) -> String {
    dat(&[
        (6, n),
        (11, p),
        (12, q),
        (22, "6            # of broadcast"),
        (23, "0 1 2 3 4 5"),
        (24, "2            # of lookahead depth"),
        (25, "0 2"),
    ])
}

#[test]
fn runs_on_both_platforms_pass() {
    for platform in [CUDA, HIP] {
        // With one process row the device factors panels.
        let grids = [("1", "1"), ("2", "1"), ("2", "2"), ("3", "2"), ("1", "3")];
        for (seed, grid) in ["1", "2", "3", "4", "5"].into_iter().zip(grids) {
            for (l1, u) in [("0", "0"), ("1", "1")] {
                let folder = folder(&variants("133", grid));
                let changed = fs::read_to_string(folder.path().join("HPL.dat")).unwrap();
                let changed = changed.replace("0            L1", &format!("{l1}            L1"));
                let changed = changed.replace("0            U ", &format!("{u}            U "));
                fs::write(folder.path().join("HPL.dat"), changed).unwrap();
                let environment = [("FAKE_GPU_SEED", seed), ("FAKE_GPU_DEVICES", "2")];
                let args = ["--device", platform.0, "--threads", "1", "--split", "0.5", "--fact-blocks", "32"];
                let out = succeeds(&on_gpu(&folder, &libraries(platform), &args, &environment));
                assert!(out.contains("     12 tests completed and passed residual checks"), "{out}");
                assert_all_is_freed(&folder);
            }
        }
    }
}

/// The matrix of the device is that of the host: so are residuals of the same size, and the result names the device.
#[test]
fn the_result_names_the_device() {
    let folder = folder(&dat(&[(6, "200"), (11, "2"), (12, "2")]));
    for platform in [CUDA, HIP] {
        let args = ["--device", platform.0, "--threads", "1", "--json"];
        let line = succeeds(&on_gpu(&folder, &libraries(platform), &args, &[]));
        let result: RunResult = serde_json::from_str(&line).unwrap();
        let device = if platform == CUDA { DeviceChoice::Cuda } else { DeviceChoice::Hip };
        assert!(result.passed && result.candidate.engine.device == device && result.fma_peak_gflops.is_none());
        let expected = format!("{} 0 (Fake device), {}, {}", platform.0, platform.1[0], platform.1[1]);
        assert_eq!(result.device.as_deref(), Some(expected.as_str()));
        assert!(result.residual.unwrap() < 1.0, "{:?}", result.residual);
        let windows = ["--device", platform.0, "--windows", "0:3,5:2"];
        succeeds(&on_gpu(&folder, &libraries(platform), &windows, &[]));
    }
    assert_all_is_freed(&folder);
}

/// Many orders of execution: x is the same in all.
#[test]
fn x_is_the_same_in_random_orders() {
    for (p, q, blocks) in [("2", "2", "0"), ("1", "2", "0"), ("1", "1", "3")] {
        let folder = folder(&dat(&[(6, "150"), (11, p), (12, q)]));
        let x = |seed: usize| {
            let args = ["--device", "cuda", "--threads", "1", "--json", "--fact-blocks", blocks];
            let line = succeeds(&on_gpu(&folder, &libraries(CUDA), &args, &[("FAKE_GPU_SEED", &seed.to_string())]));
            serde_json::from_str::<RunResult>(&line).unwrap().x_hash.unwrap()
        };
        let first = x(0);
        (1..30).for_each(|seed| assert_eq!(x(seed), first, "seed {seed}, {p}x{q}"));
    }
}

/// As many blocks as a panel has rows for, which wait for each other; x is that of one block.
#[test]
fn blocks_of_threads_factor_a_panel_together() {
    let folder = folder(&dat(&[(6, "2500"), (8, "24"), (11, "1"), (12, "1")]));
    let x = |blocks: &str| {
        let args = ["--device", "cuda", "--threads", "1", "--json", "--fact-blocks", blocks];
        let line = succeeds(&on_gpu(&folder, &libraries(CUDA), &args, &[]));
        let result: RunResult = serde_json::from_str(&line).unwrap();
        assert_eq!(result.candidate.engine.fact_blocks().to_string(), blocks);
        (result.passed, result.x_hash.unwrap())
    };
    let first = x("1");
    assert!(first.0);
    ["2", "4", "5"].into_iter().for_each(|blocks| assert_eq!(x(blocks), first, "{blocks} blocks"));
}

/// Panels and messages large enough to be pinned.
#[test]
fn large_messages_are_pinned() {
    let folder = folder(&dat(&[(6, "900"), (8, "192"), (11, "1"), (12, "2")]));
    let args = ["--device", "cuda", "--threads", "1"];
    succeeds(&on_gpu(&folder, &libraries(CUDA), &args, &[]));
    assert_all_is_freed(&folder);
    // Where the system refuses, copies are made without.
    let refused = [("FAKE_GPU_FAIL", "cuMemHostRegister_v2:1:2")];
    succeeds(&on_gpu(&folder, &libraries(CUDA), &args, &refused));
}

/// Any rank may free a message that another one's device has pinned; it goes on with its own device.
#[test]
fn ranks_of_several_devices_free_each_other_s_messages() {
    for platform in [CUDA, HIP] {
        let folder = folder(&dat(&[(6, "3072"), (8, "256"), (11, "2"), (12, "2"), (26, "0            SWAP")]));
        let args = ["--device", platform.0, "--threads", "1"];
        let devices = [("FAKE_GPU_DEVICES", "4")];
        let out = succeeds(&on_gpu(&folder, &libraries(platform), &args, &devices));
        assert!(out.contains("PASSED"), "{out}");
        assert_all_is_freed(&folder);
        let kept = fs::read_dir(folder.path().join("cache/hpl-tune")).unwrap().count();
        assert_eq!(kept, 1, "the devices have one name, and one code");
    }
}

/// The picture has a lane for each stream, and phases are the times of the device: FACT is no wait for the update beside it.
#[test]
fn phases_and_pictures_show_the_streams() {
    let folder = folder(&dat(&[(6, "600"), (8, "60"), (11, "1"), (12, "1")]));
    let args = ["--device", "cuda", "--threads", "1", "--phases", "phases.csv", "--timeline", "timeline.svg"];
    succeeds(&on_gpu(&folder, &libraries(CUDA), &args, &[]));
    let picture = fs::read_to_string(folder.path().join("timeline.svg")).unwrap();
    for (lane, work) in [("Main", "UPDATE rest"), ("Fact", "FACT"), ("Copy", "row swap")] {
        let title = format!("rank 0 stream {lane}: {work}");
        assert!(picture.contains(&title), "{title} is not in the picture");
    }
    let phases = fs::read_to_string(folder.path().join("phases.csv")).unwrap();
    let times = phases.lines().skip(1).map(|line| {
        let values: Vec<f64> = line.split(',').map(|value| value.parse().unwrap()).collect();
        (values[7], values[9], values[10])
    });
    let times: Vec<(f64, f64, f64)> = times.collect();
    // The last steps have no columns to update.
    assert!(times[..8].iter().all(|(fact, rs, update)| *fact > 0.0 && *rs > 0.0 && *update > 0.0), "{times:?}");
}

/// The second run needs no compiler; a damaged file, or one that the driver does not take, is made again.
#[test]
fn kernels_are_compiled_once() {
    let folder = folder(&dat(&[(6, "100"), (11, "1"), (12, "1")]));
    let run = |environment: &[(&str, &str)]| on_gpu(&folder, &libraries(CUDA), &["--device", "cuda"], environment);
    let without_compiler = [("FAKE_GPU_FAIL", "nvrtcCompileProgram:1:6")];
    assert_eq!(run(&without_compiler).status.code(), Some(1), "nothing is kept yet");
    succeeds(&run(&[]));
    succeeds(&run(&without_compiler));
    let kept: Vec<_> =
        fs::read_dir(folder.path().join("cache/hpl-tune")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(kept.len(), 1, "{kept:?}");
    fs::write(&kept[0], "damaged").unwrap();
    assert_eq!(run(&without_compiler).status.code(), Some(1), "damaged");
    succeeds(&run(&[]));
    succeeds(&run(&[("FAKE_GPU_FAIL", "cuModuleLoadData:1:200")]));
    assert_all_is_freed(&folder);
}

#[test]
fn auto_is_a_gpu_where_there_is_one() {
    let folder = folder(&dat(&[]));
    let device = |libraries: &Path, environment: &[(&str, &str)]| {
        let line = succeeds(&on_gpu(&folder, libraries, &["--device", "auto", "--json"], environment));
        serde_json::from_str::<RunResult>(&line).unwrap().candidate.engine.device
    };
    assert_eq!(device(&libraries(CUDA), &[]), DeviceChoice::Cuda);
    assert_eq!(device(&libraries(HIP), &[]), DeviceChoice::Hip);
    assert_eq!(device(&libraries(CUDA), &[("FAKE_GPU_DEVICES", "0")]), DeviceChoice::None);
    assert_eq!(device(&libraries(CUDA), &[("FAKE_GPU_FAIL", "cuInit:1:999")]), DeviceChoice::None);
}

/// Each function that fails at some call ends the run with its name, and nothing is left.
#[test]
fn a_call_that_fails_ends_the_run() {
    const CUDA_CALLS: [&str; 25] = [
        "cuInit:2:999",
        "cuDeviceGetCount:2:100",
        "cuDeviceGet:1:101",
        "cuDevicePrimaryCtxRetain:1:46",
        "cuCtxSetCurrent:1:201",
        "cuMemAlloc_v2:5:999",
        "cuMemHostAlloc:2:999",
        "cuStreamCreateWithPriority:2:999",
        "cuEventCreate:9:999",
        "cuEventRecord:8:700",
        "cuEventQuery:5:719",
        "cuEventSynchronize:4:214",
        "cuCtxSynchronize:1:719",
        "cuStreamWaitEvent:6:400",
        "cuMemcpyHtoDAsync_v2:7:1",
        "cuMemcpyDtoHAsync_v2:2:1",
        "cuModuleLoadData:1:218",
        "cuModuleGetFunction:3:500",
        "cuLaunchKernel:9:719",
        "cublasCreate_v2:1:1",
        "cublasSetStream_v2:3:1",
        "cublasDgemm_v2:2:13",
        "cublasDtrsm_v2:3:13",
        "nvrtcCreateProgram:1:1",
        "nvrtcCompileProgram:1:6",
    ];
    const HIP_CALLS: [&str; 7] = [
        "hipInit:2:3",
        "hipSetDevice:1:101",
        "hipMalloc:3:999",
        "hipModuleLaunchKernel:5:719",
        "hipMemcpy2DAsync:2:1",
        "rocblas_dgemm:2:6",
        "hiprtcCompileProgram:1:6",
    ];
    // Where the device factors the panels.
    const FACT_CALLS: [&str; 4] =
        ["cuLaunchKernel:25:719", "cublasDgemm_v2:6:13", "cublasDtrsm_v2:4:13", "cuMemcpyDtoHAsync_v2:3:1"];
    let all = CUDA_CALLS.map(|call| (CUDA, call, "2")).into_iter().chain(HIP_CALLS.map(|call| (HIP, call, "2")));
    for (platform, call, p) in all.chain(FACT_CALLS.map(|call| (CUDA, call, "1"))) {
        let folder = folder(&dat(&[(6, "150"), (11, p), (12, "1")]));
        let args = ["--device", platform.0, "--threads", "1"];
        let output = on_gpu(&folder, &libraries(platform), &args, &[("FAKE_GPU_FAIL", call)]);
        let (name, stderr) = (call.split(':').next().unwrap(), text(&output.stderr));
        assert_eq!(output.status.code(), Some(1), "{call}: {stderr}");
        assert!(stderr.contains(&format!("{name} failed: ")), "{call}: {stderr}");
        assert!(!stderr.contains("panicked"), "{call}: {stderr}");
        assert!(result_lines(&text(&output.stdout)).is_empty(), "{call} has no result");
        assert_all_is_freed(&folder);
    }
}

#[test]
fn messages_name_the_way_out() {
    let folder = folder(&dat(&[(6, "150")]));
    let with = |libraries: &Path, args: &[&str], environment: &[(&str, &str)], words: &[&str]| {
        let output = on_gpu(&folder, libraries, args, environment);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        words.iter().for_each(|word| assert!(stderr.contains(word), "'{word}' is not in: {stderr}"));
    };
    let cuda: &[&str] = &["--device", "cuda"];
    // Where the machine has no driver itself.
    for (platform, found) in FoundGpus::look() {
        let words: &[&str] = match found {
            Err(error) if error.reason.contains("no NVIDIA driver") => {
                &["libcuda.so.1", "install the driver of the device"]
            }
            Err(error) if error.reason.contains("no ROCm runtime") => &["libamdhip64.so.7", "install ROCm"],
            _ => continue,
        };
        with(folder.path(), &["--device", platform], &[], words);
    }
    with(&libraries(CUDA), cuda, &[("FAKE_GPU_DEVICES", "0")], &["no device is visible", "nvidia-smi"]);
    // Where nothing can be kept.
    let compiler = [("FAKE_GPU_FAIL", "nvrtcCompileProgram:1:6"), ("XDG_CACHE_HOME", "/proc/none")];
    with(
        &libraries(CUDA),
        cuda,
        &compiler,
        &["COMPILATION_ERROR (6)", "hpl_kernels.cu(1): error: asked for by the test"],
    );
    let ecc = [("FAKE_GPU_FAIL", "cuEventSynchronize:3:214")];
    with(&libraries(CUDA), cuda, &ecc, &["(214)", "look at the kernel log and its ECC counters"]);
    let emulated = [("CUBLAS_EMULATE_DOUBLE_PRECISION", "1")];
    let words = ["CUBLAS_EMULATE_DOUBLE_PRECISION=1 lets cuBLAS emulate double precision", "unset it"];
    refuses(&on_gpu(&folder, &libraries(CUDA), cuda, &emulated), 2, &words);
    fs::write(folder.path().join("cuda.toml"), "device = \"cuda\"\n").unwrap();
    let reference = ["--reference", "HPL.dat", "--reference-params", "cuda.toml"];
    refuses(&on_gpu(&folder, &libraries(CUDA), &reference, &emulated), 2, &words);
    refuses(&on_gpu(&folder, folder.path(), &["--device", "cuda", "--survey", "1"], &[]), 2, &["--survey"]);
}

/// A platform without one of its libraries, or with one that lacks a function.
#[test]
fn what_is_missing_is_named() {
    let (folder, built) = (folder(&dat(&[])), tempfile::tempdir().unwrap());
    for (missing, word) in [("libcublas.so.12", "cuBLAS was not found"), ("libnvrtc.so.12", "NVRTC was not found")] {
        build(CUDA, built.path(), &[]);
        fs::remove_file(built.path().join("cuda").join(missing)).unwrap();
        let output = on_gpu(&folder, &built.path().join("cuda"), &["--device", "cuda"], &[]);
        let stderr = text(&output.stderr);
        assert!(output.status.code() == Some(1) && stderr.contains(word), "{stderr}");
        assert!(stderr.contains("name its folder in LD_LIBRARY_PATH"), "{stderr}");
        fs::remove_dir_all(built.path().join("cuda")).unwrap();
    }
    for function in ["cuMemAlloc_v2", "cuGetErrorName", "cublasDtrsm_v2", "cublasGetStatusString", "nvrtcGetCUBIN"] {
        build(CUDA, built.path(), &[&format!("-D{function}=renamed")]);
        let output = on_gpu(&folder, &built.path().join("cuda"), &["--device", "cuda"], &[]);
        let stderr = text(&output.stderr);
        assert!(output.status.code() == Some(1) && stderr.contains(&format!("lacks {function}")), "{stderr}");
        fs::remove_dir_all(built.path().join("cuda")).unwrap();
    }
    // No library: a file of that name.
    fs::write(folder.path().join("libcuda.so.1"), "text").unwrap();
    let output = on_gpu(&folder, folder.path(), &["--device", "cuda"], &[]);
    assert!(text(&output.stderr).contains("file too short"), "{}", text(&output.stderr));
}
