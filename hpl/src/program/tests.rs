use crate::backend::host::kernels::Kernels;
use std::sync::atomic::{AtomicUsize, Ordering};

use std::sync::Arc;

use space::engine::InstructionSet;
use space::{Candidate, HplParams, KernelChoice, RunResult, flops};

use super::memory::{FreeMemory, check_memory};
use super::rank_threads::{conclude, run_threads};
use super::*;
use crate::backend::host::kernels::Builtin;
use crate::comm::PeerGone;
use crate::lu::solve;
use crate::machine::host;
use crate::mat::{Mat, MatMut};
use crate::observe::phases::Phase;
use crate::observe::trace::Span;
use crate::plan::Part;
use crate::plan::windows::Windows;
use crate::{Error, Watch};

fn candidate(n: usize, p: usize, q: usize) -> Candidate {
    let hpl = HplParams { nb: 16, ..HplParams::baseline(n, p, q) };
    Candidate { hpl, engine: space::EngineParams::default() }
}

const OPTIONS: RunOptions<'_> = RunOptions { threshold: 16.0, force: false, watch: &() };

#[test]
fn a_run_yields_its_record() {
    let mut candidate = candidate(100, 2, 2);
    candidate.hpl.depth = 1;
    let result = run_candidate(&candidate, &OPTIONS).unwrap();
    assert!(result.passed && result.info == 0, "{result:?}");
    assert!(result.residual.unwrap() < 16.0 && result.time_s > 0.0);
    assert_eq!(result.rate_gflops, flops::rate_gflops(100, result.time_s));
    assert_eq!(result.candidate, candidate);
    // Seven panels and the back substitution, four ranks.
    let steps: Vec<(u32, u32)> = result.phases.iter().map(|phase| (phase.step, phase.rank)).collect();
    let expected: Vec<_> = (0..8).flat_map(|step| (0..4).map(move |rank| (step, rank))).collect();
    assert_eq!(steps, expected);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("result.json");
    write_result(&path, &result).unwrap();
    assert_eq!(serde_json::from_slice::<RunResult>(&std::fs::read(path).unwrap()).unwrap(), result);
}

/// Thousands of ranks may be dealt to nodes of two kinds in turn.
#[test]
fn a_result_names_the_kernels_of_all_ranks_once() {
    let mut candidate = candidate(60, 1, 4);
    let portable = KernelChoice::Limited(InstructionSet::Portable);
    candidate.engine.rank_kernels = vec![KernelChoice::Builtin, portable.clone(), KernelChoice::Builtin, portable];
    let mut names = vec![Builtin::best().name(), Builtin::of(InstructionSet::Portable).unwrap().name()];
    names.dedup();
    assert_eq!(run_candidate(&candidate, &OPTIONS).unwrap().kernel, names.join("; "));
    assert_eq!(measure_candidate(&candidate, &Windows::Auto, &OPTIONS).unwrap().kernel, names.join("; "));
}

/// Requests the spans.
struct WantsSpans;

impl Watch for WantsSpans {
    fn column(&self, _done: usize, _n: usize, _rate_gflops: f64) {}

    fn wants_spans(&self) -> bool {
        true
    }
}

#[test]
fn spans_record_the_work_of_all_ranks_and_threads() {
    let mut candidate = candidate(640, 2, 2);
    (candidate.hpl.nb, candidate.hpl.depth, candidate.engine.threads) = (64, 1, 2);
    assert!(run_candidate_spans(&candidate, &()).is_empty());
    let spans = run_candidate_spans(&candidate, &WantsSpans);
    // Ten panels, each factored by the two ranks of its process column and received by all four.
    for step in 0..10 {
        let ranks = |phase: Phase| {
            let mut ranks: Vec<u32> =
                spans.iter().filter(|span| (span.phase, span.step) == (phase, step)).map(|span| span.rank).collect();
            ranks.sort_unstable();
            ranks.dedup();
            ranks
        };
        assert_eq!(ranks(Phase::Fact), [step % 2, step % 2 + 2]);
        assert_eq!(ranks(Phase::Lbcast), [0, 1, 2, 3]);
    }
    assert_eq!(spans.iter().filter(|span| span.phase == Phase::Trsv).count(), 4);
    assert!(spans.iter().any(|span| span.thread == 1 && span.phase == Phase::Update), "helpers are recorded");
    // The spans of a thread do not overlap.
    for thread in spans.chunk_by(|a, b| (a.rank, a.thread) == (b.rank, b.thread)) {
        assert!(thread.windows(2).all(|pair| pair[0].end_s <= pair[1].start_s), "{thread:?}");
        assert!(thread.iter().all(|span| 0.0 <= span.start_s && span.start_s <= span.end_s));
    }
}

