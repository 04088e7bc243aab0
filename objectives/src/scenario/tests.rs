use proptest::option;
use proptest::prelude::*;
use space::domain::squarest;
use space::machine::{Layer, Measured, Node, published};

use super::*;

/// NB of the reconstruction; the paper does not give its own.
const NB: usize = 1024;

fn machine(name: &str) -> Machine {
    published::find(name).unwrap().machine().unwrap()
}

fn run(n: usize, nb: usize, (p, q): (usize, usize), nodes: usize) -> Run {
    Run { n, nb, p, q, nodes: Some(nodes), threads: 1 }
}

fn of(measured: &Measured) -> Run {
    run(measured.n.unwrap(), NB, squarest(measured.ranks.unwrap()), measured.nodes.unwrap())
}

fn gflops(machine: &Machine, run: &Run, choices: &Choices) -> f64 {
    let (model, _) = mcl(machine, run, choices).unwrap();
    space::flops::rate_gflops(run.n, model.time_s(&run.problem()))
}

#[test]
fn equivalent_memory_of_the_p100() {
    let accelerator = machine("p100-cluster").accelerator.unwrap();
    let (gamma_s, memory) = mcl::accelerator(&accelerator, MemoryBandwidth::Equivalent);
    assert!((1e-12 / gamma_s - 4.67).abs() < 0.005);
    assert!((8e-9 / memory.beta_s - 13.07).abs() < 0.01);
    let (_, sum) = mcl::accelerator(&accelerator, MemoryBandwidth::SimpleSum);
    assert!((8e-9 / sum.beta_s - 732.2).abs() < 0.1);
}

#[test]
fn p100_as_published() {
    let machine = machine("p100-cluster");
    for (memory, paper) in [(MemoryBandwidth::Equivalent, 3840.0), (MemoryBandwidth::SimpleSum, 4347.0)] {
        let ours = gflops(&machine, &run(44_000, NB, (1, 1), 1), &Choices { memory, ..Choices::default() });
        println!("P100 N 44000 {memory:?}: ours {ours:.0}, paper {paper} GF, {:+.2} %", 100.0 * (ours / paper - 1.0));
        assert!((ours / paper - 1.0).abs() < 0.005, "{ours} against {paper}");
    }
}

/// Mean absolute difference to the paper's estimates over Table 5, in percent.
fn table5_difference(choices: &Choices) -> f64 {
    let machine = machine("p100-cluster");
    let rows = &machine.measured;
    assert_eq!(rows.len(), 15);
    let off = |row: &Measured| (gflops(&machine, &of(row), choices) / row.published_model_gflops.unwrap() - 1.0).abs();
    100.0 * rows.iter().map(off).sum::<f64>() / 15.0
}

#[test]
fn table_5_with_the_stated_choices() {
    let mean = table5_difference(&Choices { layering: Layering::Ends, ..Choices::default() });
    println!("stated choices: mean difference {mean:.2} %");
    assert!(mean <= 5.2, "{mean}");
}

#[test]
fn table_5_with_all_three_layers() {
    let of =
        |update_coefficient, inner| table5_difference(&Choices { update_coefficient, inner, ..Choices::default() });
    for inner in [InnerGrid::Square, InnerGrid::PrimesKeepGrid] {
        let (two, three) = (of(2.0, inner), of(3.0, inner));
        println!("three layers, {inner:?}: {two:.2} %, with the printed coefficient 3 {three:.2} %");
        assert!(two <= 6.8 && three <= 10.4, "{two} {three}");
    }
}

#[test]
fn a_run_uses_the_layers_that_join_its_ranks() {
    let machine = machine("p100-cluster");
    let names = |run: Run, layering| {
        let (model, _) = mcl(&machine, &run, &Choices { layering, ..Choices::default() }).unwrap();
        model.layers.iter().map(|layer| format!("{} {}", layer.name, layer.ranks)).collect::<Vec<_>>()
    };
    assert_eq!(names(run(1000, 10, (1, 1), 1), Layering::All), ["device memory 1"]);
    assert_eq!(names(run(1000, 10, (1, 4), 1), Layering::All), ["device memory 1", "PCIe 4"]);
    assert_eq!(names(run(1000, 10, (2, 2), 4), Layering::All), ["device memory 1", "InfiniBand 4"]);
    assert_eq!(names(run(1000, 10, (2, 3), 2), Layering::All), ["device memory 1", "PCIe 3", "InfiniBand 6"]);
    assert_eq!(names(run(1000, 10, (2, 3), 2), Layering::Ends), ["device memory 1", "InfiniBand 6"]);
}

