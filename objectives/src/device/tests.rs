//! The limits of the model, and what it predicts of published runs.

use proptest::prelude::*;
use space::flops::rate_gflops;
use space::machine::{Node, published};

use super::*;

const FREE: DeviceRates = DeviceRates {
    dgemm_gflops: Vec::new(),
    dgemm_half: 0.0,
    trsm_share: 1.0,
    memory_gbytes_per_s: f64::INFINITY,
    link_gbytes_per_s: f64::INFINITY,
    launch_s: 0.0,
    host_panel_gflops: Some(f64::INFINITY),
    host_panel_column_s: 0.0,
    panel_s: Some(0.0),
    panel_row_s: Some(0.0),
    panel_nb: Some(1024),
    panel_share: 0.0,
};

fn machine(name: &str) -> Machine {
    published::find(name).unwrap().machine().unwrap()
}

/// A machine on which DGEMM alone takes time.
fn free(name: &str, dgemm_gflops: f64) -> Machine {
    let mut machine = machine(name);
    machine.device = Some(DeviceRates { dgemm_gflops: vec![[1.0, dgemm_gflops]], ..FREE });
    for layer in &mut machine.layers {
        (layer.alpha_s, layer.beta_s_per_word) = (Some(0.0), 0.0);
    }
    machine
}

fn run(n: usize, nb: usize, (p, q): (usize, usize)) -> Run {
    Run { n, nb, p, q, nodes: None, threads: 1 }
}

fn predict(machine: &Machine, run: &Run, choices: &Choices) -> DevicePrediction {
    DeviceModel::new(machine, choices).unwrap().predict(run, 1).unwrap()
}

fn gflops(machine: &Machine, run: &Run, choices: &Choices) -> f64 {
    rate_gflops(run.n, predict(machine, run, choices).timeline.total_s)
}

fn on(fact: FactPlace) -> Choices {
    Choices { fact: Some(fact), ..Choices::default() }
}

#[test]
fn the_rate_is_that_of_dgemm_where_all_else_is_free() {
    for (name, run, tolerance) in
        [("h100", run(96_000, 128, (1, 1)), 2e-3), ("crusher", run(192_000, 128, (4, 2)), 8e-3)]
    {
        for fact in [FactPlace::Host, FactPlace::Device] {
            let predicted = predict(&free(name, 1000.0), &run, &on(fact));
            let share = rate_gflops(run.n, predicted.timeline.total_s) / predicted.dgemm_gflops;
            println!("{name}: {share:.4} of DGEMM");
            assert!((share - 1.0).abs() < tolerance, "{share}");
            assert_eq!((predicted.fact_hidden, predicted.exposed_order), (1.0, None));
            assert_eq!(predicted.dgemm_gflops, 1000.0 * run.ranks() as f64);
        }
    }
}

#[test]
fn fact_hides_down_to_the_order_at_which_the_update_is_as_long() {
    // m·NB² / R_host = 2 m² NB / R_device at m = NB·R_device / (2·R_host).
    let mut machine = free("h200", 48_000.0);
    machine.device.as_mut().unwrap().host_panel_gflops = Some(300.0);
    let predicted = predict(&machine, &run(122_880, 512, (1, 1)), &on(FactPlace::Host));
    let order = predicted.exposed_order.unwrap() as f64;
    let expected = 512.0 * 48_000.0 / (2.0 * 300.0);
    assert!((order / expected - 1.0).abs() < 0.04, "{order}, {expected}");
    // Panels alone take N²·NB/2 flops on the host.
    machine.device.as_mut().unwrap().dgemm_gflops = vec![[1.0, 1e12]];
    let alone = predict(&machine, &run(122_880, 512, (1, 1)), &on(FactPlace::Host));
    let fact_s = 122_880.0_f64.powi(2) * 512.0 / 2.0 / 300e9;
    assert!((alone.timeline.total_s / fact_s - 1.0).abs() < 0.01, "{}, {fact_s}", alone.timeline.total_s);
    assert!(alone.fact_hidden < 0.01 && alone.exposed_order == Some(122_880));
}

