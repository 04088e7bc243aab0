//! Other engines: their profiles against their output, and what becomes of runs that misbehave.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use objectives::foreign::{Foreign, MatrixMemory, PrintedResult, Profile, ProfileError, SHIPPED};
use objectives::progress::ratio;
use objectives::real::{RealRuns, RunSpec, TRIAL_VARIABLE};
use objectives::{Failure, Measurement};
use space::{Candidate, EngineParams, HplParams};
use tempfile::TempDir;

const FIXTURE: &str = env!("CARGO_BIN_EXE_guard-fixture");

fn shipped(name: &str) -> Foreign {
    let (_, text) = SHIPPED.iter().find(|(known, _)| *known == name).unwrap();
    Foreign::new(Profile::parse(text).unwrap()).unwrap()
}

fn candidate(n: usize) -> Candidate {
    Candidate { hpl: HplParams::baseline(n, 1, 2), engine: EngineParams::default() }
}

/// What each program printed, written after its source or its published logs (`source` of its profile): N, GFLOP/s of the
/// results, largest residual, lines of progress.
#[test]
fn every_shipped_profile_reads_the_output_of_its_program() {
    let expected = [
        ("netlib", 10240, vec![14.762], 2.11204902e-3, 3),
        ("hpcc", 8000, vec![44.94, 45.54, 44.35], 0.0025311, 0),
        ("rochpl", 256_000, vec![153_000.0], 7.81204902e-5, 3),
        ("nvidia", 264_192, vec![93_500.0], 2.1e-5, 3),
        ("rochpl-mxp", 125_440, vec![180_000.0], 0.5, 3),
        ("nvidia-mxp", 429_056, vec![5.5286e6], 2.179_408e-5 * 2e-16 * (1u64 << 53) as f64, 0),
        ("intel", 100_000, vec![2666.7], 1.38204902e-3, 0),
        ("cuda", 150, vec![7.8921e-2], 9.38177704e-3, 0),
        ("hip", 150, vec![7.8921e-2], 9.38177704e-3, 0),
    ];
    assert_eq!(expected.len(), SHIPPED.len());
    for (name, n, rates, residual, progress) in expected {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/outputs/{name}.txt"));
        let text = std::fs::read_to_string(path).unwrap();
        let engine = shipped(name);
        let readings = engine.read(&text);
        assert_eq!(readings.iter().map(|r| r.rate_gflops).collect::<Vec<_>>(), rates, "{name}");
        // NVIDIA's HPL-MxP has neither N nor time in the line of its rate.
        let says_n = name != "nvidia-mxp";
        let right = |r: &PrintedResult| {
            let near = r.residual.is_some_and(|found| (found / residual - 1.0).abs() < 1e-12);
            r.passed == Some(true) && r.n == says_n.then_some(n) && near
        };
        assert!(readings.iter().all(right), "{name}: {readings:?}");
        assert_eq!(readings.len(), engine.profile().repeats, "{name}");
        assert!(readings.iter().all(|r| r.time_s.is_some() == says_n), "{name}");
        let trace = engine.progress(&text);
        assert_eq!(trace.len(), progress, "{name}: {trace:?}");
        assert!(trace.windows(2).all(|pair| pair[0].flops < pair[1].flops), "{name}: {trace:?}");
        // A correct run whose verdict is turned round must not pass.
        let failed = engine.read(&text.replace("PASSED", "FAILED"));
        assert!(failed.iter().all(|r| r.passed == Some(false)), "{name}");
    }
}

#[test]
fn columns_and_flops_are_told_apart() {
    let trace = shipped("netlib").progress("Column=000001900 Fraction=19.0% Gflops=1.0e+02\n");
    assert!((trace[0].flops - 0.47).abs() < 0.002, "19 % of the columns are 47 % of the work: {trace:?}");
    let trace = shipped("nvidia").progress(" Prog= 19.00%\tN_left= 1\tTime= 1\tTime_left= 1\tiGF= 7.0\tGF= 100.0\n");
    assert_eq!((trace[0].flops, trace[0].rate_gflops), (0.19, 100.0));
    assert_eq!(ratio(&trace, &trace), None, "one line has nothing before it");
}

