//! Whether HPL is faster on the GPUs of this host than on its processors, for a session whose flags leave it open.
//!
//! Our engine runs on the GPUs with rising N until its rate is above what all cores reach together by DGEMM of the built-in kernels, which is
//! more than HPL with these reaches on them. So a GPU that is slow in double precision, or that does not work, is not taken.

use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

use hpl::backend::device::FoundGpus;
use hpl::machine::host::HostFacts;
use objectives::real::RunSpec;
use objectives::{Measurement, Observation};
use space::counted;

use super::engine::Engine;
use super::gpus;
use super::preflight;
use super::room::{Here, Room, Wanted};
use crate::search::interrupt::Interrupt;

/// Orders of the runs on the GPUs. With smaller ones a fast GPU computes less than it waits.
const ORDERS: [usize; 3] = [4096, 16_384, 32_768];

/// Part of the budget that the first run may take, which compiles kernels and loads the libraries, and each later one beyond what the first took
/// beside its solution; seconds at most.
const FIRST_LIMIT: (f64, f64) = (0.2, 60.0);
const LATER_LIMIT: (f64, f64) = (0.1, 10.0);

/// A run is not begun that would take so many times its limit at the rate of the one before, which rises with N.
const TOO_LONG: f64 = 10.0;

/// How often an interrupt is looked for.
const LOOKS: Duration = Duration::from_millis(50);

/// Time of the products on all cores.
const CORES_TIME: Duration = Duration::from_millis(300);

/// A run on the GPUs.
#[derive(Debug, Clone, PartialEq)]
struct GpuRun {
    n: usize,
    rate_gflops: f64,
    /// N of a later run that failed or took too long, and why.
    failed: Option<(usize, String)>,
}

/// What the runs on the GPUs showed.
#[derive(Debug)]
struct Shown {
    platform: &'static str,
    gpus: FoundGpus,
    cores: usize,
    /// DGEMM of all cores at once in GFLOP/s.
    cores_gflops: f64,
    /// The last run; why one failed.
    run: Result<GpuRun, String>,
}

impl Shown {
    fn gpus_are_faster(&self) -> bool {
        self.run.as_ref().is_ok_and(|run| run.rate_gflops > self.cores_gflops)
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { platform, gpus, cores_gflops, run, .. } = self;
        let cores = counted(self.cores, "core");
        match run {
            Ok(GpuRun { n, rate_gflops, failed }) => {
                write!(
                    f,
                    "{gpus}: {rate_gflops:.1} GFLOP/s at N = {n}, DGEMM of {cores} by the built-in kernels {cores_gflops:.1}"
                )?;
                if let Some((n, why)) = failed {
                    write!(f, "; at N = {n}: {why}")?;
                }
            }
            Err(why) => write!(f, "{gpus}: a run there failed, {why}")?,
        }
        match (self.gpus_are_faster(), run) {
            (true, _) => write!(f, "; the session is on the GPUs (--engine hpl: on the processors)"),
            (false, Ok(_)) => write!(f, "; the session is on the processors (--engine {platform}: on the GPUs)"),
            (false, Err(_)) => write!(
                f,
                "; the session is on the processors (after a remedy: --engine {platform}; a run alone: hpl-tune run --device {platform})"
            ),
        }
    }
}

/// A look at GPUs and processors before a session.
#[derive(Debug)]
pub struct Look<'a> {
    /// Path of this program, which makes the runs.
    pub program: &'a Path,
    /// This host.
    pub facts: &'a HostFacts,
    /// N of the session where its user has named it.
    pub n: Option<usize>,
    /// Seconds of the session.
    pub budget_s: f64,
    /// Ends the runs; the session is then on the processors.
    pub interrupt: &'a Interrupt,
}

