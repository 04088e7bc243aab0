//! The model of a session: as calibrated, then corrected by the phases of the session's runs; and the prior that it makes of
//! all candidates, corrected by the runs of earlier sessions.
//!
//! Where phases are calibrated there are two models, the timeline and the plain sum of the kernels' times. Neither is chosen
//! beforehand: their predictions are weighted by how well they predict the runs of the session.

use std::collections::BTreeMap;
use std::time::Instant;

use objectives::predict::Predictor;
use objectives::real::Extent;
use objectives::settings::{power_factor, time_factor};
use objectives::timeline::own::{Observed, refined};
use space::Candidates;
use space::dims::Point;
use space::machine::Machine;
use space::result::PhaseTime;
use space::stats::mean;

use crate::record::{Finished, Objective};
use crate::search::history::{History, TrialResult};
use crate::search::model_prior;
use crate::search::strategy::Prior;
use crate::search::strategy::informed::{ComparableRuns, Informed};
use crate::search::strategy::prior::PriorTable;

/// Part of the time that was left after a run that making the prior anew by it may take.
const WORTH: f64 = 0.01;

/// Runs that the model learns from, at most: after so many its phases have settled.
const LEARNED: usize = 64;

/// Standard deviation of a log rate about a model's prediction before any run, and the runs that this belief is worth.
const ERROR: f64 = 0.03;
const BELIEF: f64 = 2.0;

/// Log odds for the timeline of an engine that it was made for.
const MADE_FOR: f64 = 2.0;

/// What the search expects of candidates.
///
/// It follows from the calibration and the record: the first 1, 2, 4, … and at most 64 runs are looked at, however often it was asked in
/// between. Where making the prior anew takes more than a hundredth of the time that was left then, it stays as it is: a session that is resumed
/// has learned what it had before.
pub struct SessionModel<'a> {
    domain: &'a dyn Candidates,
    calibrated: &'a Machine,
    /// Runs of earlier sessions.
    earlier: Vec<ComparableRuns>,
    /// Of each stage of trials on groups of nodes, by rising size: logarithms of what they reached over what was expected of them, at the
    /// points that they stand for.
    beyond: Vec<Vec<(Point, f64)>>,
    /// Runs of this one that it has learned from.
    learned: usize,
    /// Seconds that making the prior took.
    made_s: f64,
    /// The predictions of the timeline and of the plain sum; the first alone where phases are not calibrated.
    tables: Vec<PriorTable<'a>>,
    /// Log odds of each before any run.
    odds: Vec<f64>,
    /// What the session makes as large as possible.
    objective: Objective,
    /// Whether its trials are whole runs or windows.
    extent: Extent,
    /// Predicts any candidate.
    pub predictor: Predictor,
    /// Its prediction of all candidates of the domain.
    pub prior: Box<dyn Prior + 'a>,
    /// Whether runs of earlier sessions changed it.
    pub informed: bool,
}

impl<'a> SessionModel<'a> {
    /// The model as calibrated, with runs of earlier sessions, and what each stage of trials on groups of nodes shows beyond the model of
    /// a group, in logarithms of rates; `ours`: it was made for the engine of the session. Trials are of this `extent`.
    pub fn new(
        domain: &'a dyn Candidates,
        calibrated: &'a Machine,
        predictor: Predictor,
        (earlier, beyond): (Vec<ComparableRuns>, Vec<Vec<(Point, f64)>>),
        ours: bool,
        extent: Extent,
    ) -> Self {
        let clock = Instant::now();
        let plain = Machine { phases: Vec::new(), ..calibrated.clone() };
        let plain = Predictor::new(&plain).ok().filter(|_| !calibrated.phases.is_empty());
        let found = predictor.found();
        let plain = plain.map(|plain| plain.slowed(domain.spec().unequal.clone()).found_at(found));
        let timeline = model_prior::table(domain, &predictor, extent);
        let plain = plain.map(|plain| model_prior::other_prior(&timeline, domain, &plain));
        let tables: Vec<PriorTable<'_>> = std::iter::once(timeline).chain(plain).collect();
        let odds = if ours { vec![MADE_FOR, 0.0] } else { vec![0.0; 2] };
        let weights = weights(&tables, &odds, &History::default());
        let (prior, informed) = build_prior(domain, weighted_mean(&tables, &weights), &earlier, &beyond);
        let made_s = clock.elapsed().as_secs_f64();
        let objective = Objective::Gflops;
        Self {
            domain,
            calibrated,
            earlier,
            beyond,
            learned: 0,
            made_s,
            tables,
            odds,
            objective,
            extent,
            predictor,
            prior,
            informed,
        }
    }

