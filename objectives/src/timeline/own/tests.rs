use std::collections::BTreeSet;

use hpl::program::{RunOptions, run_candidate};
use proptest::prelude::*;
use space::machine::{EnginePhase, Machine, Node, PhaseRate};
use space::result::PhaseTime;
use space::{Bcast, EngineParams, Looking, Share, Swap, Unequal, Weights};

use super::*;

/// Four cores with phases for 1, 2 and 4 threads; the phase `slower` is `factor` times slower.
pub(super) fn machine(slower: Option<EnginePhase>, factor: f64) -> Machine {
    let rate = |phase: EnginePhase, threads| {
        let unit = if phase == EnginePhase::Update { 3e-11 } else { 1e-9 };
        let unit = if slower == Some(phase) { factor * unit } else { unit };
        // All operations have different costs.
        let coefficients = (0..phase.coefficient_count()).map(|i| unit * (1.0 + 0.1 * i as f64)).collect();
        let (date, origin) = ("2026-11-20".to_owned(), "made up".to_owned());
        let (n, nb) = ([100, 4000], [16, 512]);
        PhaseRate { phase, threads, coefficients, n, nb, runs: 9, spread: 0.0, fit_error: 0.0, date, origin }
    };
    let phases = [1, 2, 4].into_iter().flat_map(|t| EnginePhase::ALL.map(|phase| rate(phase, t)));
    let node = Node { name: "node".into(), count: 1, cores: 4, ..Node::default() };
    Machine { nodes: vec![node], phases: phases.collect(), ..Machine::default() }
}

pub(super) fn model() -> OwnModel {
    OwnModel::new(&machine(None, 1.0)).unwrap()
}

pub(super) fn candidate(
    n: usize,
    nb: usize,
    (p, q): (usize, usize),
    threads: usize,
    depth: usize,
    split: f64,
) -> Candidate {
    let hpl = HplParams { nb, depth, ..HplParams::baseline(n, p, q) };
    let split = Share::new(split).unwrap();
    Candidate { hpl, engine: EngineParams { threads, split, ..EngineParams::default() } }
}

const GRIDS: [((usize, usize), usize); 7] =
    [((1, 1), 4), ((1, 1), 1), ((1, 2), 2), ((2, 1), 2), ((1, 4), 1), ((2, 2), 1), ((4, 1), 1)];

#[test]
fn every_schedule_ends() {
    let model = model();
    for ((p, q), threads) in GRIDS.into_iter().chain([((3, 2), 1), ((2, 5), 1), ((1, 7), 2)]) {
        for (n, nb) in [(1, 1), (31, 32), (32, 32), (33, 32), (200, 16), (1000, 64)] {
            for (depth, split) in [(0, 0.0), (1, 0.0), (2, 0.0), (5, 0.5), (0, 0.5), (1, 0.3), (2, 0.7)] {
                let c = candidate(n, nb, (p, q), threads, depth, split);
                let timeline = model.timeline(&c);
                let ends: Vec<f64> = timeline.steps.iter().map(|step| step.end_s).collect();
                assert!(timeline.total_s > 0.0 && timeline.total_s.is_finite(), "{c:?}");
                assert!(ends.windows(2).all(|pair| pair[0] <= pair[1]), "{c:?} {ends:?}");
                assert!((ends.last().unwrap() + timeline.trsv_s - timeline.total_s).abs() < 1e-9, "{c:?}");
            }
        }
    }
    assert_eq!(model.timeline(&candidate(0, 32, (1, 1), 1, 0, 0.0)).total_s, 0.0);
}

/// On one thread nothing overlaps: the time is the sum of the phases.
#[test]
fn one_thread_takes_the_sum_of_its_phases() {
    let model = model();
    for depth in 0..3 {
        let timeline = model.timeline(&candidate(700, 48, (1, 1), 1, depth, 0.0));
        let sums = timeline.sums();
        let sum = sums.fact_s + sums.lbcast_s + sums.rs_s + sums.update_s + timeline.trsv_s;
        assert!((sum / timeline.total_s - 1.0).abs() < 1e-9, "{depth}");
    }
}

