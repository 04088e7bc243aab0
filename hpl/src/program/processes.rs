//! Runs on the processes of an MPI job: rank 0 is the program, the other ranks wait for its commands.
//!
//! Commands and answers are JSON, sent as doubles with the same bits. A run has these steps: command; answer of every
//! rank that it is ready (its kernels are loaded); start signal of rank 0; factorization on the first P·Q ranks; report
//! of each of these ranks.

use crate::mat::Buffer;
use crate::sync::Arc;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use space::{Candidate, HplParams, KernelChoice};

use super::RunError;
use super::job::{Job, JobOutcome, RankReport};
use super::memory::{NodeMemory, RankMemory};
use super::nodes::{Nodes, RankPlacement};
use super::rank_threads::conclude;
use crate::backend::device::DeviceError;
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
/// Why MPI calls cannot return an error: a rank that fails aborts the job.
const JOB_ABORTS: &str = "a failing rank ends the job";

/// Role of this process in its job.
pub(super) enum Role {
    /// The only process.
    Alone,
    /// Rank 0 of several.
    First(Processes),
    /// Another rank, after the end of the job: the job's exit code.
    Other(u8),
}

/// The processes of a job, on rank 0.
pub(super) struct Processes {
    world: MpiComm,
    nodes: Nodes,
}

/// A command of rank 0 to another rank.
#[derive(Serialize, Deserialize)]
enum RankCommand {
    /// Send the free memory.
    FreeBytes,
    /// Take part in a run.
    Run(Box<RankJob>),
    /// End with this exit code.
    End(u8),
}

/// The memory available on the node of this process. What limits a process alone is left out: that of a node is the least that its ranks find.
fn memory_here(world: &MpiComm) -> RankMemory {
    let kept_bytes = world.buffers().matrices.bytes();
    RankMemory { free_bytes: host::facts_of_node().memory_available_bytes, kept_bytes }
}

/// The job of one rank.
#[derive(Serialize, Deserialize)]
struct RankJob {
    candidate: Candidate,
    /// Cores of its threads, followed by those it borrows; empty if the threads are not pinned.
    cores: Vec<usize>,
    job: Job,
}

/// How a rank has ended its work without ending the job: with its report, or because a device lacks memory, its own for this reason or that
/// of another rank.
type RankEnd = Result<RankReport, Option<DeviceError>>;

/// Starts MPI by `calls`. On ranks other than 0 it returns at the end of the job.
pub(super) fn start(calls: &'static Calls) -> Role {
    let world = mpi::init(calls);
    if world.size() == 1 {
        return Role::Alone;
    }
    let facts = host::facts();
    let placement = RankPlacement {
        node: world.node().members()[0],
        host: facts.hostname,
        physical: host::physical_cores(&facts.cores_allowed),
        cores: facts.cores_allowed,
    };
    if world.rank() > 0 {
        send_json(&world, 0, &placement);
        return Role::Other(run_commands(&world));
    }
    let others = (1..world.size()).map(|rank| recv_json(&world, rank));
    let nodes = Nodes(std::iter::once(placement).chain(others).collect());
    Role::First(Processes { world, nodes })
}

impl Processes {
    pub(super) fn threads_each(&self, ranks: usize) -> usize {
        self.nodes.of_run(ranks).threads_each()
    }

    pub(super) fn oversubscribed(&self, ranks: usize, threads: usize) -> bool {
        self.nodes.of_run(ranks).cores(threads).iter().any(Vec::is_empty)
    }

    /// The processes of the job.
    pub(super) fn size(&self) -> usize {
        self.world.size()
    }

    /// Name and version of the MPI library.
    pub(super) fn library(&self) -> String {
        self.world.library()
    }

    /// Host and cores of each rank with `threads` threads, in order.
    pub(super) fn bindings(&self, threads: usize) -> Vec<RankBinding> {
        let cores = self.nodes.of_run(self.world.size()).cores(threads);
        let binding = |((placement, memory), cores): ((&RankPlacement, RankMemory), Vec<usize>)| RankBinding {
            host: placement.host.clone(),
            cores_allowed: placement.physical.clone(),
            cores,
            memory_bytes: memory.free_bytes,
        };
        self.nodes.0.iter().zip(self.memory()).zip(cores).map(binding).collect()
    }

    /// What each rank of the job finds, in order.
    fn memory(&self) -> Vec<RankMemory> {
        let others = 1..self.world.size();
        others.clone().for_each(|rank| send_json(&self.world, rank, &RankCommand::FreeBytes));
        let found = others.map(|rank| recv_json(&self.world, rank));
        std::iter::once(memory_here(&self.world)).chain(found).collect()
    }

    pub(super) fn check_grid(&self, hpl: &HplParams) -> Result<(), RunError> {
        let (&HplParams { p, q, .. }, found) = (hpl, self.world.size());
        if hpl.ranks() > found { Err(RunError::Processes { p, q, found }) } else { Ok(()) }
    }

    /// The memory of each node for the first `ranks` ranks.
    pub(super) fn free_memory(&self, ranks: usize) -> Vec<NodeMemory> {
        let nodes = self.nodes.0.iter().map(|placement| placement.node);
        NodeMemory::of_run(nodes.zip(self.memory()), ranks)
    }