#[test]
fn commands_say_what_the_candidate_says() {
    let mut c = candidate(5000);
    c.engine.threads = 3;
    let words = |engine: &Foreign, c: &Candidate| -> Vec<String> {
        engine.command(c, Path::new("/t")).into_iter().map(|word| word.into_string().unwrap()).collect()
    };
    let netlib = shipped("netlib");
    assert_eq!(words(&netlib, &c).join(" "), "mpirun -np 2 --map-by slot:PE=3 --bind-to core xhpl");
    assert!(netlib.environment(&c, Path::new("/t")).contains(&("OMP_NUM_THREADS".to_owned(), "3".to_owned())));
    c.engine.extra.insert("split".to_owned(), "0.5".to_owned());
    assert_eq!(words(&shipped("rochpl"), &c).join(" "), "mpirun_rochpl -P 1 -Q 2 -p 1 -q 2 -N 5000 --NB 128 -f 0.5");
    c.engine.extra.insert("p2p_as_bcast".to_owned(), "4".to_owned());
    let settings = shipped("nvidia").environment(&c, Path::new("/t"));
    assert!(settings.contains(&("HPL_P2P_AS_BCAST".to_owned(), "4".to_owned())), "{settings:?}");
    assert!(settings.contains(&("HPL_USE_NVSHMEM".to_owned(), "1".to_owned())), "the usual value of what is not said");
    assert_eq!(words(&shipped("rochpl-mxp"), &c).join(" "), "mpirun_rochplmxp -P 1 -Q 2 -p 1 -q 2 -N 5000 --NB 128");
    let mxp = words(&shipped("nvidia-mxp"), &c).join(" ");
    assert!(mxp.contains("--n 5000 --nb 128 --nprow 1 --npcol 2 --nporder row --use-mpi-panel-broadcast 50"), "{mxp}");
    let hpcc = shipped("hpcc");
    let (name, text) = hpcc.input(&c).unwrap().unwrap();
    assert_eq!((name, space::dat::HplDat::parse(&text).unwrap().ns), ("hpccinf.txt", vec![5000; 3]));
}

const PROFILE: &str = r"
schema_version = 1
name = 'fake'
about = 'a script'
source = 'this test'
program = 'PROGRAM'
command = ['{program}', '{n}']
input = 'HPL.dat'
obeys = ['nb']
[patterns]
result = '^W\S+ +(?<n>\d+) +(?<time>\S+) +(?<gflops>\S+)'
residual = 'r= *(?<residual>\S+) \.* (?<verdict>\w+)'
progress = 'at (?<flops>\S+) (?<gflops>\S+)'
";

#[test]
fn a_profile_says_where_the_matrix_lies_and_older_ones_are_read() {
    let of = |text: &str| Profile::parse(text).and_then(Foreign::new).map(|engine| engine.profile().clone());
    let host = of(PROFILE).unwrap();
    assert_eq!((host.schema_version, host.memory, host.nodes), (1, MatrixMemory::Host, None));
    let device = PROFILE.replace("schema_version = 1", "schema_version = 2\nmemory = 'device'\nnodes = 1");
    let read = of(&device).unwrap();
    assert_eq!((read.memory, read.nodes), (MatrixMemory::Device, Some(1)));
    assert_eq!(of(&toml::to_string(&read).unwrap()).unwrap(), read);
    let refused = |text: String| of(&text).unwrap_err().to_string();
    assert!(refused(device.replace("nodes = 1", "nodes = 0")).contains("nodes must be at least 1"));
    assert!(refused(device.replace("nodes = 1", "threads = true")).contains("threads must be false"));
    let places = ["netlib", "hpcc", "rochpl", "nvidia", "intel"].map(|name| shipped(name).profile().memory);
    assert_eq!(places.iter().filter(|memory| **memory == MatrixMemory::Device).count(), 2);
}