/// Two sockets of 32 cores in each of two nodes.
fn two_nodes() -> Machine {
    let layer = |name: &str, ranks| Layer {
        name: name.into(),
        ranks,
        alpha_s: Some(1e-6),
        beta_s_per_word: 1e-9,
        shared_by: 1,
    };
    let node = Node { name: "node".into(), count: 2, cores: 64, rate_gflops: 3200.0, ..Node::default() };
    let layers = vec![layer("socket", 32), layer("node", 64), layer("network", 128)];
    Machine { nodes: vec![node], layers, ..Machine::default() }
}

#[test]
fn layers_within_a_node_join_ranks_by_their_threads() {
    let of = |machine: &Machine, grid, threads| {
        let run = Run { threads, ..run(1000, 10, grid, 2) };
        let (model, _) = mcl(machine, &run, &Choices::default()).unwrap();
        model.layers.iter().map(|layer| layer.ranks).collect::<Vec<_>>()
    };
    assert_eq!(of(&two_nodes(), (8, 16), 1), [32, 64, 128]);
    assert_eq!(of(&two_nodes(), (2, 4), 16), [2, 4, 8]);
    // A rank of a socket sends to the other socket at once, a rank of a node to the other node.
    assert_eq!(of(&two_nodes(), (1, 4), 32), [2, 4]);
    assert_eq!(of(&two_nodes(), (1, 2), 64), [2]);
    // Accelerators have what threads there are.
    assert_eq!(of(&machine("p100-cluster"), (2, 3), 16), [1, 3, 6]);
}

#[test]
fn what_does_not_fit_is_named_with_the_way_out() {
    let p100 = machine("p100-cluster");
    let refused = |machine: &Machine, run: Run| mcl(machine, &run, &Choices::default()).unwrap_err().to_string();
    for (run, words) in [
        (run(1000, 0, (1, 1), 1), "NB must be at least 1"),
        (run(1000, 10, (5, 4), 5), "need 5 nodes, there are 4"),
        (Run { nodes: None, ..run(1000, 10, (5, 4), 1) }, "need 5 nodes, there are 4"),
        (run(1000, 10, (1, 3), 2), "do not spread evenly over 2 nodes"),
        (run(1000, 10, (2, 4), 1), "do not spread evenly over 1 nodes of at most 4 ranks"),
    ] {
        assert!(refused(&p100, run).contains(words), "{}", refused(&p100, run));
    }
    let mut narrow = p100.clone();
    narrow.layers.pop();
    let text = refused(&narrow, run(1000, 10, (2, 4), 2));
    assert!(text.contains("multiply to 4 ranks, P×Q = 8"), "{text}");
    narrow.layers.clear();
    assert!(refused(&narrow, run(1000, 10, (2, 2), 1)).contains("a [[layer]] that joins 4 ranks"));
    let text = refused(&machine("ibm-x440"), run(32_768, 128, (4, 4), 4));
    assert!(text.contains("lower N to at most 307") || text.contains("lower N to at most 308"), "{text}");
    let theta = refused(&machine("theta"), run(1000, 336, (32, 101), 3232));
    assert!(theta.contains("rate_gflops") && theta.contains("--rank-gflops"), "{theta}");
    let latency = refused(&machine("isabella-hpc1"), Run { nodes: None, ..run(20_000, 128, (20, 40), 1) });
    assert!(latency.contains("alpha_s of [[layer]] 1 (InfiniBand SDR)") && latency.contains("--alpha"), "{latency}");
}

