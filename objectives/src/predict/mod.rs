//! The calibrated prediction of a run: our engine's [timeline](crate::timeline::own) if the machine's phases are
//! measured; otherwise MCL's steps with measured kernels in place of γ, as follows.
//!
//! The terms of a step and their messages are those of \[MCL\]: equations (1) and (2) per panel, every layer
//! charged for its own full extent. Ours is the computation: instead of γ times flops it is the fitted
//! time of DGEMM, DTRSM, panel and row swap at the step's real local shape on the fullest process; a message within
//! one process costs nothing; and DEPTH decides whether the update hides the panel ([`Terms::hidden_s`]).
//! Like MCL, the prediction ignores PFACT, RFACT, NBMIN, NDIV, BCAST, SWAP, L1, U, EQUIL, ALIGN and PMAP:
//! candidates that differ only in these have the same time. Without a measured overlap, every
//! DEPTH above 1 is computed as 1, and a split update as none. It assumes equal shares: a run with weights has
//! the time of the run without, and a warning.

mod error;
mod rates;
mod steps;

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use space::candidate::EngineProfile;
use space::machine::{Layer, Machine};
use space::{Candidate, NodeSettings, Unequal, WindowsResult, counted};

use crate::mcl::McLayer;
use crate::settings::time_factor;
use crate::timeline::own::OwnModel;
use crate::whole::{WholeTime, covers_no_cycle, whole_time};
pub use error::ModelError;
use rates::RateTable;
pub(crate) use rates::k_index;
pub use steps::Terms;
use steps::{CandidateSteps, Messages, StepsKey};

/// Maximum number of cached times: some 5 MB.
const KEPT: usize = 1 << 16;

/// The candidate on nodes as they were found.
fn as_found(mut candidate: Candidate) -> Candidate {
    candidate.engine.settings = NodeSettings::default();
    candidate
}

/// What says how two runs, of which windows were measured in turn, compare as wholes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PairTimes {
    /// The windows by themselves: they cover a cycle of the panel owners of both.
    ByWindows,
    /// The timeline with them: the times of both.
    ByTimeline([WholeTime; 2]),
    /// Nothing.
    NotKnown,
}

/// Predicts the time of candidates on one machine. Shared by threads; caches its results.
#[derive(Debug)]
pub struct Predictor {
    rates: RateTable,
    /// Layers between ranks, of one thread each, innermost first.
    layers: Vec<Layer>,
    /// The memory of a rank, if the description has such a layer.
    memory: Option<Layer>,
    cores: usize,
    /// Cores of the largest node.
    node_cores: usize,
    cache: Mutex<HashMap<StepsKey, f64>>,
    /// The timeline model; `None` if the description has no phases.
    own: Option<OwnModel>,
    /// The settings of the nodes that the rates belong to; none where they are not varied.
    found: NodeSettings,
}

impl Predictor {
    /// Factor of βn·NB/Q in the update, [`crate::mcl::Mcl::update_coefficient`].
    const UPDATE_COEFFICIENT: f64 = 2.0;

    /// The predictor of a calibrated machine. A layer of one rank is that rank's memory, as in MCL; it is used for
    /// the backward substitution only, as the measured times of the kernels include their memory traffic.
    ///
    /// # Errors
    /// [`ModelError`] when a kernel has no rate, a rate is malformed, a layer has no latency, or there is no core.
    pub fn new(machine: &Machine) -> Result<Self, ModelError> {
        let cores = machine.nodes.iter().map(|node| node.count.saturating_mul(node.cores)).sum();
        if cores == 0 {
            return Err(ModelError::NoCores);
        }
        if let Some(layer) = machine.layers.iter().find(|layer| layer.alpha_s.is_none()) {
            return Err(ModelError::MissingLatency { layer: layer.name.clone() });
        }
        Ok(Self {
            rates: RateTable::new(&machine.rates)?,
            layers: machine.layers.iter().filter(|layer| layer.ranks > 1).cloned().collect(),
            memory: machine.layers.iter().find(|layer| layer.ranks <= 1).cloned(),
            cores,
            node_cores: machine.nodes.iter().map(|node| node.cores).max().unwrap_or(1),
            cache: Mutex::new(HashMap::new()),
            own: OwnModel::new(machine),
            found: NodeSettings::default(),
        })
    }

