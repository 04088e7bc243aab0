//! Rates of each rank while all ranks work, and of the links between some of them.
//!
//! All ranks do the same at the same time: products C ← C − A·B, then a short HPL run on each rank alone; then they exchange
//! messages in pairs, in rounds with doubling distance, so that R ranks have at most (R/2)·log₂ R pairs. All pairs of a
//! round exchange at the same time, as the ranks of a run do; then the pair of rank 0 alone. Called by all ranks of a
//! group, on threads or with MPI.

use std::time::Instant;

use serde::{Deserialize, Serialize};
use space::stats::{MedianSpread, summary};
use space::{Candidate, EngineParams, HplParams, Weights, flops};

use crate::Error;
use crate::backend::host::kernels::Kernels;
use crate::backend::host::team::{TeamParams, with_team};
use crate::comm::{Comm, PeerGone, Request, Tag};
use crate::lu::matgen;
use crate::lu::solve;
use crate::machine::host;
use crate::mat::{Buffer, Mat, MatMut};
use crate::sync::Arc;

/// Tag of the timed messages.
const TIMED: Tag = 1;
/// Order of the generator's matrix; the products use blocks of it.
const ORDER: usize = 1 << 20;
/// Sizes of each thread's product.
const PRODUCT: (usize, usize, usize) = (512, 256, 192);
/// Products of one measurement.
const PRODUCTS: usize = 40;
/// Words of a timed message: one panel of a small run.
const WORDS: usize = 1 << 17;
/// Round trips of a short message per measurement of the latency.
const TRIPS: usize = 20;

/// Measurements of the link from one rank to another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkSurvey {
    /// The other rank.
    pub other: usize,
    /// Time of a message of one word, in seconds, median of the means of the repeats.
    pub latency_s: f64,
    /// Bandwidth in GB/s of messages that are packed, sent and unpacked, median over round trips, while all pairs at this
    /// distance exchange messages.
    pub gbytes_per_s: f64,
    /// (Third − first quartile) / median of these round trips; 0 where an older program does not say.
    #[serde(default)]
    pub spread: f64,
    /// The same bandwidth while the other pairs wait; measured for rank 0.
    pub alone_gbytes_per_s: Option<f64>,
}

/// Measurements of one rank, in the order of the repeats.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RankSurvey {
    /// The rank.
    pub rank: usize,
    /// Its host.
    pub host: String,
    /// Socket of its cores; `None` if they belong to several sockets, or it has no cores of its own.
    pub socket: Option<usize>,
    /// Memory of the host that can be filled without swapping, in bytes.
    pub memory_bytes: u64,
    /// Processor model of the host.
    pub cpu: String,
    /// Physical cores of the host that it may use.
    pub cores: usize,
    /// Its kernels.
    pub kernels: String,
    /// Runnable processes of the host before the survey, mean of a minute.
    pub load: Option<f64>,
    /// Share of the host's CPU time taken by the hypervisor during the survey.
    pub stolen: Option<f64>,
    /// Clock of the first core at the end, in Hz.
    pub clock_hz: Option<f64>,
    /// Rates of its products in GFLOP/s.
    pub dgemm_gflops: Vec<f64>,
    /// Rates of its short HPL runs in GFLOP/s.
    pub hpl_gflops: Vec<f64>,
    /// Links to its [`partners`].
    pub links: Vec<LinkSurvey>,
}

/// The ranks of `ranks` that `rank` exchanges messages with, in the order of the rounds: one at each distance of a power of two.
pub fn partners(rank: usize, ranks: usize) -> impl Iterator<Item = usize> {
    distances(ranks).filter_map(move |distance| partner(rank, distance, ranks))
}

fn distances(ranks: usize) -> impl Iterator<Item = usize> {
    (0..usize::BITS).map(|round| 1 << round).take_while(move |distance| *distance < ranks)
}

/// The partner in the round of this distance: ranks that differ in one bit.
fn partner(rank: usize, distance: usize, ranks: usize) -> Option<usize> {
    Some(rank ^ distance).filter(|other| *other < ranks)
}

/// Result of a survey of all ranks, as printed by a program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Survey {
    /// Name of the common kernels.
    pub kernels: String,
    /// Measurements of each rank, in order.
    pub ranks: Vec<RankSurvey>,
}

