//! The timeline of our own engine on a calibrated machine.
//!
//! It walks the tasks of [`hpl::plan`], costs each by what its phase was measured to take per unit of
//! work ([`EnginePhase`](space::machine::EnginePhase)), and moves the ranks' clocks as the engine does: some threads
//! factor beside the update while the others take slabs, rows travel during the update of the other section, who
//! needs a panel or rows waits for them. It sees N, NB, the grid, threads, PFACT, RFACT, NBMIN, NDIV, BCAST, DEPTH,
//! SWAP, PMAP, the split and the weights. It is blind to L1, U, EQUIL and ALIGN, and counts the same operations for
//! left-looking and Crout recursions.
//!
//! How much of a run is walked (`sampling`) decides what a prediction costs: all steps on all ranks, or ranks that are
//! alike once and some of the steps. `screening` predicts all candidates of a search: roughly, then the best of them well.

mod clock;
mod forms;
mod learn;
mod network;
mod quiet;
mod rates;
mod refine;
mod routes;
mod sampling;
mod screening;
mod tasks;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use hpl::plan::layout::Layout;
use hpl::plan::recursion::Recipe;
use space::machine::Machine;
use space::{Bcast, Candidate, HplParams, Unequal};

pub use self::learn::{LearnError, Learned, learn};
pub use self::refine::{Observed, refined};

use self::clock::{Costs, Variant, walk};
use self::forms::{PanelWork, dot};
use self::network::{Links, Network};
use self::rates::RateBook;
use self::routes::Routes;
use self::sampling::{Detail, Sampling};
use self::tasks::{FactRows, Maker};
use super::{Step, Timeline};

/// Times, and panels, that are remembered: some 8 MB.
const KEPT: usize = 16_384;

/// Steps times ranks up to which every rank is walked where all steps are asked for.
const EVERY_RANK: usize = 1 << 20;

/// The calibrated model of one machine. Shared by threads; remembers what it was asked lately.
#[derive(Debug)]
pub struct OwnModel {
    book: RateBook,
    cores: usize,
    network: Network,
    /// Which ranks are slower than those that were measured.
    unequal: Unequal,
    times: Mutex<HashMap<Candidate, f64>>,
    panels: Mutex<HashMap<(Recipe, usize), Arc<PanelWork>>>,
}

impl OwnModel {
    /// The model of a machine whose phases are known; `None` for one without.
    pub fn new(machine: &Machine) -> Option<Self> {
        let cores = machine.nodes.iter().map(|node| node.count.saturating_mul(node.cores));
        Some(Self {
            book: RateBook::new(machine)?,
            cores: cores.fold(0, usize::saturating_add).max(1),
            network: Network::new(machine),
            unequal: Unequal::default(),
            times: Mutex::default(),
            panels: Mutex::default(),
        })
    }

    /// The model of ranks of unequal speed: each takes as much longer for all that it computes than the ranks whose phases
    /// were measured as it is slower than the fastest. Runs of which `unequal` does not speak are predicted as on equal ones.
    #[must_use]
    pub fn slowed(self, unequal: Unequal) -> Self {
        Self { unequal, times: Mutex::default(), ..self }
    }

    /// Predicted time of factorization and back substitution, in seconds. Of long runs and many ranks some are
    /// walked: see the tests for what that changes.
    pub fn time_s(&self, candidate: &Candidate) -> f64 {
        let known = self.times.lock().unwrap_or_else(PoisonError::into_inner).get(candidate).copied();
        known.unwrap_or_else(|| {
            let time_s = self.one_time_s(candidate, Detail::FINE);
            let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
            if times.len() >= KEPT {
                times.clear();
            }
            times.insert(candidate.clone(), time_s);
            time_s
        })
    }

    /// The same by all steps on all ranks, however long that takes and nothing remembered: what [`OwnModel::time_s`] is
    /// judged by.
    pub fn exact_time_s(&self, candidate: &Candidate) -> f64 {
        self.one_time_s(candidate, Detail::EXACT)
    }

    /// The same of ranks that take so many times as long, by process row, then column, for one prediction.
    ///
    /// # Panics
    /// When there is not one factor per rank.
    pub fn unequal_time_s(&self, candidate: &Candidate, slowness: &[f64]) -> f64 {
        assert_eq!(slowness.len(), candidate.hpl.ranks(), "a factor per rank");
        let run = Run { slowness: slowness.to_vec(), ..Run::new(self, candidate) };
        run.times_s(run.layout(), &[candidate.hpl], Detail::FINE, None).0[0]
    }

    /// The predicted run with the phases of every step. Where steps times ranks are very many, equal process rows and
    /// columns are walked as in [`OwnModel::time_s`].
    pub fn timeline(&self, candidate: &Candidate) -> Timeline {
        let hpl = &candidate.hpl;
        let many = hpl.n.div_ceil(hpl.nb).saturating_mul(hpl.ranks()) > EVERY_RANK;
        let (run, mut steps) = (Run::new(self, candidate), Vec::new());
        let detail = if many { Detail::ALL_STEPS } else { Detail::EXACT };
        let total_s = run.times_s(run.layout(), &[*hpl], detail, Some(&mut steps)).0[0];
        Timeline { total_s, steps, trsv_s: run.trsv_s() }
    }