#[test]
fn a_link_stands_in_for_layers() {
    let theta = machine("theta");
    let rank_gflops = Some(2000.0);
    let choices = Choices { rank_gflops, alpha_s: Some(2e-6), link_gbytes_per_s: Some(10.0), ..Choices::default() };
    let run = run(8_360_352, 336, (32, 101), 3232);
    let (model, _) = mcl(&theta, &run, &choices).unwrap();
    assert_eq!((model.layers.len(), model.layers[0].ranks, model.layers[0].beta_s), (1, 3232, 8e-10));
    let refused = |choices| mcl(&theta, &run, &choices).unwrap_err().to_string();
    assert!(refused(Choices { alpha_s: None, ..choices }).contains("--alpha"));
    assert!(refused(Choices { link_gbytes_per_s: None, ..choices }).contains("--link"));
}

proptest! {
    #[test]
    fn any_run_on_any_machine_is_predicted_or_refused(
        index in 0..published::ALL.len(), n in 0usize..3_000_000, nb in 0usize..2000, p in 0usize..200, q in 0usize..200,
        nodes in option::of(0usize..5000), threads in 0usize..80, known in any::<bool>(), layering in any::<bool>(),
    ) {
        let machine = published::ALL[index].machine().unwrap();
        let run = Run { n, nb, p, q, nodes, threads };
        let figure = |value| known.then_some(value);
        let layering = if layering { Layering::All } else { Layering::Ends };
        let (alpha_s, rank_gflops, link_gbytes_per_s) = (figure(1e-6), figure(10.0), figure(10.0));
        let choices = Choices { layering, alpha_s, rank_gflops, link_gbytes_per_s, ..Choices::default() };
        match mcl(&machine, &run, &choices) {
            Err(error) => prop_assert!(!error.to_string().is_empty()),
            Ok((model, gamma)) => {
                prop_assert!(gamma.s_per_flop > 0.0 && gamma.s_per_flop.is_finite());
                prop_assert!(model.time_s(&run.problem()).is_finite());
                // Layers join more and more ranks, the last one all.
                prop_assert!(model.layers.windows(2).all(|pair| pair[0].ranks < pair[1].ranks));
                prop_assert!(model.layers.last().is_none_or(|last| last.ranks == run.ranks()));
            }
        }
    }
}

#[test]
fn unequal_nodes_go_at_the_pace_of_the_slowest_rank() {
    let choices = Choices { alpha_s: Some(0.0), ..Choices::default() };
    let whole = Run { nodes: None, ..run(20_000, 128, (20, 40), 1) };
    let (model, gamma) = mcl(&machine("isabella-hpc1"), &whole, &choices).unwrap();
    // Opteron 875: 35.2 GF on 8 cores.
    assert!((1e-9 / model.gamma_s - 4.4).abs() < 1e-9 && gamma.origin.contains("peak"), "{gamma:?}");
}

#[test]
fn one_rank_alone_costs_no_message() {
    let (costs, _) = netlib(&machine("ibm-x440"), &run(4000, 128, (1, 1), 1), &Choices::default()).unwrap();
    assert_eq!((costs.alpha_s, costs.beta_s), (0.0, 0.0));
    assert!((1e-9 / costs.gamma_s - 1.24).abs() < 1e-9);
}

/// The link of a node serves its ranks; the fewer there are on a node, the more of it each has.
#[test]
fn as_many_ranks_share_a_link_as_a_node_runs() {
    let choices = Choices { alpha_s: Some(0.0), ..Choices::default() };
    let beta_s = |name, grid, nodes| netlib(&machine(name), &run(4000, 128, grid, nodes), &choices).unwrap().0.beta_s;
    let x440 = [1, 2, 4].map(|nodes| beta_s("ibm-x440", (2, 2), nodes));
    assert_eq!(x440, [4.0 * 6.4e-8, 2.0 * 6.4e-8, 6.4e-8]);
    let hpc1 = [(1, 8), (2, 8), (16, 16)].map(|grid| beta_s("isabella-hpc1", grid, 8));
    assert_eq!(hpc1, [6.4e-9, 2.0 * 6.4e-9, 32.0 * 6.4e-9]);
    let hpc2 = [(4, 7), (16, 28)].map(|grid| beta_s("isabella-hpc2", grid, 28));
    assert_eq!(hpc2, [1.6e-9, 16.0 * 1.6e-9]);
}