#[test]
fn look_ahead_hides_the_panel() {
    let slow_panels = OwnModel::new(&machine(Some(EnginePhase::Fact), 5.0)).unwrap();
    for (grid, threads) in [((1, 1), 4), ((1, 2), 2), ((1, 4), 1), ((2, 2), 1)] {
        let time_s = |depth| slow_panels.time_s(&candidate(4000, 64, grid, threads, depth, 0.0));
        assert!(time_s(1) < 0.99 * time_s(0), "{grid:?} {} {}", time_s(1), time_s(0));
    }
}

/// A rank of half the speed doubles the time with equal shares, and costs little with shares by speed.
#[test]
fn shares_recover_the_loss_from_a_slow_rank() {
    let model = model();
    let equal = candidate(6000, 64, (1, 2), 1, 1, 0.0);
    let shares = [2.0, 1.0].map(|speed| Share::new(speed).unwrap()).to_vec();
    let mut weighted = equal.clone();
    weighted.engine.weights = Weights { rows: Vec::new(), columns: shares };
    let (fast_s, slow_s) = (model.time_s(&equal), model.unequal_time_s(&equal, &[1.0, 2.0]));
    assert_eq!(model.unequal_time_s(&equal, &[1.0; 2]), fast_s);
    let weighted_s = model.unequal_time_s(&weighted, &[1.0, 2.0]);
    assert!((1.85..2.0).contains(&(slow_s / fast_s)), "{slow_s} {fast_s}");
    // Speeds of 1 and 1/2 together are 3/4 of twice the speed 1.
    assert!((1.3..1.45).contains(&(weighted_s / fast_s)), "{weighted_s} {fast_s}");
}

/// Every searched parameter changes the time.
#[test]
fn every_searched_parameter_changes_the_time() {
    let base = candidate(3000, 64, (2, 2), 1, 1, 0.0);
    let mut others = vec![base.clone()];
    let mut add = |change: &dyn Fn(&mut Candidate)| {
        let mut other = base.clone();
        change(&mut other);
        others.push(other);
    };
    add(&|c| c.hpl.pfact = Looking::Left);
    // With two blocks per level, all recursions do the same work.
    add(&|c| c.hpl.ndiv = 3);
    add(&|c| (c.hpl.rfact, c.hpl.ndiv) = (Looking::Right, 3));
    add(&|c| c.hpl.nbmin = 8);
    add(&|c| c.hpl.ndiv = 4);
    add(&|c| c.hpl.depth = 2);
    add(&|c| c.hpl.swap = Swap::BinExch);
    add(&|c| c.hpl.nb = 80);
    add(&|c| (c.hpl.p, c.hpl.q) = (1, 4));
    add(&|c| c.engine.split = Share::new(0.5).unwrap());
    let speeds = [1.0, 2.0].map(|speed| Share::new(speed).unwrap()).to_vec();
    add(&|c| c.engine.weights = Weights { rows: Vec::new(), columns: speeds.clone() });
    let model = model();
    let times: Vec<f64> = others.iter().map(|c| model.timeline(c).total_s).collect();
    let distinct: BTreeSet<u64> = times.iter().map(|s| s.to_bits()).collect();
    assert_eq!(distinct.len(), others.len(), "{times:?}");
}

/// Between nodes the broadcast takes time, which differs between the variants.
#[test]
fn broadcasts_differ_between_nodes() {
    let mut machine = machine(None, 1.0);
    machine.nodes[0].count = 8;
    machine.layers = vec![space::machine::Layer {
        name: "network".into(),
        ranks: 32,
        alpha_s: Some(1e-5),
        beta_s_per_word: 1e-7,
        shared_by: 1,
    }];
    let model = OwnModel::new(&machine).unwrap();
    let of = |bcast| {
        let mut c = candidate(2000, 64, (1, 8), 1, 0, 0.0);
        c.hpl.bcast = bcast;
        model.timeline(&c).total_s
    };
    let times = [Bcast::OneRing, Bcast::OneRingM, Bcast::TwoRing, Bcast::Long].map(of);
    assert!(times.windows(2).all(|pair| pair[0] != pair[1]), "{times:?}");
    machine.layers.clear();
    let free = OwnModel::new(&machine).unwrap().timeline(&candidate(2000, 64, (1, 8), 1, 0, 0.0)).total_s;
    assert!(times.iter().all(|&s| s > free), "{times:?} {free}");
}