    /// The predictor of ranks of unequal speed, the fastest as fast as the calibrated ones. Without phases it ignores speeds and
    /// weights.
    #[must_use]
    pub fn slowed(self, unequal: Unequal) -> Self {
        Self { own: self.own.map(|own| own.slowed(unequal)), ..self }
    }

    /// The predictor of nodes whose settings are varied: the rates belong to those that they were `found` with.
    #[must_use]
    pub fn found_at(self, found: NodeSettings) -> Self {
        Self { found, ..self }
    }

    /// The settings of the nodes that its rates belong to.
    pub fn found(&self) -> NodeSettings {
        self.found
    }

    /// Predicted time of factorization and backward substitution, in seconds; what HPL times.
    pub fn time_s(&self, c: &Candidate) -> f64 {
        if self.found.is_as_found() {
            return self.time_as_found_s(c);
        }
        time_factor(&c.engine.settings, &self.found) * self.time_as_found_s(&as_found(c.clone()))
    }

    fn time_as_found_s(&self, c: &Candidate) -> f64 {
        if let Some(own) = &self.own {
            return own.time_s(&c.canonical(EngineProfile::Ours));
        }
        let key = StepsKey::new(c);
        // After a panic of another thread the map is still valid: it holds finished predictions only.
        let known = self.cache.lock().unwrap_or_else(PoisonError::into_inner).get(&key).copied();
        known.unwrap_or_else(|| {
            let time_s = self.terms(&key).total_s();
            let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
            if cache.len() >= KEPT {
                cache.clear();
            }
            cache.insert(key, time_s);
            time_s
        })
    }

    /// Predicted times of the `count` candidates of a search, given by `candidate`, on `threads` threads. The times of the best
    /// are those of [`time_s`](Self::time_s), the others are approximate.
    pub fn screen(&self, count: usize, candidate: impl Fn(usize) -> Candidate, threads: usize) -> Vec<f64> {
        if self.found.is_as_found() {
            return self.screen_as_found(count, candidate, threads);
        }
        // Candidates that differ in their settings alone follow each other.
        let (mut distinct, mut places) = (Vec::<Candidate>::new(), Vec::with_capacity(count));
        for index in 0..count {
            let candidate = candidate(index);
            let factor = time_factor(&candidate.engine.settings, &self.found);
            let candidate = as_found(candidate);
            if distinct.last() != Some(&candidate) {
                distinct.push(candidate);
            }
            places.push((distinct.len() - 1, factor));
        }
        let times = self.screen_as_found(distinct.len(), |index| distinct[index].clone(), threads);
        places.into_iter().map(|(place, factor)| factor * times[place]).collect()
    }

    fn screen_as_found(&self, count: usize, candidate: impl Fn(usize) -> Candidate, threads: usize) -> Vec<f64> {
        match &self.own {
            Some(own) => own.screen(count, |i| candidate(i).canonical(EngineProfile::Ours), threads),
            None => (0..count).map(|i| self.time_as_found_s(&candidate(i))).collect(),
        }
    }

    /// The time from all steps on all ranks: the reference for screening.
    pub fn exact_time_s(&self, c: &Candidate) -> f64 {
        match &self.own {
            Some(own) => own.exact_time_s(&c.canonical(EngineProfile::Ours)),
            None => self.time_s(c),
        }
    }

    /// The time of the whole run of `candidate` of which `run` has measured windows that cover no cycle of panel owners, by these and the
    /// timeline's steps. `None` where they cover it, without phases, and for runs whose timeline would take long.
    pub fn whole_time(&self, candidate: &Candidate, run: &WindowsResult) -> Option<WholeTime> {
        if covers_no_cycle(&candidate.hpl, run) { self.by_timeline(candidate, run) } else { None }
    }

    /// The times of two whole runs of which windows were measured in turn, unless these say the ratio of the whole by themselves.
    pub fn whole_times(&self, pair: [(&Candidate, &WindowsResult); 2]) -> PairTimes {
        if !pair.iter().any(|(candidate, run)| covers_no_cycle(&candidate.hpl, run)) {
            return PairTimes::ByWindows;
        }
        match pair.map(|(candidate, run)| self.by_timeline(candidate, run)) {
            [Some(candidate), Some(reference)] => PairTimes::ByTimeline([candidate, reference]),
            _ => PairTimes::NotKnown,
        }
    }