/// The columns of the next panel are updated by all threads together, where there are several.
#[test]
fn the_update_of_look_ahead_columns_is_recorded() {
    for threads in [1, 2] {
        let mut candidate = candidate(640, 1, 1);
        (candidate.hpl.nb, candidate.hpl.depth, candidate.engine.threads) = (64, 1, threads);
        let spans = run_candidate_spans(&candidate, &WantsSpans);
        let steps = |phase: Phase| {
            let ahead = |span: &&Span| (span.thread, span.phase, span.part) == (0, phase, Some(Part::LookAhead));
            let mut steps: Vec<u32> = spans.iter().filter(ahead).map(|span| span.step).collect();
            steps.dedup();
            steps
        };
        assert_eq!(steps(Phase::Rs), Vec::from_iter(0..9), "{threads} threads");
        // The other thread may take all tiles of a step.
        assert!(!steps(Phase::Update).is_empty(), "{threads} threads");
    }
    // Of a panel of 256 columns each thread solves a part.
    let mut wide = candidate(800, 1, 1);
    (wide.hpl.nb, wide.hpl.depth, wide.engine.threads) = (256, 1, 2);
    let spans = run_candidate_spans(&wide, &WantsSpans);
    for step in [0, 1] {
        let solved = |span: &Span| (span.thread, span.step, span.part) == (1, step, Some(Part::LookAhead));
        assert!(spans.iter().any(solved), "{step}");
    }
    for thread in spans.chunk_by(|a, b| a.thread == b.thread) {
        assert!(thread.windows(2).all(|pair| pair[0].end_s <= pair[1].start_s), "{thread:?}");
    }
}

fn run_candidate_spans(candidate: &Candidate, watch: &dyn Watch) -> Vec<Span> {
    let runner = Runner::new(&candidate.engine.kernels).unwrap();
    runner.run(candidate, &RunOptions { watch, ..OPTIONS }).unwrap().spans
}

/// Requests no phases, as `xhpl` for plain text.
struct NoPhases;

impl Watch for NoPhases {
    fn column(&self, _done: usize, _n: usize, _rate_gflops: f64) {}

    fn wants_phases(&self) -> bool {
        false
    }
}

/// On thousands of ranks they were hundreds of megabytes that nobody read.
#[test]
fn phases_that_nobody_asks_for_are_not_kept() {
    let result = run_candidate(&candidate(100, 2, 2), &RunOptions { watch: &NoPhases, ..OPTIONS }).unwrap();
    assert!(result.passed && result.phases.is_empty(), "{result:?}");
}

#[test]
fn without_a_threshold_nothing_is_checked() {
    let result = run_candidate(&candidate(50, 1, 2), &RunOptions { threshold: 0.0, ..OPTIONS }).unwrap();
    assert_eq!((result.residual, result.passed), (None, false));
    let result = run_candidate(&candidate(50, 1, 2), &RunOptions { threshold: 1e-12, ..OPTIONS }).unwrap();
    assert!(result.residual.is_some() && !result.passed);
}

