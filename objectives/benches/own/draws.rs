//! Uniform draws from the search space, run and kept as rows.

use std::fs::OpenOptions;
use std::io::Write;
use std::time::Instant;

use hpl::program::{RunOptions, Runner};
use nix::sys::resource::{UsageWho, getrusage};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use space::domain::HplDomain;
use space::{Candidate, KernelChoice, RunResult, draw};

use crate::Flags;

/// The whole search space of this machine at order `n`.
pub(crate) fn domain(n: usize) -> HplDomain {
    HplDomain::new(&hpl::machine::host::facts().domain_spec(n)).expect("a space that fits this machine")
}

/// `count` candidates of order `n`, as often as there are rounds: what slows the machine for some seconds meets a candidate
/// in one round only.
fn candidates(n: usize, count: usize, seed: usize, rounds: usize) -> Vec<Candidate> {
    let domain = domain(n);
    let mut rng = ChaCha8Rng::seed_from_u64(seed as u64);
    let mut one = || domain.candidate(draw::uniform(&domain, &mut rng).expect("a point"));
    let drawn: Vec<Candidate> = (0..count).map(|_| one()).collect();
    drawn.iter().cycle().take(rounds * count).cloned().collect()
}

/// The rows of a file, in the order in which they were run.
pub(crate) fn read(path: &std::path::Path) -> Vec<RunResult> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("a row")).collect()
}

/// How often the system took a core from this process.
fn taken() -> i64 {
    getrusage(UsageWho::RUSAGE_SELF).map_or(0, |usage| usage.involuntary_context_switches())
}

/// Runs what the file lacks, until the seconds are used.
pub(crate) fn measure(flags: &Flags) {
    let (n, count, seed) = (flags.number("--n", 4000), flags.number("--draws", 60), flags.number("--seed", 1));
    let (path, seconds, rounds) = (flags.path("--rows"), flags.number("--seconds", 110), flags.number("--rounds", 4));
    let all = candidates(n, count, seed, rounds);
    let done = read(&path).len();
    println!("N={n}, {count} draws with seed {seed}: {done} of {} rows are there", all.len());
    let runner = Runner::new(&KernelChoice::Builtin).expect("built-in kernels");
    let mut file = OpenOptions::new().create(true).append(true).open(&path).expect("a file to write");
    let (start, taken) = (Instant::now(), taken());
    for candidate in all.iter().skip(done) {
        if start.elapsed().as_secs() >= seconds as u64 {
            break;
        }
        let result = runner.run(candidate, &RunOptions { threshold: 16.0, force: false, watch: &() }).expect("a run");
        assert!(result.result.passed, "{candidate:?}");
        writeln!(file, "{}", serde_json::to_string(&result.result).expect("a row")).expect("a row written");
    }
    let seconds = start.elapsed().as_secs_f64();
    let per_s = (self::taken() - taken) as f64 / seconds;
    println!(
        "{} of {} rows, {seconds:.0} s; others took a core {per_s:.0} times a second",
        read(&path).len(),
        all.len()
    );
}
