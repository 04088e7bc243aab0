//! The timeline of our own engine on a calibrated machine.
//!
//! It walks the tasks of [`hpl::plan`], takes the time of each task from the measured rates of its phase
//! ([`EnginePhase`](space::machine::EnginePhase)), and advances the ranks' clocks as the engine does: some threads
//! factor the next panel while the others update slabs, rows are exchanged during the update of the other section, and
//! a rank that needs a panel or rows waits for them. The model depends on N, NB, the grid, threads, PFACT, RFACT, NBMIN,
//! NDIV, BCAST, DEPTH, SWAP, PMAP, the split and the weights. It ignores L1, U, EQUIL and ALIGN, and counts the same
//! operations for left-looking and Crout recursions.
//!
//! The walked part of a run (`sampling`) decides how long a prediction takes: all steps on all ranks, or one of each set
//! of equal ranks and some of the steps. `screening` predicts all candidates of a search: all coarsely, then the best finely.

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
use space::{Bcast, Candidate, HplParams, Unequal, counted};

pub use self::learn::{LearnError, Learned, learn};
pub use self::refine::{Observed, refined};

use self::clock::{CommonCosts, Variant, walk};
use self::forms::{PanelWork, dot};
use self::network::{MessageCosts, Network};
use self::rates::RateBook;
use self::routes::Routes;
use self::sampling::{SampleSize, Sampling};
use self::tasks::{FactRows, Maker};
use super::{StepTimes, Timeline};

/// Maximum number of cached times: what a look at a session asks again and again. Each may take 1 KB.
const KEPT_TIMES: usize = 1024;

/// Maximum number of cached panels.
const KEPT_PANELS: usize = 16_384;

/// Up to this number of steps times ranks, a timeline of all steps walks every rank.
const EVERY_RANK: usize = 1 << 22;

/// Steps times walked ranks that take some ten seconds.
const MOST_RANK_STEPS: usize = 1 << 26;

/// The calibrated model of one machine. Shared by threads; caches recent predictions.
#[derive(Debug)]
pub struct OwnModel {
    book: RateBook,
    cores: usize,
    network: Network,
    /// Relative speeds of the ranks; the fastest ones are as fast as the measured ones.
    unequal: Unequal,
    times: Mutex<HashMap<Candidate, f64>>,
    panels: Mutex<HashMap<(Recipe, usize), Arc<PanelWork>>>,
}

impl OwnModel {
    /// The model of a machine; `None` if its description has no measured phases.
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

    /// The model of ranks of unequal speed. The measured phases are those of the fastest rank; a slower rank takes longer for
    /// all computation, by the ratio of the speeds. Runs for which `unequal` has no speeds are predicted with equal ranks.
    #[must_use]
    pub fn slowed(self, unequal: Unequal) -> Self {
        Self { unequal, times: Mutex::default(), ..self }
    }

    /// Predicted time of factorization and back substitution, in seconds. Long runs and large grids are sampled; the tests
    /// bound the error of this.
    pub fn time_s(&self, candidate: &Candidate) -> f64 {
        let known = self.times.lock().unwrap_or_else(PoisonError::into_inner).get(candidate).copied();
        known.unwrap_or_else(|| {
            let time_s = self.one_time_s(candidate, SampleSize::FINE);
            let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
            if times.len() >= KEPT_TIMES {
                times.clear();
            }
            times.insert(candidate.clone(), time_s);
            time_s
        })
    }

    /// Time of factorization and back substitution in seconds, from all steps and strips on all ranks: the reference for
    /// [`OwnModel::time_s`].
    pub fn exact_time_s(&self, candidate: &Candidate) -> f64 {
        self.one_time_s(candidate, SampleSize::EACH_STRIP)
    }

    /// [`OwnModel::time_s`] of ranks whose computation takes `slowness` times as long, by process row, then column.
    ///
    /// # Panics
    /// When there is not one factor per rank.
    pub fn unequal_time_s(&self, candidate: &Candidate, slowness: &[f64]) -> f64 {
        assert_eq!(slowness.len(), candidate.hpl.ranks(), "a factor per rank");
        let run = PredictedRun { slowness: slowness.to_vec(), ..PredictedRun::new(self, candidate) };
        run.times_s(run.layout(), &[candidate.hpl], SampleSize::FINE, None).0[0]
    }

    /// The predicted run with the phases of every step. If steps times ranks are very many, equal process rows and columns
    /// are sampled as in [`OwnModel::time_s`].
    pub fn timeline(&self, candidate: &Candidate) -> Timeline {
        let hpl = &candidate.hpl;
        let many = hpl.n.div_ceil(hpl.nb).saturating_mul(hpl.ranks()) > EVERY_RANK;
        let (run, mut steps) = (PredictedRun::new(self, candidate), Vec::new());
        let detail = if many { SampleSize::ALL_STEPS } else { SampleSize::EXACT };
        let total_s = run.times_s(run.layout(), &[*hpl], detail, Some(&mut steps)).0[0];
        Timeline { total_s, steps, trsv_s: run.trsv_s() }
    }

