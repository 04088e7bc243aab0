//! Runs on the processes of an MPI job: rank 0 is the program, the others wait for its orders.
//!
//! Orders and answers are JSON, carried as doubles of the same bits. A run goes: order, answer of every rank that
//! it is ready (its kernels are loaded), word of rank 0 to go on, factorization on the first P·Q ranks, what each
//! of them has to report.

use crate::mat::Buffer;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use space::{Candidate, HplParams, KernelChoice};
use std::sync::Arc;

use super::RunError;
use super::job::{Job, Outcome, RankReport};
use super::nodes::{Nodes, Placement};
use crate::backend::host::kernels::{self, Kernels};
use crate::comm::mpi::{self, Calls, MpiComm};
use crate::comm::{Comm, Request, Tag};
use crate::lu::solve::matrix_len;
use crate::machine::affinity::Mask;
use crate::machine::bindings::RankBinding;
use crate::machine::host;
use crate::{Error, Watch};

/// Tags of the length of a text and of the text.
const TEXT: [Tag; 2] = [1, 2];
/// No rank fails without ending the job.
const TOGETHER: &str = "a failing rank ends the job";

/// What this process is in its job.
pub(super) enum Role {
    /// The only process.
    Alone,
    /// Rank 0 of several.
    First(Processes),
    /// Another rank, which has served until the end: the job's exit code.
    Other(u8),
}

/// The processes of a job, seen by rank 0.
pub(super) struct Processes {
    world: MpiComm,
    nodes: Nodes,
}

/// What rank 0 wants of another rank.
#[derive(Serialize, Deserialize)]
enum Command {
    /// How much memory is free?
    FreeBytes,
    /// Take part in a run.
    Run(Box<Share>),
    /// The program ends with this exit code.
    End(u8),
}

/// The memory that a process could use.
#[derive(Serialize, Deserialize)]
struct ProcessMemory {
    /// Free on its node.
    free_bytes: u64,
    /// Its own, of earlier runs.
    kept_bytes: u64,
}

impl ProcessMemory {
    fn here(world: &MpiComm) -> Self {
        let kept_bytes = world.buffers().matrices.bytes();
        Self { free_bytes: host::facts().memory_available_bytes, kept_bytes }
    }
}

/// One rank's part in a job.
#[derive(Serialize, Deserialize)]
struct Share {
    candidate: Candidate,
    /// Cores of its threads, then those it borrows; none when they are not pinned.
    cores: Vec<usize>,
    job: Job,
}

/// Starts MPI by `calls`. Ranks other than 0 return when the job is over.
pub(super) fn start(calls: &'static Calls) -> Role {
    let world = mpi::init(calls);
    if world.size() == 1 {
        return Role::Alone;
    }
    let facts = host::facts();
    let home = Placement { node: world.node().members()[0], host: facts.hostname, cores: facts.cores_allowed };
    if world.rank() > 0 {
        send_json(&world, 0, &home);
        return Role::Other(serve(&world));
    }
    let homes = (1..world.size()).map(|rank| recv_json(&world, rank));
    let nodes = Nodes(std::iter::once(home).chain(homes).collect());
    Role::First(Processes { world, nodes })
}

impl Processes {
    pub(super) fn threads_each(&self, ranks: usize) -> usize {
        self.nodes.threads_each(ranks.min(self.world.size()))
    }

    pub(super) fn crowded(&self, ranks: usize, threads: usize) -> bool {
        (0..ranks.min(self.world.size())).any(|rank| self.nodes.cores_of(rank, ranks, threads).is_empty())
    }

    /// The processes of the job.
    pub(super) fn size(&self) -> usize {
        self.world.size()
    }

    /// What the MPI library calls itself.
    pub(super) fn library(&self) -> String {
        self.world.library()
    }

    /// Where each rank's `threads` threads are bound, in order.
    pub(super) fn bindings(&self, threads: usize) -> Vec<RankBinding> {
        let ranks = self.world.size();
        (1..ranks).for_each(|rank| send_json(&self.world, rank, &Command::FreeBytes));
        let memory = |rank| if rank == 0 { ProcessMemory::here(&self.world) } else { recv_json(&self.world, rank) };
        let binding = |(rank, home): (usize, &Placement)| RankBinding {
            host: home.host.clone(),
            cores_allowed: home.cores.clone(),
            cores: self.nodes.cores_of(rank, ranks, threads),
            memory_bytes: memory(rank).free_bytes,
        };
        self.nodes.0.iter().enumerate().map(binding).collect()
    }

    pub(super) fn check_grid(&self, hpl: &HplParams) -> Result<(), RunError> {
        let (&HplParams { p, q, .. }, found) = (hpl, self.world.size());
        if hpl.ranks() > found { Err(RunError::Processes { p, q, found }) } else { Ok(()) }
    }

    pub(super) fn free_bytes(&self, ranks: usize) -> u64 {
        let ranks = ranks.min(self.world.size());
        (1..ranks).for_each(|rank| send_json(&self.world, rank, &Command::FreeBytes));
        let memory = |rank| if rank == 0 { ProcessMemory::here(&self.world) } else { recv_json(&self.world, rank) };
        let scaled = |rank| {
            let ProcessMemory { free_bytes, kept_bytes } = memory(rank);
            (free_bytes as f64 / self.nodes.neighbours(rank, ranks) as f64 + kept_bytes as f64) * ranks as f64
        };
        // Every answer is heard.
        (0..ranks).map(scaled).fold(f64::INFINITY, f64::min) as u64
    }