/// Two ranks of 24 threads leave 16 of 64 cores idle.
#[test]
fn a_rank_has_the_rate_of_its_threads_where_they_leave_cores_idle() {
    let machine = two_nodes();
    let gflops = |threads| {
        let (costs, _) = netlib(&machine, &Run { threads, ..run(1000, 10, (1, 2), 2) }, &Choices::default()).unwrap();
        (1e-9 / costs.gamma_s).round()
    };
    assert_eq!([1, 24, 48, 64].map(gflops), [50.0, 1200.0, 2400.0, 3200.0]);
}

#[test]
fn a_rank_of_several_threads_reads_its_memory_by_all_of_them() {
    let memory = |shared_by| {
        let name = "memory".to_owned();
        let memory = Layer { name, ranks: 1, alpha_s: Some(0.0), beta_s_per_word: 4e-9, shared_by };
        Machine { layers: [vec![memory], two_nodes().layers].concat(), ..two_nodes() }
    };
    let gamma2_s = |shared_by, grid, threads| {
        let run = Run { threads, ..run(1000, 10, grid, 2) };
        netlib(&memory(shared_by), &run, &Choices::default()).unwrap().0.gamma2_s
    };
    assert_eq!([((8, 16), 1), ((1, 2), 64)].map(|(grid, threads)| gamma2_s(1, grid, threads)), [2e-9, 2e-9 / 64.0]);
    // All threads of a node share one bandwidth: a rank of all of them has it alone.
    assert_eq!([((8, 16), 1), ((1, 2), 64)].map(|(grid, threads)| gamma2_s(64, grid, threads)), [64.0 * 2e-9, 2e-9]);
}

/// Without layers the ranks of a node share its link, as they do by `shared_by` of a layer.
#[test]
fn ranks_share_the_link_that_a_node_states() {
    let mut machine = two_nodes();
    machine.layers.clear();
    machine.nodes[0].link_gbytes_per_s = 8.0;
    let choices = Choices { alpha_s: Some(1e-6), ..Choices::default() };
    let close = |found: f64, wanted: f64| assert!((found / wanted - 1.0).abs() < 1e-12, "{found}, {wanted}");
    let beta_s = |run: Run, choices: &Choices| netlib(&machine, &run, choices).unwrap().0.beta_s;
    close(beta_s(run(1000, 10, (8, 16), 2), &choices), 64e-9);
    close(beta_s(Run { threads: 64, ..run(1000, 10, (1, 2), 2) }, &choices), 1e-9);
    // Messages of one node do not leave it.
    close(beta_s(run(1000, 10, (8, 8), 1), &choices), 1e-9);
    // `--link` is the bandwidth between two ranks.
    close(beta_s(run(1000, 10, (8, 16), 2), &Choices { link_gbytes_per_s: Some(8.0), ..choices }), 1e-9);
    let ways = |grid| {
        let run = run(1000, 10, grid, 2);
        let placement = Placement::new(&machine, &run).unwrap();
        Ways::new("a test", &machine, &run, &placement, &choices).unwrap()
    };
    // One rank of a node forwards the panel; all exchange rows.
    close(ways((1, 128)).row[1], 1e-9);
    close(ways((2, 64)).column[1], 64e-9);
}

#[test]
fn ranks_spread_over_as_many_unequal_nodes_as_asked_for() {
    let machine = machine("isabella-hpc1");
    let groups = |grid, nodes| {
        let run = run(1000, 10, grid, nodes);
        let placement = Placement::new(&machine, &run)?;
        Ok::<_, ScenarioError>(placement.groups.iter().map(|group| (group.nodes, group.ranks)).collect::<Vec<_>>())
    };
    assert_eq!(groups((6, 6), 12), Ok(vec![(8, 3), (4, 3)]));
    // 29 ranks on each are more than the smaller nodes hold: all are full.
    assert_eq!(groups((16, 22), 12), Ok(vec![(8, 32), (4, 24)]));
    let refused = groups((5, 8), 12).unwrap_err().to_string();
    assert!(refused.contains("40 ranks do not spread evenly over 12 nodes"), "{refused}");
}
