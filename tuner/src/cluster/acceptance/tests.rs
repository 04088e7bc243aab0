//! Nodes as a survey finds them, and what is said of them.

use hpl::measure::survey::{LinkSurvey, partners};
use space::HplParams;

use super::*;

pub(super) fn node(index: usize, rate: f64, gigabytes: u64) -> RankSurvey {
    let link = LinkSurvey { other: 0, latency_s: 1e-6, gbytes_per_s: 10.0, spread: 0.01, alone_gbytes_per_s: None };
    RankSurvey {
        rank: index,
        host: format!("n{}", index + 1),
        memory_bytes: gigabytes << 30,
        cpu: "CPU".into(),
        cores: 8,
        kernels: "builtin (avx512)".into(),
        clock_hz: Some(2.5e9),
        dgemm_gflops: vec![1.1 * rate; 3],
        hpl_gflops: [0.999, 1.0, 1.001].map(|of| of * rate).to_vec(),
        links: vec![link],
        ..RankSurvey::default()
    }
}

#[test]
fn a_slow_node_and_one_with_little_memory_are_named_with_what_leaving_them_out_gains() {
    let kernels = RankSurvey { kernels: "builtin (avx2)".into(), ..node(2, 60.0, 64) };
    let found = [node(0, 100.0, 64), node(1, 101.0, 64), kernels, node(3, 100.5, 32)];
    let acceptance = Acceptance::new(&found, 8000, 8, 0.05);
    assert!(!acceptance.accepted);
    assert_eq!(acceptance.left_out, ["n3", "n4"]);
    let slow = &acceptance.nodes[2];
    assert!(slow.faults[0].starts_with("40.3 % slower") && slow.causes[0].contains("avx2"), "{slow:?}");
    assert!(acceptance.nodes[3].faults[0].starts_with("50 % of the typical memory"), "{:?}", acceptance.nodes[3]);
    let (all, rest, fastest) = (acceptance.all, acceptance.rest.unwrap(), acceptance.fastest.unwrap());
    assert_eq!((all.rate_gflops, rest.rate_gflops, rest.nodes), (240.0, 200.0, 2));
    assert!((acceptance.gain(rest) + 1.0 / 6.0).abs() < 1e-12, "two of four cost more than they gain");
    assert_eq!((fastest.rate_gflops, fastest.nodes, &acceptance.too_slow), (300.0, 3, &vec!["n3".to_owned()]));
    let without: Vec<f64> = acceptance.nodes.iter().map(|node| node.without_it.unwrap()).collect();
    assert_eq!(without, [-0.25, -0.25, 0.25, -0.25]);
    // All four have twice the nodes of half the memory: N is the same.
    assert!(all.n.abs_diff(rest.n) < 1000, "{all:?} {rest:?}");
    let text = acceptance.to_string();
    assert!(text.contains("--exclude=n3,n4") && text.contains("not accepted"), "{text}");
    assert!(page(&acceptance).contains("40.3 % slower"));
}

#[test]
fn of_two_nodes_the_slower_has_the_other_kernels() {
    let portable = RankSurvey { kernels: "builtin (portable)".into(), ..node(1, 40.0, 64) };
    for found in [[node(0, 100.0, 64), portable.clone()], [portable, node(0, 100.0, 64)]] {
        let acceptance = Acceptance::new(&found, 8000, 8, 0.05);
        let slow = acceptance.nodes.iter().find(|node| !node.faults.is_empty()).unwrap();
        assert_eq!((slow.hpl_gflops, slow.causes.len()), (40.0, 1), "{slow:?}");
        assert!(slow.causes[0].contains("portable"), "{slow:?}");
        assert_eq!(acceptance.unequal(8).relative().into_iter().fold(1.0, f64::min), 0.4);
    }
}

/// All nodes together were said to be the fastest, right before the gain without the slow one.
#[test]
fn a_gain_that_is_not_worth_it_is_not_denied() {
    let mut found: Vec<RankSurvey> = (0..20).map(|index| node(index, 100.0, 64)).collect();
    found[7] = node(7, 94.5, 64);
    let acceptance = Acceptance::new(&found, 8000, 8, 0.05);
    assert!(acceptance.fastest.is_none() && acceptance.left_out == ["n8"], "{acceptance:?}");
    let text = acceptance.to_string();
    let all = "leaving nodes out gains 1 % at most by equal shares";
    assert!(text.contains(all) && text.contains("reach at most 1890.0 GFLOP/s on 20 nodes"), "{text}");
    assert!(text.contains("without those with a fault at most 1900.0 GFLOP/s on 19 nodes: +0.5 %"), "{text}");
}