    /// [`OwnModel::timeline`], unless it would take long to compute.
    pub fn short_timeline(&self, candidate: &Candidate) -> Option<Timeline> {
        self.is_short(candidate).then(|| self.timeline(candidate))
    }

    /// Whether its timeline takes little time.
    pub fn is_short(&self, candidate: &Candidate) -> bool {
        self.rank_steps(candidate) <= MOST_RANK_STEPS
    }

    /// Steps times ranks that a timeline of a large run walks.
    fn rank_steps(&self, candidate: &Candidate) -> usize {
        let run = PredictedRun::new(self, candidate);
        let sampling = run.sampling(run.layout(), SampleSize::ALL_STEPS);
        sampling.steps.len() * sampling.columns * sampling.rows()
    }

    /// Limits of the model for this candidate.
    pub fn warnings(&self, candidate: &Candidate) -> Vec<String> {
        let (hpl, threads) = (&candidate.hpl, candidate.engine.threads);
        let rates = self.book.of(threads);
        let mut warnings = Vec::new();
        if rates.threads != threads {
            warnings.push(format!(
                "phases were not measured with {} per rank; those of {} are used",
                counted(threads, "thread"),
                counted(rates.threads, "thread")
            ));
        }
        if hpl.p > 1 && !rates.exchange_measured {
            warnings.push(
                "no run with P > 1 was measured; a row exchange is assumed to cost twice a swap in place".to_owned(),
            );
        }
        if self.network.lacks_links(hpl.ranks(), threads) {
            warnings.push(
                "no [[layer]] joins several nodes; messages between nodes are assumed to cost the same as within a node"
                    .to_owned(),
            );
        }
        if self.shared(candidate) > 1.0 {
            warnings.push(format!(
                "{} × {} share {}; all times are multiplied by this ratio",
                counted(hpl.ranks(), "rank"),
                counted(threads, "thread"),
                counted(self.cores, "core")
            ));
        }
        warnings
    }

    /// Factor on all times because threads share cores, at least 1.
    fn shared(&self, candidate: &Candidate) -> f64 {
        ((candidate.hpl.ranks() * candidate.engine.threads) as f64 / self.cores as f64).max(1.0)
    }

    fn panel(&self, recipe: Recipe, jb: usize) -> Arc<PanelWork> {
        let mut known = self.panels.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KEPT_PANELS {
            known.clear();
        }
        Arc::clone(known.entry((recipe, jb)).or_insert_with(|| Arc::new(PanelWork::new(&recipe, jb))))
    }

    fn one_time_s(&self, candidate: &Candidate, detail: SampleSize) -> f64 {
        let run = PredictedRun::new(self, candidate);
        run.times_s(run.layout(), &[candidate.hpl], detail, None).0[0]
    }
}

/// `hpl` with fixed values of the parameters that may differ between variants with the same tasks.
fn without_variant(hpl: &HplParams) -> HplParams {
    let usual = HplParams::baseline(hpl.n, hpl.p, hpl.q);
    HplParams { pfact: usual.pfact, rfact: usual.rfact, nbmin: 1, ndiv: 2, bcast: usual.bcast, ..*hpl }
}

/// A run to predict.
struct PredictedRun<'a> {
    model: &'a OwnModel,
    candidate: &'a Candidate,
    links: MessageCosts,
    /// Factor on the computing time of each rank; empty if all ranks are equal.
    slowness: Vec<f64>,
}

impl<'a> PredictedRun<'a> {
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

    fn sampling(&self, layout: Layout, detail: SampleSize) -> Sampling {
        Sampling::new(self.candidate, layout, &self.slowness, self.model.network.is_free(), detail)
    }

    /// Seconds of factorization and back substitution of each of `variants`; the steps of the first one are added to `record`.
    /// Returns the run's `layout` for reuse.
    fn times_s(
        &self,
        layout: Layout,
        variants: &[HplParams],
        detail: SampleSize,
        record: Option<&mut Vec<StepTimes>>,
    ) -> (Vec<f64>, Layout) {
        let Candidate { hpl, engine } = self.candidate;
        if hpl.n == 0 {
            return (vec![0.0; variants.len()], layout);
        }
        let (model, threads) = (self.model, engine.threads.max(1));
        let sampling = self.sampling(layout, detail);
        let rates = model.book.of(threads);
        let shared = model.shared(self.candidate);
        let maker = Maker { sampling: &sampling, candidate: self.candidate, rates, shared, slowness: &self.slowness };
        let fact_s = |work: &PanelWork, part: &FactRows| {
            let rates = model.book.of(part.threads);
            let (pivot, words) = (self.links.pivot, 2.0 * work.columns() + 4.0);
            let messages_s = work.columns() * (pivot.alpha_s + words * pivot.beta_s);
            dot(&work.terms(part.mp, part.owns_diagonal, hpl.p), &rates.fact) + messages_s
        };
        let costs = CommonCosts { fact_s: &fact_s, links: &self.links, threads };
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
