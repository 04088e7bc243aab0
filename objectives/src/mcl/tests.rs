use proptest::prelude::*;

use super::*;
use crate::netlib;

/// The paper's P100, `spec` of the device as published with \[MCL\].
const P100: Accelerator = Accelerator {
    memory_controllers: 8.0,
    words_per_controller: 8.0,
    memory_rate_hz: 1.43e9,
    cores: 3584.0,
    flops_per_cycle: 1.0,
    clock_hz: 1.303e9,
    latency_s: 1029.0 / 1.303e9,
};

/// NB of the reconstruction; the paper does not give its own.
const NB: usize = 1024;

fn layer(ranks: usize, alpha_s: f64, beta_s: f64) -> McLayer {
    McLayer { name: format!("{ranks}"), ranks, alpha_s, beta_s }
}

fn gflops(model: &Mcl, g: &Problem) -> f64 {
    space::flops::rate_gflops(g.n as usize, model.time_s(g))
}

#[test]
fn equivalent_memory_of_the_p100() {
    let (gamma_s, memory) = accelerator(&P100);
    assert!((1e-12 / gamma_s - 4.67).abs() < 0.005);
    assert!((8e-9 / memory.beta_s - 13.07).abs() < 0.01);
}

#[test]
fn p100_as_published() {
    let (gamma_s, memory) = accelerator(&P100);
    let g = Problem::new(44_000, NB, 1, 1);
    let simple_sum = McLayer { beta_s: 8.0 / 732.2e9, ..memory.clone() };
    for (memory, paper) in [(memory, 3840.0), (simple_sum, 4347.0)] {
        let ours = gflops(&Mcl::new(gamma_s, vec![memory]), &g);
        println!("P100 N 44000: ours {ours:.0}, paper {paper} GF, {:+.2} %", 100.0 * (ours / paper - 1.0));
        assert!((ours / paper - 1.0).abs() < 0.005, "{ours} against {paper}");
    }
}

/// Layers of the paper's cluster: device memory, PCIe 15.75 GB/s inside a node, InfiniBand 8 GB/s.
fn cluster(nodes: usize, gpus: usize, pcie_in_clusters: bool) -> Mcl {
    let (gamma_s, memory) = accelerator(&P100);
    let per_node = gpus / nodes;
    let mut layers = vec![memory];
    if per_node > 1 && (nodes == 1 || pcie_in_clusters) {
        layers.push(layer(per_node, 1e-6, 8.0 / 15.75e9));
    }
    if nodes > 1 {
        layers.push(layer(gpus, 1e-6, 8.0 / 8e9));
    }
    Mcl::new(gamma_s, layers)
}

/// Mean absolute difference to the paper's estimates over Table 5, in percent.
fn table5_difference(pcie_in_clusters: bool, coefficient: f64) -> f64 {
    let rows = include_str!("../../../datasets/mcl_table5.csv").lines().skip(1).filter(|line| !line.starts_with('#'));
    let differences: Vec<f64> = rows
        .map(|row| {
            let cells: Vec<f64> = row.split(',').map(|cell| cell.parse().unwrap()).collect();
            let [nodes, gpus, n] = [cells[0], cells[1], cells[2]].map(|cell| cell as usize);
            let p = (1..=gpus.isqrt()).rev().find(|p| gpus.is_multiple_of(*p)).unwrap();
            let model = Mcl { update_coefficient: coefficient, ..cluster(nodes, gpus, pcie_in_clusters) };
            let ours = gflops(&model, &Problem::new(n, NB, p, gpus / p));
            let percent = 100.0 * (ours / cells[4] - 1.0);
            println!(
                "{nodes}N{gpus}G N {n} {p}x{}: measured {:.0}, paper {:.0}, ours {ours:.0} GF, {percent:+.1} %",
                gpus / p,
                cells[3],
                cells[4]
            );
            percent.abs()
        })
        .collect();
    assert_eq!(differences.len(), 15);
    differences.iter().sum::<f64>() / 15.0
}

#[test]
fn table_5_with_the_stated_choices() {
    let mean = table5_difference(false, 2.0);
    println!("mean difference {mean:.2} %");
    assert!(mean <= 5.2, "{mean}");
}

#[test]
fn table_5_with_all_three_layers() {
    let (two, three) = (table5_difference(true, 2.0), table5_difference(true, 3.0));
    println!("three layers: mean difference {two:.2} %, with the printed coefficient 3 {three:.2} %");
    assert!(two <= 6.7 && three <= 10.1, "{two} {three}");
}

#[test]
fn n_new_is_the_next_whole_tiling() {
    assert_eq!(rounded_n(&Problem::new(1, 8, 4, 6)), 96.0);
    assert_eq!(rounded_n(&Problem::new(96, 8, 4, 6)), 96.0);
    assert_eq!(rounded_n(&Problem::new(97, 8, 4, 6)), 192.0);
    // The paper's own mode inflates the time of a flat grid, which is why we do not use it.
    let plain = Mcl::new(1e-11, vec![layer(960, 1e-6, 1e-9)]);
    let rounding = Mcl { round_n: true, ..plain.clone() };
    let flat = Problem::new(250_000, 128, 1, 960);
    assert!(rounding.time_s(&flat) > 2.5 * plain.time_s(&flat));
}