#[test]
fn the_first_step_of_an_h200_is_as_estimated_by_hand() {
    // N 100352, NB 1024: copies of the panel 16 ms each way, FACT 27 ms on the device, 350 ms on the host at 300 GFLOP/s.
    let machine = machine("h200");
    let run = run(100_352, 1024, (1, 1));
    let choices = Choices { host_panel_gflops: Some(300.0), ..Choices::default() };
    let placement = Placement::new(&machine, &run).unwrap();
    let ways = Ways::new(MODEL, &machine, &run, &placement, &choices).unwrap();
    let plan =
        Plan { layout: Layout::block_cyclic(run.n, run.nb, 1, 1), depth: 1, split: 0.0, strips: ColumnStrips::Whole };
    let panel = plan.panel(0, 0);
    let rates = machine.device.as_ref().unwrap();
    let costs = |fact| OperationCosts::new(rates, &run, ways, fact, &choices).unwrap();
    let (host, device) = (costs(FactPlace::Host), costs(FactPlace::Device));
    let near = |found: f64, wanted: f64| assert!((found / wanted - 1.0).abs() < 0.15, "{found}, {wanted}");
    near(device.fact_s(&panel), 27e-3);
    near(host.fact_s(&panel), 350e-3);
    near(host.link_s(2 * panel.words()), 32e-3);
    near(host.gemm_s(run.n - 1024, 1024, 1024), 4.2e-3);
    near(host.gemm_s(run.n - 1024, run.n - 2048, 1024), 385e-3);
    near(host.trsm_s(1024, run.n), 4.2e-3);
    near(host.swap_s(1024, run.n), 2.3e-3);
}

#[test]
fn dgemm_between_stated_k_lies_between_their_rates() {
    let (machine, run) = (machine("h100"), run(1024, 64, (1, 1)));
    let ways = Ways { row: [0.0; 2], column: [0.0; 2] };
    let costs = OperationCosts::new(machine.device.as_ref().unwrap(), &run, ways, FactPlace::Host, &Choices::default())
        .unwrap();
    let rates = [64.0, 128.0, 256.0, 300.0, 512.0, 600.0, 1024.0].map(|k| costs.dgemm_gflops(k));
    assert!(rates.is_sorted() && (rates[2], rates[4], rates[6]) == (39_100.0, 44_200.0, 47_100.0), "{rates:?}");
    assert_eq!(rates[1], 39_100.0 / 2.0);
    assert_eq!(costs.dgemm_gflops(4096.0), 47_100.0);
}

/// Rate of the step whose update leaves `left` columns, in TFLOP/s.
fn tflops_at(predicted: &DevicePrediction, run: &Run, left: usize) -> f64 {
    let k = (run.n - left) / run.nb;
    let steps = &predicted.timeline.steps;
    let time_s = steps[k].end_s - steps[k - 1].end_s;
    let (before, after) = ((run.n - k * run.nb) as f64, (run.n - (k + 1) * run.nb) as f64);
    2.0 / 3.0 * (before.powi(3) - after.powi(3)) / time_s * 1e-12
}

#[test]
fn nvidias_run_on_one_h100() {
    let (machine, run) = (machine("h100"), run(92_160, 1024, (1, 1)));
    let predicted = predict(&machine, &run, &on(FactPlace::Device));
    let tflops = rate_gflops(run.n, predicted.timeline.total_s) * 1e-3;
    let [at_30k, at_16k] = [30_000, 16_000].map(|left| tflops_at(&predicted, &run, left));
    println!(
        "H100: {tflops:.1} TFLOP/s (published 42.1); {at_30k:.1} at 30k columns left (40), {at_16k:.1} at 16k (25)"
    );
    println!("{:?}, hidden {:.3}, exposed from {:?}", predicted.sums, predicted.fact_hidden, predicted.exposed_order);
    assert!((tflops / 42.1 - 1.0).abs() < 0.10, "{tflops}");
    assert!(at_30k > at_16k && (at_30k / 40.0 - 1.0).abs() < 0.25 && at_16k / 25.0 > 0.8, "{at_30k} {at_16k}");
}

#[test]
fn one_crusher_node_and_128_of_them() {
    let machine = machine("crusher");
    let split = Choices { split: 0.5, ..Choices::default() };
    let one = run(256_000, 512, (4, 2));
    let node = predict(&machine, &one, &split);
    let tflops = rate_gflops(one.n, node.timeline.total_s) * 1e-3;
    let unsplit = gflops(&machine, &one, &Choices::default()) * 1e-3;
    println!("Crusher node: {tflops:.1} TFLOP/s (published 153), without split {unsplit:.1}");
    println!("{:?}, hidden {:.3}, exposed from {:?}", node.sums, node.fact_hidden, node.exposed_order);
    let many = Run { nodes: Some(128), ..run(2_895_872, 512, (32, 32)) };
    let all = predict(&machine, &many, &split);
    let pflops = rate_gflops(many.n, all.timeline.total_s) * 1e-6;
    println!("128 nodes: {pflops:.2} PFLOP/s (published 17.75)");
    println!("{:?}, hidden {:.3}, exposed from {:?}", all.sums, all.fact_hidden, all.exposed_order);
    assert!((tflops / 153.0 - 1.0).abs() < 0.15, "{tflops}");
    assert!((pflops / 17.75 - 1.0).abs() < 0.20, "{pflops}");
    assert!(unsplit < tflops, "{unsplit}");
}

