//! Runs on the reference device: x is that of the host, in any order that the waits allow.

use std::ops::Range;

use super::cover::covering;
use super::*;
use crate::backend::device::Wait;

const GRIDS: [(usize, usize); 6] = [(1, 1), (1, 2), (2, 1), (2, 2), (1, 3), (3, 2)];

/// Runs a candidate on in-process ranks, each with a reference device; returns the reports by rank.
fn run_by(candidate: &Candidate, order: ExecutionOrder) -> Vec<Result<Report, Error>> {
    let rank = |comm: ThreadComm| {
        let seed = order.seed.wrapping_mul(64) + comm.rank() as u64;
        let order = ExecutionOrder { seed, ..order };
        let solve = |run: &RankRun<'_, ThreadComm>, team: &mut Team<'_>| {
            run.on_device(team, Ok(run.reference(order)), |device| run.run(device))
        };
        as_rank(candidate, &comm, &[], &Builtin::best(), &(), solve)
    };
    thread::scope(|scope| {
        let ranks = threads::world(candidate.hpl.ranks(), false).into_iter();
        let ranks: Vec<_> = ranks.map(|comm| scope.spawn(|| rank(comm))).collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

/// A run on the reference device with its x on the host.
struct Known {
    candidate: Candidate,
    expected: Vec<f64>,
}

/// Runs a candidate on the host, with one thread per rank: it adds up the products of a section in the same order as the device.
fn known(candidate: Candidate) -> Known {
    let on_host = EngineParams { threads: 1, ..candidate.engine.clone() };
    let expected = passes(&Candidate { engine: on_host, ..candidate.clone() }).x;
    let engine = EngineParams { device: DeviceChoice::Reference, ..candidate.engine.clone() };
    Known { candidate: Candidate { engine, ..candidate }, expected }
}

/// The run on the reference device passes, and all its ranks have the x of the host.
fn agrees(Known { candidate, expected }: &Known, seed: u64) {
    for report in run_by(candidate, ExecutionOrder { seed, without: None }) {
        let report = report.unwrap();
        assert_eq!(report.info, 0);
        assert!(report.x == *expected, "x differs: seed {seed}, {candidate:?}");
        assert!(report.residual.unwrap().scaled < 16.0, "seed {seed}, {candidate:?}");
    }
}

#[test]
fn x_of_a_covering_sample_is_that_of_the_host() {
    let shapes = GRIDS.into_iter().flat_map(|grid| [100, 117].map(|n| (n, grid)));
    let runs = shapes.flat_map(|(n, (p, q))| covering(n, 16, p, q));
    runs.zip(0..).for_each(|(candidate, seed)| agrees(&known(candidate), seed));
}

/// Unequal process rows and columns, and orders around the edges.
#[test]
fn x_of_any_shape_is_that_of_the_host() {
    let speeds = |list: &[f64]| list.iter().map(|&speed| Share::new(speed).unwrap()).collect();
    let unequal = Weights { rows: speeds(&[1.0, 2.0]), columns: speeds(&[0.99, 0.01]) };
    let mut random = Random(5);
    for n in [0, 1, 7, 8, 9, 63, 120] {
        for (p, q) in GRIDS {
            let mut candidate = candidate(n, 8, p, q, random.from(&[1, 2]));
            (candidate.hpl.depth, candidate.hpl.swap) = (random.from(&[0, 1, 2]), random.from(&SWAPS));
            (candidate.hpl.bcast, candidate.hpl.align) = (random.from(&BCASTS), random.from(&[1, 8, 512]));
            if (p, q) == (2, 2) {
                candidate.engine.weights = unequal.clone();
            }
            agrees(&known(candidate), n as u64);
        }
    }
}

/// Runs whose panels the device factors, with the x of the reference device in some order: that of the host has other roundings.
fn factored_on_device() -> Vec<Known> {
    let of = |(n, nb, nbmin, ndiv, depth): (usize, usize, usize, usize, usize), q: usize| {
        let mut candidate = candidate(n, nb, 1, q, 2);
        (candidate.hpl.nbmin, candidate.hpl.ndiv, candidate.hpl.depth) = (nbmin, ndiv, depth);
        (candidate.engine.device, candidate.engine.fact_blocks) = (DeviceChoice::Reference, Some(3));
        let order = ExecutionOrder { seed: 1, without: None };
        let expected = run_by(&candidate, order).remove(0).unwrap().x;
        Known { candidate, expected }
    };
    let shapes = [
        (1, 1, 1, 2, 1),
        (40, 8, 2, 2, 0),
        (61, 16, 4, 3, 1),
        (97, 4, 1, 2, 2),
        (117, 16, 8, 2, 3),
        (200, 16, 5, 2, 4),
        (90, 40, 3, 4, 2),
    ];
    shapes.into_iter().flat_map(|shape| [1, 2, 3].map(|q| of(shape, q))).collect()
}

/// x is nearly that of the host, whose panels add up products in another order.
#[test]
fn panels_factored_by_the_device_are_those_of_the_host() {
    for known in factored_on_device() {
        let on_host = EngineParams { device: DeviceChoice::None, fact_blocks: None, ..known.candidate.engine.clone() };
        let host = passes(&Candidate { engine: on_host, ..known.candidate.clone() }).x;
        let largest = host.iter().fold(0.0_f64, |largest, x| largest.max(x.abs()));
        let differs = host.iter().zip(&known.expected).any(|(host, device)| (host - device).abs() > 1e-9 * largest);
        assert!(!differs, "{:?}", known.candidate);
        (0..20).for_each(|seed| agrees(&known, seed));
    }
}

/// There is no memory for what so many blocks would send each other.
#[test]
fn blocks_are_no_more_than_a_panel_has_rows() {
    let mut candidate = candidate(40, 8, 1, 1, 1);
    (candidate.engine.device, candidate.engine.fact_blocks) = (DeviceChoice::Reference, Some(usize::MAX));
    let report = run_by(&candidate, ExecutionOrder { seed: 1, without: None }).remove(0).unwrap();
    assert!(report.residual.unwrap().scaled < 16.0);
}

/// With P > 1 the threads of the host factor the panels.
#[test]
fn blocks_of_a_panel_have_no_effect_with_several_process_rows() {
    let Known { mut candidate, expected } = known(candidate(60, 8, 2, 2, 1));
    candidate.engine.fact_blocks = Some(4);
    agrees(&Known { candidate, expected }, 7);
}

#[test]
fn windows_pass_the_check() {
    let windows = [(0, 2), (3, 4), (8, 1)].map(|(first, steps)| Window { first, steps });
    for (p, q) in GRIDS {
        for (depth, split, fact_blocks) in [(0, 0.0, 0), (1, 0.5, 4), (2, 0.0, 0), (2, 0.0, 2), (3, 0.0, 3)] {
            let mut candidate = candidate(176, 16, p, q, 1);
            (candidate.hpl.depth, candidate.engine.device) = (depth, DeviceChoice::Reference);
            candidate.engine.fact_blocks = Some(fact_blocks);
            candidate.engine.split = Share::new(split).unwrap();
            let (candidate, windows) = (&candidate, &windows[..]);
            let measure = |comm: ThreadComm| measure_windows(candidate, windows, &comm, &[], &Builtin::best());
            let reports: Vec<WindowsReport> = thread::scope(|scope| {
                let ranks = threads::world(p * q, false).into_iter();
                let ranks: Vec<_> = ranks.map(|comm| scope.spawn(move || measure(comm))).collect();
                ranks.into_iter().map(|rank| rank.join().unwrap().unwrap()).collect()
            });
            for times in reports.iter().flat_map(|report| &report.windows[..2]) {
                assert!(times.residual.unwrap() < 16.0, "{times:?} of {candidate:?}");
            }
        }
    }
}

/// Windows of a run of order 1000 in panels of 8 columns on the reference device, which factors them unless `blocks` is 0: nearly all
/// time is that of products.
fn report_of(windows: &[Window], (depth, blocks): (usize, usize), seed: u64) -> WindowsReport {
    let mut candidate = candidate(1000, 8, 1, 1, 1);
    candidate.hpl.depth = depth;
    (candidate.engine.device, candidate.engine.fact_blocks) = (DeviceChoice::Reference, Some(blocks));
    let measure = |run: &RankRun<'_, ThreadComm>, team: &mut Team<'_>| {
        let device = run.reference(ExecutionOrder { seed, without: None });
        run.on_device(team, Ok(device), |device| run.windows(device, windows))
    };
    let comm = threads::world(1, false).pop().unwrap();
    as_rank(&candidate, &comm, &[], &Builtin::best(), &(), measure).unwrap()
}

/// The least of some times: another process may take the core for a while.
fn least(measure: impl Fn() -> f64) -> f64 {
    (0..10).map(|_| measure()).fold(f64::INFINITY, f64::min)
}

#[test]
fn what_steps_before_a_window_have_queued_is_no_part_of_its_time() {
    const WINDOWS: [Window; 1] = [Window { first: 2, steps: 1 }];
    for seed in 0..4 {
        let ratio = least(|| {
            let report = report_of(&WINDOWS, (0, 1), seed);
            let PhaseTime { fact_s, rs_s, update_s, .. } = report.phases[0];
            report.windows[0].step_s[0] / (fact_s + rs_s + update_s)
        });
        assert!(ratio < 1.5, "seed {seed}: the step takes {ratio} times as long as its operations");
    }
}

/// The panel in flight at the end of the first window makes its update there after it.
#[test]
fn what_is_done_after_a_window_is_no_part_of_the_phases_of_the_next() {
    const WINDOWS: [Window; 2] = [Window { first: 2, steps: 1 }, Window { first: 3, steps: 1 }];
    let update_s = |windows: &[Window]| least(|| report_of(windows, (1, 1), 0).phases.last().unwrap().update_s);
    let (beside, alone) = (update_s(&WINDOWS), update_s(&WINDOWS[1..]));
    assert!(beside < 1.5 * alone, "{beside} s after another window, {alone} s alone");
}

/// The host waits for the update of the panel's columns before it factors the panel.
#[test]
fn fact_of_the_host_is_no_wait_for_the_update_of_the_device() {
    const WINDOWS: [Window; 1] = [Window { first: 2, steps: 2 }];
    for seed in 0..4 {
        let share = least(|| {
            let last = report_of(&WINDOWS, (0, 0), seed).phases[1];
            last.fact_s / last.update_s
        });
        assert!(share < 0.5, "seed {seed}: FACT takes {share} of the time of the update");
    }
}

/// Memory that a device takes at its first use, as its BLAS does: where one lacks it all ranks know that, and none is poisoned.
#[test]
fn memory_that_a_device_lacks_at_its_first_use_is_known_to_all_ranks() {
    const WINDOWS: [Window; 1] = [Window { first: 1, steps: 2 }];
    let mut candidate = candidate(100, 16, 2, 2, 1);
    candidate.engine.device = DeviceChoice::Reference;
    let candidate = &candidate;
    let (whole, windows) = ([Wait::Finished, Wait::Generated], [Wait::Finished, Wait::SumsOnHost]);
    for (wait, is_whole) in whole.map(|wait| (wait, true)).into_iter().chain(windows.map(|wait| (wait, false))) {
        let rank = |comm: ThreadComm| {
            let solve = |run: &RankRun<'_, ThreadComm>, team: &mut Team<'_>| {
                let device = run.reference(ExecutionOrder { seed: 3, without: None });
                let device = if run.comm.rank() == 1 { device.lacking_memory_at(wait) } else { device };
                run.on_device(team, Ok(device), |device| {
                    if is_whole { run.run(device).map(drop) } else { run.windows(device, &WINDOWS).map(drop) }
                })
            };
            as_rank(candidate, &comm, &[], &Builtin::best(), &(), solve)
        };
        let outcomes: Vec<Result<(), Error>> = thread::scope(|scope| {
            let ranks = threads::world(candidate.hpl.ranks(), false).into_iter();
            let ranks: Vec<_> = ranks.map(|comm| scope.spawn(|| rank(comm))).collect();
            ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
        });
        for (rank, outcome) in outcomes.iter().enumerate() {
            let is_known = match outcome {
                Err(Error::DeviceMemory(_)) => rank == 1,
                Err(Error::DeviceMemoryElsewhere) => rank != 1,
                _ => false,
            };
            assert!(is_known, "{wait}, whole {is_whole}, rank {rank}: {outcome:?}");
        }
    }
}

/// Small runs of all variants.
fn small_runs() -> Vec<Known> {
    let by_host = GRIDS.into_iter().flat_map(|(p, q)| covering(60, 8, p, q)).map(known);
    by_host.chain(factored_on_device()).collect()
}

/// Runs one of `runs` for each of the seeds.
fn agree_in_orders(runs: &[Known], seeds: Range<u64>) {
    seeds.for_each(|seed| agrees(&runs[seed as usize % runs.len()], seed));
}

#[test]
fn x_is_the_same_in_random_orders() {
    agree_in_orders(&small_runs(), 0..1000);
}

/// `cargo test --release -p hpl --lib -- --ignored --nocapture ten_thousand_random_orders`
#[test]
#[ignore = "ten thousand runs"]
fn x_is_the_same_in_ten_thousand_random_orders() {
    let (runs, start) = (small_runs(), Instant::now());
    agree_in_orders(&runs, 1000..11_000);
    println!("10000 orders of {} runs: {:.0} s", runs.len(), start.elapsed().as_secs_f64());
}

/// How a run without a wait fails; `None` when its x and its check are right.
fn failure(Known { candidate, expected }: &Known, order: ExecutionOrder) -> Option<&'static str> {
    let reports = std::panic::catch_unwind(|| run_by(candidate, order));
    let Ok(reports) = reports else { return Some("a rank panics") };
    let kind = |report: &Result<Report, Error>| match report {
        Err(_) => Some("a rank fails"),
        Ok(report) if report.info != 0 => Some("a pivot is zero"),
        Ok(report) if report.x.iter().any(|x| x.is_nan()) => Some("x is poison"),
        Ok(report) if report.x != *expected => Some("x is wrong"),
        Ok(report) if report.residual.is_none_or(|found| found.scaled.is_nan()) => Some("the check is poison"),
        Ok(_) => None,
    };
    reports.iter().find_map(kind)
}

/// Without any one of the waits, some order gives a wrong result:
/// `cargo test --release -p hpl --lib -- --nocapture every_wait_is_needed`.
#[test]
fn every_wait_is_needed() {
    const ORDERS: u64 = 40;
    let runs = small_runs();
    println!("{:<16} {:>6}  of {ORDERS} orders that fail, and how the first does", "without", "");
    for wait in Wait::ALL {
        let order = |seed| ExecutionOrder { seed, without: Some(wait) };
        let fails = |seed: u64| failure(&runs[(7 * seed) as usize % runs.len()], order(seed));
        let failures: Vec<&str> = (0..ORDERS).filter_map(fails).collect();
        println!("{:<16} {:>6}  {}", format!("{wait:?}"), failures.len(), failures.first().unwrap_or(&"none"));
        assert!(!failures.is_empty(), "no order needs to wait for {wait}");
    }
}