/// Where a launcher bound no rank, the weights of slow nodes went to the ranks of the nodes before them.
#[test]
fn speeds_are_those_of_the_ranks_on_the_cores_that_runs_have() {
    let found = [node(0, 100.0, 64), node(1, 50.0, 64), node(2, 100.0, 64), node(3, 100.0, 64)];
    // Eight cores are seen on each node, and four are granted.
    let unequal = Acceptance::new(&found, 8000, 4, 0.05).unequal(4);
    let slowness = unequal.slowness(&HplParams::baseline(8000, 1, 16), 1);
    assert_eq!(slowness, [[1.0; 4], [2.0; 4], [1.0; 4], [1.0; 4]].concat());
}

/// Each node has links to those whose number differs in one bit, and both ends measure them.
#[test]
fn the_node_with_bad_links_is_named_not_those_that_it_joins() {
    for count in [3, 4, 16, 64] {
        let linked = |index: usize| {
            let link = |other: usize| LinkSurvey {
                other,
                latency_s: 1e-6,
                gbytes_per_s: if index == 1 || other == 1 { 4.0 } else { 10.0 },
                spread: 0.01,
                alone_gbytes_per_s: None,
            };
            let links = partners(index, count).map(link).collect();
            RankSurvey { links, ..node(index, 100.0, 64) }
        };
        let found: Vec<RankSurvey> = (0..count).map(linked).collect();
        let acceptance = Acceptance::new(&found, 8000, 8, 0.05);
        assert_eq!(acceptance.left_out, ["n2"], "of {count}");
        assert!(acceptance.nodes[1].faults[0].starts_with("its fastest link has 40 %"), "{:?}", acceptance.nodes[1]);
        assert_eq!(acceptance.nodes[0].slowest_link_gbytes_per_s, Some(4.0));
        assert_eq!(acceptance.nodes[0].links(), "4.00…10.00");
    }
}

#[test]
fn noise_and_names_that_are_no_html_do_no_harm() {
    let noisy = RankSurvey { hpl_gflops: vec![80.0, 92.0, 100.0], host: "<n1>".into(), ..node(0, 92.0, 64) };
    let found = [noisy, node(1, 100.0, 64), node(2, 100.0, 63)];
    let acceptance = Acceptance::new(&found, 8000, 8, 0.05);
    assert!(acceptance.accepted && acceptance.rest.is_none(), "{acceptance:?}");
    assert!(acceptance.to_string().contains("accepted: no node is shown to be"), "{acceptance}");
    assert!(acceptance.to_string().contains("<n1>: 8.0 % below, but its runs differ by"), "{acceptance}");
    assert!(page(&acceptance).contains("&lt;n1&gt;"));
}

/// Ranks that share cores have bandwidths that scatter.
#[test]
fn a_link_within_the_noise_of_its_round_trips_is_no_fault() {
    let of = |spread: f64| {
        let mut found = [0, 1, 2].map(|index| node(index, 100.0, 64));
        found[1].links[0] = LinkSurvey { gbytes_per_s: 7.0, spread, ..found[1].links[0].clone() };
        Acceptance::new(&found, 8000, 8, 0.05).nodes[1].faults.len()
    };
    assert_eq!([0.0, 0.2, 0.6].map(of), [1, 1, 0]);
}

#[test]
fn a_bad_link_a_stolen_processor_and_a_node_alone_are_told() {
    let mut slow = RankSurvey { stolen: Some(0.3), clock_hz: Some(2.0e9), load: Some(4.0), ..node(1, 70.0, 64) };
    slow.links[0].gbytes_per_s = 1.0;
    let acceptance = Acceptance::new(&[node(0, 100.0, 64), slow, node(2, 100.0, 64)], 8000, 8, 0.05);
    let said = &acceptance.nodes[1];
    assert_eq!((said.faults.len(), said.causes.len()), (2, 3), "{said:?}");
    let mut first = node(0, 100.0, 64);
    first.links[0].gbytes_per_s = 1.0;
    assert!(Acceptance::new(&[first, node(1, 100.0, 64)], 8000, 8, 0.05).accepted, "two nodes have one link");
    let alone = Acceptance::new(&[RankSurvey { links: Vec::new(), ..node(0, 100.0, 64) }], 8000, 8, 0.05);
    assert!(alone.accepted && alone.nodes[0].slowest_link_gbytes_per_s.is_none());
}
