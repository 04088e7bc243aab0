//! The results of a simulated cluster in place of those of `xhpl`.

use std::convert::Infallible;
use std::path::Path;

use hpl::machine::bindings::{Bindings, RankBinding};
use hpl::measure::survey::{LinkSurvey, RankSurvey, Survey, partners};
use hpl::plan::windows::{Window, WindowTimes, Windows, WindowsReport, in_turn};
use hpl::program::{pair_of, result_of};
use space::flops::rate_gflops;
use space::result::{PhaseTime, RESULT_SCHEMA};
use space::windows::PairResult;
use space::{Candidate, EngineParams, HplParams, RunResult, WindowsResult};

use super::{Clock, SimulatedCluster};
use crate::timeline::noise::{normal, uniform};
use crate::timeline::{StepTimes, Timeline};

/// Kernels of simulated results.
pub const KERNEL: &str = "none: simulated";
/// Seconds that a rank's core takes to generate, or to check, an element of the matrix.
const ELEMENT_S: f64 = 1.5e-9;
/// Seconds to start the processes of a run.
pub(super) const START_S: f64 = 2.0;
/// Residuals below this pass; those of simulated runs are 0.
const THRESHOLD: f64 = 16.0;
/// Clock of the simulated processors in Hz.
const CLOCK_HZ: f64 = 2.1e9;
/// Index of the random numbers of a whole run, as opposed to those of its windows.
const WHOLE_RUN: u64 = 8;

