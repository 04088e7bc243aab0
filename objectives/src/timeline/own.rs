//! The timeline of our own engine on a calibrated machine.
//!
//! It walks the tasks of [`hpl::plan`] on every rank, costs each by what its phase was measured to take per unit of
//! work ([`EnginePhase`](space::machine::EnginePhase)), and moves the ranks' clocks as the engine does: some threads
//! factor beside the update while the others take slabs, rows travel during the update of the other section, who
//! needs a panel or rows waits for them. It sees N, NB, the grid, threads, PFACT, RFACT, NBMIN, NDIV, BCAST, DEPTH,
//! SWAP, the split and the weights. It is blind to L1, U, EQUIL, ALIGN and PMAP, and counts the same operations for
//! left-looking and Crout recursions.

mod clock;
mod forms;
mod learn;
mod quiet;
mod rates;
mod refine;
mod routes;
mod skeleton;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use hpl::recursion::Recipe;
use space::machine::Machine;
use space::{Candidate, HplParams};

pub use self::learn::{LearnError, Learned, learn};
pub use self::refine::{Observed, refined};

use self::clock::{Costs, walk};
use self::forms::{PanelWork, dot, rounds};
use self::rates::RateBook;
use self::routes::Link;
use self::skeleton::Skeleton;
use super::Timeline;

/// Skeletons that are kept: those of one N and all its grids, NB and sections.
const KEPT: usize = 4096;

/// The calibrated model of one machine. Shared by threads; remembers what its candidates have in common.
#[derive(Debug)]
pub struct OwnModel {
    book: RateBook,
    cores: usize,
    /// Ranks on a node, and the link between nodes.
    node: (usize, Link),
    /// How many times as long each rank computes as those that were measured; none where they are alike.
    slowness: Vec<f64>,
    skeletons: Mutex<HashMap<Candidate, Arc<Skeleton>>>,
    panels: Mutex<HashMap<(Recipe, usize), Arc<PanelWork>>>,
}

impl OwnModel {
    /// The model of a machine whose phases are known; `None` for one without.
    pub fn new(machine: &Machine) -> Option<Self> {
        let cores = machine.nodes.iter().map(|node| node.count.saturating_mul(node.cores)).sum::<usize>().max(1);
        let per_node = machine.nodes.iter().map(|node| node.cores).max().unwrap_or(1);
        let between = machine.layers.iter().rfind(|layer| layer.ranks > per_node);
        let link = between.map_or(Link::default(), |layer| Link {
            alpha_s: layer.alpha_s.unwrap_or(0.0),
            beta_s: layer.beta_s_per_word,
        });
        Some(Self {
            book: RateBook::new(machine)?,
            cores,
            node: (per_node, link),
            slowness: Vec::new(),
            skeletons: Mutex::default(),
            panels: Mutex::default(),
        })
    }

    /// The model of ranks of unequal speed, by process row, then column: each takes its factor times as long for all that it
    /// computes as the ranks whose phases were measured. Runs of another number of ranks are predicted as on equal ones.
    #[must_use]
    pub fn slowed(self, slowness: Vec<f64>) -> Self {
        Self { slowness, skeletons: Mutex::default(), ..self }
    }

    /// Predicted time of factorization and back substitution, in seconds. Long runs are thinned: see the tests for
    /// what that changes.
    pub fn time_s(&self, candidate: &Candidate) -> f64 {
        // All variants of the panel share a skeleton.
        let hpl = &candidate.hpl;
        let same = HplParams::baseline(hpl.n, hpl.p, hpl.q);
        let shared = HplParams { pfact: same.pfact, rfact: same.rfact, nbmin: 1, ndiv: 2, ..*hpl };
        let key = Candidate { hpl: shared, engine: candidate.engine.clone() };
        let known = self.skeletons.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        let skeleton = known.unwrap_or_else(|| {
            let made = Arc::new(self.skeleton(candidate, false));
            let mut kept = self.skeletons.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.len() >= KEPT {
                kept.clear();
            }
            kept.insert(key, Arc::clone(&made));
            made
        });
        self.run(candidate, &skeleton).total_s
    }

    /// The same of ranks of unequal speed, as [`slowed`](Self::slowed) knows them, for one prediction.
    ///
    /// # Panics
    /// When there is not one factor per rank.
    pub fn unequal_time_s(&self, candidate: &Candidate, slowness: &[f64]) -> f64 {
        assert_eq!(slowness.len(), candidate.hpl.ranks(), "a factor per rank");
        let rates = self.book.of(candidate.engine.threads);
        let skeleton = Skeleton::new(candidate, rates, self.shared(candidate), false);
        self.run(candidate, &skeleton.slowed(slowness)).total_s
    }

    /// The predicted run with the phases of every step.
    pub fn timeline(&self, candidate: &Candidate) -> Timeline {
        self.run(candidate, &self.skeleton(candidate, true))
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

    fn skeleton(&self, candidate: &Candidate, exact: bool) -> Skeleton {
        let rates = self.book.of(candidate.engine.threads);
        let skeleton = Skeleton::new(candidate, rates, self.shared(candidate), exact);
        let known = self.slowness.len() == candidate.hpl.ranks();
        if known { skeleton.slowed(&self.slowness) } else { skeleton }
    }

    fn panel(&self, recipe: Recipe, jb: usize) -> Arc<PanelWork> {
        let mut known = self.panels.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(known.entry((recipe, jb)).or_insert_with(|| Arc::new(PanelWork::new(&recipe, jb))))
    }

    fn run(&self, candidate: &Candidate, skeleton: &Skeleton) -> Timeline {
        let (hpl, threads) = (&candidate.hpl, candidate.engine.threads.max(1));
        if hpl.n == 0 {
            return Timeline::default();
        }
        let rates = self.book.of(threads);
        let (recipe, last) = (Recipe::new(hpl), (hpl.n - 1) % hpl.nb + 1);
        let panels = [self.panel(recipe, hpl.nb), self.panel(recipe, last)];
        let (per_node, link) = self.node;
        let crosses = hpl.ranks() * threads > per_node;
        let link = if crosses { link } else { Link::default() };
        let fact_s = |work: &PanelWork, mp: usize, owns_diagonal: bool, threads: usize| {
            let rates = self.book.of(threads);
            let messages = work.columns() * rounds(hpl.p);
            let words = 2.0 * work.columns() + 4.0;
            dot(&work.terms(mp, owns_diagonal, hpl.p), &rates.fact) + messages * (link.alpha_s + words * link.beta_s)
        };
        let panels = [panels[0].as_ref(), panels[1].as_ref()];
        let costs = Costs { panels, nb: hpl.nb, fact_s: &fact_s, bcast: hpl.bcast, links: [link; 2] };
        let (steps, end_s) = walk(skeleton, &costs);
        let trsv_s = dot(&forms::trsv(hpl.n, hpl.nb, hpl.ranks(), threads), &rates.trsv) * self.shared(candidate);
        Timeline { total_s: end_s + trsv_s, steps, trsv_s }
    }
}