#[test]
fn a_layer_takes_the_most_square_grid_that_fits() {
    assert_eq!(inner_grid(4, &Problem::new(1, 1, 3, 4)), (2.0, 2.0));
    assert_eq!(inner_grid(6, &Problem::new(1, 1, 4, 4)), (2.0, 3.0));
    assert_eq!(inner_grid(4, &Problem::new(1, 1, 4, 1)), (4.0, 1.0));
    assert_eq!(inner_grid(99, &Problem::new(1, 1, 2, 3)), (2.0, 3.0));
}

#[test]
fn speed_of_the_closed_form() {
    let model = Mcl::new(1e-11, vec![layer(1, 0.0, 1e-10), layer(8, 1e-6, 1e-9), layer(512, 2e-6, 3e-9)]);
    let count = 200_000;
    let start = std::time::Instant::now();
    let mut sum = 0.0;
    for i in 0..count {
        sum += model.time_s(&Problem::new(40_000 + i, 32 + i % 512, 1 + i % 16, 32));
    }
    let per_second = count as f64 / start.elapsed().as_secs_f64();
    println!("{per_second:.2e} closed forms of three layers per second (sum {sum:.3e})");
    assert!(per_second > 1e6, "{per_second:.2e}");
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-10 * a.abs().max(b.abs())
}

proptest! {
    #[test]
    fn sums_of_the_steps_are_the_closed_forms(
        panels in 1usize..300, nb in 1usize..500, p in 1usize..40, q in 1usize..40, coefficient in 2.0f64..3.0,
        gamma in 0.0f64..1e-8, alpha in 1e-8f64..1e-3, beta in 1e-12f64..1e-6,
    ) {
        let g = Problem::new(panels * nb, nb, p, q);
        let layer = layer(p * q, alpha, beta);
        let pfact = (1..=panels).map(|i| pfact_step_s(0.0, &layer, &g, i)).sum::<f64>();
        prop_assert!(close(pfact, pivot_s(&layer, &g, g.n) + broadcast_s(&layer, &g, g.n)));
        let update = (1..=panels).map(|i| update_step_s(0.0, &layer, &g, i, coefficient)).sum::<f64>();
        prop_assert!(close(update, update_s(&layer, &g, g.n, coefficient)));
        // Flops of a panel can be negative, so the whole is compared, not (1) and (2) apart.
        let both = |i| pfact_step_s(gamma, &layer, &g, i) + update_step_s(gamma, &layer, &g, i, coefficient);
        let model = Mcl { update_coefficient: coefficient, ..Mcl::new(gamma, vec![layer.clone()]) };
        prop_assert!(close((1..=panels).map(both).sum(), model.time_s(&g)));
        prop_assert!(close(model.breakdown(&g).total_s(), model.time_s(&g)));
    }

    #[test]
    fn printed_is_cumulative_with_one_layer(
        n in 1usize..100_000, nb in 1usize..500, p in 1usize..40, q in 1usize..40, alpha in 0.0f64..1e-3,
    ) {
        let g = Problem::new(n, nb, p, q);
        let cumulative = Mcl::new(1e-11, vec![layer(p * q, alpha, 1e-9)]);
        let printed = Mcl { reading: Reading::Printed, ..cumulative.clone() };
        prop_assert_eq!(cumulative.time_s(&g), printed.time_s(&g));
    }

    #[test]
    fn approaches_the_original_closed_form_as_nb_over_n_falls(nb in 1usize..200, p in 1usize..20, q in 1usize..20) {
        let costs = netlib::Costs { gamma_s: 1e-11, gamma2_s: 0.0, alpha_s: 1e-6, beta_s: 1e-9, update_coefficient: 3.0 };
        let model = Mcl { update_coefficient: 3.0, ..Mcl::new(1e-11, vec![layer(p * q, 1e-6, 1e-9)]) };
        let off = |ratio: usize| {
            let g = Problem::new(ratio * nb, nb, p, q);
            (model.time_s(&g) / netlib::closed_s(&costs, &g) - 1.0).abs()
        };
        prop_assert!(off(1_000_000) < 1e-3, "{}", off(1_000_000));
        prop_assert!(off(1_000_000) < off(1_000) || off(1_000) < 1e-9);
    }

    #[test]
    fn time_falls_when_a_rate_rises(n in 500usize..100_000, nb in 1usize..400, p in 2usize..12, q in 1usize..12) {
        prop_assume!(n > 4 * nb * p);
        let g = Problem::new(n, nb, p, q);
        let slow = Mcl::new(1e-11, vec![layer(1, 1e-7, 1e-10), layer(p * q, 1e-6, 1e-9)]);
        let faster = |change: &dyn Fn(&mut Mcl)| {
            let mut fast = slow.clone();
            change(&mut fast);
            fast.time_s(&g) < slow.time_s(&g)
        };
        prop_assert!(faster(&|m| m.gamma_s /= 2.0));
        for index in 0..2 {
            prop_assert!(faster(&|m| m.layers[index].alpha_s /= 2.0));
            prop_assert!(faster(&|m| m.layers[index].beta_s /= 2.0));
        }
    }
}
