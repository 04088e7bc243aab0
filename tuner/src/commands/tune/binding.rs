//! The cores of the ranks, said before the first trial.

use std::path::Path;

use space::Candidate;

use crate::cluster::launched::bindings::{bindings, doubts, out_of_order, sentence};
use crate::cluster::placement;
use crate::record::session::Session;
use crate::search::progress::Progress;
use crate::session::engine::Engine;
use crate::session::preflight;

/// Says where the ranks of the default run, and what is wrong with that.
///
/// # Errors
/// An MPI job of our engine that does not say it.
pub(super) fn say_binding(
    engine: &Engine,
    baseline: &Candidate,
    session: &Session,
    program: &Path,
    progress: &Progress,
) -> anyhow::Result<()> {
    let of_default = match engine {
        Engine::Foreign(foreign) => match placement::placed(foreign, baseline, program) {
            Ok(found) => {
                placement::doubts(&found).iter().for_each(|doubt| progress.warn(doubt));
                format!("{}, as its launcher starts them", sentence(&found))
            }
            // A wrapper or a container may start nothing but the engine.
            Err(error) => format!("not known, {}", error.to_string().lines().next().unwrap_or_default()),
        },
        Engine::Ours => preflight::binding(baseline, &session.cores),
        Engine::Launched(job) => {
            let found = bindings(job, baseline.hpl.ranks(), baseline.engine.threads)?;
            let cores = session.unequal.node_cores;
            let order = cores.and_then(|cores| out_of_order(&found, &session.hosts, cores));
            doubts(&found).iter().chain(&order).for_each(|doubt| progress.warn(doubt));
            sentence(&found)
        }
    };
    progress.line(&format!("binding of the default: {of_default}"));
    Ok(())
}
