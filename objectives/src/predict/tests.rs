use proptest::prelude::*;
use space::machine::{Host, Layer, Node, Rate, RateKernel};
use space::{EngineParams, HplParams};

use super::*;

fn rate(kernel: RateKernel, threads: usize, coefficients: &[f64], valid: &[[f64; 2]]) -> Rate {
    Rate {
        kernel,
        threads,
        coefficients: coefficients.to_vec(),
        valid: valid.to_vec(),
        spread: 0.01,
        fit_error: 0.01,
        date: "2026-11-20".into(),
        origin: "made for a test".into(),
    }
}

/// Four cores of 50 GF/s: rates for 1, 2 and 4 threads that scale with the threads, those of panels only a little.
fn machine() -> Machine {
    let wide = [1.0, 1e4];
    let mut rates = Vec::new();
    for threads in [1, 2, 4] {
        let t = threads as f64;
        rates.push(rate(RateKernel::Dgemm, threads, &[4e-11 / t, 1e-9 / t, 1e-10, 1e-10, 1e-6], &[wide; 3]));
        rates.push(rate(RateKernel::Dtrsm, threads, &[1e-10 / t, 1e-9 / t, 1e-6], &[wide; 2]));
        rates.push(rate(RateKernel::Panel, threads, &[2e-10 / t.sqrt(), 1e-9, 1e-6], &[wide; 2]));
        rates.push(rate(RateKernel::Swap, threads, &[2e-9 / t, 1e-6], &[wide; 2]));
    }
    let layer = |name: &str, ranks, alpha_s, beta_s_per_word| Layer {
        name: name.into(),
        ranks,
        alpha_s: Some(alpha_s),
        beta_s_per_word,
        shared_by: 1,
    };
    Machine {
        host: Host { name: "test".into(), cpu: "none".into(), origin: "made".into(), kernels: String::new() },
        nodes: vec![Node {
            name: "test".into(),
            count: 1,
            cores: 4,
            memory_bytes: 1 << 34,
            reserved_bytes: 0,
            peak_gflops: 0.0,
            ..Node::default()
        }],
        rates,
        layers: vec![layer("memory", 1, 0.0, 1e-9), layer("threads", 4, 1e-6, 2e-9)],
        ..Machine::default()
    }
}

fn candidate(n: usize, nb: usize, (p, q): (usize, usize), threads: usize, depth: usize) -> Candidate {
    let hpl = HplParams { nb, depth, ..HplParams::baseline(n, p, q) };
    Candidate { hpl, engine: EngineParams { threads, ..EngineParams::default() } }
}

const SHAPES: [((usize, usize), usize); 6] =
    [((1, 1), 4), ((1, 2), 2), ((2, 1), 2), ((1, 4), 1), ((2, 2), 1), ((4, 1), 1)];

#[test]
fn gemm_dominates_large_runs_and_the_rate_approaches_its_peak() {
    let predictor = Predictor::new(&machine()).unwrap();
    for (grid, threads) in SHAPES {
        let c = candidate(9000, 128, grid, threads, 1);
        let gflops = predictor.rate_gflops(&c);
        // 1/4e-11 multiply-adds per second per core: 200 GF/s for four.
        assert!((100.0..200.0).contains(&gflops), "{grid:?} {gflops}");
        let terms = predictor.breakdown(&c);
        assert!(terms.gemm_s > 0.6 * terms.total_s(), "{terms:?}");
        assert_eq!(terms.total_s(), predictor.time_s(&c));
        assert_eq!(predictor.warnings(&c), Vec::<String>::new());
    }
}

#[test]
fn what_needs_no_message_costs_none() {
    let predictor = Predictor::new(&machine()).unwrap();
    let of = |grid, threads| predictor.breakdown(&candidate(4000, 128, grid, threads, 0));
    let one = of((1, 1), 4);
    assert_eq!((one.pivot_s, one.lbcast_s, one.hidden_s), (0.0, 0.0, 0.0));
    let flat = of((1, 4), 1);
    assert!(flat.pivot_s == 0.0 && flat.lbcast_s > 0.0);
    let tall = of((4, 1), 1);
    assert!(tall.pivot_s > 0.0 && tall.lbcast_s == 0.0);
}