/// Surveys the ranks of `comm`, each with the kernels, threads and NB of `candidate` and short runs of its order N.
///
/// # Errors
/// A rank that fails poisons `comm`, so that all ranks return an error.
pub(crate) fn survey<C: Comm>(
    candidate: &Candidate,
    repeats: usize,
    comm: &C,
    cores: &[usize],
    kernels: &dyn Kernels,
) -> Result<RankSurvey, Error> {
    let facts = host::facts_of_node();
    // All ranks work at the same time: no core can be borrowed.
    let cores = &cores[..candidate.engine.threads.min(cores.len())];
    let alone = comm.split(comm.rank(), 0)?;
    let hpl = HplParams { p: 1, q: 1, ..candidate.hpl };
    let engine = EngineParams { weights: Weights::default(), ..candidate.engine.clone() };
    let short = Candidate { hpl, engine };
    let (mut dgemm_gflops, mut hpl_gflops) = (Vec::new(), Vec::new());
    // The first repeat is a warm-up.
    for repeat in 0..=repeats {
        comm.barrier()?;
        let rate = products(short.engine.threads, cores, kernels)?;
        comm.barrier()?;
        let time_s = solve(&short, &alone, cores, kernels, &())?.time_s;
        if repeat > 0 {
            dgemm_gflops.push(rate);
            hpl_gflops.push(flops::rate_gflops(short.hpl.n, time_s));
        }
    }
    let links = links(comm, repeats)?;
    let (rank, host, socket) = (comm.rank(), facts.hostname, host::socket(cores));
    let later = host::facts();
    Ok(RankSurvey {
        rank,
        host,
        socket,
        memory_bytes: facts.memory_available_bytes,
        cpu: facts.cpu_model,
        cores: facts.cores_allowed.len(),
        kernels: kernels.name(),
        load: facts.load,
        stolen: facts.cpu_times.zip(later.cpu_times).and_then(|(before, after)| after.stolen_since(&before)),
        clock_hz: later.clock_hz,
        dgemm_gflops,
        hpl_gflops,
        links,
    })
}

/// The links of this rank to its partners. Each repeat goes over all links, so that what disturbs for a moment is in one repeat of a
/// link, and its spread shows it.
fn links<C: Comm>(comm: &C, repeats: usize) -> Result<Vec<LinkSurvey>, PeerGone> {
    let (rank, ranks) = (comm.rank(), comm.size());
    let mut links: Vec<(usize, LinkTimes)> = partners(rank, ranks).map(|other| (other, LinkTimes::default())).collect();
    let mut data = vec![1.0; WORDS];
    // The first repeat includes the allocation of buffers.
    for repeat in 0..=repeats {
        for distance in distances(ranks) {
            let other = partner(rank, distance, ranks);
            let mut link = links.iter_mut().find(|(found, _)| Some(*found) == other);
            comm.barrier()?;
            if let Some((other, times)) = &mut link {
                let latency_s = latency(comm, *other, rank < *other)?;
                let rate = bandwidth(comm, *other, rank < *other, &mut data)?;
                if repeat > 0 {
                    times.latency_s.push(latency_s);
                    times.gbytes_per_s.push(rate);
                }
            }
            comm.barrier()?;
            if let Some((other, times)) = link.filter(|(other, _)| rank.min(*other) == 0) {
                let rate = bandwidth(comm, *other, rank == 0, &mut data)?;
                if repeat > 0 {
                    times.alone_gbytes_per_s.push(rate);
                }
            }
        }
    }
    comm.barrier()?;
    Ok(links.into_iter().map(|(other, times)| times.link(other)).collect())
}

/// What the repeats of one link gave.
#[derive(Default)]
struct LinkTimes {
    latency_s: Vec<f64>,
    gbytes_per_s: Vec<f64>,
    alone_gbytes_per_s: Vec<f64>,
}

impl LinkTimes {
    fn link(&self, other: usize) -> LinkSurvey {
        let MedianSpread { median: gbytes_per_s, spread } = summary(&self.gbytes_per_s);
        let alone = Some(summary(&self.alone_gbytes_per_s).median).filter(|rate| *rate > 0.0);
        let latency_s = summary(&self.latency_s).median;
        LinkSurvey { other, latency_s, gbytes_per_s, spread, alone_gbytes_per_s: alone }
    }
}

