//! Power by phase: fitted to the energies of runs, and by it the energy of a whole run of which windows have measured some steps.
//!
//! The energy of a span is the sum over kinds of work of seconds times the power of that kind. The powers are the non-negative least squares
//! of all spans of known energy, drawn towards proportions that are assumed; how much a run takes as a whole is taken from its own
//! energy.

use hpl::plan::windows::Window;
use space::result::PhaseTime;
use space::{RunResult, WindowsResult};

use crate::fit::weighted;

/// Kinds of work that are told apart.
const KINDS: usize = 5;
/// Powers of factorization, update, exchange, work on the whole matrix (generation, check) and all else (start, end), by that of the update:
/// assumed, until runs have shown it.
const ASSUMED: [f64; KINDS] = [0.85, 1.0, 0.65, 0.9, 0.5];
/// Standard deviations of these assumptions, and of the mean power of a span about its fit, as shares.
const ASSUMED_SD: f64 = 0.25;
const SPAN_SD: f64 = 0.02;

/// Seconds of each kind of work, on average over the ranks.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct WorkTimes {
    /// Panel factorization.
    pub fact_s: f64,
    /// Triangular solve and DGEMM.
    pub update_s: f64,
    /// Messages, waiting included, and back substitution.
    pub exchange_s: f64,
    /// Generation and check of the matrix.
    pub matrix_s: f64,
    /// Start and end of the processes.
    pub other_s: f64,
}

/// Work of known energy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SpanEnergy {
    /// What was done.
    pub work: WorkTimes,
    /// What it took, in joules.
    pub joules: f64,
}

/// Power by kind of work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PhasePower {
    /// Watts of each kind, in the order of [`ASSUMED`].
    watts: [f64; KINDS],
}

impl WorkTimes {
    fn kinds(&self) -> [f64; KINDS] {
        [self.fact_s, self.update_s, self.exchange_s, self.matrix_s, self.other_s]
    }

    fn total_s(&self) -> f64 {
        self.kinds().iter().sum()
    }

    /// The core phase of a whole run. Of what its phases do not explain the ranks wait.
    pub fn of_core(run: &RunResult) -> Self {
        let ranks = f64::from(run.phases.iter().map(|phase| phase.rank + 1).max().unwrap_or(1));
        let sum = |of: fn(&PhaseTime) -> f64| run.phases.iter().map(of).sum::<f64>() / ranks;
        let (fact_s, update_s) = (sum(|phase| phase.fact_s), sum(|phase| phase.update_s));
        Self { fact_s, update_s, exchange_s: (run.time_s - fact_s - update_s).max(0.0), ..Self::default() }
    }

    /// A whole run of `wall_s` seconds, start and end included.
    pub fn of_run(run: &RunResult, wall_s: f64) -> Self {
        let matrix_s = run.generate_s + run.check_s;
        Self { matrix_s, other_s: (wall_s - run.time_s - matrix_s).max(0.0), ..Self::of_core(run) }
    }

    /// What windows have measured, of `wall_s` seconds.
    pub fn of_windows(run: &WindowsResult, wall_s: f64) -> Self {
        let steps = Steps::of(run);
        let (fact_s, update_s) = (steps.sum(|step| step.fact_s), steps.sum(|step| step.update_s));
        let prologue_s: f64 = run.windows.iter().map(|window| window.prologue_s).sum();
        let all_s = steps.sum(|step| step.all_s);
        let matrix_s = run.generate_s + run.check_s;
        let known_s = prologue_s + all_s + matrix_s;
        Self {
            fact_s: fact_s + prologue_s,
            update_s,
            exchange_s: (all_s - fact_s - update_s).max(0.0),
            matrix_s,
            other_s: (wall_s - known_s).max(0.0),
        }
    }