#[test]
fn a_bad_profile_is_named_with_the_way_out() {
    let refused = |from: &str, to: &str| {
        let text = PROFILE.replace(from, to);
        assert!(text != PROFILE, "{from}");
        let error = Profile::parse(&text).and_then(|profile| Foreign::new(profile).map(|_| ())).unwrap_err();
        error.to_string()
    };
    for (from, to, words) in [
        ("{n}", "{ranks}", "command: unknown placeholder {ranks}; known are np threads"),
        ("obeys = ['nb']", "obeys = ['block']", "unknown dimension 'block'; known are nb nbmin"),
        ("command = ['{program}', '{n}']", "command = []", "command is empty"),
        ("command = ['{program}', '{n}']", "command = ['{launch}']", "command has no words without a launcher"),
        ("(?<gflops>\\S+)'\nresidual", "(\\S+)'\nresidual", "patterns.result needs the group (?<gflops>"),
        ("r= *(?<res", "r= *((?<res", "patterns.residual: "),
        ("name = 'fake'", "nome = 'fake'", "nome"),
        ("schema_version = 1", "schema_version = 9", "newer"),
        ("input = 'HPL.dat'", "input = '../HPL.dat'", "plain name"),
        ("input = 'HPL.dat'\n", "", "does not say {n}, {nb}"),
        ("obeys", "threads = true\nobeys", "threads is true, but nothing tells the program how many"),
        ("'{n}']", "'{n}', '{out}']", "output is missing, but {out} is used"),
        ("obeys", "repeats = 21\nobeys", "repeats must be 1 to 20"),
        ("obeys", "nb = [64, 32]\nobeys", "nb must be rising"),
        ("(?<flops>", "(?<share>", "patterns.progress needs the group (?<columns|flops>"),
        ("progress", "residual_eps = 0.0\nprogress", "patterns.residual_eps must be a number above 0"),
        ("progress", "residual_eps = nan\nprogress", "patterns.residual_eps must be a number above 0"),
        ("obeys", "usual_nb = 0\nobeys", "usual_nb must be at least 1"),
        ("obeys", "usual_nbmin = 0\nobeys", "usual_nbmin must be at least 1"),
        ("obeys", "usual_nbmin = 16\nobeys", "usual_nbmin would be ignored, as obeys lacks nbmin"),
        ("obeys = ['nb']", "nb = [384]\nobeys = []", "nb would be ignored"),
        ("obeys = ['nb']", "usual_nb = 384\nobeys = []", "usual_nb would be ignored"),
        ("obeys", "env = {'' = '1'}\nobeys", "env has the name ''"),
        ("obeys", "env = {'A=' = '1'}\nobeys", "env has the name 'A='"),
    ] {
        let message = refused(from, to);
        assert!(message.contains(words), "{message}");
    }
    let with = |dim: &str| {
        let text = format!("{PROFILE}\n[[dimension]]\n{dim}");
        Profile::parse(&text).and_then(|profile| Foreign::new(profile).map(|_| ())).map_err(|error| error.to_string())
    };
    assert_eq!(with("name = 'a'\nenv = 'A'\nvalues = [1, 0.5, 'x']"), Ok(()));
    for (dim, words) in [
        ("name = 'a'\nvalues = [1]", "changes nothing"),
        ("name = 'a'\nenv = ''\nvalues = [1]", "env: the name of an environment variable"),
        ("name = 'a'\nenv = 'A'\nvalues = [1]\n[[dimension]]\nname = 'b'\nenv = 'A'\nvalues = [2]", "has the env of a"),
        ("name = 'nb'\nenv = 'A'\nvalues = [1]", "fills itself"),
        ("name = 'a'\nenv = 'A'\nvalues = [0.5, nan]", "a: has a value that is no finite number"),
        ("name = 'ranks'\nenv = 'A'\nvalues = [1]", "[[dimension]] ranks: is a dimension of every engine"),
        ("name = 'grid'\nenv = 'A'\nvalues = [1]", "[[dimension]] grid: is a dimension of every engine"),
        ("name = 'gpu_limit_w'\nenv = 'A'\nvalues = [1]", "gpu_limit_w: is a dimension of every engine"),
        ("name = 'a b'\nenv = 'A'\nvalues = [1]", "letters"),
        ("name = 'a'\nenv = 'A'\nvalues = []", "values is empty"),
        ("name = 'a'\nenv = 'A'\nvalues = [1, 1]", "twice"),
        ("name = 'a'\nenv = 'A'\nvalues = [2, 1]\nordered = true", "rising"),
    ] {
        let message = with(dim).unwrap_err();
        assert!(message.contains(words), "{message}");
    }
    let many: Vec<usize> = (0..65_536).collect();
    let message = with(&format!("name = 'a'\nenv = 'A'\nvalues = {many:?}")).unwrap_err();
    assert_eq!(message, "[[dimension]] a: has more than 65535 values; give fewer");
    let nb = format!("nb = {:?}\nobeys", (1..=65_536).collect::<Vec<usize>>());
    assert_eq!(refused("obeys", &nb), "nb has more than 65535 values; give fewer");
    // By flags alone NB is told, and DEPTH is not.
    let flags = "command = ['{program}', '{n}', '{nb}', '{p}', '{q}']\nobeys = ['nb', 'depth']";
    let by_file = "command = ['{program}', '{n}']\ninput = 'HPL.dat'\nobeys = ['nb']";
    assert!(refused(by_file, flags).starts_with("obeys has depth, which nothing tells the program"));
    let twice = "env = {'A' = '1'}\n[[dimension]]\nname = 'a'\nenv = 'A'\nvalues = [1]\n[patterns]";
    assert!(refused("[patterns]", twice).contains("a: has the env A, whose value in the table env would be ignored"));
    assert!(matches!(Profile::parse("schema_version = 1"), Err(ProfileError::Syntax(_))));
}