    /// Whether it has a timeline of runs like that of `candidate`.
    pub fn has_timeline(&self, candidate: &Candidate) -> bool {
        self.own.as_ref().is_some_and(|own| own.is_short(candidate))
    }

    fn by_timeline(&self, candidate: &Candidate, run: &WindowsResult) -> Option<WholeTime> {
        whole_time(run, &self.own.as_ref()?.short_timeline(&as_found(candidate.canonical(EngineProfile::Ours)))?)
    }

    /// Predicted score in GFLOP/s.
    pub fn rate_gflops(&self, c: &Candidate) -> f64 {
        space::flops::rate_gflops(c.hpl.n, self.time_s(c))
    }

    /// The predicted time, term by term. The engine's phases include their messages, and the update includes the triangular
    /// solve: these times are in `fact_s`, `rs_s` and `gemm_s`.
    pub fn breakdown(&self, c: &Candidate) -> Terms {
        let Some(own) = &self.own else { return self.terms(&StepsKey::new(c)) };
        let timeline = own.timeline(&c.canonical(EngineProfile::Ours));
        let sums = timeline.sums();
        let terms = Terms {
            fact_s: sums.fact_s,
            lbcast_s: sums.lbcast_s,
            rs_s: sums.rs_s,
            gemm_s: sums.update_s,
            trsv_s: timeline.trsv_s,
            ..Terms::default()
        };
        Terms { hidden_s: terms.total_s() - timeline.total_s, ..terms }
    }

    /// Warnings about sizes outside the measured range of the rates; empty inside it.
    ///
    /// Only the largest sizes of a run count: every run's last steps are small.
    pub fn warnings(&self, c: &Candidate) -> Vec<String> {
        if let Some(own) = &self.own {
            return own.warnings(c);
        }
        let key = StepsKey::new(c);
        let mut warnings = self.rates.warnings(key.threads, &CandidateSteps::new(&key).largest());
        let ranks = key.p * key.q;
        if ranks > 1 && self.layers(&key).iter().all(|layer| layer.ranks < ranks) {
            warnings.push(format!("no [[layer]] joins {ranks} ranks; the outermost one is used for all of them"));
        }
        if ranks * key.threads > self.cores {
            warnings.push(format!(
                "{} × {} share {}; kernel times are multiplied by this ratio",
                counted(ranks, "rank"),
                counted(key.threads, "thread"),
                counted(self.cores, "core")
            ));
        }
        if !c.engine.weights.is_empty() {
            warnings.push("weights are not modelled: this is the time with equal shares".to_owned());
        }
        warnings
    }

    fn terms(&self, key: &StepsKey) -> Terms {
        let shared = (key.p * key.q * key.threads) as f64 / self.cores as f64;
        let kernels = self.rates.at(key.threads, key.nb as f64, shared.max(1.0));
        let messages = Messages::new(&self.layers(key), key, Self::UPDATE_COEFFICIENT);
        // The description counts ranks of one thread; a rank of several reads its memory by all of them.
        let readers = key.threads.clamp(1, self.node_cores.max(1));
        let on_node = key.joined(self.node_cores).saturating_mul(readers);
        let of_thread_s = self.memory.as_ref().map_or(0.0, |layer| McLayer::of(layer, 0.0, on_node).beta_s);
        let memory_s_per_word = of_thread_s / readers as f64;
        CandidateSteps::new(key).terms(&kernels, &messages, memory_s_per_word)
    }

    /// The layers of a run: each joins its ranks, and those in the layer inside or on a node share a link.
    fn layers(&self, key: &StepsKey) -> Vec<McLayer> {
        let mut inside = self.node_cores;
        let of_run = |layer: &Layer| {
            let senders = key.joined(inside);
            inside = inside.max(layer.ranks);
            McLayer { ranks: key.joined(layer.ranks), ..McLayer::of(layer, layer.alpha_s.unwrap_or(0.0), senders) }
        };
        self.layers.iter().map(of_run).collect()
    }
}

#[cfg(test)]
mod tests;