#[test]
fn hard_rules_and_memory_are_checked_before_the_run() {
    let mut flat = candidate(10, 1, 1);
    flat.hpl.ndiv = 1;
    assert!(matches!(run_candidate(&flat, &OPTIONS), Err(RunError::Rule(_))));

    let error = run_candidate(&candidate(10_000_000, 1, 1), &OPTIONS).unwrap_err();
    let RunError::TooLarge { needed_bytes, free_bytes, largest_n, .. } = error else { panic!("{error}") };
    assert!(needed_bytes > 8 * 10_u64.pow(14) && free_bytes < needed_bytes);
    let free = FreeMemory::OneProcess(free_bytes);
    check_memory(&candidate(largest_n, 1, 1), &free).unwrap();
    check_memory(&candidate(largest_n + 16, 1, 1), &free).unwrap_err();
    let mut on_gpu = candidate(largest_n + 16, 1, 1);
    on_gpu.engine.device = space::DeviceChoice::Cuda;
    check_memory(&on_gpu, &free).unwrap();
}

/// Kernels that panic in their n-th product.
struct Faulty {
    products_left: AtomicUsize,
}

impl Kernels for Faulty {
    fn name(&self) -> String {
        "faulty".to_owned()
    }

    fn gemm(&self, a: Mat<'_>, b: Mat<'_>, c: MatMut<'_>) {
        assert!(self.products_left.fetch_sub(1, Ordering::Relaxed) != 1, "on purpose");
        Builtin::best().gemm(a, b, c);
    }

    fn trsm(&self, l: Mat<'_>, b: MatMut<'_>) {
        Builtin::best().trsm(l, b);
    }
}

#[test]
fn a_panic_ends_all_ranks_and_is_named() {
    for products in [1, 7, 40] {
        for threads in [1, 2] {
            let faulty = Faulty { products_left: AtomicUsize::new(products) };
            let mut candidate = candidate(200, 2, 3);
            candidate.engine.threads = threads;
            let Err(error) = run_threads(&candidate, &Arc::default(), &[0], |comm, cores| {
                solve(&candidate, comm, cores, &faulty, &())
            }) else {
                panic!("it must fail")
            };
            let text = error.to_string();
            assert!(text.contains("rank") && text.contains("panicked"), "{text}");
        }
    }
}

#[test]
fn the_cause_is_reported_not_its_effects() {
    let lost = || Ok(Err(Error::Peer(PeerGone { rank: 2, reason: "it panicked".into() })));
    let own = || Ok(Err::<(), _>(Error::Thread { index: 1, threads: 2, reason: "full".into() }));
    let named = |ends| conclude(ends).err().unwrap().to_string();
    assert_eq!(named(vec![lost(), lost(), Err(Box::new("boom"))]), "rank 2 panicked: boom");
    assert_eq!(named(vec![own(), lost(), Err(Box::new(format!("{}", 7)))]), "rank 2 panicked: 7");
    assert!(named(vec![lost(), own(), own()]).starts_with("rank 1: cannot start thread 1 of 2"));
    assert!(named(vec![lost(), lost()]).starts_with("rank 0: rank 2 is gone"));
}

/// Cost relative to the run at N = 8000, with new memory each time:
/// `cargo test --release -p hpl --lib -- --ignored --nocapture cost_of_generator_and_check`.
#[test]
#[ignore = "a measurement"]
fn cost_of_generator_and_check() {
    let threads = host::facts().cores_allowed.len();
    for huge_pages in [true, true, false] {
        let hpl = HplParams { nb: 256, depth: 1, ..HplParams::baseline(8000, 1, 1) };
        let engine = space::EngineParams { threads, huge_pages, ..space::EngineParams::default() };
        let result = run_candidate(&Candidate { hpl, engine }, &OPTIONS).unwrap();
        assert!(result.passed);
        let RunResult { generate_s, time_s, check_s, .. } = result;
        let share = 100.0 * (generate_s + check_s) / time_s;
        println!(
            "huge pages {huge_pages}: generator {generate_s:.3} s, run {time_s:.3} s, check {check_s:.3} s: {share:.1} %"
        );
    }
}