/// A folder with the script `body` as the engine; `$1` is N.
fn fake(body: &str) -> (TempDir, RealRuns, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let script = home.path().join("the engine.sh");
    std::fs::write(&script, format!("#!/bin/sh\n{body}\n")).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let profile = Profile::parse(&PROFILE.replace("PROGRAM", script.to_str().unwrap())).unwrap();
    let runs = RealRuns::foreign(FIXTURE.into(), Foreign::new(profile).unwrap());
    let trial = home.path().join("trials/7");
    (home, runs, trial)
}

fn verdict(body: &str) -> Result<Measurement, Failure> {
    let (_home, runs, trial) = fake(body);
    runs.run(&candidate(100), &trial, 60.0)
}

const GOOD: &str = "sleep 0.01; echo \"W1 $1 0.00 2.0e-01\"; echo 'r= 2e-3 ... PASSED'";

#[test]
fn a_good_run_reads_its_input_where_it_stands_and_can_be_repeated() {
    let (_home, runs, trial) = fake(&format!("test -f HPL.dat || exit 1; {GOOD}"));
    let measured = runs.run(&candidate(100), &trial, 60.0).unwrap();
    assert_eq!((measured.rate_gflops, measured.residual, measured.kernel.as_str()), (0.2, 2e-3, "fake"));
    let line = measured.command.join(" ");
    let again = std::process::Command::new("bash").args(["-c", &line]).current_dir("/").output().unwrap();
    assert!(String::from_utf8_lossy(&again.stdout).contains("PASSED"), "{line}");
}

#[test]
fn each_misbehaviour_is_its_own_failure() {
    for (body, kind, words) in [
        ("echo hello; echo world", "output", "no line matches the pattern of a result"),
        ("echo hello; echo world", "output", "hello | world"),
        ("echo 'W1 100 0.00 nan'; echo 'r= nan ... PASSED'", "residual", "missing"),
        ("echo 'W1 100 0.00 nan'; echo 'r= 1 ... PASSED'", "output", "NaN GFLOP/s"),
        ("echo 'W1 100 0.00 2e-1'; echo 'r= 99 ... FAILED'", "residual", "99"),
        ("echo 'W1 100 0.00 2e-1'", "residual", "missing"),
        ("echo 'W1 200 0.00 2e-1'; echo 'r= 1 ... PASSED'", "output", "N = 200, 100 was asked for"),
        ("echo 'W1 100 0.00 1e-6'; echo 'r= 1 ... PASSED'", "output", "ran for"),
        ("echo 'W1 100 9.00 2e-1'; echo 'r= 1 ... PASSED'; sleep 0.05", "output", "another rate"),
        ("echo no memory >&2; exit 2", "crashed", "no memory"),
        ("kill -SEGV $$", "crashed", "SIGSEGV"),
        ("echo 'W1 100 0.00 2e-1'; echo 'r= 99 ... FAILED'; kill -TERM $$", "residual", "99"),
    ] {
        let failure = verdict(body).unwrap_err();
        assert_eq!(failure.kind(), kind, "{body}: {failure}");
        assert!(failure.to_string().contains(words), "{body}: {failure}");
    }
    assert_eq!(verdict(&format!("{GOOD}; exit 7")).unwrap_err().kind(), "crashed");
}