    /// The core phase of the whole run, as its windows predict it: the phases of a step go by the order of the trailing matrix, that of the
    /// update by its square as well.
    pub fn predicted(run: &WindowsResult) -> Option<Self> {
        let steps = Steps::of(run);
        let hpl = &run.candidate.hpl;
        let count = hpl.n.div_ceil(hpl.nb.max(1));
        let trailing = |step: usize| 1.0 - step as f64 / count as f64;
        let fitted = |of: fn(&MeasuredStep) -> f64, squared: bool| {
            let terms = |m: f64| if squared { vec![m * m, m, 1.0] } else { vec![m, 1.0] };
            // Relative errors: each step says as much as another.
            let rows: Vec<Vec<f64>> = steps
                .0
                .iter()
                .filter(|step| of(step) > 0.0)
                .map(|step| terms(trailing(step.step)).into_iter().map(|term| term / of(step)).collect())
                .collect();
            let first = rows.first()?;
            let by = (rows.len() >= first.len()).then(|| weighted(&rows, &vec![1.0; rows.len()]))?;
            let at = |step: usize| terms(trailing(step)).iter().zip(&by).map(|(term, by)| term * by).sum::<f64>();
            Some((0..count).map(at).sum::<f64>())
        };
        let (fact_s, update_s) =
            (fitted(|step| step.fact_s, false).unwrap_or(0.0), fitted(|step| step.update_s, true)?);
        let exchange_s = fitted(|step| (step.all_s - step.fact_s - step.update_s).max(0.0), false).unwrap_or(0.0);
        // The windows' own prediction is of the time of all steps, which is known better than their parts.
        let scale = (run.predicted_time_s - run.predicted_trsv_s) / (fact_s + update_s + exchange_s);
        let scale = Some(scale).filter(|scale| scale.is_finite() && *scale > 0.0)?;
        Some(Self {
            fact_s: scale * fact_s,
            update_s: scale * update_s,
            exchange_s: scale * exchange_s + run.predicted_trsv_s,
            ..Self::default()
        })
    }
}

/// The steps that windows have timed.
struct Steps(Vec<MeasuredStep>);

/// One of them, on average over the ranks.
struct MeasuredStep {
    step: usize,
    fact_s: f64,
    update_s: f64,
    all_s: f64,
    /// Steps of the window that were run, divided by those that were timed.
    runs: f64,
}

impl Steps {
    fn of(run: &WindowsResult) -> Self {
        // A step that was measured several times has the phases of each rank as often.
        let step = |(step, all_s, runs): (usize, f64, f64)| {
            let own = || run.phases.iter().filter(|phase| phase.step as usize == step);
            let times = own().count() as f64;
            let mean = |of: fn(&PhaseTime) -> f64| if times > 0.0 { own().map(of).sum::<f64>() / times } else { 0.0 };
            MeasuredStep {
                step,
                fact_s: mean(|phase| phase.fact_s),
                update_s: mean(|phase| phase.update_s),
                all_s,
                runs,
            }
        };
        let all = run.windows.iter().flat_map(|times| {
            let window = Window { first: times.first, steps: times.steps };
            let made = (window.first + window.steps - window.begin(&run.candidate.hpl)) as f64;
            let runs = made / window.steps as f64;
            (window.first..).zip(&times.step_s).map(move |(step, &step_s)| (step, step_s, runs))
        });
        Self(all.map(step).collect())
    }

    /// The sum over all steps that were run; those that were not timed are taken to be like the others of their window.
    fn sum(&self, of: fn(&MeasuredStep) -> f64) -> f64 {
        self.0.iter().map(|step| step.runs * of(step)).sum()
    }
}

impl PhasePower {
    /// The powers that explain the energies of `spans` best; `None` where there are none.
    pub fn fit(spans: &[SpanEnergy]) -> Option<Self> {
        let spans: Vec<&SpanEnergy> =
            spans.iter().filter(|span| span.work.total_s() > 0.0 && span.joules > 0.0).collect();
        let assumed =
            |work: &WorkTimes| work.kinds().iter().zip(ASSUMED).map(|(time_s, watts)| time_s * watts).sum::<f64>();
        // Watts of the update, if all proportions were as assumed.
        let level = spans.iter().map(|span| span.joules).sum::<f64>()
            / spans.iter().map(|span| assumed(&span.work)).sum::<f64>();
        let level = Some(level).filter(|level| level.is_finite() && *level > 0.0)?;
        let measured = spans.iter().map(|span| span.work.kinds().map(|time_s| time_s / span.joules).to_vec());
        let believed = (0..KINDS).map(|kind| {
            let mut row = vec![0.0; KINDS];
            row[kind] = (level * ASSUMED[kind]).recip();
            row
        });
        let rows: Vec<Vec<f64>> = measured.chain(believed).collect();
        let weights: Vec<f64> =
            (0..rows.len()).map(|row| if row < spans.len() { SPAN_SD } else { ASSUMED_SD }.powi(-2)).collect();
        let watts = weighted(&rows, &weights).try_into().ok()?;
        Some(Self { watts })
    }

    /// The energy of `work` in joules.
    pub fn joules(&self, work: &WorkTimes) -> f64 {
        work.kinds().iter().zip(self.watts).map(|(time_s, watts)| time_s * watts).sum()
    }
}