/// The steps of a long run are sampled; its predicted time must stay close to that of all steps.
#[test]
fn sampled_runs_take_as_long_as_whole_ones() {
    let model = model();
    for ((p, q), threads) in GRIDS {
        for (n, nb) in [(3000, 16), (9000, 24), (20_000, 128)] {
            for (depth, split) in [(0, 0.0), (1, 0.0), (2, 0.5), (1, 0.5)] {
                let c = candidate(n, nb, (p, q), threads, depth, split);
                let (thin, whole) = (model.time_s(&c), model.timeline(&c).total_s);
                assert!((thin / whole - 1.0).abs() < 0.015, "{thin} {whole} {c:?}");
            }
        }
    }
}

proptest! {
    #[test]
    fn slower_phases_take_longer(
        phase in 0usize..5, grid in 0usize..7, nb in 8usize..100, depth in 0usize..3, split in 0.0f64..0.9,
    ) {
        let slow = OwnModel::new(&machine(Some(EnginePhase::ALL[phase]), 2.0)).unwrap();
        let (grid, threads) = GRIDS[grid];
        let c = candidate(600, nb, grid, threads, depth, split);
        prop_assert!(slow.time_s(&c) >= model().time_s(&c) * (1.0 - 1e-12));
    }
}

/// Runs made from a machine's phases give that machine as the fit, to the accuracy of their groups.
#[test]
fn the_fit_recovers_the_machine_of_the_runs() {
    let learned = learned_with_every_fifth_slower_by(1.0);
    assert_eq!(learned.slowed, 0);
}

#[test]
fn runs_slowed_by_other_load_are_left_out() {
    let learned = learned_with_every_fifth_slower_by(1.5);
    assert_eq!((learned.slowed, learned.runs), (12, 60));
}

/// Runs made by the model, some of them slowed by other load; the fit must predict their times without this load.
fn learned_with_every_fifth_slower_by(factor: f64) -> Learned {
    let (truth, mut runs) = (machine(None, 1.0), Vec::new());
    let model = OwnModel::new(&truth).unwrap();
    let options = RunOptions { threshold: 16.0, force: false, watch: &() };
    let example = run_candidate(&candidate(64, 16, (1, 1), 1, 0, 0.0), &options).unwrap();
    for (i, nb) in [16, 24, 32, 48, 64, 96, 128, 40].into_iter().cycle().take(20).enumerate() {
        for (grid, threads) in [((1, 1), 4), ((1, 4), 1), ((4, 1), 1)] {
            let mut c = candidate(600 + 20 * i, nb, grid, threads, 0, 0.0);
            c.hpl.nbmin = 1 << (i % 4);
            let timeline = model.timeline(&c);
            let slower = if i % 5 == 3 { factor } else { 1.0 };
            let time = |step: usize, rank: usize, s: &crate::timeline::StepTimes| PhaseTime {
                step: step as u32,
                rank: rank as u32,
                // Only the owner's process column factors; the mean is over all ranks of a row.
                fact_s: slower * s.fact_s * grid.1 as f64,
                rs_s: slower * s.rs_s,
                update_s: slower * s.update_s,
                ..PhaseTime::default()
            };
            let ranks = c.hpl.ranks();
            let steps = timeline.steps.iter().enumerate();
            let mut phases: Vec<PhaseTime> =
                steps.flat_map(|(k, s)| (0..ranks).map(move |rank| time(k, rank, s))).collect();
            let last = |rank: usize| PhaseTime {
                step: timeline.steps.len() as u32,
                rank: rank as u32,
                trsv_s: slower * timeline.trsv_s,
                ..PhaseTime::default()
            };
            phases.extend((0..ranks).map(last));
            runs.push(space::RunResult { candidate: c, phases, time_s: timeline.total_s, ..example.clone() });
        }
    }
    let learned = learn(&runs, "2026-11-20", "test").unwrap();
    let model = OwnModel::new(&Machine { phases: learned.rates.clone(), ..truth }).unwrap();
    for run in &runs {
        let ratio = model.timeline(&run.candidate).total_s / run.time_s;
        assert!((ratio - 1.0).abs() < 0.05, "{ratio} {:?}", run.candidate.hpl);
    }
    assert!(matches!(learn(&runs[..1], "", ""), Err(LearnError::TooFew { found: 1, .. })));
    learned
}

