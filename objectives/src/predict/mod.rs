//! The calibrated prediction of a run: our engine's [timeline](crate::timeline::own) where the machine's phases are
//! measured; otherwise MCL's steps with its measured kernels in place of γ, as follows.
//!
//! From \[MCL\] come the terms of a step and their messages: equations (1) and (2) per panel, every layer
//! charged on its own full extent. Ours is the substitution: computing is not γ times flops but the fitted
//! time of DGEMM, DTRSM, panel and row swap at the step's real local shape on the fullest process; what needs
//! no message costs none; and DEPTH decides whether the panel hides behind the update ([`Terms::hidden_s`]).
//! Like MCL, the prediction is blind to PFACT, RFACT, NBMIN, NDIV, BCAST, SWAP, L1, U, EQUIL, ALIGN and PMAP:
//! candidates that differ only there get the same time. So it is to what it has no measured overlap for: every
//! DEPTH above 1 counts as 1, and the split update as none. It knows equal shares only: a run with weights gets
//! the time of the run without, and a warning.

mod error;
mod rates;
mod steps;

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use space::candidate::EngineProfile;
use space::machine::Machine;
use space::{Candidate, Unequal};

use crate::mcl::McLayer;
use crate::timeline::own::OwnModel;
pub use error::ModelError;
use rates::RateTable;
pub(crate) use rates::k_index;
pub use steps::Terms;
use steps::{Key, Messages, Run};

/// Times that are remembered: some 5 MB.
const KEPT: usize = 1 << 16;

/// Predicts the time of candidates on one machine. Shared by threads; remembers what it has computed.
#[derive(Debug)]
pub struct Predictor {
    rates: RateTable,
    /// Layers between ranks, innermost first.
    layers: Vec<McLayer>,
    /// Seconds per word that a rank streams from its memory; 0 when the description has no such layer.
    memory_s_per_word: f64,
    cores: usize,
    cache: Mutex<HashMap<Key, f64>>,
    /// Where phases are known.
    own: Option<OwnModel>,
}

impl Predictor {
    /// Factor of βn·NB/Q in the update, [`crate::mcl::Mcl::update_coefficient`].
    const UPDATE_COEFFICIENT: f64 = 2.0;

    /// The predictor of a calibrated machine. A layer of one rank is that rank's memory, as in MCL; it serves
    /// the backward substitution, as the kernels' measured times hold their own memory traffic.
    ///
    /// # Errors
    /// [`ModelError`] when a kernel has no rate, a rate is malformed, a layer has no latency, or there is no core.
    pub fn new(machine: &Machine) -> Result<Self, ModelError> {
        let cores = machine.nodes.iter().map(|node| node.count.saturating_mul(node.cores)).sum();
        if cores == 0 {
            return Err(ModelError::NoCores);
        }
        let layers = machine.layers.iter().map(|layer| match layer.alpha_s {
            Some(alpha_s) => Ok(McLayer::of(layer, alpha_s)),
            None => Err(ModelError::MissingLatency { layer: layer.name.clone() }),
        });
        let layers: Vec<McLayer> = layers.collect::<Result<_, _>>()?;
        let (memory, layers): (Vec<McLayer>, Vec<McLayer>) = layers.into_iter().partition(|layer| layer.ranks <= 1);
        Ok(Self {
            rates: RateTable::new(&machine.rates)?,
            layers,
            memory_s_per_word: memory.first().map_or(0.0, |layer| layer.beta_s),
            cores,
            cache: Mutex::new(HashMap::new()),
            own: OwnModel::new(machine),
        })
    }

    /// The predictor of ranks of unequal speed, the fastest as those that were calibrated. Without phases it stays blind to
    /// speeds and weights.
    #[must_use]
    pub fn slowed(self, unequal: Unequal) -> Self {
        Self { own: self.own.map(|own| own.slowed(unequal)), ..self }
    }

    /// Predicted time of factorization and backward substitution, in seconds; what HPL times.
    pub fn time_s(&self, c: &Candidate) -> f64 {
        if let Some(own) = &self.own {
            return own.time_s(&c.canonical(EngineProfile::Ours));
        }
        let key = Key::new(c);
        // A panic of another thread leaves the map whole: it holds finished predictions only.
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

    /// Predicted times of the `count` candidates of a search, which `candidate` is asked for, on `threads` threads: the best of
    /// them as [`time_s`](Self::time_s) has them, the others nearly.
    pub fn screen(&self, count: usize, candidate: impl Fn(usize) -> Candidate, threads: usize) -> Vec<f64> {
        match &self.own {
            Some(own) => own.screen(count, |i| candidate(i).canonical(EngineProfile::Ours), threads),
            None => (0..count).map(|i| self.time_s(&candidate(i))).collect(),
        }
    }

    /// The time by all steps on all ranks, however long that takes: what screening is judged by.
    pub fn exact_time_s(&self, c: &Candidate) -> f64 {
        match &self.own {
            Some(own) => own.exact_time_s(&c.canonical(EngineProfile::Ours)),
            None => self.time_s(c),
        }
    }

    /// Predicted score in GFLOP/s.
    pub fn rate_gflops(&self, c: &Candidate) -> f64 {
        space::flops::rate_gflops(c.hpl.n, self.time_s(c))
    }

    /// The predicted time, term by term. Phases of the engine do not tell messages from what they wait for, nor
    /// triangular solves from products: these are in `fact_s`, `rs_s` and `gemm_s`.
    pub fn breakdown(&self, c: &Candidate) -> Terms {
        let Some(own) = &self.own else { return self.terms(&Key::new(c)) };
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

    /// Where the prediction leaves the range that the rates were measured in; empty inside it.
    ///
    /// Only the largest sizes of a run count: every run's last steps are small.
    pub fn warnings(&self, c: &Candidate) -> Vec<String> {
        if let Some(own) = &self.own {
            return own.warnings(c);
        }
        let key = Key::new(c);
        let mut warnings = self.rates.warnings(key.threads, &Run::new(&key).largest());
        let ranks = key.p * key.q;
        if ranks > 1 && self.layers.iter().all(|layer| layer.ranks < ranks) {
            warnings.push(format!("no [[layer]] joins {ranks} ranks; the outermost one is taken for all of them"));
        }
        if ranks * key.threads > self.cores {
            warnings.push(format!(
                "{ranks} ranks × {} threads share {} cores; kernels are taken as that much slower",
                key.threads, self.cores
            ));
        }
        if !c.engine.weights.is_empty() {
            warnings.push("weights are not modelled: this is the time with equal shares".to_owned());
        }
        warnings
    }

    fn terms(&self, key: &Key) -> Terms {
        let shared = (key.p * key.q * key.threads) as f64 / self.cores as f64;
        let kernels = self.rates.at(key.threads, key.nb as f64, shared.max(1.0));
        let messages = Messages::new(&self.layers, key, Self::UPDATE_COEFFICIENT);
        Run::new(key).terms(&kernels, &messages, self.memory_s_per_word)
    }
}

#[cfg(test)]
mod tests;
