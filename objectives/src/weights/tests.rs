use proptest::prelude::*;
use space::machine::{Layer, Link, Machine, Node};

use super::*;

fn group(name: &str, count: usize, speed_gflops: f64, gigabytes: u64) -> NodeGroup {
    let memory_bytes = gigabytes * 1_000_000_000;
    NodeGroup { name: name.into(), count, speed_gflops, memory_bytes, reserved_bytes: 2_000_000_000 }
}

/// Four Isabella nodes on SDR links of 1 GB/s.
fn four() -> Cluster {
    let groups = vec![
        group("x4600m2", 1, 172.8, 64),
        group("dell", 1, 255.36, 128),
        group("dl585", 1, 35.2, 16),
        group("dl580", 1, 153.6, 24),
    ];
    Cluster::new(groups, vec![vec![1.0; 4]; 4]).unwrap()
}

/// Eight: four with QDR links of 4 GB/s among them, all others SDR.
fn eight() -> Cluster {
    let groups = vec![
        group("sl230", 4, 307.2, 64),
        group("dell", 2, 255.36, 128),
        group("dl580", 1, 153.6, 24),
        group("dl585", 1, 35.2, 16),
    ];
    let mut links = vec![vec![1.0; 4]; 4];
    links[0][0] = 4.0;
    Cluster::new(groups, links).unwrap()
}

fn request(method: Method, memory: MemoryRule, nodes: usize) -> AdviceRequest {
    let (combine, order, slem) = (Combine::Mean, NodeOrder::ByShare, SlemOptions::default());
    AdviceRequest { method, memory, combine, grid: (1, nodes), order, nb: 192, n: None, slem }
}

fn sum(cluster: &Cluster, shares: &[f64]) -> f64 {
    cluster.groups().iter().zip(shares).map(|(group, share)| group.count as f64 * share).sum()
}

/// Equal to the last printed digit of `wanted`.
fn printed(found: &[f64], wanted: &[f64], digit: f64) {
    assert_eq!(found.len(), wanted.len());
    let same = found.iter().zip(wanted).all(|(f, w)| (f - w).abs() <= 0.6 * digit);
    assert!(same, "{found:?} is not {wanted:?}");
}

/// The weights of the known 4- and 8-node examples, multiplied by the part of all memory as in the paper.
#[test]
fn known_examples_have_their_known_weights() {
    for (cluster, slem, times_memory) in [
        (four(), [0.2801, 0.4139, 0.0571, 0.2490], [0.229, 0.688, 0.0105, 0.0723]),
        (eight(), [0.1593, 0.1324, 0.0796, 0.0183], [0.132, 0.223, 0.0234, 0.0034]),
    ] {
        for method in [Method::Slem, Method::Proportional] {
            let (shares, _) = method.shares(&cluster, 100_000, &SlemOptions::default()).unwrap();
            printed(&shares, &slem, 1e-4);
            let bent = MemoryRule::Paper.cap_to_memory(&cluster, &shares, 100_000).unwrap();
            bent.iter().zip(times_memory).for_each(|(found, wanted)| {
                let digit = if wanted < 0.1 { 1e-4 } else { 1e-3 };
                printed(&[*found], &[wanted], digit);
            });
        }
    }
}

/// With physical units SLEM equals the proportional method; with a large factor on words it differs and is worse.
#[test]
fn slem_depends_on_its_units() {
    let cluster = eight();
    let n = 100_000;
    let shares = |message_unit| Method::Slem.shares(&cluster, n, &SlemOptions { message_unit }).unwrap();
    let (proportional, _) = Method::Proportional.shares(&cluster, n, &SlemOptions::default()).unwrap();
    let distance = |shares: &[f64]| shares.iter().zip(&proportional).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    let (physical, report) = shares(1.0);
    assert!(distance(&physical) < 1e-4);
    assert!(report.unwrap().units.contains("a word counted 1 times"));
    let (counted, report) = shares(1e6);
    assert!(distance(&counted) > 0.01 && report.unwrap().units.contains("1000000 times"));
    let rate = |message_unit| {
        let request = AdviceRequest {
            slem: SlemOptions { message_unit },
            n: Some(n),
            ..request(Method::Slem, MemoryRule::Cap, 8)
        };
        advise(&cluster, &request).unwrap().predicted_rate_gflops
    };
    assert!(rate(1e6) < 0.8 * rate(1.0), "{} {}", rate(1e6), rate(1.0));
}

