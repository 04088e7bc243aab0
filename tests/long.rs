//! Records of thousands of runs, through the real program: what report and resume take of time and memory.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use objectives::{Failure, Measurement, Observation};
use space::domain::DomainSpec;
use space::machine::Machine;
use space::result::{PhaseTime, RESULT_SCHEMA, RunResult};
use space::{Candidate, Candidates};
use tuner::record::PlannedTrial;
use tuner::record::folder::RunFolder;
use tuner::record::session::Session;
use tuner::record::store::Store;
use tuner::record::{Circumstances, Finished, Identity};
use tuner::session::engine::Engine;
use tuner::session::prepare;

use crate::engine::run_until;
use crate::kill::trials;
use crate::program::{err, hpl_tune, machine_toml};
use crate::tune::rows;

/// Trials of the record.
const TRIALS: usize = 5000;
const BUDGET_S: f64 = 86_400.0;
/// What a long record may take: seconds until it is reported, or until the search goes on; MiB of the tuner.
const MOST_S: f64 = 10.0;
const MOST_MIB: u64 = 500;

#[test]
#[ignore = "writes 5000 trials twice and measures time; run it alone: cargo test --release --test tests long -- --ignored --nocapture"]
fn a_record_of_5000_runs_is_reported_and_resumed_in_seconds() {
    // Looking for new points after half of the budget; in pairs with the baseline after 70 %.
    for (distinct, wall_s, pairs) in [(4900, 8.6, 0), (450, 12.1, 800)] {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("long");
        let begun = Instant::now();
        let points = write(&folder, distinct, wall_s, pairs);
        println!("{distinct} of {points} points, {pairs} pairs: written in {:.1} s", begun.elapsed().as_secs_f64());
        let (report, resume) = (report(&folder), resume(&folder));
        println!("  report: {report:?}\n  resume until the next trial: {resume:?}");
        for taken in [report, resume] {
            assert!(taken.processor_s <= MOST_S && taken.peak_mib <= MOST_MIB, "{taken:?}");
        }
    }
}

/// What a program took.
#[derive(Debug)]
struct Taken {
    #[expect(dead_code, reason = "printed")]
    wall_s: f64,
    /// Processor seconds: others may use the cores too.
    processor_s: f64,
    peak_mib: u64,
}

fn report(folder: &Path) -> Taken {
    let (begun, before_s) = (Instant::now(), children_s());
    let mut child = hpl_tune().arg("report").arg(folder).stdout(Stdio::null()).spawn().unwrap();
    let mut peak_mib = 0;
    let status = loop {
        peak_mib = peak_mib.max(peak_of(&child));
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    assert!(status.success());
    Taken { wall_s: begun.elapsed().as_secs_f64(), processor_s: children_s() - before_s, peak_mib }
}

/// Until the next trial begins; prints what lies between the trials after it.
fn resume(folder: &Path) -> Taken {
    let next = folder.join("trials").join(trials(folder).len().to_string()).join("trial.json");
    let mut command = hpl_tune();
    command.arg("--resume").arg(folder).stdout(Stdio::piped()).stderr(Stdio::piped());
    let begun = Instant::now();
    let child = command.spawn().unwrap();
    while !next.exists() {
        assert!(begun.elapsed() < Duration::from_secs(300), "no trial has begun");
        std::thread::sleep(Duration::from_millis(5));
    }
    let taken =
        Taken { wall_s: begun.elapsed().as_secs_f64(), processor_s: processor_s(&child), peak_mib: peak_of(&child) };
    let enough = TRIALS + 7;
    while trials(folder).len() < enough && begun.elapsed() < Duration::from_secs(300) {
        std::thread::sleep(Duration::from_millis(200));
    }
    let more = trials(folder).len() - TRIALS;
    let each_s = (processor_s(&child) - taken.processor_s) / more as f64;
    println!("  then {each_s:.2} processor seconds for each of {more} trials, {} MiB", peak_of(&child));
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", err(&output));
    let rows = rows(folder);
    let time = |text: &str| text.parse::<jiff::Timestamp>().unwrap().as_nanosecond() as f64 * 1e-9;
    let between = rows[TRIALS..].windows(2).map(|pair| {
        let pause_s = time(&pair[1].started_utc) - time(&pair[0].started_utc) - pair[0].wall_s;
        format!("{pause_s:.2}")
    });
    println!("  seconds between the trials: {}", between.collect::<Vec<_>>().join(" "));
    taken
}

/// Processor seconds of all programs that were waited for.
fn children_s() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + 1e-6 * time.tv_usec() as f64;
    seconds(usage.user_time()) + seconds(usage.system_time())
}

/// Processor seconds of a living program, in hundredths.
fn processor_s(child: &Child) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    // The fields after the name, which is in brackets: user and system time are the 12th and the 13th of them.
    let fields = stat.rsplit_once(") ").unwrap().1.split(' ').skip(11).take(2);
    fields.map(|ticks| ticks.parse::<f64>().unwrap()).sum::<f64>() / 100.0
}

/// Largest resident memory of a living program so far, in MiB; 0 when it has ended.
fn peak_of(child: &Child) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix("kB"));
    peak.and_then(|kib| kib.trim().parse::<u64>().ok()).map_or(0, |kib| kib / 1024)
}