#[test]
fn refinement_follows_the_runs() {
    let truth = machine(Some(EnginePhase::Fact), 1.2);
    let real = OwnModel::new(&truth).unwrap();
    let observe = |nb: usize, first: usize| {
        let c = candidate(2000, nb, (1, 1), 4, 0, 0.0);
        let timeline = real.timeline(&c);
        let time = |(k, s): (usize, &crate::timeline::StepTimes)| PhaseTime {
            step: k as u32,
            fact_s: s.fact_s,
            rs_s: s.rs_s,
            update_s: s.update_s,
            ..PhaseTime::default()
        };
        let steps = timeline.steps.iter().enumerate().skip(first);
        Observed { phases: steps.map(time).collect(), candidate: c }
    };
    let c = candidate(2000, 96, (1, 1), 4, 0, 0.0);
    let error = |machine: &Machine| OwnModel::new(machine).unwrap().time_s(&c) / real.time_s(&c) - 1.0;
    let calibrated = machine(None, 1.0);
    // Whole runs, and windows of which the first steps are missing.
    for first in [0, 7] {
        let runs: Vec<Observed> = [64, 96, 128, 160, 200].map(|nb| observe(nb, first)).to_vec();
        let corrected = refined(&calibrated, &runs, &Unequal::default());
        let (before, after) = (error(&calibrated), error(&corrected));
        assert!(after.abs() < 0.35 * before.abs(), "from step {first}: {before} {after}");
    }
    assert_eq!(refined(&calibrated, &[], &Unequal::default()), calibrated);
}

/// Rank correlation, and the loss of the best screened candidate by its exact time.
fn agreement(screened: &[f64], exact: &[f64]) -> (f64, f64) {
    let first = (0..screened.len()).min_by(|&a, &b| screened[a].total_cmp(&screened[b])).unwrap();
    let best = exact.iter().copied().fold(f64::INFINITY, f64::min);
    (space::stats::spearman(screened, exact), exact[first] / best - 1.0)
}

#[test]
fn screening_orders_candidates_as_the_exact_walk_does() {
    use space::domain::{DomainSpec, HplDomain};
    use space::{KernelChoice, Unequal, dims::Space};
    let mut large = machine(None, 1.0);
    large.nodes[0].cores = 16;
    let model = OwnModel::new(&large).unwrap();
    let (ranks, threads, unequal) = (None, None, Unequal::default());
    let (kernels, memory_bytes) = (KernelChoice::Builtin, 8 << 30);
    let domain = HplDomain::new(&DomainSpec {
        n: 12_000,
        cores: 16,
        memory_bytes,
        kernels,
        ranks,
        threads,
        most_threads: None,
        common_cores: None,
        unequal,
    })
    .unwrap();
    let points = domain.points();
    let times = model.screen(points.len(), |i| domain.candidate(&points[i]), 2);
    let best = times.iter().copied().fold(f64::INFINITY, f64::min);
    let good: Vec<usize> = (0..points.len()).filter(|&i| times[i] < best / 0.85).collect();
    let mut drawn: Vec<usize> = (0..100).map(|i| good[i * 7919 % good.len()]).collect();
    drawn.push((0..points.len()).min_by(|&a, &b| times[a].total_cmp(&times[b])).unwrap());
    let exact: Vec<f64> = drawn.iter().map(|&i| model.exact_time_s(&domain.candidate(&points[i]))).collect();
    let screened: Vec<f64> = drawn.iter().map(|&i| times[i]).collect();
    let (rho, loss) = agreement(&screened, &exact);
    assert!(rho > 0.97 && loss < 0.005, "{rho} {loss}");
}