    /// The model of a session that makes `objective` as large as possible. Of power it knows what settings of the nodes are expected to
    /// do to it.
    #[must_use]
    pub fn with_objective(mut self, objective: Objective) -> Self {
        self.objective = objective;
        if objective == Objective::GflopsPerWatt {
            let weights = weights(&self.tables, &self.odds, &History::default());
            self.build(&weights);
        }
        self
    }

    fn build(&mut self, weights: &[f64]) {
        let mut expected = weighted_mean(&self.tables, weights);
        let mut earlier = self.earlier.clone();
        let found = self.predictor.found();
        if self.objective == Objective::GflopsPerWatt && !found.is_as_found() {
            let power = |point: &Point| power_factor(&self.domain.candidate(point).engine.settings, &found).ln();
            let rates = expected.log_rates_of_all().iter().zip(self.domain.points());
            expected = expected.with_log_rates(rates.map(|(rate, point)| rate - power(point)).collect());
            // Of earlier runs the rates are known, and no more of their power.
            earlier.iter_mut().flat_map(|group| group.runs.iter_mut()).for_each(|run| run.1 -= power(&run.0));
        }
        (self.prior, self.informed) = build_prior(self.domain, expected, &earlier, &self.beyond);
    }

    /// How many runs it has learned from: its predictions are the same as long as this is.
    pub(crate) fn learned(&self) -> usize {
        self.learned
    }

    /// Learns from `rows` when they are twice as many as before; `phases` are those of a trial.
    pub fn learn<R: Finished + Clone>(&mut self, rows: &[R], phases: impl Fn(u64) -> Option<Vec<PhaseTime>>) {
        if self.calibrated.phases.is_empty() || self.learned == LEARNED {
            return;
        }
        let usable: Vec<&R> = rows.iter().filter(|row| row.passed()).take(LEARNED).collect();
        let is_worth = |count: &usize| self.made_s <= WORTH * usable[count - 1].budget_left_s();
        let counts = (0..usize::BITS).map(|log2| 1_usize << log2).take_while(|count| *count <= usable.len());
        let Some(count) = counts.filter(is_worth).last().filter(|count| *count > self.learned) else { return };
        self.learned = count;
        // Another engine reports no phases.
        let found = self.predictor.found();
        let observed = |row: &&R| {
            let mut candidate = row.candidate();
            // As they would be on the nodes as they were found.
            let factor = time_factor(&std::mem::take(&mut candidate.engine.settings), &found).recip();
            Some(Observed {
                candidate,
                phases: phases(row.trial())?.iter().map(|phase| phase.scaled(factor)).collect(),
            })
        };
        let observed: Vec<Observed> = usable[..count].iter().filter_map(observed).collect();
        let unequal = &self.domain.spec().unequal;
        if !observed.is_empty()
            && let Ok(predictor) = Predictor::new(&refined(self.calibrated, &observed, unequal))
        {
            self.predictor = predictor.slowed(unequal.clone()).found_at(found);
            self.tables[0] = model_prior::table(self.domain, &self.predictor, self.extent);
        }
        let seen: Vec<R> = usable[..count].iter().map(|row| (*row).clone()).collect();
        let weights = weights(&self.tables, &self.odds, &History::from_rows(&seen, self.domain, Objective::Gflops));
        self.build(&weights);
    }
}

/// The weight of each model's predictions, all together 1: the likelihood of the runs, each point once by the mean of its log
/// rates, under a normal error of unknown size about the prediction and an unknown factor.
fn weights(tables: &[PriorTable<'_>], odds: &[f64], seen: &History) -> Vec<f64> {
    let mut runs: BTreeMap<&Point, Vec<f64>> = BTreeMap::new();
    for trial in &seen.trials {
        if let TrialResult::Rate(rate) = trial.outcome {
            runs.entry(&trial.point).or_default().push(rate.ln());
        }
    }
    let likelihood = |table: &PriorTable<'_>| {
        let errors: Vec<f64> = runs.iter().map(|(point, logs)| mean(logs) - table.log_rate(point)).collect();
        let centre = mean(&errors);
        let squares: f64 = errors.iter().map(|error| (error - centre).powi(2)).sum();
        let free = (errors.len() as f64 - 1.0).max(0.0);
        -0.5 * (BELIEF + free) * ((BELIEF * ERROR * ERROR + squares) / (BELIEF + free)).ln()
    };
    let logs: Vec<f64> = tables.iter().zip(odds).map(|(table, odds)| likelihood(table) + odds).collect();
    let best = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let shares: Vec<f64> = logs.iter().map(|log| (log - best).exp()).collect();
    let sum: f64 = shares.iter().sum();
    shares.into_iter().map(|share| share / sum).collect()
}

