use space::{Candidate, EngineParams, HplParams, NodeSettings};

use super::*;
use crate::links::Links;
use hpl::plan::windows::Windows;

const DAHU: &str = include_str!("../../../datasets/simulated/dahu.toml");

const CLOCKS: &str = include_str!("../../../datasets/simulated/clocks.toml");

fn cluster() -> SimulatedCluster {
    SimulatedCluster::parse(DAHU).unwrap()
}

fn candidate(n: usize, nb: usize, (p, q): (usize, usize), threads: usize) -> Candidate {
    let hpl = HplParams { nb, ..HplParams::baseline(n, p, q) };
    Candidate { hpl, engine: EngineParams { threads, ..EngineParams::default() } }
}

#[test]
fn shipped_clusters_are_read_and_come_back() {
    for text in [DAHU, include_str!("../../../datasets/simulated/four-nodes.toml"), CLOCKS] {
        let cluster = SimulatedCluster::parse(text).unwrap();
        assert_eq!(SimulatedCluster::parse(&toml::to_string(&cluster).unwrap()).unwrap(), cluster);
        assert!(cluster.origin.contains("made up"));
    }
}

#[test]
fn what_is_told_is_wrong_by_its_share_and_leaves_out_slow_nodes_and_the_network() {
    let cluster = cluster();
    let told = cluster.description();
    for (told, true_) in told.phases.iter().zip(&cluster.machine.phases) {
        for (told, true_) in told.coefficients.iter().zip(&true_.coefficients).filter(|(_, true_)| **true_ > 0.0) {
            let by = (told / true_).max(true_ / told);
            assert!((1.1..=1.3).contains(&by), "{by}");
        }
    }
    assert!(told.layers.iter().all(|layer| layer.ranks <= 32));
    assert_ne!(told.phases, SimulatedCluster { seed: 2, ..cluster }.description().phases);
}

#[test]
fn ranks_of_slow_nodes_are_slow_on_any_grid() {
    let cluster = cluster();
    // Four ranks on each node; nodes 3 and 11 take 1.12 times as long, 20 and 29 others.
    let by_rows = cluster.unequal().slowness(&candidate(1000, 64, (8, 16), 8).hpl, 8);
    let slow: Vec<usize> = (0..128).filter(|&rank| by_rows[rank] > 1.0).collect();
    assert_eq!(slow[..5], [12, 13, 14, 15, 44]);
    assert!((by_rows[12] - 1.12).abs() < 1e-12);
    let found = cluster.survey(&candidate(4000, 128, (1, 32), 32), 3, Clock::default()).unwrap();
    let rate = |node: usize| space::stats::median(&found.ranks[node].hpl_gflops).unwrap();
    assert!((1.1..1.3).contains(&(rate(0) / rate(20))), "{} {}", rate(0), rate(20));
}

/// What a session is told of the network is what there is: the cores of a node share its link.
#[test]
fn a_survey_of_one_rank_per_node_finds_the_network() {
    for text in [DAHU, include_str!("../../../datasets/simulated/four-nodes.toml")] {
        let cluster = SimulatedCluster::parse(text).unwrap();
        let &Node { count, cores, .. } = cluster.node();
        let found = cluster.survey(&candidate(4000, 128, (1, count), cores), 3, Clock::default()).unwrap();
        let told = Links::new(&found.ranks, cores, |rank| rank.host.clone()).layers;
        let [network] = &told[..] else { panic!("{told:?}") };
        let truth = cluster.machine.layers.last().unwrap();
        assert_eq!((network.ranks, network.alpha_s, network.shared_by), (truth.ranks, truth.alpha_s, truth.shared_by));
        assert!((network.beta_s_per_word / truth.beta_s_per_word - 1.0).abs() < 1e-9, "{network:?}");
    }
}