    /// Executes a job on the ranks of the grid; returns its outcome and the report of each rank, in order.
    pub(super) fn run_on_all(
        &self,
        candidate: &Candidate,
        job: &Job,
        kernels: &dyn Kernels,
        watch: &dyn Watch,
    ) -> Result<(JobOutcome, Vec<RankReport>), RunError> {
        let (world, ranks) = (&self.world, candidate.hpl.ranks());
        let cores = self.nodes.of_run(ranks).cores_in(candidate);
        let rank_job = |rank: usize| RankJob {
            candidate: candidate.with_kernels_of(rank),
            cores: cores.get(rank).cloned().unwrap_or_default(),
            job: job.clone(),
        };
        let others = 1..world.size();
        others.clone().for_each(|rank| send_json(world, rank, &RankCommand::Run(Box::new(rank_job(rank)))));
        let answers: Vec<Result<(), String>> = others.clone().map(|rank| recv_json(world, rank)).collect();
        let refused = answers.into_iter().enumerate().find_map(|(at, answer)| Some((at + 1, answer.err()?)));
        others.for_each(|rank| send_json(world, rank, &refused.is_none()));
        if let Some((rank, message)) = refused {
            return Err(RunError::Unready { rank, message });
        }
        let work = |comm: &MpiComm, cores: &[usize]| job.work(candidate, comm, cores, kernels, watch);
        let own = take_part(world, &rank_job(0), work).expect("rank 0 is in every grid");
        let own = own.map(|(outcome, report)| (Some(outcome), report));
        let other = |rank| -> Result<(Option<JobOutcome>, RankReport), Error> {
            let end: RankEnd = recv_json(world, rank);
            let report = end.map_err(|lack| lack.map_or(Error::DeviceMemoryElsewhere, Error::DeviceMemory))?;
            Ok((None, report))
        };
        let ends = std::iter::once(own).chain((1..ranks).map(other)).map(Ok).collect();
        let (mut outcomes, mut of_ranks): (Vec<_>, Vec<_>) = conclude(ends)?.into_iter().unzip();
        // All ranks started after the same barrier: at the same time as rank 0, within a few message times.
        let started = of_ranks[0].started;
        of_ranks.iter_mut().for_each(|report| report.started = started);
        Ok((outcomes.swap_remove(0).expect("that of rank 0"), of_ranks))
    }

    /// Ends the other ranks with exit code `code`.
    pub(super) fn end(self, code: u8) {
        (1..self.world.size()).for_each(|rank| send_json(&self.world, rank, &RankCommand::End(code)));
    }
}

/// Main loop of a rank other than 0: executes the commands of rank 0; returns the exit code.
fn run_commands(world: &MpiComm) -> u8 {
    let mut loaded: Option<(KernelChoice, Box<dyn Kernels>)> = None;
    loop {
        match recv_json(world, 0) {
            RankCommand::FreeBytes => send_json(world, 0, &memory_here(world)),
            RankCommand::Run(rank_job) => {
                let choice = &rank_job.candidate.engine.kernels;
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
                    && let Some(report) =
                        take_part(world, &rank_job, |comm, cores| work(&rank_job, comm, cores, &**kernels))
                {
                    let end: RankEnd = report.map_err(|error| match error {
                        Error::DeviceMemory(lack) => Some(lack),
                        _ => None,
                    });
                    send_json(world, 0, &end);
                }
            }
            RankCommand::End(code) => return code,
        }
    }
}

/// Executes the job on a rank other than 0; returns its report.
fn work(rank_job: &RankJob, comm: &MpiComm, cores: &[usize], kernels: &dyn Kernels) -> Result<RankReport, Error> {
    let wants_spans = matches!(rank_job.job, Job::Run { wants_spans: true, .. });
    rank_job.job.work(&rank_job.candidate, comm, cores, kernels, &SpansOnly(wants_spans)).map(|(_, report)| report)
}

/// Calls `work` as a rank of the grid; `None` for a rank outside the grid. Called by all ranks of the job, which an error ends that they
/// have not agreed on.
fn take_part<R>(
    world: &MpiComm,
    rank_job: &RankJob,
    work: impl FnOnce(&MpiComm, &[usize]) -> Result<R, Error>,
) -> Option<Result<R, Error>> {
    let RankJob { candidate, cores, .. } = rank_job;
    let (rank, ranks) = (world.rank(), candidate.hpl.ranks());
    let in_grid = rank < ranks;
    // Before the split, which no rank leaves before all have called it: when one fills its matrix, the others have returned what they
    // keep of earlier runs and this one does not use.
    let lens: Vec<usize> = in_grid.then(|| matrix_len(candidate, rank)).into_iter().collect();
    world.buffers().matrices.prepare(&lens, ranks, candidate.engine.huge_pages);
    let comm = world.split(usize::from(!in_grid), rank).expect(JOB_ABORTS);
    if !in_grid {
        return None;
    }
    comm.set_spin(cores.len() >= candidate.engine.threads);
    let before = Mask::of_this_thread();
    let outcome = work(&comm, cores);
    world.clear_messages();
    // The next run may use other cores.
    before.restore();
    comm.set_spin(false);
    if let Err(error) = &outcome
        && !error.is_agreed()
    {
        // Most have already done so.
        world.poison(&error.to_string());
    }
    Some(outcome)
}

/// Records spans if rank 0 requests them; ignores the progress.
struct SpansOnly(bool);

impl Watch for SpansOnly {
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
        sent.wait().expect(JOB_ABORTS);
    }
}

/// Receives a value from another rank.
fn recv_json<T: DeserializeOwned>(world: &MpiComm, from: usize) -> T {
    let head = world.irecv(from, TEXT[0], 2).wait().expect(JOB_ABORTS);
    let words = world.irecv(from, TEXT[1], head[0] as usize).wait().expect(JOB_ABORTS);
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_bits().to_le_bytes()).take(head[1] as usize).collect();
    serde_json::from_slice(&bytes).expect("sent by send_json")
}