/// Memory as a factor loses much of the gain by weights; memory as a cap does not.
#[test]
fn memory_as_a_factor_loses() {
    for cluster in [four(), eight()] {
        let nodes = cluster.nodes();
        let n = memory::largest_n(&cluster) * 8 / 10;
        let rate = |memory| {
            advise(&cluster, &AdviceRequest { n: Some(n), ..request(Method::Proportional, memory, nodes) })
                .unwrap()
                .predicted_rate_gflops
        };
        let loss = 1.0 - rate(MemoryRule::Paper) / rate(MemoryRule::Cap);
        assert!((0.1..0.5).contains(&loss), "{loss}");
    }
}

#[test]
fn the_model_gives_all_nodes_the_same_time() {
    let cluster = eight();
    let n = 100_000_usize;
    let (shares, _) = Method::Model.shares(&cluster, n, &SlemOptions::default()).unwrap();
    assert!((sum(&cluster, &shares) - 1.0).abs() < 1e-12);
    let (flops, bytes) = (2.0 / 3.0 * (n as f64).powi(3), 4.0 * (n as f64).powi(2));
    let times: Vec<f64> = (0..4)
        .map(|g| {
            let (speed, port) = (cluster.groups()[g].speed_gflops * 1e9, cluster.port(g) * 1e9);
            shares[g] * flops / speed + (1.0 + shares[g]) * bytes / port
        })
        .collect();
    times.iter().for_each(|time| assert!((time / times[0] - 1.0).abs() < 1e-9, "{times:?}"));
    // Nodes with fast links get more than in proportion to their speed.
    assert!(shares[0] > 307.2 / 1928.32);
}

#[test]
fn the_model_promises_most() {
    for cluster in [four(), eight()] {
        let rate = |method| {
            let request =
                AdviceRequest { nb: 64, n: Some(80_000), ..request(method, MemoryRule::Cap, cluster.nodes()) };
            advise(&cluster, &request).unwrap().predicted_rate_gflops
        };
        let model = rate(Method::Model);
        assert!(model >= 0.99 * rate(Method::Proportional) && model > 2.0 * rate(Method::Equal));
    }
}

#[test]
fn a_full_node_leaves_the_rest_to_the_others() {
    let cluster = four();
    let n = memory::largest_n(&cluster);
    let caps = memory::caps(&cluster, n);
    let (wanted, _) = Method::Proportional.shares(&cluster, n, &SlemOptions::default()).unwrap();
    let shares = MemoryRule::Cap.cap_to_memory(&cluster, &wanted, n).unwrap();
    // At the largest order every node is full.
    shares.iter().zip(&caps).for_each(|(share, cap)| assert!((share - cap).abs() < 1e-4, "{shares:?} {caps:?}"));
    let error = MemoryRule::Cap.cap_to_memory(&cluster, &wanted, n + 10).unwrap_err();
    assert_eq!(error, WeightsError::NoRoom { n: n + 10, largest_n: n });
    // Even a node of speed 0 gets what fits on no other node.
    let lazy = Cluster::new(vec![group("a", 1, 1.0, 12), group("b", 1, 0.0, 12)], vec![vec![1.0; 2]; 2]).unwrap();
    let n = 48_000;
    let bent = MemoryRule::Cap.cap_to_memory(&lazy, &[1.0, 0.0], n).unwrap();
    assert!((bent[0] - 10e9 / (8.0 * 48e3_f64.powi(2))).abs() < 1e-12 && (bent[0] + bent[1] - 1.0).abs() < 1e-12);
}

#[test]
fn n_is_chosen_with_the_shares() {
    let cluster = eight();
    let free = advise(&cluster, &request(Method::Model, MemoryRule::Cap, 8)).unwrap();
    let largest = memory::largest_n(&cluster);
    let at = |n| {
        let request = AdviceRequest { n: Some(n), ..request(Method::Model, MemoryRule::Cap, 8) };
        advise(&cluster, &request).unwrap().predicted_rate_gflops
    };
    assert!(free.n < largest && free.n.is_multiple_of(192));
    assert!(free.predicted_rate_gflops >= at(free.n / 2) && free.predicted_rate_gflops >= at(largest - 100));
    free.grid.check_memory(&cluster, free.n).unwrap();
}