/// The energy of the core phase of a whole run in joules, as its windows of `wall_s` seconds predict it, which took `joules` themselves;
/// `power` is fitted to spans that these are among.
pub fn predicted_energy_j(run: &WindowsResult, wall_s: f64, joules: f64, power: &PhasePower) -> Option<f64> {
    let of_windows = power.joules(&WorkTimes::of_windows(run, wall_s));
    let energy_j = power.joules(&WorkTimes::predicted(run)?) * joules / of_windows;
    Some(energy_j).filter(|energy_j| energy_j.is_finite() && *energy_j > 0.0)
}

#[cfg(test)]
mod tests {
    use hpl::plan::windows::Windows;
    use space::{Candidate, EngineParams, HplParams};

    use super::*;
    use crate::simulated::{Asked, Clock, SimulatedCluster, SimulatedRun};

    fn cluster() -> SimulatedCluster {
        let text = include_str!("../../datasets/simulated/clocks.toml");
        SimulatedCluster { noise: 0.0, ..SimulatedCluster::parse(text).unwrap() }
    }

    fn candidate(nb: usize, (p, q): (usize, usize), threads: usize) -> Candidate {
        let hpl = HplParams { nb, ..HplParams::baseline(30_000, p, q) };
        Candidate { hpl, engine: EngineParams { threads, ..EngineParams::default() } }
    }

    /// Powers that are known explain energies made of them.
    #[test]
    fn powers_are_found_by_energies() {
        let watts = [170.0, 220.0, 130.0, 200.0, 90.0];
        let work = |times: [f64; KINDS]| {
            let [fact_s, update_s, exchange_s, matrix_s, other_s] = times;
            WorkTimes { fact_s, update_s, exchange_s, matrix_s, other_s }
        };
        let span = |times: [f64; KINDS]| SpanEnergy {
            work: work(times),
            joules: times.iter().zip(watts).map(|(time_s, watts)| time_s * watts).sum(),
        };
        let spans = [
            span([10.0, 80.0, 5.0, 0.0, 0.0]),
            span([10.0, 80.0, 5.0, 9.0, 2.0]),
            span([20.0, 60.0, 30.0, 0.0, 0.0]),
            span([1.0, 2.0, 3.0, 20.0, 5.0]),
            span([30.0, 50.0, 2.0, 1.0, 1.0]),
        ];
        let power = PhasePower::fit(&spans).unwrap();
        for span in &spans {
            let error = power.joules(&span.work) / span.joules - 1.0;
            assert!(error.abs() < 0.01, "{error}");
        }
        assert_eq!(PhasePower::fit(&[]), None);
    }

    /// On a simulated node whose power falls from start to end: by the windows alone, and once whole runs are known.
    #[test]
    fn windows_predict_the_energy_of_whole_runs() {
        let cluster = cluster();
        let mut spans = Vec::new();
        let mut errors = Vec::new();
        for candidate in
            [candidate(192, (1, 1), 4), candidate(128, (2, 2), 1), candidate(384, (1, 4), 1), candidate(64, (2, 1), 2)]
        {
            let windows = cluster.run(&candidate, Asked::Windows(&Windows::Auto), Clock::default()).unwrap();
            let whole = cluster.run(&candidate, Asked::Whole, Clock::default()).unwrap();
            let [of_windows, of_whole] = [&windows, &whole].map(|run| cluster.power(&candidate, run).unwrap());
            let (SimulatedRun::Windows(windows), SimulatedRun::Whole(whole, wall_s)) = (&windows, &whole) else {
                panic!()
            };
            let joules = of_windows.run_w * of_windows.run_s;
            spans.push(SpanEnergy { work: WorkTimes::of_windows(windows, windows.wall_s), joules });
            let power = PhasePower::fit(&spans).unwrap();
            let predicted_j = predicted_energy_j(windows, windows.wall_s, joules, &power).unwrap();
            let energy_j = of_whole.core_w * whole.time_s;
            errors.push(predicted_j / energy_j - 1.0);
            spans.push(SpanEnergy { work: WorkTimes::of_core(whole), joules: energy_j });
            let joules = of_whole.run_w * of_whole.run_s;
            spans.push(SpanEnergy { work: WorkTimes::of_run(whole, *wall_s), joules });
        }
        println!("errors of the predicted energies: {errors:.4?}");
        assert!(errors[0].abs() < 0.1 && errors[1..].iter().all(|error| error.abs() < 0.04), "{errors:?}");
    }
}
