//! The calibration of a session.

use std::path::Path;

use space::KernelChoice;

use crate::cluster::launched::cluster;
use crate::record::store::Store;
use crate::search::budget::Budget;
use crate::search::interrupt::Interrupt;
use crate::search::progress::Progress;
use crate::session::calibrate;
use crate::session::engine::Engine;

/// Measures this machine, and the nodes where there are several; `false` when a signal asked to stop. Where the BLAS of another
/// engine's program cannot be measured, the fastest kernels here stand for it.
pub(super) fn calibrated(
    program: &Path,
    engine: &Engine,
    store: &mut Store,
    budget: &Budget,
    progress: &mut Progress,
    interrupt: &Interrupt,
) -> anyhow::Result<bool> {
    if store.session().is_simulated() {
        // The file of the cluster holds what a calibration would measure.
        cluster::describe(engine.mpi_job(), &store.folder().calibrated_node(), store, budget, progress)?;
        return Ok(true);
    }
    let named = store.session().kernels.clone();
    let kernels = named.unwrap_or_else(|| engine.calibrated_kernels());
    let described = store.folder().machine_toml();
    let of_this_node = if store.session().nodes.is_empty() { described } else { store.folder().calibrated_node() };
    let measure = |kernels: &KernelChoice, store: &mut Store, progress: &mut Progress| {
        calibrate::in_child(program, kernels, &of_this_node, store, budget, progress, interrupt)
    };
    let done = if let (Engine::Foreign(_), KernelChoice::Blas(path)) = (engine, &kernels) {
        progress.line(&format!("{} loads {}: the calibration measures that", engine.name(), path.display()));
        match measure(&kernels, store, progress) {
            Err(error) => {
                progress.warn(&format!("{error}; the fastest kernels here are measured instead"));
                measure(&KernelChoice::Auto, store, progress)?
            }
            done => done?,
        }
    } else if of_this_node.exists() {
        // Of a session that goes on without a node that was lost.
        true
    } else {
        measure(&kernels, store, progress)?
    };
    if done && !store.session().nodes.is_empty() {
        cluster::describe(engine.mpi_job(), &of_this_node, store, budget, progress)?;
    }
    Ok(done)
}