    /// Does a job on the ranks of the grid; what has come of it, and what each rank has to report, in order.
    pub(super) fn run_on_all(
        &self,
        candidate: &Candidate,
        job: &Job,
        kernels: &dyn Kernels,
        watch: &dyn Watch,
    ) -> Result<(Outcome, Vec<RankReport>), RunError> {
        let (world, ranks) = (&self.world, candidate.hpl.ranks());
        let share = |rank| Share {
            candidate: candidate.with_kernels_of(rank),
            cores: if rank < ranks { self.nodes.cores_in(candidate, rank) } else { Vec::new() },
            job: job.clone(),
        };
        let others = 1..world.size();
        others.clone().for_each(|rank| send_json(world, rank, &Command::Run(Box::new(share(rank)))));
        let answers: Vec<Result<(), String>> = others.clone().map(|rank| recv_json(world, rank)).collect();
        let refused = answers.into_iter().enumerate().find_map(|(at, answer)| Some((at + 1, answer.err()?)));
        others.for_each(|rank| send_json(world, rank, &refused.is_none()));
        if let Some((rank, message)) = refused {
            return Err(RunError::Unready { rank, message });
        }
        let work = |comm: &MpiComm, cores: &[usize]| job.work(candidate, comm, cores, kernels, watch);
        let (outcome, own) = take_part(world, &share(0), work).expect("rank 0 is in every grid");
        // All began at one barrier: with rank 0, to a few message times.
        let started = own.started;
        let others = (1..ranks).map(|rank| RankReport { started, ..recv_json(world, rank) });
        Ok((outcome, std::iter::once(own).chain(others).collect()))
    }

    /// Tells the others that the program ends with exit code `code`.
    pub(super) fn end(self, code: u8) {
        (1..self.world.size()).for_each(|rank| send_json(&self.world, rank, &Command::End(code)));
    }
}

/// Life of a rank other than 0; its exit code.
fn serve(world: &MpiComm) -> u8 {
    let mut loaded: Option<(KernelChoice, Box<dyn Kernels>)> = None;
    loop {
        match recv_json(world, 0) {
            Command::FreeBytes => send_json(world, 0, &ProcessMemory::here(world)),
            Command::Run(share) => {
                let choice = &share.candidate.engine.kernels;
                if loaded.as_ref().is_none_or(|(known, _)| known != choice) {
                    loaded = None;
                }
                let ready = match &loaded {
                    Some(_) => Ok(()),
                    None => kernels::load(choice).map(|kernels| loaded = Some((choice.clone(), kernels))),
                };
                send_json(world, 0, &ready.map_err(|error| error.to_string()));
                let go: bool = recv_json(world, 0);
                if let Some((_, kernels)) = loaded.as_ref().filter(|_| go)
                    && let Some(own) = take_part(world, &share, |comm, cores| work(&share, comm, cores, &**kernels))
                {
                    send_json(world, 0, &own);
                }
            }
            Command::End(code) => return code,
        }
    }
}

/// What a rank other than 0 does, and has to report.
fn work(share: &Share, comm: &MpiComm, cores: &[usize], kernels: &dyn Kernels) -> Result<RankReport, Error> {
    let wants_spans = matches!(share.job, Job::Run { wants_spans: true });
    share.job.work(&share.candidate, comm, cores, kernels, &Wants(wants_spans)).map(|(_, report)| report)
}

/// Does `work` as a rank of the grid; `None` for a rank beyond it. Called by all ranks of the job.
fn take_part<R>(
    world: &MpiComm,
    share: &Share,
    work: impl FnOnce(&MpiComm, &[usize]) -> Result<R, Error>,
) -> Option<R> {
    let Share { candidate, cores, .. } = share;
    let in_grid = world.rank() < candidate.hpl.ranks();
    let comm = world.split(usize::from(!in_grid), world.rank()).expect(TOGETHER);
    if !in_grid {
        return None;
    }
    comm.set_spin(cores.len() >= candidate.engine.threads);
    let before = Mask::of_this_thread();
    let len = matrix_len(candidate, world.rank());
    world.buffers().matrices.prepare(&[len], candidate.engine.huge_pages);
    let outcome = work(&comm, cores);
    world.clear_messages();
    // The next run may use other cores.
    before.restore();
    comm.set_spin(false);
    // Most errors have ended the job inside.
    outcome.map_err(|error| world.poison(&error.to_string())).ok()
}

/// What rank 0 wants the others to record.
struct Wants(bool);

impl Watch for Wants {
    fn column(&self, _done: usize, _n: usize, _rate_gflops: f64) {}

    fn wants_spans(&self) -> bool {
        self.0
    }
}

/// Sends a value to another rank.
fn send_json(world: &MpiComm, to: usize, value: &impl Serialize) {
    let bytes = serde_json::to_vec(value).expect("plain data");
    let word = |chunk: &[u8]| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        f64::from_bits(u64::from_le_bytes(word))
    };
    let words = bytes.chunks(8).map(word).collect::<Vec<_>>();
    let len = words.len();
    let send = |tag, data: Vec<f64>| {
        let len = data.len();
        world.isend(to, tag, Arc::new(Buffer::from(&data[..])), 0..len)
    };
    for sent in [send(TEXT[0], vec![len as f64, bytes.len() as f64]), send(TEXT[1], words)] {
        sent.wait().expect(TOGETHER);
    }
}

/// Receives a value from another rank.
fn recv_json<T: DeserializeOwned>(world: &MpiComm, from: usize) -> T {
    let head = world.irecv(from, TEXT[0], 2).wait().expect(TOGETHER);
    let words = world.irecv(from, TEXT[1], head[0] as usize).wait().expect(TOGETHER);
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_bits().to_le_bytes()).take(head[1] as usize).collect();
    serde_json::from_slice(&bytes).expect("what send_json has sent")
}