/// U has half of the 4000² words, of which each of four threads reads a quarter, whatever ranks they belong to.
#[test]
fn all_threads_of_a_rank_read_its_memory() {
    let trsv_s = |machine: &Machine, grid, threads| {
        Predictor::new(machine).unwrap().breakdown(&candidate(4000, 128, grid, threads, 0)).trsv_s
    };
    let mut machine = machine();
    machine.layers.truncate(1);
    for (grid, threads) in [((1, 1), 4), ((1, 2), 2), ((2, 2), 1)] {
        let read_s = trsv_s(&machine, grid, threads);
        assert!((read_s / (1e-9 * 8e6 / 4.0) - 1.0).abs() < 1e-12, "{grid:?}: {read_s}");
    }
    machine.layers[0].shared_by = 4;
    for (grid, threads) in [((1, 1), 4), ((2, 2), 1)] {
        let read_s = trsv_s(&machine, grid, threads);
        assert!((read_s / (1e-9 * 8e6) - 1.0).abs() < 1e-12, "{grid:?}: {read_s}");
    }
}

/// Sixteen nodes of 64 cores on a network.
fn sixteen_nodes(alpha_s: f64, shared_by: usize) -> Predictor {
    let mut machine = machine();
    machine.nodes[0] = Node { count: 16, cores: 64, ..machine.nodes[0].clone() };
    machine.layers[1].ranks = 64;
    let (name, alpha_s) = ("network".to_owned(), Some(alpha_s));
    machine.layers.push(Layer { name, ranks: 1024, alpha_s, shared_by, ..machine.layers[1].clone() });
    Predictor::new(&machine).unwrap()
}

/// A grid of 8×8 ranks with 16 threads each has four ranks on a node: its messages leave it.
#[test]
fn ranks_of_several_threads_send_over_the_layer_that_joins_them() {
    let with = |alpha_s: f64| sixteen_nodes(alpha_s, 1);
    let c = candidate(4000, 128, (8, 8), 16, 0);
    let [near, far] = [1e-6, 1e-3].map(with);
    // Each of the 4000 columns is searched for its pivot in three rounds over the network.
    let longer_s = far.breakdown(&c).pivot_s - near.breakdown(&c).pivot_s;
    assert!((longer_s / (4000.0 * 3.0 * (1e-3 - 1e-6)) - 1.0).abs() < 1e-9, "{longer_s}");
    assert_eq!(far.warnings(&c).iter().find(|warning| warning.contains("[[layer]]")), None);
    // As many ranks of one thread are within a node.
    let inside = candidate(4000, 128, (8, 8), 1, 0);
    assert_eq!(near.time_s(&inside), far.time_s(&inside));
    // A process of 64 threads has a node: the layer within it carries nothing.
    let mut slow_inside = with(1e-3);
    slow_inside.layers[0].alpha_s = Some(1.0);
    let whole_nodes = candidate(4000, 128, (4, 4), 64, 0);
    assert_eq!(slow_inside.time_s(&whole_nodes), far.time_s(&whole_nodes));
}

/// Of the 64 that may share the link of a node there are as many as the node runs.
#[test]
fn as_many_ranks_share_a_link_as_a_node_runs() {
    let of = |shared_by, grid, threads| sixteen_nodes(1e-6, shared_by).time_s(&candidate(4000, 128, grid, threads, 0));
    for (grid, threads, on_node) in [((32, 32), 1, 64), ((8, 8), 16, 4), ((4, 4), 64, 1)] {
        assert_eq!(of(64, grid, threads), of(on_node, grid, threads), "{threads}");
        assert!(on_node == 1 || of(64, grid, threads) > of(1, grid, threads), "{threads}");
    }
}

#[test]
fn depth_hides_the_panel_where_something_runs_beside_it() {
    let predictor = Predictor::new(&machine()).unwrap();
    for (grid, threads) in SHAPES {
        let [plain, ahead] = [0, 1].map(|depth| predictor.breakdown(&candidate(6000, 128, grid, threads, depth)));
        assert_eq!(plain.hidden_s, 0.0);
        let beside = grid.1 > 1 || threads > 1;
        assert_eq!(ahead.hidden_s > 0.0, beside, "{grid:?} {ahead:?}");
        assert!(ahead.hidden_s <= ahead.fact_s + ahead.pivot_s + ahead.lbcast_s);
    }
}