/// The engine's windows predict the time of whole runs, on grids with a long cycle of owners.
#[test]
fn windows_of_large_grids_are_near_whole_runs() {
    let quiet = SimulatedCluster { noise: 0.0, ..cluster() };
    for slow in [Vec::new(), quiet.slow.clone()] {
        let cluster = SimulatedCluster { slow, ..quiet.clone() };
        let grids = [(512, (4, 32), 8), (128, (8, 16), 8), (256, (4, 32), 8), (384, (8, 4), 32), (384, (2, 64), 8)];
        for (nb, grid, threads) in grids {
            let candidate = candidate(600_000, nb, grid, threads);
            let time = |asked: Asked<'_>| match cluster.run(&candidate, asked, Clock::default()).unwrap() {
                SimulatedRun::Whole(result, _) => result.time_s,
                SimulatedRun::Windows(result) => result.predicted_time_s,
                other => panic!("{other:?}"),
            };
            let ratio = time(Asked::Windows(&Windows::Auto)) / time(Asked::Whole);
            // Once in a cycle of 64 owners all wait for a late one, which a window of few steps may not contain.
            let least = if grid.1 == 64 && !cluster.slow.is_empty() { 0.96 } else { 0.985 };
            assert!((least..1.015).contains(&ratio), "NB {nb}, {grid:?}: {ratio}");
        }
    }
}

#[test]
fn runs_break_off_hang_and_become_slower_as_described() {
    let always = |breaks_off, hangs| SimulatedCluster { breaks_off, hangs, noise: 0.0, ..cluster() };
    let small = candidate(20_000, 128, (4, 8), 32);
    let run =
        |cluster: &SimulatedCluster, clock_s| cluster.run(&small, Asked::Whole, Clock { runs: 1, clock_s }).unwrap();
    assert!(matches!(run(&always(0.999_999, 0.0), 0.0), SimulatedRun::BreaksOff(_)));
    assert_eq!(run(&always(0.0, 0.999_999), 0.0), SimulatedRun::Hangs);
    let changed = SimulatedCluster { change: vec![SpeedChange { at_s: 100.0, times: 1.5 }], ..always(0.0, 0.0) };
    let time = |clock_s| match run(&changed, clock_s) {
        SimulatedRun::Whole(result, _) => result.time_s,
        other => panic!("{other:?}"),
    };
    assert!((time(100.0) / time(99.0) - 1.5).abs() < 1e-9);
    let crowded = candidate(20_000, 128, (40, 32), 1);
    assert!(changed.run(&crowded, Asked::Whole, Clock::default()).unwrap_err().contains("do not fit"));
}

/// Trials on some nodes of such a group were taken for those of other nodes, or found none.
#[test]
fn names_of_nodes_have_nothing_at_which_a_list_is_divided() {
    let mut cluster = cluster();
    cluster.machine.nodes[0].name = "fat node, new".to_owned();
    let hosts = cluster.hosts();
    assert_eq!(hosts[0], "simulated-fat-node--new-1");
    assert_eq!(cluster.part(&hosts[1..3]).unwrap().0.node().count, 2);
}

/// Each node alone is as slow as it is among the others, and named.
#[test]
fn runs_on_single_nodes_are_as_slow_as_these() {
    let cluster = SimulatedCluster { noise: 0.0, ..cluster() };
    let hosts = cluster.hosts();
    let small = candidate(20_000, 128, (1, 1), 32);
    let time = |node: usize, asked: Asked<'_>| {
        let names = &hosts[node..=node];
        match cluster.run_on(names, &small, asked, Clock::default()).unwrap() {
            SimulatedRun::Whole(result, _) => (result.time_s, result.host),
            SimulatedRun::Windows(result) => (result.predicted_time_s, result.host),
            other => panic!("{other:?}"),
        }
    };
    for asked in [Asked::Whole, Asked::Windows(&Windows::Auto)] {
        let [(usual, first), (slow, third)] = [0, 3].map(|node| time(node, asked));
        assert!((slow / usual - 1.12).abs() < 1e-9 && first == hosts[0] && third == hosts[3], "{usual} {slow} {third}");
    }
    let (pair, slower) = cluster.part(&[hosts[0].clone(), hosts[3].clone()]).unwrap();
    assert_eq!((pair.node().count, slower, pair.unequal().relative().len()), (2, 1.0, 2));
    assert_eq!(cluster.bindings(1, 32, &hosts[3..4]).unwrap().ranks[0].host, hosts[3]);
    let crowded = cluster.run_on(&hosts[..1], &candidate(20_000, 128, (1, 2), 32), Asked::Whole, Clock::default());
    assert!(crowded.unwrap_err().contains("do not fit 1 simulated nodes"));
    assert!(cluster.part(&["n9".to_owned()]).unwrap_err().contains("no node n9"));
}

