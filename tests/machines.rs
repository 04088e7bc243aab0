//! Descriptions of machines of any size, and how long the tuner takes to begin its search there. The phases are made up, about
//! as a core with AVX-512 has them; nothing here is measured.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use space::machine::{EnginePhase, Host, Layer, Machine, Node, PhaseRate, Rate, RateKernel};

/// Seconds per unit of each term, on one core.
const FACT: [f64; 11] = [4e-10, 3e-10, 1.5e-10, 6e-11, 3e-10, 5e-11, 1e-9, 1.5e-10, 1e-9, 1.5e-6, 3e-6];
const ROWS_HERE: [f64; 4] = [1.2e-8, 1e-9, 2e-8, 2e-8];
const ROWS_EXCHANGED: [f64; 8] = [1.2e-8, 1e-9, 1e-9, 1e-9, 1e-9, 5e-6, 1e-8, 2e-8];
const UPDATE: [f64; 9] = [2.9e-11, 4e-10, 2e-10, 1e-9, 3.5e-11, 1e-9, 1e-6, 1e-9, 3e-10];
const TRSV: [f64; 2] = [5e-10, 2e-6];

/// `nodes` nodes of `cores` cores in `domains` NUMA domains each, and a network where there are several.
pub(crate) fn machine(nodes: usize, cores: usize, domains: usize, memory_bytes: u64) -> Machine {
    let (date, origin) = ("2026-11-22".to_owned(), "made up".to_owned());
    let phase = |phase: EnginePhase, threads: usize| {
        // Threads gain little in a panel.
        let (coefficients, gain): (&[f64], f64) = match phase {
            EnginePhase::Fact => (&FACT, (threads as f64).sqrt()),
            EnginePhase::RowsHere => (&ROWS_HERE, 1.0),
            EnginePhase::RowsExchanged => (&ROWS_EXCHANGED, 1.0),
            EnginePhase::Update => (&UPDATE, 1.0),
            EnginePhase::Trsv => (&TRSV, 1.0),
        };
        let coefficients = coefficients.iter().map(|c| c / gain).collect();
        let (date, origin) = (date.clone(), origin.clone());
        let (n, nb) = ([100, 10_000], [16, 512]);
        PhaseRate { phase, threads, coefficients, n, nb, runs: 9, spread: 0.0, fit_error: 0.0, date, origin }
    };
    let rate = |(kernel, coefficients): (RateKernel, &[f64])| Rate {
        kernel,
        threads: 1,
        coefficients: coefficients.to_vec(),
        valid: vec![[1.0, 1e5]; kernel.size_count()],
        spread: 0.0,
        fit_error: 0.0,
        date: date.clone(),
        origin: origin.clone(),
    };
    let layer = |name: &str, ranks, alpha_s, beta_s_per_word, shared_by| Layer {
        name: name.to_owned(),
        ranks,
        alpha_s: Some(alpha_s),
        beta_s_per_word,
        shared_by,
    };
    let mut layers = Vec::new();
    if domains > 1 {
        layers.push(layer("domain", cores / domains, 5e-7, 4e-10, 1));
        layers.push(layer("node", cores, 1e-6, 8e-10, 1));
    }
    if nodes > 1 {
        layers.push(layer("network", nodes * cores, 2e-6, 3.2e-10, cores));
    }
    let kernels: [(RateKernel, &[f64]); 4] = [
        (RateKernel::Dgemm, &[2.9e-11, 4e-10, 1e-9, 1e-9, 0.0]),
        (RateKernel::Dtrsm, &[3.5e-11, 1e-9, 0.0]),
        (RateKernel::Panel, &[1e-10, 1e-9, 1e-6]),
        (RateKernel::Swap, &[1e-9, 0.0]),
    ];
    let node = Node { name: "node".into(), count: nodes, cores, memory_bytes, ..Node::default() };
    let threads = std::iter::successors(Some(1), |t| Some(t * 2)).take_while(|&t| t <= cores);
    Machine {
        host: Host { name: "made-up".into(), origin: origin.clone(), kernels: "builtin".into(), ..Host::default() },
        nodes: vec![node],
        rates: kernels.into_iter().map(rate).collect(),
        phases: threads.flat_map(|t| EnginePhase::ALL.map(|of| phase(of, t))).collect(),
        layers,
        ..Machine::default()
    }
}

/// What a session took until it began to search.
#[derive(Debug)]
pub(crate) struct Begun {
    /// Wall-clock seconds.
    pub(crate) seconds: f64,
    /// Largest resident memory of the tuner in bytes.
    pub(crate) peak_bytes: u64,
    /// What it said until then.
    pub(crate) said: Vec<String>,
}

/// One process that says where the ranks of a job are, and otherwise never ends.
const PROGRAM: &str = concat!(
    r#"#!/bin/sh
[ "$1" = --report-bindings ] || exec sleep 1000
rank='{"host":"n1","cores_allowed":[0],"cores":[0],"memory_bytes":1}'
printf '{"version":"'"#,
    env!("CARGO_PKG_VERSION"),
    r#"'","threads":1,"ranks":[%s' "$rank"
for i in $(seq 2 "$NP"); do printf ',%s' "$rank"; done
echo ']}'
"#
);

/// Starts a session on `machine` with a program that never ends, whose ranks no launcher starts, and stops it when it searches.
/// `words` go before the tuner: `taskset -c 0`, or none.
pub(crate) fn begin(words: &[&str], program: &str, machine: &Machine) -> Begun {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name);
    fs::write(path("machine.toml"), machine.to_toml().unwrap()).unwrap();
    fs::write(path("xhpl"), PROGRAM).unwrap();
    fs::set_permissions(path("xhpl"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut words = words.iter().copied().chain([program]);
    let mut command = Command::new(words.next().unwrap());
    command.args(words).args(["--launcher", "env NP={np}", "--budget", "12h"]);
    command.arg("--program").arg(path("xhpl")).arg("--machine").arg(path("machine.toml"));
    let started = Instant::now();
    let mut child = command.arg("--out").arg(path("run")).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = Vec::new();
    for line in BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok) {
        let ready = line.starts_with("searching");
        said.push(line);
        if ready {
            break;
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    let peak_bytes = peak_bytes(Path::new("/proc").join(child.id().to_string()).as_path());
    // The guard ends the program.
    let _ = kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT);
    let patience = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(patience.elapsed() < Duration::from_secs(60), "the session ends when it is told to");
        std::thread::sleep(Duration::from_millis(20));
    }
    Begun { seconds, peak_bytes, said }
}

/// `VmHWM` of a process.
fn peak_bytes(process: &Path) -> u64 {
    let status = fs::read_to_string(process.join("status")).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = peak.and_then(|words| words.split_whitespace().next()).and_then(|word| word.parse::<u64>().ok());
    1024 * kib.expect("the session was alive")
}