/// A sample of steps is no cycle of the owners of blocks that are dealt by weights: of each family one candidate is walked wholly.
#[test]
fn screened_times_of_unequal_ranks_are_those_of_all_steps() {
    let mut large = machine(None, 1.0);
    large.nodes[0].cores = 32;
    let share = |speed: f64| Share::new(speed).unwrap();
    let speed = |rank: usize| share(if [5, 11].contains(&rank) { 0.8 } else { 1.0 });
    let unequal = Unequal { speeds: (0..32).map(speed).collect(), ..Unequal::default() };
    let model = OwnModel::new(&large).unwrap().slowed(unequal);
    let mut candidates = Vec::new();
    for (nb, grid, depth) in [48, 64, 80].into_iter().flat_map(|nb| {
        [(4, 8), (8, 4), (2, 16)].into_iter().flat_map(move |grid| [0, 1].map(move |depth| (nb, grid, depth)))
    }) {
        let mut candidate = candidate(40_000, nb, grid, 1, depth, 0.0);
        candidate.engine.weights.columns =
            (0..grid.1).map(|column| share(if column % 4 == 1 { 0.9 } else { 1.0 })).collect();
        candidates.push(candidate);
    }
    let screened = model.screen(candidates.len(), |at| candidates[at].clone(), 2);
    let mut sampled = 0.0_f64;
    for (candidate, screened_s) in candidates.iter().zip(screened) {
        let all_s = model.timeline(candidate).total_s;
        assert!((screened_s / all_s - 1.0).abs() < 1e-9, "{candidate:?}: {screened_s}, {all_s}");
        sampled = sampled.max((model.time_s(candidate) / all_s - 1.0).abs());
    }
    assert!(sampled > 0.001, "samples are as good: {sampled}");
}

/// In-process ranks of one thread exchange rows strip by strip: the next panel is factored after the first strip, and where other
/// columns wait for it the run is shorter. A layer that costs next to nothing makes the ranks processes, which have no strips.
#[test]
fn strips_let_the_next_panel_start_earlier() {
    let mut of_processes = machine(None, 1.0);
    let (name, alpha_s) = ("node".to_owned(), Some(1e-18));
    of_processes.layers = vec![space::machine::Layer { name, ranks: 64, alpha_s, beta_s_per_word: 0.0, shared_by: 1 }];
    let (strips, whole) = (model(), OwnModel::new(&of_processes).unwrap());
    let ratio = |grid, threads, depth, split| {
        let c = candidate(4000, 64, grid, threads, depth, split);
        strips.exact_time_s(&c) / whole.exact_time_s(&c)
    };
    for (grid, threads, depth, split) in
        [((1, 4), 1, 1, 0.0), ((2, 2), 2, 1, 0.0), ((2, 2), 1, 0, 0.0), ((2, 2), 1, 1, 0.5)]
    {
        let ratio = ratio(grid, threads, depth, split);
        assert!(
            (ratio - 1.0).abs() < 1e-3,
            "no strips, or no panel ahead: {grid:?} {threads} {depth} {split}: {ratio}"
        );
    }
    for grid in [(2, 1), (4, 1)] {
        let ratio = ratio(grid, 1, 1, 0.0);
        assert!((ratio - 1.0).abs() < 0.01, "no column waits for the panel: {grid:?}: {ratio}");
    }
    for grid in [(2, 2), (2, 4), (4, 2)] {
        let ratio = ratio(grid, 1, 1, 0.0);
        assert!((0.8..0.9999).contains(&ratio), "{grid:?}: {ratio}");
    }
}

/// What walking the strips after the first as one leaves out.
#[test]
fn strips_walked_one_by_one_take_as_long_as_the_first_and_the_others_together() {
    let model = model();
    let mut largest: f64 = 0.0;
    for (grid, depth) in [((2, 1), 0), ((2, 1), 1), ((4, 1), 1), ((2, 2), 0), ((2, 2), 1), ((2, 4), 1), ((4, 2), 2)] {
        for (n, nb) in [(2000, 64), (6000, 128), (6000, 256)] {
            let c = candidate(n, nb, grid, 1, depth, 0.0);
            let each = model.exact_time_s(&c);
            let together = model.one_time_s(&c, SampleSize::EXACT);
            largest = largest.max((together / each - 1.0).abs());
        }
    }
    assert!(largest < 0.0003, "{largest}");
}
