use proptest::prelude::*;

use super::*;
use crate::netlib;

fn layer(ranks: usize, alpha_s: f64, beta_s: f64) -> McLayer {
    McLayer { name: format!("{ranks}"), ranks, alpha_s, beta_s }
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
fn primes_keep_the_rows_of_the_grid() {
    let of = |ranks, p, q| prime_keeps_grid(ranks, &Problem::new(1, 1, p, q));
    // 2×3 and 2×2 hold primes; 4×4 and 1×4 do not.
    assert_eq!([of(6, 4, 4), of(4, 3, 4), of(16, 8, 8), of(4, 1, 8)], [(2.0, 4.0), (1.0, 4.0), (4.0, 4.0), (1.0, 4.0)]);
    assert_eq!([1, 2, 3, 4, 9, 13].map(is_prime), [false, true, true, false, false, true]);
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
        // Flops of a panel can be negative, so the sum of (1) and (2) is compared.
        let both = |i| pfact_step_s(gamma, &layer, &g, i) + update_step_s(gamma, &layer, &g, i, coefficient);
        let model = Mcl { update_coefficient: coefficient, ..Mcl::new(gamma, vec![layer.clone()]) };
        prop_assert!(close((1..=panels).map(both).sum(), model.time_s(&g)));
        prop_assert!(close(model.breakdown(&g).total_s(), model.time_s(&g)));
    }

    #[test]
    fn spread_over_the_panels_a_run_keeps_its_time(n in 2000usize..90_000, nb in 1usize..200, p in 1usize..8, q in 1usize..8) {
        let g = Problem::new(n, nb, p, q);
        let model = Mcl::new(1e-11, vec![layer(1, 1e-7, 1e-10), layer(p * q, 1e-6, 1e-9)]);
        let run = model.timeline(&g);
        prop_assert!(close(run.total_s, model.time_s(&g)) && run.steps.len() == n.div_ceil(nb));
        prop_assert!(run.steps.iter().all(|s| [s.fact_s, s.lbcast_s, s.rs_s, s.update_s].iter().all(|&t| t >= 0.0)));
    }

    #[test]
    fn printed_is_cumulative_with_one_layer(
        n in 1usize..100_000, nb in 1usize..500, p in 1usize..40, q in 1usize..40, alpha in 0.0f64..1e-3,
    ) {
        let g = Problem::new(n, nb, p, q);
        let cumulative = Mcl::new(1e-11, vec![layer(p * q, alpha, 1e-9)]);
        let printed = Mcl { reading: LayerExtent::Printed, ..cumulative.clone() };
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
