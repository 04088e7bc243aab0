//! What is said of the cores before a session begins.

use std::time::Duration;

use hpl::backend::host::kernels;
use hpl::machine::affinity::core_sets;
use hpl::measure::preflight::{CoreRate, preflight};
use objectives::outliers::outliers;
use space::stats::MedianSpread;
use space::{Candidate, KernelChoice};

use crate::search::budget::Budget;
use crate::search::progress::Progress;

/// Share of the budget that the look at the cores takes, and its longest time in seconds.
const SHARE: f64 = 0.005;
const LONGEST_S: f64 = 2.0;

/// Looks at the cores, says how fast they are and which stand out, and whether threads can be bound to them.
pub fn look(cores: &[usize], budget: &Budget, progress: &Progress) {
    let time = Duration::from_secs_f64((budget.total_s() * SHARE).min(LONGEST_S));
    let Some((sentence, warnings)) = seen(cores, time) else { return };
    progress.line(&sentence);
    warnings.iter().for_each(|warning| progress.warn(warning));
}

/// The cores in one sentence after a look of this time, and what is wrong with some.
pub fn seen(cores: &[usize], time: Duration) -> Option<(String, Vec<String>)> {
    // The built-in kernels never fail to load, and no library can crash here.
    let kernels = kernels::load(&KernelChoice::Builtin).ok()?;
    Some(said(&preflight(&*kernels, cores, time), cores.len()))
}

/// What is said of the `measured` of `all` cores.
fn said(measured: &[CoreRate], all: usize) -> (String, Vec<String>) {
    let refused = refused(measured.len(), all);
    if measured.is_empty() {
        return ("pre-flight: no core was looked at".to_owned(), refused.into_iter().collect());
    }
    (sentence(measured), refused.into_iter().chain(warnings(measured)).collect())
}

/// What is wrong where `measured` of `all` cores have got a thread.
fn refused(measured: usize, all: usize) -> Option<String> {
    (measured < all).then(|| {
        format!(
            "only {measured} of {all} cores were looked at, as the system refuses more threads: raise its limit \
             (ulimit -u, pids.max of the control group)"
        )
    })
}

/// DGEMM of all cores at once by the built-in kernels in GFLOP/s, measured for this time.
pub(super) fn all_cores_gflops(cores: &[usize], time: Duration) -> f64 {
    let kernels = kernels::load(&KernelChoice::Builtin).expect("the built-in kernels never fail to load");
    preflight(&*kernels, cores, time).iter().map(|core| core.rate_gflops).sum()
}

/// The cores in one sentence.
fn sentence(measured: &[CoreRate]) -> String {
    let range = |of: fn(&CoreRate) -> f64| {
        let values = || measured.iter().map(of);
        (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max))
    };
    let (slow, fast) = range(|core| core.rate_gflops);
    let (low, high) = range(|core| core.copy_bytes_per_s / 1e9);
    if let [_] = measured {
        return format!("pre-flight: a single core, DGEMM {slow:.1} GFLOP/s, copy {low:.1} GB/s");
    }
    format!(
        "pre-flight: {} cores at once, DGEMM {slow:.1} … {fast:.1} GFLOP/s each, copy {low:.1} … {high:.1} GB/s each",
        measured.len()
    )
}

/// What is wrong with a core.
fn warnings(measured: &[CoreRate]) -> Vec<String> {
    let rate = |core: &CoreRate| MedianSpread { median: core.rate_gflops, spread: core.spread };
    let rates: Vec<MedianSpread> = measured.iter().map(rate).collect();
    let standing_out = outliers(&rates).into_iter().map(|outlier| {
        let (core, ratio) = (&measured[outlier.index], outlier.ratio);
        let percent = 100.0 * (ratio - 1.0).abs();
        let what = if ratio < 1.0 {
            "slower than the median: with equal shares all ranks wait for it"
        } else {
            "faster than the median"
        };
        format!("core {}: {:.1} GFLOP/s, {percent:.0} % {what}", core.core, core.rate_gflops)
    });
    let loose = measured.iter().filter(|core| !core.bound);
    let loose = loose.map(|core| format!("core {}: threads cannot be bound to it; run times will vary", core.core));
    standing_out.chain(loose).collect()
}

/// Where the threads of a candidate's ranks are bound, `rank 0: core 0-1, rank 1: core 2-3`; a long list is cut.
pub fn binding(candidate: &Candidate, cores: &[usize]) -> String {
    let Some(sets) = core_sets(cores, candidate.hpl.ranks(), candidate.engine.threads) else {
        return "more threads than cores: none is bound".to_owned();
    };
    listed(sets.iter().enumerate().map(|(rank, cores)| format!("rank {rank}: core {}", ranges(cores))))
}

/// The first few of what is said of ranks, and how many more there are.
pub(crate) fn listed(of_ranks: impl ExactSizeIterator<Item = String>) -> String {
    /// Ranks that are listed.
    const MOST: usize = 4;
    let ranks = of_ranks.len();
    let rest = if ranks > MOST { format!(", … {} more", ranks - MOST) } else { String::new() };
    of_ranks.take(MOST).collect::<Vec<_>>().join(", ") + &rest
}

/// Numbers in ascending order, `0-3,8`.
pub(crate) fn ranges(numbers: &[usize]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b);
    let run = |run: &[usize]| match run {
        [first, .., last] => format!("{first}-{last}"),
        _ => run[0].to_string(),
    };
    runs.map(run).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use space::{EngineParams, HplParams};

    use super::*;

    fn core_rate(core: usize, rate_gflops: f64, bound: bool) -> CoreRate {
        CoreRate { core, bound, rate_gflops, spread: 0.005, copy_bytes_per_s: 8e9 }
    }

    #[test]
    fn cores_that_stand_out_or_cannot_be_bound_are_named() {
        let measured = [core_rate(0, 50.0, true), core_rate(2, 40.0, true), core_rate(4, 50.0, false)];
        assert!(sentence(&measured).contains("3 cores at once, DGEMM 40.0 … 50.0"), "{}", sentence(&measured));
        let warnings = warnings(&measured);
        assert_eq!(warnings.len(), 2);
        assert!(warnings[0].starts_with("core 2: 40.0 GFLOP/s, 20 % slower"), "{warnings:?}");
        assert!(warnings[1].starts_with("core 4: threads cannot be bound"), "{warnings:?}");
    }

    #[test]
    fn cores_that_get_no_thread_are_counted() {
        assert_eq!(refused(4, 4), None);
        assert!(refused(3, 4).unwrap().starts_with("only 3 of 4 cores were looked at"));
        let (sentence, warnings) = said(&[], 4);
        assert_eq!(sentence, "pre-flight: no core was looked at");
        assert!(warnings.len() == 1 && warnings[0].starts_with("only 0 of 4 cores"), "{warnings:?}");
    }

    #[test]
    fn the_binding_is_that_of_the_engine() {
        let candidate = |p, q, threads| Candidate {
            hpl: HplParams::baseline(1000, p, q),
            engine: EngineParams { threads, ..EngineParams::default() },
        };
        assert_eq!(binding(&candidate(1, 2, 2), &[4, 5, 6, 7]), "rank 0: core 4-5, rank 1: core 6-7");
        assert_eq!(binding(&candidate(1, 2, 2), &[0]), "more threads than cores: none is bound");
        let many: Vec<usize> = (0..12).collect();
        assert!(binding(&candidate(3, 4, 1), &many).ends_with("rank 3: core 3, … 8 more"));
    }
}