#[test]
fn what_is_not_stated_says_how_to_give_it() {
    let none = DeviceModel::new(&machine("dahu"), &Choices::default()).unwrap_err().to_string();
    assert!(none.contains("[device]"), "{none}");
    let refused = |name: &str, change: &dyn Fn(&mut DeviceRates), choices: &Choices| {
        let mut machine = machine(name);
        change(machine.device.as_mut().unwrap());
        let model = DeviceModel::new(&machine, choices).unwrap();
        model.predict(&run(10_240, 512, (1, 1)), 1).unwrap_err().to_string()
    };
    assert!(refused("crusher", &|_| (), &on(FactPlace::Device)).contains("panel_s of [device]"));
    let without: &dyn Fn(&mut DeviceRates) = &|rates| rates.host_panel_gflops = None;
    assert!(refused("h100", without, &on(FactPlace::Host)).contains("--host-panel-gflops"));
    // Without a word, FACT is where the engine does it, if its time is stated.
    let place = |name: &str, grid, choices: &Choices| {
        let machine = machine(name);
        let many = Machine { nodes: vec![Node { count: 2, ..machine.nodes[0].clone() }], ..machine };
        predict(&many, &run(10_240, 512, grid), choices).fact
    };
    assert_eq!(place("h100", (1, 1), &Choices::default()), FactPlace::Device);
    assert_eq!(place("crusher", (2, 1), &Choices::default()), FactPlace::Host);
    let host = Choices { host_panel_gflops: Some(300.0), ..Choices::default() };
    assert_eq!(place("h100", (1, 1), &host), FactPlace::Host);
}

#[test]
fn sizes_around_the_edges_are_predicted() {
    let machine = machine("crusher");
    for n in [1, 511, 512, 513, 1023, 1025, 5000] {
        for grid in [(1, 1), (1, 2), (2, 1), (4, 2), (2, 4), (8, 1)] {
            for (depth, split) in [(0, 0.0), (0, 0.5), (1, 0.0), (1, 0.5), (2, 0.3), (9, 0.9)] {
                let model = DeviceModel::new(&machine, &Choices { split, ..Choices::default() }).unwrap();
                let predicted = model.predict(&run(n, 512, grid), depth).unwrap();
                let (sums, timeline) = (predicted.sums, predicted.timeline);
                assert_eq!(timeline.steps.len(), n.div_ceil(512));
                let phases = timeline.sums();
                let parts = phases.fact_s + phases.lbcast_s + phases.rs_s + phases.update_s + timeline.trsv_s;
                for total_s in [parts, sums.total_s() + timeline.trsv_s, phases.end_s + timeline.trsv_s] {
                    assert!((total_s / timeline.total_s - 1.0).abs() < 1e-9, "N {n} {grid:?} DEPTH {depth} {total_s}");
                }
                assert!(timeline.steps.is_sorted_by_key(|step| step.end_s) && timeline.total_s > 0.0);
            }
        }
    }
}

proptest! {
    /// A part that is quicker makes no run slower: but for the shares of the host and the device, which change the order of waits.
    #[test]
    fn time_falls_when_a_rate_rises(
        blocks in 4usize..60,
        nb in 64usize..1025,
        grid in proptest::sample::select(vec![(1, 1), (1, 2), (2, 1), (2, 2), (4, 2)]),
        split in proptest::sample::select(vec![0.0, 0.5]),
        fact in proptest::sample::select(vec![FactPlace::Host, FactPlace::Device]),
    ) {
        let mut slow = machine("crusher");
        let rates = slow.device.as_mut().unwrap();
        (rates.panel_s, rates.panel_row_s, rates.panel_nb) = (Some(12e-3), Some(0.15e-6), Some(1024));
        let run = run((blocks * nb).min(90_000), nb, grid);
        let choices = Choices { split, fact: Some(fact), ..Choices::default() };
        let time_s = |machine: &Machine| predict(machine, &run, &choices).timeline.total_s;
        let before = time_s(&slow);
        let changes: [fn(&mut Machine); 8] = [
            |m| m.device.as_mut().unwrap().dgemm_gflops[0][1] *= 2.0,
            |m| m.device.as_mut().unwrap().dgemm_half /= 2.0,
            |m| m.device.as_mut().unwrap().memory_gbytes_per_s *= 2.0,
            |m| m.device.as_mut().unwrap().link_gbytes_per_s *= 2.0,
            |m| m.device.as_mut().unwrap().host_panel_gflops = Some(300.0),
            |m| m.device.as_mut().unwrap().panel_s = Some(6e-3),
            |m| m.device.as_mut().unwrap().launch_s /= 2.0,
            |m| m.layers[0].beta_s_per_word /= 2.0,
        ];
        for (index, change) in changes.iter().enumerate() {
            let mut fast = slow.clone();
            change(&mut fast);
            let after = time_s(&fast);
            prop_assert!(after <= before * (1.0 + 1e-9), "change {index}: {after} s, before {before} s");
        }
    }
}