#[test]
fn blind_parameters_share_one_prediction() {
    let predictor = Predictor::new(&machine()).unwrap();
    let c = candidate(4000, 96, (2, 2), 1, 1);
    let mut other = c.clone();
    other.hpl.nbmin = 16;
    other.hpl.pfact = space::Looking::Left;
    other.hpl.bcast = space::Bcast::LongM;
    other.hpl.depth = 3;
    other.engine.split = space::Share::new(0.5).unwrap();
    assert_eq!(predictor.time_s(&c), predictor.time_s(&other));
    assert_eq!(predictor.warnings(&other), Vec::<String>::new());
    other.engine.weights.rows = vec![space::Share::ZERO, space::Share::new(1.0).unwrap()];
    assert!(predictor.warnings(&other)[0].contains("weights"));
    assert_eq!(predictor.cache.lock().unwrap().len(), 1);
}

#[test]
fn leaving_the_measured_range_is_told() {
    let mut machine = machine();
    machine.rates.retain(|rate| rate.threads != 2);
    machine.rates.iter_mut().filter(|rate| rate.kernel == RateKernel::Dgemm).for_each(|rate| {
        rate.valid = vec![[100.0, 3000.0], [100.0, 3000.0], [32.0, 256.0]];
    });
    let predictor = Predictor::new(&machine).unwrap();
    let warnings = |c: &Candidate| predictor.warnings(c).join("; ");
    assert_eq!(warnings(&candidate(3000, 64, (1, 1), 4, 0)), "");
    assert_eq!(
        warnings(&candidate(3000, 8, (1, 1), 4, 0)),
        "Dgemm at k = 8: extrapolated from what was measured, 32 to 256"
    );
    assert!(warnings(&candidate(8000, 128, (1, 1), 4, 0)).contains("m = 7872"));
    assert!(warnings(&candidate(3000, 128, (1, 2), 2, 0)).contains("not measured with 2 threads"));
    assert!(warnings(&candidate(3000, 128, (2, 4), 1, 0)).contains("no [[layer]] joins 8 ranks"));
    assert!(warnings(&candidate(3000, 128, (2, 4), 1, 0)).contains("share 4 cores"));
}

#[test]
fn useless_descriptions_are_named() {
    let broken = |change: &dyn Fn(&mut Machine)| {
        let mut machine = machine();
        change(&mut machine);
        Predictor::new(&machine).unwrap_err()
    };
    let swap = RateKernel::Swap;
    assert_eq!(broken(&|m| m.rates.retain(|r| r.kernel != swap)), ModelError::MissingRate { kernel: swap });
    assert_eq!(broken(&|m| m.nodes.clear()), ModelError::NoCores);
    assert!(matches!(broken(&|m| m.rates[0].coefficients.clear()), ModelError::Shape { key: "coefficients", .. }));
    assert!(matches!(broken(&|m| m.rates[0].valid.clear()), ModelError::Shape { key: "valid", .. }));
    assert!(matches!(broken(&|m| m.rates[0].coefficients[1] = -1.0), ModelError::Coefficients { .. }));
    assert!(matches!(broken(&|m| m.rates[0].coefficients[1] = f64::NAN), ModelError::Coefficients { .. }));
}

proptest! {
    #[test]
    fn any_shape_has_a_positive_time(n in 0usize..3000, nb in 1usize..400, shape in 0usize..6, depth in 0usize..4) {
        let (grid, threads) = SHAPES[shape];
        let time_s = Predictor::new(&machine()).unwrap().time_s(&candidate(n, nb, grid, threads, depth));
        prop_assert!(time_s.is_finite() && (time_s > 0.0 || n == 0), "{time_s}");
    }

    #[test]
    fn time_falls_when_a_rate_rises(n in 1000usize..6000, nb in 16usize..300, shape in 0usize..6, depth in 0usize..2) {
        let (grid, threads) = SHAPES[shape];
        let c = candidate(n, nb, grid, threads, depth);
        let slow = machine();
        let time_s = Predictor::new(&slow).unwrap().time_s(&c);
        for kernel in RateKernel::ALL {
            let mut fast = slow.clone();
            for rate in fast.rates.iter_mut().filter(|rate| rate.kernel == kernel) {
                rate.coefficients.iter_mut().for_each(|c| *c *= 0.5);
            }
            prop_assert!(Predictor::new(&fast).unwrap().time_s(&c) < time_s, "{kernel:?}");
        }
        let mut fast = slow.clone();
        fast.layers.iter_mut().for_each(|layer| layer.beta_s_per_word *= 0.5);
        prop_assert!(Predictor::new(&fast).unwrap().time_s(&c) < time_s);
    }
}
