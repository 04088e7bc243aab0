//! What a sitting searches, and the machine by which its runs are predicted.

use objectives::predict::Predictor;
use objectives::real::{Extent, Grids, PairRule, RealRuns};
use space::domain::{DomainSpec, Limits};
use space::machine::{Machine, Node};
use space::{Candidate, Candidates};

use super::nodes::Parts;
use super::settle::{expert, resolved, room, settle, spec};
use crate::commands::space::{limits, of_limits};
use crate::exit::bad_input;
use crate::record::session::Session;
use crate::record::store::Store;
use crate::search::budget::Budget;
use crate::search::schedule::Setup;
use crate::search::strategy::Strategy;
use crate::session::engine::Engine;
use crate::session::input::read_machine;
use crate::session::room::Modelled;

/// The machine by which runs are predicted.
pub(super) struct ModelMachine {
    pub(super) machine: Machine,
    pub(super) predictor: Predictor,
}

impl ModelMachine {
    /// `machine` with the ranks and the settings of `session`.
    ///
    /// # Errors
    /// A description in which something is missing.
    fn new(machine: Machine, session: &Session) -> anyhow::Result<Self> {
        let predictor = Predictor::new(&machine).map_err(bad_input)?;
        let predictor = predictor.slowed(session.unequal.clone()).found_at(session.settings.as_found());
        Ok(Self { machine, predictor })
    }

    /// The `machine` that trials on groups of nodes have corrected, where they have, else this one.
    ///
    /// # Errors
    /// A description in which something is missing.
    pub(super) fn corrected(self, machine: Option<Machine>, session: &Session) -> anyhow::Result<Self> {
        machine.map_or(Ok(self), |machine| Self::new(machine, session))
    }
}

/// What is searched.
pub(super) struct Searched {
    /// The nodes, as far as they are described.
    pub(super) nodes: Vec<Node>,
    /// What had to be assumed, a sentence each.
    pub(super) assumed: Vec<String>,
    pub(super) spec: DomainSpec,
    limits: Limits,
    domain: Box<dyn Candidates>,
    /// The configuration that users start from.
    pub(super) baseline: Candidate,
    /// The expert's configuration, where it is another one.
    expert: Option<Candidate>,
}

impl Searched {
    /// What was chosen before, else what is chosen now and kept, with the machine by which that is predicted.
    ///
    /// # Errors
    /// What does not fit together, and the way out.
    pub(super) fn settle(store: &mut Store, engine: &Engine, budget: &Budget) -> anyhow::Result<(Self, ModelMachine)> {
        let path = store.folder().machine_toml();
        let described = path.exists().then(|| read_machine(&path)).transpose()?.map(|(machine, _)| machine);
        let room = room(store.session(), engine, described.as_ref());
        let kernels = resolved(store.session(), described.as_ref())?;
        let spec = spec(store.session(), &room, kernels)?;
        let n = store.session().n;
        let Modelled { machine, note } = room.model(engine, described.as_ref(), &spec, n, budget).map_err(bad_input)?;
        let model = ModelMachine::new(machine, store.session())?;
        let path = store.folder().limits_toml();
        let path = Some(path.as_path()).filter(|path| path.exists());
        let limits = limits(path, engine)?;
        let spec = settle(store, engine, &room, (spec, &limits), &model.predictor, budget)?;
        let domain = engine.domain_at(&spec, &limits, &store.session().settings);
        let (domain, baseline) = domain.map_err(|error| of_limits(path, &error))?;
        let expert = expert(store, engine, &spec, &baseline, described.as_ref())?;
        let nodes = described.map(|machine| machine.nodes).unwrap_or_default();
        let assumed = room.notes.into_iter().chain(note).collect();
        Ok((Self { nodes, assumed, spec, limits, domain, baseline, expert }, model))
    }

    /// All candidates.
    pub(super) fn domain(&self) -> &dyn Candidates {
        self.domain.as_ref()
    }

    /// What trials on groups of nodes are made of.
    pub(super) fn parts<'a>(
        &'a self,
        engine: &'a Engine,
        machine: &'a Machine,
        strategy: &'a dyn Strategy,
    ) -> Parts<'a> {
        Parts { engine, machine, spec: &self.spec, limits: &self.limits, domain: self.domain(), strategy }
    }

    /// Which two candidates `runs` can measure in turn.
    pub(super) fn pairs(&self, runs: &RealRuns, session: &Session, predictor: &Predictor) -> PairRule {
        // The power of two in one process is that of neither.
        if session.extent != Extent::Windows || !session.objective.is_rate() {
            return PairRule::Never;
        }
        let grids = if predictor.has_timeline(&self.baseline) { Grids::All } else { Grids::Covered };
        runs.pair_rule(grids).among(self.domain.points().iter().map(|point| self.domain.candidate(point)))
    }

    /// What the schedule goes by in this sitting.
    pub(super) fn setup<'a>(&'a self, strategy: &'a dyn Strategy, store: &Store, pairs: PairRule) -> Setup<'a> {
        let session = store.session();
        Setup {
            domain: self.domain(),
            strategy,
            designed: session.engine != Session::OURS,
            baseline: &self.baseline,
            expert: self.expert.as_ref(),
            extent: session.extent,
            n_is_chosen: session.n_fixed,
            pairs,
            objective: session.objective,
            seed: session.seed,
            until_gain: session.until_gain,
            earlier_rows: store.mendable(),
        }
    }
}