#[test]
fn equal_nodes_meet_in_a_column() {
    let cluster = eight();
    let (shares, _) = Method::Proportional.shares(&cluster, 100_000, &SlemOptions::default()).unwrap();
    let grid = NodeGrid::place(&cluster, &shares, 2, 4, Combine::Mean).unwrap();
    assert_eq!(grid.groups, [0, 0, 0, 0, 1, 1, 2, 3]);
    assert_eq!(grid.columns[0], grid.columns[1]);
    assert!((grid.columns.iter().sum::<f64>() - 1.0).abs() < 1e-12 && grid.rows[0] > grid.rows[1]);
    let slowest = NodeGrid::place(&cluster, &shares, 2, 4, Combine::Minimum).unwrap();
    assert!(slowest.columns[3] < grid.columns[3]);
    let weights = NodeGrid::place(&cluster, &shares, 1, 8, Combine::Mean).unwrap().weights();
    assert_eq!((weights.rows.len(), weights.columns.len()), (0, 8));
    let error = NodeGrid::place(&cluster, &shares, 2, 3, Combine::Mean).unwrap_err();
    assert_eq!(error.to_string(), "P=2 Q=3 takes 6 nodes, there are 8; give P and Q with P·Q = 8");
}

#[test]
fn ranks_follow_the_shares() {
    assert_eq!(rank_counts(&[0.5, 0.25, 0.25], &[9, 9, 9], 8), Some(vec![4, 2, 2]));
    assert_eq!(rank_counts(&[0.9, 0.1, 0.0], &[3, 9, 9], 6), Some(vec![3, 3, 0]));
    assert_eq!(rank_counts(&[0.9, 0.1], &[3, 2], 6), None);
}

fn refused(text: &str) -> String {
    let machine = Machine::parse(text).unwrap();
    Cluster::from_machine(&machine).unwrap_err().to_string()
}

#[test]
fn a_machine_description_becomes_a_cluster_or_says_what_is_missing() {
    let host = "[host]\nname = \"h\"\ncpu = \"c\"\norigin = \"o\"\n";
    let node = |name: &str, more: &str| {
        format!("[[node]]\nname = \"{name}\"\ncount = 2\ncores = 4\nmemory_bytes = 16_000_000_000\n{more}\n")
    };
    let fast = "rate_gflops = 100.0\nlink_gbytes_per_s = 4.0";
    let slow = "peak_gflops = 40.0\nlink_gbytes_per_s = 1.0";
    let cluster =
        Cluster::from_machine(&Machine::parse(&format!("{host}{}{}", node("a", fast), node("b", slow))).unwrap())
            .unwrap();
    assert_eq!((cluster.groups()[0].speed_gflops, cluster.groups()[1].speed_gflops), (100.0, 40.0));
    assert_eq!((cluster.link(0, 0), cluster.link(0, 1), cluster.link(1, 1)), (4.0, 1.0, 1.0));
    assert!((cluster.port(0) - 3.0 / (1.0 / 4.0 + 2.0)).abs() < 1e-12);

    assert!(
        refused(&format!("{host}{}", node("a", "link_gbytes_per_s = 1"))).contains("node a has neither rate_gflops")
    );
    assert!(refused(&format!("{host}{}", node("a", "rate_gflops = 1"))).contains("link a – a"));
    let two = format!("{host}{}{}", node("a", fast), node("b", slow));
    let link = |from: &str, to: &str, speed: f64| {
        format!("[[link]]\nnodes = [\"{from}\", \"{to}\"]\ngbytes_per_s = {speed:.1}\n")
    };
    let asymmetric = refused(&format!("{two}{}{}", link("a", "b", 10.0), link("b", "a", 1.0)));
    assert!(asymmetric.contains("link a – b is asymmetric: 10 GB/s one way, 1 GB/s"), "{asymmetric}");
    let apart = refused(&format!("{two}{}", link("a", "b", 0.0)));
    assert!(apart.contains("no chain of links joins a and b"), "{apart}");
}

