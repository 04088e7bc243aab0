use std::collections::BTreeSet;
use std::time::Instant;

use objectives::launcher::MpiJob;
use space::domain::Limits;

use super::*;

const HERE: Here = Here { cores: 2, memory_bytes: 24 << 30 };

fn engine(name: &str) -> Engine {
    Engine::chosen(Some(name), None, None).unwrap()
}

fn node(count: usize, cores: usize, gigabytes: u64, accelerators: Option<usize>) -> Node {
    let (name, memory_bytes) = (format!("of {gigabytes} GB"), gigabytes * 1_000_000_000);
    Node { name, count, cores, memory_bytes, accelerators, ..Node::default() }
}

fn machine(nodes: &[Node]) -> Machine {
    Machine { nodes: nodes.to_vec(), ..Machine::default() }
}

fn room(name: &str, nodes: &[Node], ranks: Option<usize>) -> Room {
    Room::new(&engine(name), HERE, Some(&machine(nodes)), Wanted { ranks, threads: None })
}

#[test]
fn accelerators_have_the_matrix_and_a_rank_each() {
    let nodes = [node(1, 112, 640, Some(8))];
    let one = room("nvidia", &nodes, None);
    assert_eq!((one.places, one.memory_bytes), (8, Some(608_000_000_000)));
    let n = engine("nvidia").largest_order(one.memory_bytes.unwrap(), one.places, 1);
    assert!((255_000..265_000).contains(&n), "{n}");
    // Half of them have half of the memory, and what the description keeps is kept.
    assert_eq!(room("nvidia", &nodes, Some(4)).memory_bytes, Some(304_000_000_000));
    let kept = Node { reserved_bytes: 40_000_000_000, ..nodes[0].clone() };
    assert_eq!(room("nvidia", &[kept], None).memory_bytes, Some(600_000_000_000));
    // rocHPL's launcher is one node's, NVIDIA's is not.
    let many = [Node { count: 9408, ..nodes[0].clone() }];
    assert_eq!((room("nvidia", &many, None).places, room("rochpl", &many, None).places), (75_264, 8));
}

#[test]
fn the_node_with_the_least_memory_per_rank_bounds_all() {
    let unequal = room("netlib", &[node(3, 10, 100, None), node(1, 10, 50, None)], None);
    assert_eq!((unequal.places, unequal.memory_bytes), (40, Some(200_000_000_000)));
    assert!(unequal.notes[0].contains("of 50 GB limit all"), "{:?}", unequal.notes);
    // Ranks fill the nodes in their order: those of the first three alone do not see the fourth.
    let few = room("netlib", &[node(3, 10, 100, None), node(1, 10, 50, None)], Some(30));
    assert_eq!((few.memory_bytes, few.notes.len()), (Some(300_000_000_000), 0));
    // Two ranks with all their threads have a host each; asked for few, they share one.
    let four = [node(4, 10, 100, None)];
    assert_eq!(room("netlib", &four, Some(2)).memory_bytes, Some(200_000_000_000));
    let narrow = Wanted { ranks: Some(2), threads: Some(5) };
    let shared = Room::new(&engine("netlib"), HERE, Some(&machine(&four)), narrow);
    assert_eq!(shared.memory_bytes, Some(100_000_000_000));
    let unknown = room("netlib", &[node(1, 4, 100, None), Node { memory_bytes: 0, ..node(1, 4, 1, None) }], None);
    assert!(unknown.notes[0].contains("unknown"), "{:?}", unknown.notes);
}

#[test]
fn a_rank_has_its_threads_on_one_node() {
    let nodes = machine(&[node(4, 8, 100, None)]);
    let netlib = engine("netlib").on(Some(&nodes));
    let room = Room::new(&netlib, HERE, Some(&nodes), Wanted::default());
    let spec = DomainSpec {
        n: 10_000,
        cores: room.places,
        memory_bytes: room.memory_for(None).unwrap(),
        kernels: space::KernelChoice::Builtin,
        ranks: None,
        threads: None,
        most_threads: None,
        common_cores: room.common_cores,
        unequal: space::Unequal::default(),
    };
    let (domain, _) = netlib.domain(&spec).unwrap();
    let most = domain.points().iter().map(|point| domain.candidate(point).engine.threads).max();
    assert_eq!(most, Some(8));
}