    /// Where the model says less than it seems to.
    pub fn warnings(&self, candidate: &Candidate) -> Vec<String> {
        let (hpl, threads) = (&candidate.hpl, candidate.engine.threads);
        let rates = self.book.of(threads);
        let mut warnings = Vec::new();
        if rates.threads != threads {
            warnings.push(format!(
                "phases were not measured with {threads} threads per rank; taken from {} threads",
                rates.threads
            ));
        }
        if hpl.p > 1 && !rates.exchange_measured {
            warnings
                .push("no run with P > 1 was measured; row exchanges are taken as twice a swap in place".to_owned());
        }
        if self.network.lacks_links(hpl.ranks(), threads) {
            warnings.push(
                "no [[layer]] joins several nodes; messages between them are taken to cost as little as within one"
                    .to_owned(),
            );
        }
        if self.shared(candidate) > 1.0 {
            let cores = self.cores;
            let ranks = hpl.ranks();
            warnings.push(format!(
                "{ranks} ranks × {threads} threads share {cores} cores; all is taken as that much slower"
            ));
        }
        warnings
    }

    /// How much slower everything is because threads share cores, at least 1.
    fn shared(&self, candidate: &Candidate) -> f64 {
        ((candidate.hpl.ranks() * candidate.engine.threads) as f64 / self.cores as f64).max(1.0)
    }

    fn panel(&self, recipe: Recipe, jb: usize) -> Arc<PanelWork> {
        let mut known = self.panels.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KEPT {
            known.clear();
        }
        Arc::clone(known.entry((recipe, jb)).or_insert_with(|| Arc::new(PanelWork::new(&recipe, jb))))
    }

    fn one_time_s(&self, candidate: &Candidate, detail: Detail) -> f64 {
        let run = Run::new(self, candidate);
        run.times_s(run.layout(), &[candidate.hpl], detail, None).0[0]
    }
}

/// `hpl` with one value of everything that the walks of one set of tasks may differ in.
fn without_variant(hpl: &HplParams) -> HplParams {
    let usual = HplParams::baseline(hpl.n, hpl.p, hpl.q);
    HplParams { pfact: usual.pfact, rfact: usual.rfact, nbmin: 1, ndiv: 2, bcast: usual.bcast, ..*hpl }
}

/// A run to be predicted.
struct Run<'a> {
    model: &'a OwnModel,
    candidate: &'a Candidate,
    links: Links,
    /// How many times as long each rank computes as those that were measured; none where they are alike.
    slowness: Vec<f64>,
}

impl<'a> Run<'a> {
    fn new(model: &'a OwnModel, candidate: &'a Candidate) -> Self {
        let links = model.network.links(&candidate.hpl, candidate.engine.threads);
        let slowness = model.unequal.slowness(&candidate.hpl, candidate.engine.threads);
        Self { model, candidate, links, slowness }
    }

    fn trsv_s(&self) -> f64 {
        let (hpl, threads) = (&self.candidate.hpl, self.candidate.engine.threads.max(1));
        let rates = self.model.book.of(threads);
        dot(&forms::trsv(hpl.n, hpl.nb, hpl.ranks(), threads), &rates.trsv) * self.model.shared(self.candidate)
    }

    fn layout(&self) -> Layout {
        Layout::of(&self.candidate.hpl, &self.candidate.engine.weights)
    }

    /// Seconds of factorization and back substitution of each of `variants`; the steps of the first go to `record`. Gives the
    /// run's `layout` back.
    fn times_s(
        &self,
        layout: Layout,
        variants: &[HplParams],
        detail: Detail,
        record: Option<&mut Vec<Step>>,
    ) -> (Vec<f64>, Layout) {
        let Candidate { hpl, engine } = self.candidate;
        if hpl.n == 0 {
            return (vec![0.0; variants.len()], layout);
        }
        let (model, threads) = (self.model, engine.threads.max(1));
        let sampling = Sampling::new(self.candidate, layout, !self.slowness.is_empty(), detail);
        let rates = model.book.of(threads);
        let shared = model.shared(self.candidate);
        let maker = Maker { sampling: &sampling, candidate: self.candidate, rates, shared, slowness: &self.slowness };
        let fact_s = |work: &PanelWork, part: &FactRows| {
            let rates = model.book.of(part.threads);
            let (pivot, words) = (self.links.pivot, 2.0 * work.columns() + 4.0);
            let messages_s = work.columns() * (pivot.alpha_s + words * pivot.beta_s);
            dot(&work.terms(part.mp, part.owns_diagonal, hpl.p), &rates.fact) + messages_s
        };
        let costs = Costs { fact_s: &fact_s, links: &self.links, threads };
        let last = (hpl.n - 1) % hpl.nb + 1;
        let mut routes: Vec<(Bcast, Routes)> = Vec::new();
        let mut panels = Vec::with_capacity(variants.len());
        for variant in variants {
            if routes.iter().all(|(bcast, _)| *bcast != variant.bcast) {
                routes.push((variant.bcast, Routes::new(variant.bcast, hpl.q, sampling.columns, &self.links.bcast)));
            }
            let recipe = Recipe::new(variant);
            panels.push([hpl.nb, last].map(|jb| model.panel(recipe, jb)));
        }
        let walked: Vec<Variant<'_>> = variants
            .iter()
            .zip(&panels)
            .map(|(hpl, panels)| Variant {
                panels: [panels[0].as_ref(), panels[1].as_ref()],
                routes: &routes.iter().find(|(bcast, _)| *bcast == hpl.bcast).expect("made above").1,
            })
            .collect();
        let trsv_s = self.trsv_s();
        let times = walk(&maker, &costs, &walked, record).into_iter().map(|end_s| end_s + trsv_s).collect();
        (times, sampling.plan.layout)
    }
}