/// The weighted mean of the predicted log rates, and the first one's costs.
fn weighted_mean<'a>(tables: &[PriorTable<'a>], weights: &[f64]) -> PriorTable<'a> {
    let mut mean = vec![0.0; tables[0].log_rates_of_all().len()];
    for (table, weight) in tables.iter().zip(weights) {
        mean.iter_mut().zip(table.log_rates_of_all()).for_each(|(mean, log)| *mean += weight * log);
    }
    tables[0].with_log_rates(mean)
}

/// The prior of all points of `domain`: the model's predictions, corrected by earlier runs where two of them can be compared, and by what
/// trials on groups of nodes show beyond the model: the smallest with the earlier runs, each larger size by what it shows beyond all that.
fn build_prior<'a>(
    domain: &'a dyn Candidates,
    model: PriorTable<'a>,
    earlier: &[ComparableRuns],
    beyond: &[Vec<(Point, f64)>],
) -> (Box<dyn Prior + 'a>, bool) {
    if earlier.is_empty() && beyond.is_empty() {
        return (Box::new(model), false);
    }
    let on_nodes = |(point, log): &(Point, f64)| (point.clone(), model.log_rate(point) + log);
    let of_stage = |beyond: &Vec<(Point, f64)>| ComparableRuns {
        of_this_machine: true,
        runs: beyond.iter().map(on_nodes).collect(),
    };
    let mut stages = beyond.iter().map(of_stage);
    let first: Vec<ComparableRuns> = earlier.iter().cloned().chain(stages.next()).collect();
    let corrected = Informed::new(domain, model.clone(), &first);
    let larger: Vec<ComparableRuns> = stages.collect();
    if corrected.is_none() && larger.is_empty() {
        return (Box::new(model), false);
    }
    let start = corrected.unwrap_or_else(|| Informed::none(model));
    (Box::new(larger.iter().fold(start, |known, stage| known.further(domain, stage))), true)
}

#[cfg(test)]
mod tests {
    use objectives::timeline::StepTimes;
    use objectives::timeline::own::OwnModel;
    use space::dims::Space;
    use space::domain::{DomainSpec, HplDomain, Limits, SettingsDomain, default_candidate};
    use space::flops::rate_gflops;
    use space::listed::Listed;
    use space::machine::{EnginePhase, Node, PhaseRate, Rate, RateKernel};
    use space::{KernelChoice, SettingLevels, Unequal};

    use super::*;
    use crate::record::Row;
    use crate::record::arbitrary::row_of;
    use crate::search::history::Trial;
    use crate::search::schedule;
    use crate::search::strategy::testing::ordered;

    /// Two cores with rates of kernels and phases.
    fn machine() -> Machine {
        let (date, origin) = ("2026-11-20".to_owned(), "made up".to_owned());
        let rate = |kernel: RateKernel| Rate {
            kernel,
            threads: 1,
            coefficients: vec![1e-10; kernel.coefficient_count()],
            valid: vec![[1.0, 1e5]; kernel.size_count()],
            spread: 0.0,
            fit_error: 0.0,
            date: date.clone(),
            origin: origin.clone(),
        };
        let phase = |phase: EnginePhase, threads| PhaseRate {
            phase,
            threads,
            coefficients: vec![1e-10; phase.coefficient_count()],
            n: [100, 1000],
            nb: [16, 512],
            runs: 9,
            spread: 0.0,
            fit_error: 0.0,
            date: date.clone(),
            origin: origin.clone(),
        };
        Machine {
            nodes: vec![Node { name: "host".into(), count: 1, cores: 2, memory_bytes: 8 << 30, ..Node::default() }],
            rates: RateKernel::ALL.map(rate).to_vec(),
            phases: [1, 2].into_iter().flat_map(|threads| EnginePhase::ALL.map(|of| phase(of, threads))).collect(),
            ..Machine::default()
        }
    }