#[test]
fn impossible_speeds_are_named() {
    let with = |speed| Cluster::new(vec![group("a", 1, 1.0, 8), group("b", 1, speed, 8)], vec![vec![1.0; 2]; 2]);
    for speed in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(with(speed).unwrap_err().to_string().starts_with("node b: its speed must be a finite number"));
    }
    let cluster = with(1.0).unwrap();
    assert_eq!(cluster.normalised(&[0.0, 0.0]), Err(WeightsError::AllZero));
    assert_eq!(
        cluster.normalised(&[1.0]).unwrap_err().to_string(),
        "1 speeds for 2 groups of nodes; give one of each group, in their order"
    );
    assert!(cluster.normalised(&[1.0, f64::NAN]).unwrap_err().to_string().contains("node b"));
    assert_eq!(Cluster::new(Vec::new(), Vec::new()), Err(WeightsError::NoNodes));
    let idle = Cluster::new(vec![group("a", 2, 0.0, 8)], vec![vec![1.0]]);
    assert_eq!(idle, Err(WeightsError::AllZero));
    let small = Cluster::new(vec![group("a", 1, 9.0, 100), group("b", 1, 1.0, 3)], vec![vec![1.0; 2]; 2]).unwrap();
    let at = |method| advise(&small, &AdviceRequest { n: Some(50_000), ..request(method, MemoryRule::Cap, 2) });
    assert!(at(Method::Proportional).is_ok(), "the cap helps");
    assert!(matches!(at(Method::Equal), Err(WeightsError::Memory { n: 50_000, .. })));
    let grid = NodeGrid::place(&small, &[0.5, 0.5], 1, 2, Combine::Mean).unwrap();
    let error = grid.check_memory(&small, 50_000).unwrap_err().to_string();
    assert!(error.contains("node b holds 1.00 GB, its share at N=50000 needs 10.00 GB; lower N to 15811"), "{error}");
}