/// On nodes of 4, 6 and 6 cores there is place for three ranks of 4 threads, not for the four that 16 cores would be.
#[test]
fn ranks_fill_nodes_of_unequal_size() {
    let nodes = machine(&[node(1, 4, 100, None), node(2, 6, 100, None)]);
    let limits = Limits::parse("nb = 128\nbcast = '1ringM'").unwrap();
    for engine in [engine("netlib"), Engine::Launched(MpiJob::new("mpirun", "xhpl".into()))] {
        let engine = engine.on(Some(&nodes));
        let room = Room::new(&engine, HERE, Some(&nodes), Wanted::default());
        assert_eq!((room.places, room.common_cores), (16, Some(2)));
        let all = hpl::machine::host::facts().domain_spec(10_000);
        let spec = DomainSpec { cores: 16, common_cores: Some(2), memory_bytes: 1 << 40, ..all };
        let (domain, _) = engine.domain_within(&spec, &limits).unwrap();
        let threads = domain.points().iter().map(|point| domain.candidate(point).engine.threads);
        assert_eq!(threads.collect::<BTreeSet<_>>(), BTreeSet::from([1, 2]));
    }
}

/// Four nodes of 8 cores: with five threads each, which 32 cores for six ranks would allow, four ranks alone have a place.
#[test]
fn ranks_that_do_not_divide_over_the_nodes_share_their_memory() {
    let of = |ranks: usize| room("netlib", &[node(4, 8, 10, None)], Some(ranks)).memory_bytes.unwrap() / ranks as u64;
    assert_eq!((of(4), of(6), of(8), of(32)), (10_000_000_000, 5_000_000_000, 5_000_000_000, 1_250_000_000));
    // And so have their threads a place.
    let threads = |ranks: usize| room("netlib", &[node(4, 8, 10, None)], Some(ranks)).places / ranks;
    assert_eq!([4, 5, 6, 8, 9, 32].map(threads), [8, 4, 4, 4, 2, 1]);
}

#[test]
fn what_nobody_knows_is_said_and_bounds_no_order_of_the_user() {
    let wanted = Wanted { ranks: Some(8), threads: None };
    for described in [None, Some(machine(&[node(2, 64, 500, None)]))] {
        let room = Room::new(&engine("nvidia"), HERE, described.as_ref(), wanted);
        assert_eq!((room.places, room.memory_for(Some(300_000)).unwrap()), (8, u64::MAX));
        let message = room.memory_for(None).unwrap_err().to_string();
        assert!(message.contains("--n") && message.contains("--machine"), "{message}");
        assert!(room.notes[0].contains("not checked"), "{:?}", room.notes);
    }
    let silent = room("netlib", &[Node { memory_bytes: 0, ..node(2, 4, 1, None) }], None);
    assert!(silent.memory_bytes.is_none() && silent.notes[0].contains("unknown"), "{:?}", silent.notes);
    // On this host its own memory counts.
    let here = Room::new(&engine("netlib"), HERE, None, Wanted::default());
    assert_eq!((here.places, here.memory_bytes), (2, Some(24 << 30)));
}

#[test]
fn a_run_costs_what_the_description_or_else_the_budget_says() {
    let budget = Budget::new(Instant::now(), 3600.0, 0.0);
    let nvidia = engine("nvidia");
    let cost = |node: Node, n: usize| {
        let machine = machine(&[node]);
        let room = Room::new(&nvidia, HERE, Some(&machine), Wanted::default());
        let spec = DomainSpec {
            n,
            cores: room.places,
            memory_bytes: room.memory_for(Some(n)).unwrap(),
            kernels: space::KernelChoice::Builtin,
            ranks: None,
            threads: None,
            most_threads: None,
            common_cores: None,
            unequal: space::Unequal::default(),
        };
        let modelled = room.model(&nvidia, Some(&machine), &spec, Some(n), &budget).unwrap();
        let (_, usual) = nvidia.domain(&spec).unwrap();
        (Predictor::new(&modelled.machine).unwrap().time_s(&usual), modelled.note.unwrap())
    };
    let gpus = node(1, 112, 640, Some(8));
    let (time_s, note) = cost(Node { peak_gflops: 336_000.0, ..gpus.clone() }, 250_000);
    let ideal_s = space::flops::rate_gflops(250_000, 336_000.0);
    assert!((1.0..1.2).contains(&(time_s / ideal_s)) && note.contains("peak_gflops"), "{time_s} {ideal_s} {note}");
    // Also where a few ranks have all of a small matrix.
    for n in [250_000, 100] {
        let (time_s, note) = cost(gpus.clone(), n);
        assert!((0.4..0.5).contains(&(time_s / budget.run_s())) && note.contains("first run"), "{time_s} {note}");
    }
}

#[test]
fn more_than_there_is_place_for_is_refused_with_the_way_out() {
    let wanted = Wanted { ranks: Some(9), threads: None };
    let message = room("nvidia", &[node(1, 112, 640, Some(8))], Some(9)).check(wanted).unwrap_err().to_string();
    assert!(message.contains("9 accelerators, 8 are available") && message.contains("--machine"), "{message}");
    let two = [node(2, 3, 100, None)];
    let hybrid = Wanted { ranks: None, threads: Some(2) };
    let room = Room::new(&engine("netlib"), HERE, Some(&machine(&two)), hybrid);
    assert_eq!(room.places, 4, "a rank has its cores on one node");
}
