//! The ranks of a run as threads of this process, each on its own cores if there are enough.

use std::any::Any;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use space::{Candidate, DeviceChoice, HplParams};

use super::RunError;
use super::memory::matrix_lens;
use crate::Error;
use crate::backend::device::gpu::{GpuPlatform, nearby_cores};
use crate::comm::threads::{self, ThreadComm};
use crate::comm::{Buffers, grid};
use crate::machine::affinity;

/// Starts the ranks as threads, each of which calls `work` with its cores, and waits for all of them; returns the report of
/// each, in order. The ranks use the memory of earlier runs.
pub(super) fn run_threads<R: Send>(
    candidate: &Candidate,
    buffers: &Arc<Buffers>,
    cores: &[usize],
    work: impl Fn(&ThreadComm, &[usize]) -> Result<R, Error> + Sync,
) -> Result<Vec<R>, RunError> {
    let ranks = candidate.hpl.ranks();
    let near = beside_devices(candidate.engine.device, cores);
    let sets = affinity::core_sets_near(cores, ranks, candidate.engine.threads, &near);
    // Threads that share cores are not pinned, and do not spin.
    let world = threads::world_with(Arc::clone(buffers), ranks, sets.is_some());
    buffers.matrices.prepare(&matrix_lens(candidate), ranks, candidate.engine.huge_pages);
    let sets = sets.unwrap_or_else(|| vec![Vec::new(); ranks]);
    let sets = shared_in_panels(&candidate.hpl, sets, 0..ranks);
    let work = &work;
    let reports = thread::scope(|scope| {
        let mut handles = Vec::with_capacity(ranks);
        for (rank, (comm, cores)) in world.into_iter().zip(&sets).enumerate() {
            // If `work` panics, dropping `comm` poisons the world.
            let body = move || work(&comm, cores);
            // If a thread cannot be started, its `comm` and those after it are dropped: waits of the running ranks
            // fail.
            let handle = thread::Builder::new().name(format!("rank {rank}")).spawn_scoped(scope, body);
            handles.push(handle.map_err(|source| RunError::Thread { rank, source })?);
        }
        conclude(handles.into_iter().map(thread::ScopedJoinHandle::join).collect())
    });
    buffers.clear_messages();
    reports
}

/// Those of `cores` that are beside each device; none without devices.
fn beside_devices(device: DeviceChoice, cores: &[usize]) -> Vec<Vec<usize>> {
    let root = Path::new("/");
    match device {
        DeviceChoice::Cuda => nearby_cores(GpuPlatform::Cuda, root, cores),
        DeviceChoice::Hip => nearby_cores(GpuPlatform::Hip, root, cores),
        DeviceChoice::None | DeviceChoice::Reference => Vec::new(),
    }
}

/// The cores of `ranks`, which share a node, with those that they borrow. Cores are borrowed only without look-ahead, as only
/// then the other ranks are idle while a panel is factored.
pub(super) fn shared_in_panels(
    hpl: &HplParams,
    sets: Vec<Vec<usize>>,
    ranks: impl Iterator<Item = usize>,
) -> Vec<Vec<usize>> {
    if hpl.depth > 0 {
        return sets;
    }
    affinity::time_shared(&sets, &ranks.map(|rank| grid::coords(hpl.pmap, rank, hpl.p, hpl.q)).collect::<Vec<_>>())
}

/// All reports, or the error that caused the others.
pub(super) fn conclude<R>(ends: Vec<thread::Result<Result<R, Error>>>) -> Result<Vec<R>, RunError> {
    let mut reports = Vec::with_capacity(ends.len());
    let mut first: Option<RunError> = None;
    for (rank, end) in ends.into_iter().enumerate() {
        let error = match end {
            Ok(Ok(report)) => {
                reports.push(report);
                continue;
            }
            Ok(Err(source)) => RunError::Engine { rank, source },
            Err(payload) => RunError::Panicked { rank, message: panic_message(&*payload) },
        };
        if first.as_ref().is_none_or(|first| priority(&error) > priority(first)) {
            first = Some(error);
        }
    }
    first.map_or(Ok(reports), Err)
}

/// Priority of an error as the cause: first a panic, then an error of the rank itself, then the failure of a peer.
fn priority(error: &RunError) -> u8 {
    match error {
        RunError::Panicked { .. } => 2,
        RunError::Engine { source: Error::Peer(_) | Error::DeviceMemoryElsewhere, .. } => 0,
        _ => 1,
    }
}

fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