/// Rate of products on all threads of this rank at once, in GFLOP/s.
fn products(threads: usize, cores: &[usize], kernels: &dyn Kernels) -> Result<f64, Error> {
    let (m, n, k) = PRODUCT;
    let random = |rows: usize, cols: usize, first: usize| {
        let mut data = vec![0.0; rows * cols];
        matgen::generate_block(ORDER, first, first, MatMut::new(&mut data, rows, cols, rows));
        data
    };
    let (a, b) = (random(m, k, 0), random(k, n, m));
    let params = TeamParams { threads, cores, spin: cores.len() >= threads };
    let time_s = with_team(params, |team| {
        // Ones, so that the pages are mapped, as in a run.
        let parts: Vec<Vec<f64>> = (0..threads).map(|_| vec![1.0; m * n]).collect();
        let start = Instant::now();
        team.map(parts, |mut c| {
            for _ in 0..PRODUCTS {
                kernels.gemm(Mat::new(&a, m, k, m), Mat::new(&b, k, n, k), MatMut::new(&mut c, m, n, m));
            }
            std::hint::black_box(&c);
        })?;
        Ok::<_, Error>(start.elapsed().as_secs_f64())
    })
    .map_err(|refused| Error::Thread { index: refused.index, threads, reason: refused.error.to_string() })??;
    Ok((2 * m * n * k * PRODUCTS * threads) as f64 / time_s * 1e-9)
}

/// Time of a message of one word in seconds, the mean of some.
fn latency<C: Comm>(comm: &C, other: usize, first: bool) -> Result<f64, PeerGone> {
    let word: Arc<Buffer> = Arc::new(Buffer::from(&[1.0][..]));
    let send = || comm.isend(other, TIMED, Arc::clone(&word), 0..1).wait();
    let mut start = Instant::now();
    for trip in 0..=TRIPS {
        // In the first one a rank waits until the other one has come.
        if trip == 1 {
            start = Instant::now();
        }
        if first {
            send()?;
        }
        comm.irecv(other, TIMED, 1).wait()?;
        if !first {
            send()?;
        }
    }
    Ok(start.elapsed().as_secs_f64() / (2 * TRIPS) as f64)
}

/// Bandwidth of one message round trip of `data` in GB/s.
fn bandwidth<C: Comm>(comm: &C, other: usize, first: bool, data: &mut [f64]) -> Result<f64, PeerGone> {
    let send = |data: &[f64]| comm.isend(other, TIMED, Arc::new(Buffer::from(data)), 0..WORDS).wait();
    let mut trip = || {
        let start = Instant::now();
        if first {
            send(data)?;
        }
        data.copy_from_slice(&comm.irecv(other, TIMED, WORDS).wait()?);
        if !first {
            send(data)?;
        }
        Ok(start.elapsed().as_secs_f64())
    };
    // After one trip the next one is a whole one on both ranks.
    trip()?;
    Ok(2.0 * 8.0 * WORDS as f64 / trip()? * 1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::threads;

    #[test]
    fn pairs_grow_by_the_logarithm_and_reach_every_rank() {
        for ranks in [1, 2, 3, 6, 8, 100, 2048] {
            let of = |rank| partners(rank, ranks).collect::<Vec<_>>();
            let pairs: usize = (0..ranks).map(|rank| of(rank).len()).sum::<usize>() / 2;
            assert!(pairs <= ranks * (usize::BITS - ranks.leading_zeros()) as usize / 2, "{pairs}");
            let both = (0..ranks).all(|rank| of(rank).iter().all(|&other| other != rank && of(other).contains(&rank)));
            assert!(both, "partners are mutual");
            // Each rank is connected to rank 0 through partners.
            assert!((1..ranks).all(|rank| of(rank).iter().any(|&other| other < rank)), "{ranks}");
        }
    }

    #[test]
    fn both_partners_measure_a_link_and_rank_0_measures_alone() {
        let world = threads::world(6, false);
        let links: Vec<Vec<LinkSurvey>> = std::thread::scope(|scope| {
            let run = |comm| scope.spawn(move || links(&comm, 1).unwrap());
            let handles: Vec<_> = world.into_iter().map(run).collect();
            handles.into_iter().map(|handle| handle.join().unwrap()).collect()
        });
        for (rank, links) in links.iter().enumerate() {
            assert_eq!(links.iter().map(|link| link.other).collect::<Vec<_>>(), partners(rank, 6).collect::<Vec<_>>());
            for link in links {
                assert!(link.gbytes_per_s > 0.0 && link.latency_s > 0.0, "{link:?}");
                assert_eq!(link.alone_gbytes_per_s.is_some(), rank.min(link.other) == 0, "{rank} {link:?}");
            }
        }
    }
}