impl Look<'_> {
    /// The engine of the session: ours on the processors, or on GPUs where these are faster; and what was found of GPUs. Each sentence on
    /// that is given to `say` as well.
    pub fn engine(&self, say: &mut dyn FnMut(&str)) -> (Engine, Option<String>) {
        let mut found = Vec::new();
        for (platform, gpus) in gpus::look(self.program) {
            let (taken, sentence) = match gpus {
                Ok(gpus) => self.compared(platform, gpus, say),
                Err(error) if gpus::driver_is_here(platform) => {
                    (None, format!("{error}; the session is on the processors"))
                }
                Err(_) => continue,
            };
            say(&sentence);
            found.push(sentence);
            if let Some(engine) = taken {
                return (engine, Some(found.join("; ")));
            }
        }
        (Engine::Ours, if found.is_empty() { None } else { Some(found.join("; ")) })
    }

    /// The engine on these GPUs if it is faster there, and what was found.
    fn compared(&self, platform: &'static str, gpus: FoundGpus, say: &mut dyn FnMut(&str)) -> (Option<Engine>, String) {
        let cores = &self.facts.cores_allowed;
        let engine = match Engine::chosen(Some(platform), None, None) {
            Ok(engine) => engine,
            Err(error) => return (None, format!("{gpus}: {error}; the session is on the processors")),
        };
        let here = Here { cores: cores.len(), memory_bytes: self.facts.memory_available_bytes };
        let room = Room::new(&engine, here, Some(&gpus::machine(&gpus, self.facts)), Wanted::default());
        let most = engine.largest_order(room.memory_bytes.unwrap_or(0), room.places, 1);
        let runs = GpuRuns { look: self, engine, room };
        if let Some(n) = self.n.filter(|n| *n > most) {
            return (None, format!("{gpus}: their memory holds N = {most}, not {n}; the session is on the processors"));
        }
        say(&format!("{gpus}: short runs on the GPUs, to compare with {}", counted(cores.len(), "core")));
        let cores_gflops = preflight::all_cores_gflops(cores, CORES_TIME);
        let most = self.n.map_or(most, |n| n.min(most));
        let run = fastest(cores_gflops, most, self.budget_s, &mut |n, limit_s| runs.run(n, limit_s));
        let shown = Shown { platform, gpus, cores: cores.len(), cores_gflops, run };
        (shown.gpus_are_faster().then_some(runs.engine), shown.to_string())
    }
}

/// Runs on the GPUs of this host.
struct GpuRuns<'a> {
    look: &'a Look<'a>,
    engine: Engine,
    room: Room,
}

impl GpuRuns<'_> {
    /// Rate of the usual candidate of order `n` in GFLOP/s, from a run of at most `limit_s` seconds.
    fn run(&self, n: usize, limit_s: f64) -> Result<f64, String> {
        let spec = self.room.spec(n, self.room.memory_bytes.unwrap_or(0), Wanted::default());
        let usual = self.engine.usual(&spec).map_err(|error| error.to_string())?;
        // TMPDIR may name a folder of another node.
        let folder = tempfile::tempdir().or_else(|_| tempfile::tempdir_in(".")).map_err(|error| error.to_string())?;
        let runs = self.engine.runs(self.look.program);
        let mut running =
            runs.start(&RunSpec::whole(&usual), folder.path(), limit_s).map_err(|failure| failure.to_string())?;
        loop {
            if self.look.interrupt.asked() {
                running.cancel();
                return Err("it was interrupted".to_owned());
            }
            match running.finish_within(LOOKS) {
                None => {}
                Some(Ok(Observation::Whole(Measurement { passed: true, rate_gflops, .. }))) => return Ok(rate_gflops),
                Some(Ok(_)) => return Err("its residual failed".to_owned()),
                Some(Err(failure)) => return Err(failure.to_string()),
            }
        }
    }
}

/// The last of runs with rising order: the first one above `cores_gflops`, or the one after which none up to `most` ends in time.
/// `run(n, limit_s)` gives the rate of a run.
fn fastest(
    cores_gflops: f64,
    most: usize,
    budget_s: f64,
    run: &mut dyn FnMut(usize, f64) -> Result<f64, String>,
) -> Result<GpuRun, String> {
    let limit_s = |(share, longest_s): (f64, f64)| (share * budget_s).min(longest_s);
    let first = ORDERS[0].min(most);
    let started = Instant::now();
    let mut last = GpuRun { n: first, rate_gflops: run(first, limit_s(FIRST_LIMIT))?, failed: None };
    let solution_s = space::flops::hpl_flops(first) / (1e9 * last.rate_gflops);
    // Driver and libraries start in each run.
    let start_s = (started.elapsed().as_secs_f64() - solution_s).max(0.0);
    let later_s = limit_s(LATER_LIMIT);
    for n in ORDERS.into_iter().skip(1).filter(|n| *n <= most) {
        let at_this_rate_s = space::flops::hpl_flops(n) / (1e9 * last.rate_gflops);
        if last.rate_gflops > cores_gflops || at_this_rate_s > TOO_LONG * later_s {
            break;
        }
        match run(n, start_s + later_s) {
            Ok(rate_gflops) => last = GpuRun { n, rate_gflops, failed: None },
            Err(why) => return Ok(GpuRun { failed: Some((n, why)), ..last }),
        }
    }
    Ok(last)
}