/// A session that was begun and stopped, with a record of so many trials of so many points that took `wall_s` each, the last
/// of them `pairs` with the baseline. The points of its domain.
fn write(folder: &Path, distinct: usize, wall_s: f64, pairs: usize) -> usize {
    let mut new = hpl_tune();
    new.args(["--budget", "24h", "--n", "2000", "--machine"]).arg(machine_toml()).arg("--out").arg(folder);
    let baseline = run_until(&mut new, folder, 1)[0].candidate();
    let open = RunFolder::open(folder).unwrap();
    let session = Session::load(&open.session_toml()).unwrap();
    let machine = Machine::parse(&fs::read_to_string(open.machine_toml()).unwrap()).unwrap();
    let spec = DomainSpec {
        n: session.n.unwrap(),
        cores: session.cores.len(),
        memory_bytes: prepare::usable_bytes(&machine),
        kernels: session.kernels.clone().unwrap_or(space::KernelChoice::Builtin),
        ranks: None,
        threads: None,
        most_threads: None,
        common_cores: None,
        unequal: session.unequal.clone(),
    };
    let (domain, _) = Engine::Ours.domain(&spec).unwrap();
    let runs = Engine::Ours.runs(Path::new(env!("CARGO_BIN_EXE_hpl-tune")));
    let (mut store, _) = Store::open(open, session, &runs).unwrap();
    while store.rows().len() < TRIALS {
        let number = store.rows().len();
        let plan = planned(number, &store, domain.as_ref(), &baseline, (distinct, pairs));
        let trial = store.begin(&plan, &runs).unwrap();
        let left_s = BUDGET_S - wall_s * (number + 1) as f64;
        let around =
            Circumstances { wall_s, left_s, steal_share: Some(0.001), clock_hz: Some(2e9), ..Circumstances::default() };
        store.finish(trial, &outcome(number, &plan.candidate, wall_s), around).unwrap();
    }
    domain.points().len()
}

/// The `number`-th trial: each of the points in turn, or in pairs with the baseline.
fn planned(
    number: usize,
    store: &Store,
    domain: &dyn Candidates,
    baseline: &Candidate,
    (distinct, pairs): (usize, usize),
) -> PlannedTrial {
    let of = |place: usize| {
        let points = domain.points();
        domain.candidate(&points[place % distinct * (points.len() / distinct)])
    };
    let paired = (number + 2 * pairs).checked_sub(TRIALS);
    let (candidate, strategy, paired_with) = match paired {
        Some(place) if place.is_multiple_of(2) => (baseline.clone(), Identity::CONFIRM, None),
        // Each candidate gets four pairs.
        Some(place) => (of(place / 8), Identity::CONFIRM, Some(number as u64 - 1)),
        None => (of(number), "bayes", None),
    };
    let repeated = distinct < TRIALS / 2;
    let same = || store.rows().iter().find(|row| row.passed() && row.is_of(&candidate));
    PlannedTrial {
        trial: None,
        repeat_of: repeated.then(same).flatten().map(Finished::trial),
        candidate,
        extent: objectives::real::Extent::Whole,
        reference: None,
        strategy: strategy.to_owned(),
        why: "largest expected improvement".to_owned(),
        paired_with,
        predicted: None,
        expected_s: 1.0,
        nodes: Vec::new(),
    }
}

/// One in twelve fails, one in forty is ended at its limit, and after three fifths the machine is 5 % slower.
fn outcome(number: usize, candidate: &Candidate, wall_s: f64) -> Result<Observation, Failure> {
    let hpl = &candidate.hpl;
    if number % 12 == 5 {
        return Err(Failure::Crashed { exit: objectives::Exit::Code(1), telling_lines: vec!["no reason".to_owned()] });
    }
    if number % 40 == 9 {
        return Err(Failure::TimedOut { limit_s: wall_s });
    }
    let drift = if 5 * number > 3 * TRIALS { 0.95 } else { 1.0 };
    let best = 1.0 - 0.03 * (hpl.nb as f64 / 192.0).ln().powi(2) - 0.02 * hpl.depth as f64 - 0.002 * hpl.nbmin as f64;
    let rate_gflops = 60.0 * drift * best * (1.0 + 0.004 * ((number * 7919) % 101) as f64 / 101.0);
    let time_s = space::flops::rate_gflops(hpl.n, 1.0) / rate_gflops;
    let steps = hpl.n.div_ceil(hpl.nb) as u32;
    let ranks = (hpl.p * hpl.q) as u32;
    let phase = |at: u32| {
        let (step, rank) = (at / ranks, at % ranks);
        let part_s = time_s / f64::from(steps);
        PhaseTime { step, rank, fact_s: 0.1 * part_s, update_s: 0.9 * part_s, ..PhaseTime::default() }
    };
    let (host, kernel, started_utc) = ("host".to_owned(), "builtin".to_owned(), "2026-11-20T07:00:00Z".to_owned());
    let result = RunResult {
        schema_version: RESULT_SCHEMA,
        candidate: candidate.clone(),
        time_s,
        rate_gflops,
        residual: Some(0.003),
        passed: true,
        info: 0,
        generate_s: 0.01,
        check_s: 0.01,
        device: None,
        fma_peak_gflops: None,
        fma_peak_share: None,
        x_hash: None,
        phases: (0..steps * ranks).map(phase).collect(),
        started_utc: started_utc.clone(),
        core_started_utc: None,
        host: host.clone(),
        kernel: kernel.clone(),
        version: "0".to_owned(),
    };
    Ok(Observation::Whole(Measurement {
        rate_gflops,
        time_s,
        residual: 0.003,
        passed: true,
        wall_s,
        generate_s: 0.01,
        check_s: 0.01,
        started_utc,
        command: Vec::new(),
        kernel,
        host,
        result: Some(result),
    }))
}
