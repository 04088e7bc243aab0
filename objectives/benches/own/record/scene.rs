//! What a landscape is recorded on: an engine, its ranks, and what disturbs them.

use std::path::PathBuf;
use std::time::Instant;

use hpl::program::{RunOptions, Runner};
use objectives::foreign::{Foreign, Profile, SHIPPED};
use objectives::launcher::MpiJob;
use objectives::real::RealRuns;
use space::candidate::EngineProfile;
use space::dims::Point;
use space::domain::{DomainSpec, ForeignDomain, HplDomain, Limits, WeightedDomain, default_candidate};
use space::{Candidate, Candidates, KernelChoice, Share, Unequal};
use tempfile::TempDir;

use super::busy::Busy;
use crate::Flags;

/// How a candidate is run.
enum Runs {
    /// In this process.
    Here(Runner),
    /// By a command, in a folder, for so many seconds at most.
    Commands { runs: RealRuns, folder: TempDir, limit_s: f64 },
}

/// What became of a run; seconds and rate are 0 where it failed.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) time_s: f64,
    pub(crate) rate_gflops: f64,
    pub(crate) passed: bool,
    pub(crate) wall_s: f64,
}

/// An engine with its space and its surroundings.
pub(crate) struct Scene {
    pub(crate) space: Box<dyn Candidates>,
    pub(crate) usual: Point,
    runs: Runs,
    _busy: Option<Busy>,
}

impl Scene {
    /// The scene that the flags ask for.
    pub(crate) fn new(flags: &Flags) -> Self {
        let facts = hpl::machine::host::facts();
        let mut spec = facts.domain_spec(flags.number("--n", 4000));
        if flags.text("--ranks").is_some() {
            spec.ranks = Some(flags.number("--ranks", 1));
        }
        if flags.text("--most-threads").is_some() {
            spec.most_threads = Some(flags.number("--most-threads", 1));
        }
        let busy = flags.text("--busy-core").map(|_| Busy::on(flags.number("--busy-core", 1)));
        let (space, usual, runs) = match flags.text("--engine") {
            Some(name) => foreign(flags, name, &spec),
            None => ours(flags, spec),
        };
        let usual = space.point(&usual).expect("the usual configuration is a point of the space");
        Self { space, usual, runs, _busy: busy }
    }

    /// Columns of a configuration: HPL's words, P and Q in the place of their quotient.
    pub(crate) fn names(&self) -> Vec<String> {
        let first = ["ranks", "p", "q", "threads"].map(str::to_owned);
        first.into_iter().chain(self.space.dims().iter().skip(2).map(|dim| dim.name.clone())).collect()
    }

    /// The cells of a point under [`names`](Self::names).
    pub(crate) fn cells(&self, point: &Point) -> String {
        let Candidate { hpl, engine } = self.space.candidate(point);
        // The first two dimensions are ranks and grid.
        let levels = self.space.dims().iter().zip(&point.0).skip(2);
        let labels = levels.map(|(dim, level)| dim.levels[usize::from(*level)].label.clone());
        let first = [hpl.ranks(), hpl.p, hpl.q, engine.threads].map(|number| number.to_string());
        first.into_iter().chain(labels).collect::<Vec<_>>().join(",")
    }

    /// Runs a point; the reason of a failure is printed.
    pub(crate) fn run(&self, point: &Point) -> Outcome {
        let candidate = self.space.candidate(point);
        let clock = Instant::now();
        let found = match &self.runs {
            Runs::Here(runner) => {
                let options = RunOptions { threshold: 16.0, force: false, watch: &() };
                let run = runner.run(&candidate, &options).map_err(|error| error.to_string());
                run.map(|run| (run.result.time_s, run.result.rate_gflops, run.result.passed))
            }
            Runs::Commands { runs, folder, limit_s } => {
                let measured = runs.run(&candidate, folder.path(), *limit_s).map_err(|failure| failure.to_string());
                measured.map(|run| (run.time_s, run.rate_gflops, run.passed))
            }
        };
        let wall_s = clock.elapsed().as_secs_f64();
        match found {
            Ok((time_s, rate_gflops, true)) => Outcome { time_s, rate_gflops, passed: true, wall_s },
            Ok(_) => failed(point, wall_s, "its residual failed"),
            Err(why) => failed(point, wall_s, &why),
        }
    }
}

fn failed(point: &Point, wall_s: f64, why: &str) -> Outcome {
    eprintln!("{point:?}: {why}");
    Outcome { wall_s, ..Outcome::default() }
}

/// A space with its usual candidate, and how its candidates are run.
type Parts = (Box<dyn Candidates>, Candidate, Runs);

/// Our engine: in this process, or by `--program` on the processes of `--launcher`.
fn ours(flags: &Flags, mut spec: DomainSpec) -> Parts {
    let limits = Limits::default();
    if let Some(slow) = flags.text("--slow") {
        let speed = flags.text("--speed").expect("--speed PART of the slow rank is missing");
        let speeds = [1.0, speed.parse().expect("--speed: a number")].map(|speed| Share::new(speed).expect("a speed"));
        let kernels = vec![KernelChoice::Builtin, KernelChoice::from(slow.to_owned())];
        spec.unequal = Unequal { speeds: speeds.to_vec(), node_cores: None, kernels };
        spec.ranks = Some(2);
    }
    let space: Box<dyn Candidates> = if spec.unequal.is_empty() {
        Box::new(HplDomain::within(&spec, &limits).expect("a space that fits this machine"))
    } else {
        Box::new(WeightedDomain::within(&spec, &limits).expect("a space that fits this machine"))
    };
    let runs = match flags.text("--launcher") {
        Some(launcher) => {
            let job = MpiJob::new(launcher, absolute(flags, "--program"));
            commands(flags, RealRuns::launched(absolute(flags, "--guard"), job))
        }
        None => Runs::Here(Runner::new(&KernelChoice::Builtin).expect("built-in kernels")),
    };
    (space, default_candidate(&spec).canonical(EngineProfile::Ours), runs)
}

/// `--program` by the shipped profile `name`, on the processes of `--launcher`.
fn foreign(flags: &Flags, name: &str, spec: &DomainSpec) -> Parts {
    let (_, text) = SHIPPED.iter().find(|(known, _)| *known == name).expect("--engine: a shipped profile");
    let shipped = Profile::parse(text).expect("a shipped profile");
    let launcher = flags.text("--launcher").unwrap_or(&shipped.launcher).to_owned();
    let program = absolute(flags, "--program").display().to_string();
    let profile = Profile { launcher, program, ..shipped };
    let obeyed = profile.obeyed();
    let usual = ForeignDomain::usual_of(spec, &obeyed).expect("ranks that fit this machine");
    let space = ForeignDomain::new(spec, &obeyed).expect("a space that fits this machine");
    let engine = Foreign::new(profile).expect("a profile");
    (Box::new(space), usual, commands(flags, RealRuns::foreign(absolute(flags, "--guard"), engine)))
}

fn commands(flags: &Flags, runs: RealRuns) -> Runs {
    let folder = tempfile::tempdir().expect("a folder to run in");
    Runs::Commands { runs, folder, limit_s: flags.number("--limit", 60) as f64 }
}

fn absolute(flags: &Flags, key: &str) -> PathBuf {
    flags.path(key).canonicalize().unwrap_or_else(|error| panic!("{key}: {error}"))
}