#[cfg(test)]
mod tests {
    use hpl::backend::device::GpuFacts;

    use super::*;

    /// Runs of a GPU that gets near `most_gflops` as N rises: the orders tried, and the last of them.
    fn tried(most_gflops: f64, cores_gflops: f64, most: usize, budget_s: f64) -> (Vec<usize>, GpuRun) {
        let mut orders = Vec::new();
        let mut run = |n: usize, _| {
            orders.push(n);
            Ok(most_gflops * n as f64 / (n as f64 + 10_000.0))
        };
        let last = fastest(cores_gflops, most, budget_s, &mut run).unwrap();
        (orders, last)
    }

    #[test]
    fn runs_end_as_soon_as_the_gpus_are_ahead() {
        let (orders, last) = tried(50e3, 1300.0, 100_000, 600.0);
        assert_eq!((orders, last.n), (vec![4096], 4096));
        let (orders, last) = tried(50e3, 20e3, 100_000, 600.0);
        assert!(orders == [4096, 16_384] && last.rate_gflops > 20e3, "{orders:?} {last:?}");
    }

    /// A GPU that waits more than it computes at a small N, in a short session.
    #[test]
    fn a_slow_first_run_is_not_the_last() {
        let mut orders = Vec::new();
        let mut run = |n: usize, _| {
            orders.push(n);
            Ok(if n < 16_384 { 300.0 } else { 30e3 })
        };
        let last = fastest(660.0, 121_344, 150.0, &mut run).unwrap();
        assert_eq!((orders, last.rate_gflops), (vec![4096, 16_384], 30e3));
    }

    #[test]
    fn a_slow_gpu_takes_little_time() {
        // 16384 would take 92 s at the rate of 4096.
        assert_eq!(tried(110.0, 1300.0, 100_000, 90.0).0, [4096]);
        assert_eq!(tried(110.0, 1300.0, 100_000, 3600.0).0, [4096, 16_384]);
        assert_eq!(tried(3000.0, 1300.0, 16_000, 600.0).0, [4096]);
        assert_eq!(tried(3000.0, 1300.0, 300, 600.0).0, [300]);
        let failing = fastest(1.0, 100_000, 30.0, &mut |_, limit_s| Err(format!("no result in {limit_s} s")));
        assert_eq!(failing.unwrap_err(), "no result in 6 s");
        let mut late = |n, limit_s| if n == 4096 { Ok(200.0) } else { Err(format!("no result in {limit_s:.0} s")) };
        let last = fastest(660.0, 100_000, 150.0, &mut late).unwrap();
        assert_eq!((last.n, last.failed), (4096, Some((16_384, "no result in 10 s".to_owned()))));
    }

    #[test]
    fn what_was_found_is_said_with_the_way_to_the_other() {
        let gpus = FoundGpus {
            platform: "cuda".to_owned(),
            driver: "12.9".to_owned(),
            libraries: Vec::new(),
            devices: vec![GpuFacts { name: "GPU".to_owned(), memory_bytes: 80_000_000_000, free_bytes: None }],
        };
        let mut shown = Shown {
            platform: "cuda",
            gpus,
            cores: 16,
            cores_gflops: 1268.0,
            run: Ok(GpuRun { n: 4096, rate_gflops: 1600.0, failed: None }),
        };
        assert!(shown.to_string().ends_with(
            "1600.0 GFLOP/s at N = 4096, DGEMM of 16 cores by the built-in kernels 1268.0; the session is on the GPUs (--engine hpl: on the processors)"
        ));
        shown.cores_gflops = 2000.0;
        assert!(shown.to_string().ends_with("the session is on the processors (--engine cuda: on the GPUs)"));
        shown.run = Ok(GpuRun { n: 4096, rate_gflops: 300.0, failed: Some((16_384, "no result in 10 s".to_owned())) });
        assert!(
            shown.to_string().contains("2000.0; at N = 16384: no result in 10 s; the session is on the processors")
        );
        shown.run = Err("out of memory".to_owned());
        assert!(!shown.gpus_are_faster() && shown.to_string().contains("failed, out of memory; the session is on the"));
    }
}