fn clusters() -> impl Strategy<Value = Cluster> {
    let node = (1usize..5, 0.1..1e4f64, 4u64..500);
    (proptest::collection::vec(node, 1..7), proptest::collection::vec(0.1..20f64, 49)).prop_map(|(nodes, links)| {
        let groups: Vec<_> = nodes
            .iter()
            .enumerate()
            .map(|(i, &(count, speed, memory))| group(&format!("n{i}"), count, speed, memory))
            .collect();
        let link = |g: usize, h: usize| links[g.min(h) * 7 + g.max(h)];
        let links = (0..groups.len()).map(|g| (0..groups.len()).map(|h| link(g, h)).collect()).collect();
        Cluster::new(groups, links).unwrap()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn shares_are_whole_and_fit(cluster in clusters(), part in 0.05..1.0f64) {
        let n = (memory::largest_n(&cluster) as f64 * part) as usize;
        let caps = memory::caps(&cluster, n);
        for method in Method::ALL {
            let (wanted, _) = method.shares(&cluster, n, &SlemOptions::default()).unwrap();
            let shares = MemoryRule::Cap.cap_to_memory(&cluster, &wanted, n).unwrap();
            prop_assert!((sum(&cluster, &wanted) - 1.0).abs() < 1e-9 && (sum(&cluster, &shares) - 1.0).abs() < 1e-9);
            for (share, cap) in shares.iter().zip(&caps) {
                prop_assert!(*share >= 0.0 && *share <= cap * (1.0 + 1e-9));
            }
        }
    }

    #[test]
    fn a_faster_node_never_makes_the_model_slower(cluster in clusters(), faster in 1.0..5.0f64) {
        let mut groups = cluster.groups().to_vec();
        groups[0].speed_gflops *= faster;
        let links = (0..groups.len()).map(|g| (0..groups.len()).map(|h| cluster.link(g, h)).collect()).collect();
        let better = Cluster::new(groups, links).unwrap();
        let share = |cluster: &Cluster| Method::Model.shares(cluster, 40_000, &SlemOptions::default()).unwrap().0[0];
        prop_assert!(share(&better) >= share(&cluster) * (1.0 - 1e-9));
    }

    /// Groups that differ in their names only give the same weights.
    #[test]
    fn joined_groups_are_the_same_cluster(cluster in clusters()) {
        let single: Vec<usize> = cluster.groups().iter().enumerate().flat_map(|(g, group)| std::iter::repeat_n(g, group.count)).collect();
        let groups = single.iter().enumerate().map(|(i, &g)| NodeGroup { name: format!("{i}"), count: 1, ..cluster.groups()[g].clone() });
        let links = single.iter().map(|&g| single.iter().map(|&h| cluster.link(g, h)).collect()).collect();
        let apart = Cluster::new(groups.collect(), links).unwrap();
        let (joined, became) = apart.joined();
        prop_assert!(joined.groups().len() <= cluster.groups().len());
        prop_assert_eq!(joined.nodes(), cluster.nodes());
        let counts: Vec<usize> = (0..joined.groups().len()).map(|to| became.iter().filter(|b| **b == to).count()).collect();
        prop_assert_eq!(counts, joined.groups().iter().map(|group| group.count).collect::<Vec<_>>());
        for method in Method::ALL {
            let of = |cluster: &Cluster| method.shares(cluster, 50_000, &SlemOptions::default()).unwrap().0;
            let (grouped, single_shares) = (of(&cluster), of(&apart));
            for (i, &g) in single.iter().enumerate() {
                prop_assert!((single_shares[i] - grouped[g]).abs() < 1e-6);
            }
        }
    }
}

#[test]
fn links_come_from_the_layer_that_joins_two_nodes() {
    let node = |rank: usize| Node {
        name: format!("n{rank}"),
        count: 1,
        cores: 2,
        memory_bytes: 1 << 30,
        rate_gflops: 10.0 + rank as f64,
        ..Node::default()
    };
    let layer = |name: &str, ranks: usize, gbytes_per_s: f64| Layer {
        name: name.into(),
        ranks,
        alpha_s: None,
        beta_s_per_word: 8e-9 / gbytes_per_s,
        shared_by: 1,
    };
    let bad = Link { nodes: ["n7".into(), "n3".into()], gbytes_per_s: 0.5 };
    // 2048 ranks of two threads, four on a host, and one link that differs from the others.
    let machine = Machine {
        nodes: (0..2048).map(node).collect(),
        layers: vec![layer("node", 8, 16.0), layer("network", 4096, 2.0)],
        links: vec![bad],
        ..Machine::default()
    };
    let cluster = Cluster::from_machine(&machine).unwrap();
    let near =
        |g, h, wanted: f64| assert!((cluster.link(g, h) - wanted).abs() < 1e-9, "{g} {h} {}", cluster.link(g, h));
    near(0, 3, 16.0);
    near(3, 4, 2.0);
    near(2044, 2047, 16.0);
    near(0, 2047, 2.0);
    near(3, 7, 0.5);
    let many = Machine { nodes: (0..10_000).map(node).collect(), ..Machine::default() };
    assert!(Cluster::from_machine(&many).unwrap_err().to_string().contains("with their count"));
}

/// Each node has one process, which has its link for itself, however many ranks could share it.
#[test]
fn processes_share_the_link_of_their_host_alone() {
    let machine = |cores: usize, shared_by: usize| {
        let node = |at: usize| Node {
            name: format!("n{at}"),
            count: 1,
            cores,
            memory_bytes: 1 << 30,
            rate_gflops: 10.0,
            ..Node::default()
        };
        let layer = |name: &str, ranks: usize, shared_by: usize| Layer {
            name: name.into(),
            ranks,
            alpha_s: None,
            beta_s_per_word: 8e-9 / 12.0,
            shared_by,
        };
        let layers = vec![layer("node", 64, 1), layer("network", 256, shared_by)];
        Machine { nodes: (0..256 / cores).map(node).collect(), layers, ..Machine::default() }
    };
    let between_hosts = |cores, shared_by| {
        let machine = machine(cores, shared_by);
        let cluster = Cluster::from_machine(&machine).unwrap();
        cluster.link(0, machine.nodes.len() - 1)
    };
    assert!((between_hosts(64, 64) - 12.0).abs() < 1e-9);
    // Eight surveyed ranks of eight threads on each host: four of them have its link, or all.
    assert!((between_hosts(8, 4) - 3.0).abs() < 1e-9 && (between_hosts(8, 64) - 1.5).abs() < 1e-9);
}