    #[test]
    fn slow_runs_make_the_model_slower_at_powers_of_two() {
        let kernels = KernelChoice::Builtin;
        let spec = DomainSpec {
            n: 500,
            cores: 2,
            memory_bytes: 8 << 30,
            kernels,
            ranks: Some(1),
            threads: None,
            most_threads: None,
            common_cores: None,
            unequal: Unequal::default(),
        };
        let (domain, machine) = (HplDomain::new(&spec).unwrap(), machine());
        let of_session = || {
            let predictor = Predictor::new(&machine).unwrap();
            SessionModel::new(&domain, &machine, predictor, Default::default(), true, Extent::Whole)
        };
        let mut model = of_session();
        let candidate = default_candidate(&spec);
        let timeline = OwnModel::new(&machine).unwrap().timeline(&candidate);
        let slow = |_| {
            let time = |(k, step): (usize, &StepTimes)| PhaseTime {
                step: k as u32,
                fact_s: 1.3 * step.fact_s,
                rs_s: 1.3 * step.rs_s,
                update_s: 1.3 * step.update_s,
                ..PhaseTime::default()
            };
            Some(timeline.steps.iter().enumerate().map(time).collect())
        };
        let left = |budget_left_s: [f64; 4]| -> Vec<Row> {
            (0..)
                .zip(budget_left_s)
                .map(|(trial, left_s)| Row { budget_left_s: left_s, ..row_of(trial, &candidate) })
                .collect()
        };
        let rows = left([1e6; 4]);
        let mut times = vec![model.predictor.time_s(&candidate)];
        for count in 1..=4 {
            model.learn(&rows[..count], slow);
            times.push(model.predictor.time_s(&candidate));
            let point = domain.point(&candidate).unwrap();
            let rate = rate_gflops(500, times[count]).ln();
            assert!((model.tables[0].log_rate(&point) - rate).abs() < 1e-9, "the table follows");
        }
        assert!(times[0] < times[1] && times[1] < times[2] && times[2] == times[3] && times[3] < times[4], "{times:?}");
        assert!(times[4] < 1.3 * times[0], "{times:?}");
        let mut short = of_session();
        short.learn(&left([0.0; 4]), slow);
        assert_eq!(short.predictor.time_s(&candidate), times[0], "no time is left for a new prior");
        let mut resumed = of_session();
        resumed.learn(&left([1e6, 1e6, 0.0, 0.0]), slow);
        assert_eq!(resumed.predictor.time_s(&candidate), times[2], "as before it was stopped");
    }

    /// They were as fast as the model has it, at both clocks.
    #[test]
    fn rates_of_earlier_runs_are_no_gflops_per_watt() {
        let limits = Limits::parse("[nb]\nvalues = [64, 128]\n").unwrap();
        let spec = DomainSpec { ranks: Some(1), ..schedule::tests::spec() };
        let inner = HplDomain::within(&spec, &limits).unwrap();
        let levels = SettingLevels { max_clock_mhz: vec![1500, 2500], ..SettingLevels::default() };
        let domain = SettingsDomain::new(Box::new(inner), &levels, &limits).unwrap();
        let (machine, found) = (schedule::tests::machine(), levels.as_found());
        let predictor = || schedule::tests::predictor().found_at(found);
        let rates = model_prior::table(&domain, &predictor(), Extent::Whole).log_rates_of_all().to_vec();
        let runs = domain.points().iter().cloned().zip(rates).collect();
        let expected = |earlier: Vec<ComparableRuns>| {
            let model = SessionModel::new(&domain, &machine, predictor(), (earlier, Vec::new()), true, Extent::Whole);
            model.with_objective(Objective::GflopsPerWatt).prior.log_rates(domain.points())
        };
        let (with, without) = (expected(vec![ComparableRuns { of_this_machine: true, runs }]), expected(Vec::new()));
        assert!(with.iter().zip(&without).all(|(with, without)| (with - without).abs() < 1e-3));
    }

    #[test]
    fn the_word_that_predicts_the_runs_gets_the_weight() {
        let dims = vec![ordered("nb", &[5.0, 6.0, 7.0, 8.0, 9.0])];
        let space = Listed::product(dims, |_| true);
        let of = |slope: f64| {
            let logs = space.points().iter().map(|point| slope * f64::from(point.0[0])).collect();
            PriorTable::of(&space, logs, vec![1.0; 5])
        };
        let tables = [of(0.0), of(0.05)];
        let run = |level: u16| Trial {
            number: u64::from(level),
            point: Point(vec![level]),
            outcome: TrialResult::Rate((2.0 + 0.05 * f64::from(level)).exp()),
            wall_s: 1.0,
            pair: None,
        };
        let seen = |count: u16| History { trials: (0..count).map(run).collect(), ..History::default() };
        let shares = [0, 1, 3, 5].map(|count| weights(&tables, &[2.0, 0.0], &seen(count))[0]);
        // Before two points are known the odds stand.
        assert!(shares[0] == shares[1] && (shares[0] - 0.88).abs() < 0.01, "{shares:?}");
        assert!(shares[1] > shares[2] && shares[2] > shares[3], "{shares:?}");
        // By hand: squares of 0 and 0.005 beside the belief's 0.0018, to the power of half of 2 runs of belief and 2 beyond the first.
        let odds = 2.0_f64.exp() * (0.0068_f64 / 0.0018).powi(-2);
        assert!((shares[2] - odds / (1.0 + odds)).abs() < 1e-9, "{shares:?}");
        let both = weighted_mean(&tables, &[0.25, 0.75]);
        assert!((both.log_rate(&Point(vec![4])) - 0.15).abs() < 1e-12);
    }
}
