//! What a session searches: asked for, detected and chosen, and kept for a resume.

use objectives::predict::Predictor;
use space::domain::{DomainSpec, Limits};
use space::machine::Machine;
use space::{Candidate, EngineParams, KernelChoice};

use crate::exit::bad_input;
use crate::record::session::Session;
use crate::record::store::Store;
use crate::search::budget::Budget;
use crate::session::engine::Engine;
use crate::session::prepare::{self, Target};
use crate::session::room::{Here, Room, Wanted};

/// What the runs of the session have.
pub(super) fn room(session: &Session, engine: &Engine, machine: Option<&Machine>) -> Room {
    let here = Here { cores: session.cores.len(), memory_bytes: hpl::machine::host::facts().memory_available_bytes };
    Room::new(engine, here, machine, wanted(session))
}

fn wanted(session: &Session) -> Wanted {
    Wanted { ranks: session.ranks, threads: session.threads }
}

/// What the session is searched on, its N as far as it is known.
pub(super) fn spec(session: &Session, room: &Room, kernels: KernelChoice) -> anyhow::Result<DomainSpec> {
    let spec = room.spec(session.n.unwrap_or(0), room.memory_for(session.n)?, wanted(session));
    Ok(DomainSpec { kernels, unequal: session.unequal.clone(), ..spec })
}

/// The expert's configuration, `None` where the rule of thumb says nothing else than the default: on a resume as before, else as
/// asked now. Stores the choice.
pub(super) fn expert(
    store: &mut Store,
    engine: &Engine,
    spec: &DomainSpec,
    default: &Candidate,
    described: Option<&Machine>,
) -> anyhow::Result<Option<Candidate>> {
    if store.session().expert.is_none() {
        let cpu = described.map(|machine| machine.host.cpu.as_str());
        let found = if store.session().is_simulated() {
            Err("the rule of thumb is for this host, and the nodes are simulated".to_owned())
        } else {
            engine.expert(spec, default, &hpl::machine::host::facts(), cpu)
        };
        store.update_session(|session| session.expert = Some(found.into()))?;
    }
    let session = store.session();
    Ok(session.expert.as_ref().and_then(|choice| choice.candidate(default, session.profile())))
}

/// What is searched: on a resume as before, else N as chosen now. Stores the choice.
pub(super) fn settle(
    store: &mut Store,
    engine: &Engine,
    room: &Room,
    (mut spec, limits): (DomainSpec, &Limits),
    predictor: &Predictor,
    budget: &Budget,
) -> anyhow::Result<DomainSpec> {
    let session = store.session();
    // On a resume the choice stands.
    let target = match session.n.filter(|_| session.n_memory.is_some() || !store.rows().is_empty()) {
        Some(n) => {
            let n_memory = room.memory_bytes.map(|_| prepare::largest_n_within(&spec, engine, limits));
            let limited_by_budget = session.n_limited_by_budget;
            Target { n, n_memory, limited_by_budget, extent: session.extent }
        }
        None => prepare::target(engine, (&spec, limits), predictor, budget, session.n)?,
    };
    spec.n = target.n;
    store.update_session(|session| {
        session.n = Some(target.n);
        session.n_memory = target.n_memory;
        session.n_limited_by_budget = target.limited_by_budget;
        session.extent = target.extent;
        session.memory_bytes = room.memory_bytes.unwrap_or(0);
        if session.engine == Session::OURS {
            session.kernels = Some(spec.kernels.clone());
        }
    })?;
    Ok(spec)
}

/// The kernels of the session: what the user named, or what the calibration chose.
pub(super) fn resolved(session: &Session, machine: Option<&Machine>) -> anyhow::Result<KernelChoice> {
    let choice = match (&session.kernels, machine) {
        // Another engine takes none: one value stands for that.
        (None, _) => EngineParams::default().kernels,
        (Some(KernelChoice::Auto), Some(machine)) => KernelChoice::from(machine.host.kernels.clone()),
        (Some(named), _) => named.clone(),
    };
    match choice {
        KernelChoice::Auto => Err(bad_input("machine.toml: [host] kernels does not say which kernels; give --blas")),
        choice => Ok(choice),
    }
}

/// Refuses to go on where runs cannot be the same.
pub(super) fn same_machine(session: &Session) -> anyhow::Result<()> {
    let facts = hpl::machine::host::facts();
    let (needed, found) = (session.cores.len(), facts.cores_allowed.len());
    if needed > found {
        return Err(bad_input(format!(
            "the session uses {needed} cores, {found} are available here; resume it where it was started"
        )));
    }
    if let Some(KernelChoice::Blas(path)) = &session.kernels
        && !path.exists()
    {
        return Err(bad_input(format!(
            "the session's BLAS library {} is gone; put it back, or start a new session with --blas",
            path.display()
        )));
    }
    Ok(())
}