/// A program that reads an HPL.dat of its own prints what that says: all candidates would have its rate.
#[test]
fn a_run_with_another_nb_or_grid_is_none_of_its_candidate() {
    let asked = candidate(10240).hpl;
    let line = "WR00C2R4       10240   128     1     2              48.50             1.4762e+01\n";
    for (name, engine) in [("netlib", line.to_owned()), ("rochpl-mxp", line.replace("WR00C2R4", "WR0"))] {
        let other = |from: &str, to: &str| shipped(name).read(&engine.replace(from, to))[0].other_than(&asked);
        assert_eq!(other("", ""), None, "{name}");
        assert_eq!(other("10240", "20480"), Some(("N", 20480, 10240)));
        assert_eq!(other("   128", "   192"), Some(("NB", 192, 128)));
        assert_eq!(other("     1     2", "     2     1"), Some(("P", 2, 1)));
        assert_eq!(other("     1     2", "     1     1"), Some(("Q", 1, 2)));
    }
    assert_eq!(
        shipped("nvidia-mxp").read("GFLOPS = 5.0, per GPU = 1.0")[0].other_than(&asked),
        None,
        "it says none of them"
    );
}

/// Netlib's program prints a result before it checks it: the end of a run in its check was a wrong solution.
#[test]
fn a_run_that_is_ended_in_its_check_has_not_failed_it() {
    let result = "echo 'W1 100 0.00 2e-1'";
    for (end, kind, words) in [
        ("kill -TERM $$", "killed", "SIGTERM"),
        ("kill -SEGV $$", "crashed", "SIGSEGV"),
        ("echo no memory >&2; exit 2", "crashed", "no memory"),
        ("exit 0", "residual", "missing"),
    ] {
        let failure = verdict(&format!("{result}; {end}")).unwrap_err();
        assert_eq!(failure.kind(), kind, "{end}: {failure}");
        assert!(failure.to_string().contains(words), "{end}: {failure}");
    }
    // Output that is buffered ends anywhere.
    let failure = verdict(&format!("{result}; printf 'r= 2e-3 ... PAS'; kill -TERM $$")).unwrap_err();
    assert_eq!(failure.kind(), "killed", "{failure}");
    let (_home, runs, trial) = fake(&format!("{result}; sleep 1000"));
    assert_eq!(runs.run(&candidate(100), &trial, 0.5).unwrap_err(), Failure::TimedOut { limit_s: 0.5 });
}

#[test]
fn a_command_that_is_not_there_is_a_launch_failure() {
    let profile = Profile::parse(&PROFILE.replace("PROGRAM", "no-such-hpl")).unwrap();
    let runs = RealRuns::foreign(FIXTURE.into(), Foreign::new(profile).unwrap());
    let home = tempfile::tempdir().unwrap();
    let failure = runs.run(&candidate(100), &home.path().join("0"), 60.0).unwrap_err();
    assert_eq!(failure.kind(), "launch");
    assert!(failure.to_string().contains("no-such-hpl"), "{failure}");
}

#[test]
fn floods_and_forks_and_hangs_leave_nothing() {
    let (_home, runs, trial) = fake(&format!("head -c 3000000 /dev/zero | tr '\\0' x; echo; {GOOD}; sleep 1000 &"));
    let measured = runs.run(&candidate(100), &trial, 60.0).unwrap();
    assert_eq!(measured.rate_gflops, 0.2);
    assert!(std::fs::metadata(trial.join("stdout.txt")).unwrap().len() < 2 << 20);
    assert_eq!(alive(&trial), 0);
    let (_home, runs, trial) = fake("trap '' TERM; setsid sleep 1000 & sleep 1000");
    assert_eq!(runs.run(&candidate(100), &trial, 0.3).unwrap_err(), Failure::TimedOut { limit_s: 0.3 });
    assert_eq!(alive(&trial), 0);
}

#[test]
fn progress_can_be_watched() {
    let (_home, runs, trial) = fake("echo 'at 10 5.0'; echo 'at 20 4.0'; sleep 1000");
    let mut running = runs.start(&RunSpec::whole(&candidate(100)), &trial, 60.0).unwrap();
    let begun = std::time::Instant::now();
    while running.progress().len() < 2 {
        assert!(begun.elapsed() < Duration::from_secs(60));
        std::thread::yield_now();
    }
    assert_eq!(running.progress()[1].rate_gflops, 4.0);
    running.cancel();
    assert_eq!(alive(&trial), 0);
}

/// Living processes of the trial in `folder`.
fn alive(folder: &Path) -> usize {
    let mark = format!("{TRIAL_VARIABLE}={}", folder.canonicalize().unwrap().display());
    let environments = std::fs::read_dir("/proc").unwrap().flatten().map(|e| std::fs::read(e.path().join("environ")));
    environments.flatten().filter(|e| e.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes())).count()
}
