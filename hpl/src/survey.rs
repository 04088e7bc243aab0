//! What each rank reaches while all work, with the bandwidth between every two of them.
//!
//! All ranks do the same at the same time: products C ← C − A·B, then a short HPL run of their own; then every two of
//! them exchange messages while the others wait. Called by all ranks of a group, on threads or on MPI.

use std::sync::Arc;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use space::stats::summary;
use space::{Candidate, EngineParams, HplParams, Weights, flops};

use crate::comm::{Comm, PeerGone, Request, Tag};
use crate::kernels::Kernels;
use crate::mat::{Mat, MatMut};
use crate::matgen;
use crate::team::{TeamParams, with_team};
use crate::{Error, host, solve};

/// Tag of the messages that are timed.
const TIMED: Tag = 1;
/// Order of the matrix whose blocks the products take.
const ORDER: usize = 1 << 20;
/// Sizes of each thread's product.
const PRODUCT: (usize, usize, usize) = (512, 256, 192);
/// Products of one measurement.
const PRODUCTS: usize = 40;
/// Words of a timed message: one panel of a small run.
const WORDS: usize = 1 << 17;

/// What one rank found, in the order of the repeats.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankSurvey {
    /// The rank.
    pub rank: usize,
    /// Its host.
    pub host: String,
    /// Memory of the host that can be filled without swapping, in bytes.
    pub memory_bytes: u64,
    /// Rates of its products in GFLOP/s.
    pub dgemm_gflops: Vec<f64>,
    /// Rates of its short HPL runs in GFLOP/s.
    pub hpl_gflops: Vec<f64>,
    /// Bandwidth to each rank in GB/s, packed, sent and unpacked, the median of both ways; 0 to itself.
    pub gbytes_per_s: Vec<f64>,
}

/// What a program prints that surveyed its ranks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Survey {
    /// Name of the kernels of all ranks that have none of their own.
    pub kernels: String,
    /// What each rank found, in order.
    pub ranks: Vec<RankSurvey>,
}

/// Surveys the ranks of `comm`, each with the kernels, threads and NB of `candidate` and short runs of its order N.
///
/// # Errors
/// A rank that fails poisons `comm`, so that all ranks return an error.
pub(crate) fn survey<C: Comm, K: Kernels>(
    candidate: &Candidate,
    repeats: usize,
    comm: &C,
    cores: &[usize],
    kernels: &K,
) -> Result<RankSurvey, Error> {
    let facts = host::facts();
    // All ranks work at once: nothing to borrow.
    let cores = &cores[..candidate.engine.threads.min(cores.len())];
    let alone = comm.split(comm.rank(), 0)?;
    let hpl = HplParams { p: 1, q: 1, ..candidate.hpl };
    let engine = EngineParams { weights: Weights::default(), ..candidate.engine.clone() };
    let short = Candidate { hpl, engine };
    let (mut dgemm_gflops, mut hpl_gflops) = (Vec::new(), Vec::new());
    // The first of each warms up.
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
    let mut gbytes_per_s = vec![0.0; comm.size()];
    for (i, j) in (0..comm.size()).flat_map(|j| (0..j).map(move |i| (i, j))) {
        comm.barrier()?;
        if let Some(other) = [(i, j), (j, i)].into_iter().find_map(|(me, other)| (me == comm.rank()).then_some(other)) {
            gbytes_per_s[other] = exchange(comm, other, comm.rank() == i, repeats)?;
        }
    }
    comm.barrier()?;
    let memory_bytes = facts.memory_available_bytes;
    Ok(RankSurvey { rank: comm.rank(), host: facts.hostname, memory_bytes, dgemm_gflops, hpl_gflops, gbytes_per_s })
}

/// Rate of products on all threads of this rank at once, in GFLOP/s.
fn products<K: Kernels>(threads: usize, cores: &[usize], kernels: &K) -> Result<f64, Error> {
    let (m, n, k) = PRODUCT;
    let random = |rows: usize, cols: usize, first: usize| {
        let mut data = vec![0.0; rows * cols];
        matgen::generate_block(ORDER, first, first, MatMut::new(&mut data, rows, cols, rows));
        data
    };
    let (a, b) = (random(m, k, 0), random(k, n, m));
    let params = TeamParams { threads, cores, spin: cores.len() >= threads };
    let time_s = with_team(params, |team| {
        // Ones: pages that are there, as those of a run are.
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

/// Bandwidth of messages there and back in GB/s, median.
fn exchange<C: Comm>(comm: &C, other: usize, first: bool, repeats: usize) -> Result<f64, PeerGone> {
    let (mut data, mut rates) = (vec![1.0; WORDS], Vec::new());
    let send = |data: &[f64]| comm.isend(other, TIMED, Arc::from(data), 0..WORDS).wait();
    // The first message pays for buffers.
    for repeat in 0..=repeats {
        let start = Instant::now();
        if first {
            send(&data)?;
        }
        data.copy_from_slice(&comm.irecv(other, TIMED, WORDS).wait()?);
        if !first {
            send(&data)?;
        }
        // There and back, whoever is first.
        if repeat > 0 {
            rates.push(2.0 * 8.0 * WORDS as f64 / start.elapsed().as_secs_f64() * 1e-9);
        }
    }
    Ok(summary(&rates).median)
}