/// What of a run is asked for.
#[derive(Debug, Clone, Copy)]
pub enum Asked<'a> {
    /// The whole.
    Whole,
    /// These windows.
    Windows(&'a Windows),
    /// Windows in turn with those of this one.
    InTurnWith(&'a Candidate),
}

/// The outcome of a run.
#[derive(Debug, Clone, PartialEq)]
pub enum SimulatedRun {
    /// The result of a whole run and its wall time.
    Whole(Box<RunResult>, f64),
    /// The result of windows; its wall time is that of the windows.
    Windows(Box<WindowsResult>),
    /// The result of windows of two runs in turn.
    Pair(Box<PairResult>),
    /// The run crashes after this many seconds.
    BreaksOff(f64),
    /// The run hangs.
    Hangs,
}

impl SimulatedCluster {
    /// Places of `ranks` ranks of `threads` threads on the nodes `names`, on all if none is named.
    ///
    /// # Errors
    /// More of them than there are cores, or a name that no node has.
    pub fn bindings(&self, ranks: usize, threads: usize, names: &[String]) -> Result<Bindings, String> {
        if !names.is_empty() {
            let mut found = self.part(names)?.0.bindings(ranks, threads, &[])?;
            let hosts = self.hosts();
            let of = |host: &String| hosts.iter().position(|known| known == host).map(|node| names[node].clone());
            found.ranks.iter_mut().for_each(|rank| rank.host = of(&rank.host).unwrap_or_default());
            return Ok(found);
        }
        self.check_ranks(ranks, threads)?;
        let hosts = self.hosts();
        let each = (self.node().cores / threads).max(1);
        let of = |rank: usize| {
            let first = rank % each * threads;
            RankBinding {
                host: hosts[self.node_of(rank, threads)].clone(),
                cores_allowed: (0..self.node().cores).collect(),
                cores: (first..first + threads).collect(),
                memory_bytes: self.node().memory_bytes,
            }
        };
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Ok(Bindings { version, mpi: None, threads, ranks: (0..ranks).map(of).collect() })
    }

    fn check_ranks(&self, ranks: usize, threads: usize) -> Result<(), String> {
        let &space::machine::Node { count, cores, .. } = self.node();
        let places = (cores / threads.max(1)).saturating_mul(count);
        if threads > 0 && ranks <= places {
            return Ok(());
        }
        Err(format!("{ranks} ranks of {threads} threads do not fit {count} simulated nodes of {cores} cores"))
    }

    /// The survey by the ranks of `candidate`, each measurement made `repeats` times.
    ///
    /// # Errors
    /// More of them than there are cores.
    pub fn survey(&self, candidate: &Candidate, repeats: usize, clock: Clock) -> Result<Survey, String> {
        let (ranks, threads) = (candidate.hpl.ranks(), candidate.engine.threads);
        self.check_ranks(ranks, threads)?;
        let alone = Candidate {
            hpl: HplParams { p: 1, q: 1, ..candidate.hpl },
            engine: EngineParams { threads, ..candidate.engine.clone() },
        };
        let described = Self { slow: Vec::new(), ..self.clone() };
        let hpl = rate_gflops(alone.hpl.n, described.truth().time_s(&alone));
        let changed = self.changed(clock.clock_s);
        let network = self.machine.layers.iter().rfind(|layer| layer.ranks > self.node().cores);
        let hosts = self.hosts();
        let of = |rank: usize| {
            let node = self.node_of(rank, threads);
            let rates = |rate: f64, kind: u64| {
                let luck = |repeat: usize| self.luck(clock.runs, kind + (rank * repeats + repeat) as u64);
                let one = |repeat| rate / (self.of_node(node) * changed) * (self.noise * normal(luck(repeat))).exp();
                (0..repeats).map(one).collect::<Vec<f64>>()
            };
            let link = |other: usize| LinkSurvey {
                other,
                latency_s: network.and_then(|layer| layer.alpha_s).unwrap_or(1e-6),
                gbytes_per_s: network.map_or(10.0, |layer| 8e-9 / layer.beta_s_per_word),
                spread: 0.0,
                alone_gbytes_per_s: None,
            };
            RankSurvey {
                rank,
                host: hosts[node].clone(),
                socket: None,
                memory_bytes: self.node().memory_bytes,
                cpu: self.machine.host.cpu.clone(),
                cores: self.node().cores,
                kernels: KERNEL.to_owned(),
                load: Some(0.0),
                stolen: Some(0.0),
                clock_hz: Some(CLOCK_HZ),
                dgemm_gflops: rates(1.1 * hpl, 1 << 32),
                hpl_gflops: rates(hpl, 1 << 33),
                links: partners(rank, ranks).map(link).collect(),
            }
        };
        Ok(Survey { kernels: KERNEL.to_owned(), ranks: (0..ranks).map(of).collect() })
    }

    /// The outcome of the run of `candidate` on the nodes `names` that begins at `clock`.
    ///
    /// # Errors
    /// As of [`run`](Self::run), and a name that no node has.
    pub fn run_on(
        &self,
        names: &[String],
        candidate: &Candidate,
        asked: Asked<'_>,
        clock: Clock,
    ) -> Result<SimulatedRun, String> {
        let (part, slower) = self.part(names)?;
        let mut answer = part.run_slower(candidate, asked, clock, slower)?;
        match &mut answer {
            SimulatedRun::Whole(result, _) => result.host.clone_from(&names[0]),
            SimulatedRun::Windows(result) => result.host.clone_from(&names[0]),
            SimulatedRun::Pair(pair) => {
                [&mut pair.candidate, &mut pair.reference].into_iter().for_each(|of| of.host.clone_from(&names[0]));
            }
            SimulatedRun::BreaksOff(_) | SimulatedRun::Hangs => {}
        }
        Ok(answer)
    }

    /// The outcome of the run of `candidate` that begins at `clock`.
    ///
    /// # Errors
    /// Invalid parameters, more ranks than there are cores, windows that the run does not have, or a reference of another N.
    pub fn run(&self, candidate: &Candidate, asked: Asked<'_>, clock: Clock) -> Result<SimulatedRun, String> {
        self.run_slower(candidate, asked, clock, 1.0)
    }

    fn run_slower(
        &self,
        candidate: &Candidate,
        asked: Asked<'_>,
        clock: Clock,
        slower: f64,
    ) -> Result<SimulatedRun, String> {
        self.check(candidate)?;
        let luck = |index: u64| self.luck(clock.runs + 1, index);
        let slower = slower * self.changed(clock.clock_s) * (self.noise * normal(luck(0))).exp();
        let fate = uniform(luck(1));
        let of = |candidate: &Candidate| self.at(&candidate.engine.settings).truth();
        if fate < self.breaks_off {
            return Ok(SimulatedRun::BreaksOff(uniform(luck(2)) * slower * of(candidate).time_s(candidate)));
        }
        if fate < self.breaks_off + self.hangs {
            return Ok(SimulatedRun::Hangs);
        }
        let timeline = |candidate: &Candidate| scaled(of(candidate).timeline(candidate), slower);
        let noise = |index: usize| (self.noise * normal(luck(WHOLE_RUN + index as u64))).exp();
        Ok(match asked {
            Asked::Whole => self.whole(candidate, &timeline(candidate)),
            Asked::Windows(windows) => {
                let chosen = windows.of(&candidate.hpl).map_err(|error| error.to_string())?;
                let timeline = timeline(candidate);
                let timed = chosen.into_iter().enumerate().map(|(at, window)| (window, noise(at)));
                SimulatedRun::Windows(Box::new(self.windows(candidate, &timeline, timed)))
            }
            Asked::InTurnWith(reference) => {
                self.check(reference)?;
                SimulatedRun::Pair(Box::new(self.pair([candidate, reference], timeline, noise)?))
            }
        })
    }

    fn check(&self, candidate: &Candidate) -> Result<(), String> {
        candidate.check().map_err(|error| error.to_string())?;
        self.check_ranks(candidate.hpl.ranks(), candidate.engine.threads)
    }

    fn whole(&self, candidate: &Candidate, timeline: &Timeline) -> SimulatedRun {
        let Timeline { total_s: time_s, ref steps, trsv_s } = *timeline;
        let generation_s = self.generation_s(candidate, candidate.hpl.n);
        let result = RunResult {
            schema_version: RESULT_SCHEMA,
            candidate: candidate.clone(),
            time_s,
            rate_gflops: rate_gflops(candidate.hpl.n, time_s),
            // Windows have no solution.
            residual: Some(0.0),
            passed: true,
            info: 0,
            generate_s: generation_s,
            check_s: generation_s,
            device: None,
            fma_peak_gflops: None,
            fma_peak_share: None,
            x_hash: None,
            phases: (0..steps.len()).map(|k| phase(k, steps)).chain([substitution(steps.len(), trsv_s)]).collect(),
            started_utc: jiff::Timestamp::now().to_string(),
            core_started_utc: None,
            host: self.hosts()[0].clone(),
            kernel: KERNEL.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        SimulatedRun::Whole(Box::new(result), START_S + time_s + 2.0 * generation_s)
    }

    /// Windows of two runs in turn, of the same luck but for that of each window.
    fn pair(
        &self,
        pair: [&Candidate; 2],
        timeline: impl Fn(&Candidate) -> Timeline,
        noise: impl Fn(usize) -> f64,
    ) -> Result<PairResult, String> {
        if pair[0].hpl.n != pair[1].hpl.n || pair[0].hpl.n == 0 {
            return Err("a pair has one N above 0".to_owned());
        }
        let timelines = pair.map(timeline);
        let mut timed = [Vec::new(), Vec::new()];
        let measure = |side: usize, window: Window| {
            let noise = noise(timed.iter().map(Vec::len).sum());
            timed[side].push((window, noise));
            Ok::<_, Infallible>(window_times(&pair[side].hpl, &timelines[side].steps, (window, noise)))
        };
        let Ok(found) = in_turn(pair.map(|candidate| &candidate.hpl), measure);
        let found = found.expect("an order above 0 has windows");
        let side = |side: usize| self.windows(pair[side], &timelines[side], timed[side].iter().copied());
        let (candidate, reference) = (side(0), side(1));
        let wall_s = candidate.wall_s + reference.wall_s - START_S;
        let [candidate, reference] = [candidate, reference].map(|of| WindowsResult { wall_s, ..of });
        Ok(pair_of(found, candidate, reference))
    }

    /// The result of windows whose times are multiplied by the number beside each.
    fn windows(
        &self,
        candidate: &Candidate,
        timeline: &Timeline,
        timed: impl Iterator<Item = (Window, f64)> + Clone,
    ) -> WindowsResult {
        let (hpl, steps) = (&candidate.hpl, &timeline.steps);
        let chosen = timed.clone().map(|(window, _)| window);
        let order = |window: Window| hpl.n.saturating_sub(window.begin(hpl) * hpl.nb);
        let generation_s: f64 = chosen.clone().map(|window| self.generation_s(candidate, order(window))).sum();
        let made = chosen.flat_map(|window| window.first..window.first + window.steps);
        let run_s = |(window, noise): (Window, f64)| {
            let begin = window.begin(hpl);
            let end = window.first + window.steps;
            steps[begin].fact_s + noise * (end_before(end, steps) - end_before(begin, steps))
        };
        let run_s: f64 = timed.clone().map(run_s).sum();
        let report = WindowsReport {
            windows: timed.map(|timed| window_times(hpl, steps, timed)).collect(),
            trsv_s: timeline.trsv_s,
            generate_s: generation_s,
            check_s: generation_s,
            phases: made.map(|k| phase(k, steps)).collect(),
        };
        WindowsResult {
            wall_s: START_S + run_s + 2.0 * generation_s,
            ..result_of(candidate.clone(), report, THRESHOLD, KERNEL.to_owned(), self.hosts()[0].clone())
        }
    }

    /// Seconds to generate a matrix of order `n`, or to check its solution, on all cores of the run.
    fn generation_s(&self, candidate: &Candidate, n: usize) -> f64 {
        let cores = candidate.hpl.ranks() * candidate.engine.threads;
        self.slower(&candidate.engine.settings) * ELEMENT_S * (n as f64).powi(2) / cores as f64
    }
}

/// The result with all its times multiplied by `times`.
fn scaled(timeline: Timeline, times: f64) -> Timeline {
    let step = |step: StepTimes| StepTimes {
        fact_s: times * step.fact_s,
        lbcast_s: times * step.lbcast_s,
        rs_s: times * step.rs_s,
        update_s: times * step.update_s,
        end_s: times * step.end_s,
    };
    Timeline {
        total_s: times * timeline.total_s,
        steps: timeline.steps.into_iter().map(step).collect(),
        trsv_s: times * timeline.trsv_s,
    }
}

/// The times of a window of a run with these steps, multiplied by `noise`.
fn window_times(hpl: &HplParams, steps: &[StepTimes], (window, noise): (Window, f64)) -> WindowTimes {
    let step_s = |k: usize| (steps[k].end_s - end_before(k, steps)) * noise;
    WindowTimes {
        window,
        prologue_s: steps[window.begin(hpl)].fact_s,
        step_s: (window.first..window.first + window.steps).map(step_s).collect(),
        residual: Some(0.0),
    }
}

fn end_before(k: usize, steps: &[StepTimes]) -> f64 {
    k.checked_sub(1).map_or(0.0, |before| steps[before].end_s)
}

/// The phases of step `k`, as those of one rank that represents all.
fn phase(k: usize, steps: &[StepTimes]) -> PhaseTime {
    let StepTimes { fact_s, lbcast_s, rs_s, update_s, end_s } = steps[k];
    PhaseTime { step: k as u32, rank: 0, fact_s, lbcast_s, rs_s, update_s, trsv_s: 0.0, end_s }
}

fn substitution(steps: usize, trsv_s: f64) -> PhaseTime {
    PhaseTime { step: steps as u32, trsv_s, ..PhaseTime::default() }
}

impl SimulatedRun {
    /// Writes the result to `path`, if there is one.
    ///
    /// # Errors
    /// As of [`hpl::program::files::write_atomically`].
    pub fn write(&self, path: &Path) -> std::io::Result<()> {
        let text = match self {
            Self::Whole(result, _) => serde_json::to_vec(result)?,
            Self::Windows(result) => serde_json::to_vec(result)?,
            Self::Pair(result) => serde_json::to_vec(result)?,
            Self::BreaksOff(_) | Self::Hangs => return Ok(()),
        };
        hpl::program::files::write_atomically(path, &text)
    }

    /// Seconds on the simulated wall clock.
    pub fn wall_s(&self) -> f64 {
        match self {
            Self::Whole(_, wall_s) | Self::BreaksOff(wall_s) => *wall_s,
            Self::Windows(result) => result.wall_s,
            Self::Pair(result) => result.candidate.wall_s,
            Self::Hangs => f64::INFINITY,
        }
    }
}
