//! The model of a session: as calibrated, then corrected by the phases of the session's runs; its word on the candidates, by
//! what earlier sessions saw of them.

use std::time::Instant;

use objectives::predict::Predictor;
use objectives::timeline::own::{Observed, refined};
use space::Candidates;
use space::machine::Machine;
use space::result::PhaseTime;

use crate::prior;
use crate::record::{Fidelity, Row};
use crate::strategy::Prior;
use crate::strategy::informed::{Group, Informed};

/// Part of the time left that making the prior anew may take.
const WORTH: f64 = 0.01;

/// Runs that the model learns from, at most: after so many its phases have settled.
const LEARNED: usize = 64;

/// What the search expects of candidates.
///
/// It follows from the calibration and the record: the first 1, 2, 4, … and at most 64 runs are looked at, however often it was asked in
/// between. Where making the prior anew takes more than a hundredth of the time that is left, it stays as it is.
pub struct SessionModel<'a> {
    domain: &'a dyn Candidates,
    calibrated: &'a Machine,
    /// Runs of earlier sessions.
    earlier: Vec<Group>,
    /// Runs of this one that it has learned from.
    learned: usize,
    /// Seconds that making the prior took.
    made_s: f64,
    /// Predicts any candidate.
    pub predictor: Predictor,
    /// Its word on the domain.
    pub prior: Box<dyn Prior + 'a>,
    /// Whether earlier sessions had a say in it.
    pub informed: bool,
}

impl<'a> SessionModel<'a> {
    /// The model as calibrated.
    pub fn new(domain: &'a dyn Candidates, calibrated: &'a Machine, predictor: Predictor, earlier: Vec<Group>) -> Self {
        let clock = Instant::now();
        let (prior, informed) = word(domain, &predictor, &earlier);
        let made_s = clock.elapsed().as_secs_f64();
        Self { domain, calibrated, earlier, learned: 0, made_s, predictor, prior, informed }
    }

    /// Learns from `rows` when they are twice as many as before; `phases` are those of a trial.
    pub fn learn(&mut self, rows: &[Row], left_s: f64, phases: impl Fn(u64) -> Option<Vec<PhaseTime>>) {
        if self.calibrated.phases.is_empty() || self.made_s > WORTH * left_s {
            return;
        }
        let usable: Vec<&Row> = rows.iter().filter(|row| row.passed && row.fidelity != Fidelity::Timeline).collect();
        let count = usable.len().checked_ilog2().map_or(0, |log2| 1 << log2).min(LEARNED);
        if count <= self.learned {
            return;
        }
        self.learned = count;
        // Another engine tells no phases.
        let observed = |row: &&Row| Some(Observed { candidate: row.candidate(), phases: phases(row.trial)? });
        let observed: Vec<Observed> = usable[..count].iter().filter_map(observed).collect();
        if observed.is_empty() {
            return;
        }
        let slowness = self.domain.spec().unequal.slowness();
        if let Ok(predictor) = Predictor::new(&refined(self.calibrated, &observed, &slowness)) {
            let predictor = predictor.slowed(slowness);
            (self.prior, self.informed) = word(self.domain, &predictor, &self.earlier);
            self.predictor = predictor;
        }
    }
}

/// The model's word on all points of `domain`, corrected by earlier runs where two of them can be compared.
fn word<'a>(domain: &'a dyn Candidates, predictor: &Predictor, earlier: &[Group]) -> (Box<dyn Prior + 'a>, bool) {
    let model = prior::table(domain, predictor);
    if earlier.is_empty() {
        return (Box::new(model), false);
    }
    match Informed::new(domain, model.clone(), earlier) {
        Some(informed) => (Box::new(informed), true),
        None => (Box::new(model), false),
    }
}

#[cfg(test)]
mod tests {
    use objectives::timeline::Step;
    use objectives::timeline::own::OwnModel;
    use space::domain::{DomainSpec, HplDomain, default_candidate};
    use space::flops::rate_gflops;
    use space::machine::{EnginePhase, Node, PhaseRate, Rate, RateKernel};
    use space::{KernelChoice, Unequal};

    use super::*;
    use crate::record::arbitrary::row_of;

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
            rates: [RateKernel::Dgemm, RateKernel::Dtrsm, RateKernel::Panel, RateKernel::Swap].map(rate).to_vec(),
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
            unequal: Unequal::default(),
        };
        let (domain, machine) = (HplDomain::new(&spec).unwrap(), machine());
        let mut model = SessionModel::new(&domain, &machine, Predictor::new(&machine).unwrap(), Vec::new());
        let candidate = default_candidate(&spec);
        let timeline = OwnModel::new(&machine).unwrap().timeline(&candidate);
        let slow = |_| {
            let time = |(k, step): (usize, &Step)| PhaseTime {
                step: k as u32,
                fact_s: 1.3 * step.fact_s,
                rs_s: 1.3 * step.rs_s,
                update_s: 1.3 * step.update_s,
                ..PhaseTime::default()
            };
            Some(timeline.steps.iter().enumerate().map(time).collect())
        };
        let rows: Vec<Row> = (0..4).map(|trial| row_of(trial, &candidate)).collect();
        let mut times = vec![model.predictor.time_s(&candidate)];
        for count in 1..=4 {
            model.learn(&rows[..count], 1e6, slow);
            times.push(model.predictor.time_s(&candidate));
            let point = domain.point(&candidate).unwrap();
            let rate = rate_gflops(500, times[count]).ln();
            assert!((model.prior.log_rate(&point) - rate).abs() < 1e-9, "the table follows");
        }
        assert!(times[0] < times[1] && times[1] < times[2] && times[2] == times[3] && times[3] < times[4], "{times:?}");
        assert!(times[4] < 1.3 * times[0], "{times:?}");
        let mut short = SessionModel::new(&domain, &machine, Predictor::new(&machine).unwrap(), Vec::new());
        short.learn(&rows, 0.0, slow);
        assert_eq!(short.predictor.time_s(&candidate), times[0], "no time is left for a new prior");
    }
}
