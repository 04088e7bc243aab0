//! Any description of a machine.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use space::machine::{
    Accelerator, DeviceRates, EnginePhase, Host, Layer, Layering, Link, Machine, Measured, Node, Offload, PhaseRate,
    PublishedChoices, RankCosts, Rate, RateKernel,
};

fn text() -> impl Strategy<Value = String> {
    "[ -~é\n\"\\\\]{0,20}"
}

fn rate() -> impl Strategy<Value = Rate> {
    use RateKernel::{Dgemm, Dtrsm, Panel, Swap};
    let kernel = proptest::sample::select(vec![Dgemm, Dtrsm, Panel, Swap]);
    (kernel, 1..300usize, vec(1e-15..1e-3f64, 5), vec((0.0..9.0f64, 9.0..1e5f64), 3), 0.0..2.0f64, text()).prop_map(
        |(kernel, threads, mut coefficients, valid, spread, origin)| {
            coefficients.truncate(kernel.coefficient_count());
            let valid = valid.into_iter().take(kernel.size_count()).map(|(low, high)| [low, high]).collect();
            let date = "2026-11-20".to_owned();
            Rate { kernel, threads, coefficients, valid, spread, fit_error: spread / 3.0, date, origin }
        },
    )
}

fn node() -> impl Strategy<Value = Node> {
    let sizes = (1..9usize, 1..300usize, 1u64 << 30..1 << 50, 0..1u64 << 29, option::of(1..9usize));
    let rates = (0.0..1e6f64, 0.0..1e6f64, 0.0..1e3f64);
    (text(), sizes, rates).prop_map(|(name, sizes, rates)| {
        let (count, cores, memory_bytes, reserved_bytes, accelerators) = sizes;
        let (peak_gflops, rate_gflops, link_gbytes_per_s) = rates;
        Node {
            name,
            count,
            cores,
            memory_bytes,
            reserved_bytes,
            peak_gflops,
            rate_gflops,
            link_gbytes_per_s,
            accelerators,
        }
    })
}

fn layers() -> impl Strategy<Value = Vec<Layer>> {
    let layer = (text(), 1..9usize, option::of(0.0..1e-3f64), 1e-12..1e-6f64, 1..9usize);
    vec(layer, 0..4).prop_map(|layers| {
        let mut ranks = 1;
        let nested = layers.into_iter().map(|(name, factor, alpha_s, beta_s_per_word, shared_by)| {
            ranks *= factor;
            Layer { name, ranks, alpha_s, beta_s_per_word, shared_by }
        });
        nested.collect()
    })
}

fn measured() -> impl Strategy<Value = Measured> {
    let sizes = (option::of(1..1_000_000usize), option::of(1..999usize), option::of((1..99usize, 1..99usize)));
    (sizes, option::of(1..99usize), 1e-3..1e9f64, text()).prop_map(|((n, nb, grid), nodes, rate_gflops, note)| {
        Measured {
            n,
            nb,
            p: grid.map(|(p, _)| p),
            q: grid.map(|(_, q)| q),
            nodes,
            ranks: grid.map(|(p, q)| p * q),
            rate_gflops,
            time_s: n.map(|n| n as f64),
            peak_gflops: nodes.map(|_| 2.0 * rate_gflops),
            published_model_gflops: nodes.map(|_| rate_gflops),
            note,
        }
    })
}

fn phase() -> impl Strategy<Value = PhaseRate> {
    (0..EnginePhase::ALL.len(), 1..64usize, vec(1e-15..1.0f64, 16), 1..9999usize, text()).prop_map(
        |(at, threads, coefficients, n, origin)| {
            let phase = EnginePhase::ALL[at];
            let coefficients = coefficients[..phase.coefficient_count()].to_vec();
            let (spread, fit_error, date) = (0.01, 0.02, "2026-11-20".to_owned());
            PhaseRate { phase, threads, coefficients, n: [1, n], nb: [1, n], runs: n, spread, fit_error, date, origin }
        },
    )
}

/// A description that passes every check.
pub(crate) fn machine() -> impl Strategy<Value = Machine> {
    let accelerator = option::of((1.0..1e5f64).prop_map(|value| Accelerator {
        memory_controllers: value,
        words_per_controller: value,
        memory_rate_hz: value,
        cores: value,
        flops_per_cycle: value,
        clock_hz: value,
        latency_s: 1.0 / value,
    }));
    let offload = option::of((1e-3..1e9f64, 0.01..0.99f64))
        .prop_map(|known| known.map(|(steady_gflops, hidden_steps)| Offload { steady_gflops, hidden_steps }));
    let device = option::of((1.0..1e6f64, 0.01..0.99f64, option::of(1..9999usize))).prop_map(|known| {
        known.map(|(rate, share, panel_nb)| DeviceRates {
            dgemm_gflops: vec![[rate, rate], [2.0 * rate, 3.0 * rate]],
            dgemm_half: rate,
            trsm_share: share,
            memory_gbytes_per_s: rate,
            link_gbytes_per_s: share,
            launch_s: share,
            host_panel_gflops: panel_nb.map(|_| rate),
            host_panel_column_s: share,
            panel_s: panel_nb.map(|_| share),
            panel_row_s: panel_nb.map(|_| 0.5 * share),
            panel_nb,
            panel_share: share,
        })
    });
    let timeline = option::of((1..9usize, 1e-12..1e-3f64)).prop_map(|known| {
        known.map(|(cpus, cost)| RankCosts {
            cpus,
            spread: cost,
            dgemm_mn_s: -1e-6 * cost,
            cache_bytes: 1e9 * cost,
            panel_s: [cost, 2.0 * cost],
            copy_s_per_byte: [cost, 3.0 * cost],
            inside_s_per_byte: [cost, 4.0 * cost],
            pivot_s: cost,
            pivot_s_per_byte: cost,
        })
    });
    let links = vec((0..4usize, 0..4usize, 0.0..1e3f64), 0..4);
    let rates = (vec(rate(), 0..4), vec(phase(), 0..4));
    let lists = (vec(node(), 1..4), rates, layers(), links, vec(measured(), 0..3));
    (vec(text(), 4), lists, accelerator, (offload, device), timeline).prop_map(
        |(texts, (nodes, (rates, phases), layers, links, measured), accelerator, (offload, device), timeline)| {
            let name = |at: usize| nodes[at % nodes.len()].name.clone();
            let link = |(a, b, gbytes_per_s)| Link { nodes: [name(a), name(b)], gbytes_per_s };
            let links = links.into_iter().map(link).collect();
            let [name, cpu, origin, kernels] = <[String; 4]>::try_from(texts).expect("four texts");
            let host = Host { name, cpu, origin, kernels };
            let choices = measured
                .first()
                .map(|run: &Measured| PublishedChoices { nb: run.nb, layers: run.n.map(|_| Layering::Ends) });
            Machine {
                host,
                nodes,
                rates,
                phases,
                layers,
                links,
                accelerator,
                offload,
                device,
                timeline,
                choices,
                measured,
            }
        },
    )
}