/// Idle at 100 W, busy at 300 W, four nodes of 32 cores.
#[test]
fn power_follows_what_the_nodes_do() {
    let of_node = NodePower { idle_watts: 100.0, busy_watts: 300.0 };
    let cluster = SimulatedCluster { power: Some(of_node), noise: 0.0, slow: Vec::new(), ..cluster() };
    let run = candidate(40_000, 128, (8, 16), 1);
    let found = cluster.run(&run, Asked::Whole, Clock::default()).unwrap();
    let power = cluster.power(&run, &found).unwrap();
    let SimulatedRun::Whole(result, wall_s) = &found else { panic!("{found:?}") };
    assert!(power.core_w > 600.0 && power.core_w < 1200.0, "{power:?}");
    assert_eq!((power.core_s, power.rate_gflops), (Some(result.time_s), Some(result.rate_gflops)));
    assert!((power.run_s - wall_s).abs() < 1e-9, "{power:?}");
    // The energy of the run is that of its core phase, of four busy nodes before and after it, and of a start without work.
    let around = 1200.0 * (result.generate_s + result.check_s) + 400.0 * 2.0;
    assert!((power.run_w * power.run_s - around - power.core_w * result.time_s).abs() < 1e-3, "{power:?}");
    let twice = candidate(40_000, 128, (16, 16), 1);
    let of_twice = cluster.power(&twice, &cluster.run(&twice, Asked::Whole, Clock::default()).unwrap()).unwrap();
    assert!(of_twice.core_w > 1200.0 && of_twice.core_w < 2400.0, "{of_twice:?}");
    let windows = cluster.run(&run, Asked::Windows(&Windows::Auto), Clock::default()).unwrap();
    let sampled = cluster.power(&run, &windows).unwrap();
    assert!(sampled.core_s.is_none() && sampled.run_w > 400.0 && sampled.run_w < 1200.0, "{sampled:?}");
    assert_eq!(cluster.power(&run, &SimulatedRun::Hangs), None);
    assert_eq!(SimulatedCluster { power: None, ..cluster }.power(&run, &found), None);
}

/// A lower clock is slower and takes less, and the best efficiency is in between; a limit that is not reached changes nothing.
#[test]
fn settings_change_time_and_power() {
    let cluster = SimulatedCluster { noise: 0.0, ..SimulatedCluster::parse(CLOCKS).unwrap() };
    let of = |max_clock_mhz: Option<u32>, package_limit_w: Option<u32>| {
        let mut run = candidate(20_000, 192, (1, 1), 4);
        run.engine.settings = NodeSettings { max_clock_mhz, package_limit_w, gpu_limit_w: None };
        let answer = cluster.run(&run, Asked::Whole, Clock::default()).unwrap();
        let power = cluster.power(&run, &answer).unwrap();
        (power.rate_gflops.unwrap(), power.core_w)
    };
    let found = of(None, None);
    assert_eq!((of(Some(2650), Some(100)), of(None, Some(90))), (found, found));
    let (rate, watts) = of(Some(1300), None);
    assert!((0.5..0.6).contains(&(rate / found.0)) && watts < 0.75 * found.1, "{rate} {watts} {found:?}");
    let (capped, capped_w) = of(None, Some(60));
    assert!(capped < 0.95 * found.0 && capped_w < 195.0, "{capped} {capped_w}");
    // The lower of clock and limit counts.
    assert_eq!(of(Some(1300), Some(60)), of(Some(1300), None));
    let efficiency = |mhz| of(Some(mhz), None).0 / of(Some(mhz), None).1;
    assert!(efficiency(2100) > 1.01 * efficiency(2650) && efficiency(2100) > 1.01 * efficiency(1300));
}

#[test]
fn wrong_powers_are_refused() {
    let text = DAHU.replace("busy_watts = 370", "busy_watts = 1");
    assert!(SimulatedCluster::parse(&text).unwrap_err().to_string().contains("[power]"));
}
