//! The domain of another engine: complete, canonical, whatever its dimensions and the allowed values are.

use std::collections::{BTreeSet, HashSet};

use space::candidate::EngineProfile;
use space::dims::{Point, Space};
use space::domain::{
    DomainError, DomainSpec, Extra, ForeignDomain, ForeignSpec, HplDomain, Limits, MAX_POINTS, ProcessRows,
    required_bytes,
};
use space::workspace::{RunShape, Workspace};
use space::{Bcast, Candidates, HplParams, Swap};

use crate::domain;

fn spec(n: usize, cores: usize) -> DomainSpec {
    DomainSpec { memory_bytes: 1 << 33, ..domain::spec(n, cores) }
}

fn engine(obeys: &[&str]) -> ForeignSpec {
    ForeignSpec { obeys: obeys.iter().map(|&name| name.to_owned()).collect(), ..ForeignSpec::default() }
}

/// With Q = 1 nothing is sent, with P = 1 no rows are exchanged: the only allowed value stands for all.
#[test]
fn a_value_that_cannot_matter_hides_no_grid() {
    let foreign = ForeignSpec { nb: vec![128], ..engine(&["nb", "bcast", "depth", "swap"]) };
    type Acts = fn(&HplParams) -> bool;
    let cases: [(&str, Acts); 3] = [
        ("bcast = 'long'", |hpl| hpl.bcast == Bcast::Long),
        ("depth = 1", |hpl| hpl.depth == 1),
        ("swap = 'long'", |hpl| hpl.swap == Swap::Long),
    ];
    for (text, is_allowed) in cases {
        let limits = Limits::parse_for(text, &foreign).unwrap();
        let domain = ForeignDomain::within(&spec(4000, 4), &foreign, &limits).unwrap();
        let mut grids = BTreeSet::new();
        for point in domain.points() {
            let candidate = domain.candidate(point);
            grids.insert((candidate.hpl.p, candidate.hpl.q));
            assert!(is_allowed(&candidate.hpl), "{text}: {candidate:?}");
            assert_eq!(domain.canonical(point).as_ref(), Some(point), "{text}");
            assert_eq!(domain.point(&candidate).as_ref(), Some(point), "{text}");
            // A run with any other of the values that have no effect is the same.
            let same = candidate.canonical(EngineProfile::Netlib);
            assert_eq!(domain.point(&same).as_ref(), Some(point), "{text}");
        }
        assert_eq!(grids, [(1, 4), (2, 2), (4, 1)].into(), "{text}");
    }
}

/// Two nodes of 12 cores have no room for three ranks of 8 threads.
#[test]
fn ranks_of_free_numbers_of_threads_fill_their_nodes() {
    let ours = DomainSpec { most_threads: Some(12), ..spec(4000, 24) };
    let other = ForeignSpec { threads: true, most_threads: Some(12), nb: vec![128], ..engine(&["nb"]) };
    let domains: [Box<dyn Candidates>; 2] =
        [Box::new(HplDomain::new(&ours).unwrap()), Box::new(ForeignDomain::new(&spec(4000, 24), &other).unwrap())];
    for domain in domains {
        let threads = domain.points().iter().map(|point| domain.candidate(point).engine.threads);
        assert_eq!(threads.collect::<BTreeSet<_>>(), [1, 2, 3, 4, 6, 12].into());
    }
    // As asked.
    let fixed = DomainSpec { threads: Some(8), ..spec(4000, 24) };
    let domain = ForeignDomain::new(&fixed, &other).unwrap();
    assert!(domain.points().iter().all(|point| domain.candidate(point).engine.threads == 8));
}

/// Of DEPTH and NB that are no dimensions, too.
#[test]
fn the_memory_that_is_lacking_is_that_of_the_values_that_are_run() {
    for (foreign, nb) in [(ForeignSpec { nb: vec![64], ..engine(&["nb"]) }, 64), (engine(&["depth"]), 128)] {
        let depth = usize::from(foreign.obeys != ["depth"]);
        let needed = required_bytes(4000, 1, 1, nb, depth);
        let at = |n| ForeignDomain::new(&DomainSpec { n, memory_bytes: needed - 1, ..spec(4000, 1) }, &foreign);
        let error = at(4000).unwrap_err();
        let DomainError::Memory { needed_bytes, largest_n, .. } = error else { panic!("{error}") };
        assert_eq!(needed_bytes, needed);
        assert!(at(largest_n).is_ok() && largest_n >= 3840, "{largest_n}");
    }
}

#[test]
fn the_usual_nb_of_a_program_is_searched() {
    let of = |n: usize, nb: &[usize]| {
        let foreign = ForeignSpec { usual_nb: Some(232), nb: nb.to_vec(), ..engine(&["nb"]) };
        let domain = ForeignDomain::new(&spec(n, 1), &foreign).unwrap();
        assert!(domain.point(&domain.usual()).is_some(), "{:?}", domain.usual());
        domain.usual().hpl.nb
    };
    assert_eq!((of(4000, &[]), of(100, &[]), of(4000, &[192, 256])), (232, 100, 256));
}

/// The memory may hold no run: the largest N is 0 then.
#[test]
fn an_order_of_0_is_refused() {
    let foreign = ForeignSpec { usual_nb: Some(232), ..engine(&["nb"]) };
    let message = ForeignDomain::usual_of(&spec(0, 1), &foreign).unwrap_err().to_string();
    assert!(message.contains('N') && message.contains("at least 1"), "{message}");
}

/// Points are found by pruning: here without. Whether the device factors panels is the last dimension, and decides on PFACT,
/// RFACT and memory.
#[test]
fn no_point_is_missing_where_a_device_may_factor_panels() {
    let shape = RunShape { n: 1000, p: 1, q: 1, nb: 128, depth: 2, device_factors: true, fact_threads: 1 };
    let tight = Workspace::OurDevice.bytes(shape);
    let cases = [(["32", "0"], 1 << 33, 30), (["0", "32"], 1 << 33, 30), (["0", "32"], tight, 3)];
    for (blocks, memory_bytes, expected) in cases {
        let fact_blocks = Extra {
            name: "fact_blocks".into(),
            labels: blocks.map(str::to_owned).to_vec(),
            features: vec![0.0, 1.0],
            ordered: false,
            acts: ProcessRows::One,
        };
        let foreign = ForeignSpec {
            depth_alone: true,
            workspace: Workspace::OurDevice,
            extra: vec![fact_blocks],
            ..engine(&["pfact", "rfact", "depth"])
        };
        let domain = ForeignDomain::new(&DomainSpec { memory_bytes, ..spec(1000, 1) }, &foreign).unwrap();
        let mut all: Vec<Vec<u16>> = vec![Vec::new()];
        for dim in domain.dims() {
            let count = dim.levels.len() as u16;
            let grow = |head: Vec<u16>| (0..count).map(move |level| [head.clone(), vec![level]].concat());
            all = all.into_iter().flat_map(grow).collect();
        }
        let canonical = all.into_iter().filter_map(|levels| domain.canonical(&Point(levels)));
        let canonical: BTreeSet<Point> = canonical.collect();
        let points: BTreeSet<Point> = domain.points().iter().cloned().collect();
        assert_eq!(canonical, points, "{blocks:?}");
        assert_eq!(points.len(), expected, "{blocks:?}");
        for point in &canonical {
            assert_eq!(domain.point(&domain.candidate(point)).as_ref(), Some(point));
        }
    }
}

/// An engine that obeys these dimensions and has one of its own.
fn foreign(obeys: &[&str], nb: &[usize], threads: bool) -> ForeignSpec {
    let labels: Vec<String> = ["off", "on"].map(str::to_owned).to_vec();
    let extra = vec![Extra {
        name: "nvshmem".into(),
        labels,
        features: vec![0.0, 1.0],
        ordered: false,
        acts: ProcessRows::Any,
    }];
    ForeignSpec {
        obeys: obeys.iter().map(|&name| name.to_owned()).collect(),
        nb: nb.to_vec(),
        threads,
        extra,
        ..ForeignSpec::default()
    }
}

/// DEPTH acts with one process column where a program looks ahead by itself, for more than one panel; its usual NB is told.
#[test]
fn a_program_that_looks_ahead_alone_has_depths_with_one_process_column() {
    let nb = [256, 512, 1024, 4000];
    let depths = |depth_alone: bool| {
        let foreign = ForeignSpec { depth_alone, usual_nb: Some(1024), ..foreign(&["nb", "depth"], &nb, false) };
        let spec = DomainSpec { n: 4000, ranks: Some(1), threads: Some(1), ..spec(4000, 1) };
        let domain = ForeignDomain::new(&spec, &foreign).unwrap();
        let usual = domain.usual().hpl;
        assert_eq!((usual.nb, usual.depth), (1024, usize::from(depth_alone)));
        let points = domain.points().iter().map(|point| domain.candidate(point).hpl);
        let mut found: Vec<(usize, usize)> = points.map(|hpl| (hpl.nb, hpl.depth)).collect();
        found.sort_unstable();
        found.dedup();
        found
    };
    assert_eq!(depths(false), nb.map(|nb| (nb, 0)));
    let with = depths(true);
    assert!(with.contains(&(256, 0)) && with.contains(&(256, 1)) && with.contains(&(1024, 2)));
    assert_eq!(with.iter().filter(|(nb, _)| *nb == 4000).collect::<Vec<_>>(), [&(4000, 0)]);
}

/// The usual NBMIN is one of the values, also where a coarse choice has left it out.
#[test]
fn the_usual_nbmin_of_a_program_is_searched() {
    let foreign = ForeignSpec { usual_nbmin: Some(24), ..foreign(&["nb", "nbmin"], &[256, 512], false) };
    for n in [4000, 20] {
        let domain = ForeignDomain::new(&DomainSpec { n, ..spec(n, 1) }, &foreign).unwrap();
        let usual = domain.usual();
        assert_eq!(usual.hpl.nbmin, n.min(24));
        let points = domain.points();
        assert!(points.iter().any(|point| domain.candidate(point) == usual), "{:?}", usual.hpl);
        assert!(points.iter().any(|point| domain.candidate(point).hpl.nbmin < usual.hpl.nbmin));
    }
}

#[test]
fn points_of_another_engine_are_canonical_valid_and_distinct() {
    let all = ["nb", "nbmin", "ndiv", "pfact", "rfact", "bcast", "depth", "swap"];
    for (n, cores, foreign) in [
        (8000, 2, foreign(&all, &[128, 256], true)),
        (100, 3, foreign(&all, &[], false)),
        (20_000, 8, foreign(&["nb"], &[384, 512, 1024], false)),
        (8000, 1, foreign(&["depth"], &[], true)),
    ] {
        let domain = ForeignDomain::new(&spec(n, cores), &foreign).unwrap();
        let mut runs = HashSet::new();
        for point in domain.points() {
            assert_eq!(domain.canonical(point).as_ref(), Some(point));
            let candidate = domain.candidate(point);
            assert_eq!(candidate.canonical(EngineProfile::Netlib), candidate);
            assert_eq!(domain.point(&candidate).as_ref(), Some(point), "{candidate:?}");
            assert!(foreign.threads || candidate.engine.threads == 1);
            assert!(foreign.nb.is_empty() || foreign.nb.contains(&candidate.hpl.nb));
            assert!(candidate.engine.extra.contains_key("nvshmem"));
            assert!(runs.insert(candidate));
        }
        assert!(runs.len() >= 2 && runs.len() <= MAX_POINTS, "{} points", runs.len());
        assert!(domain.point(&domain.usual()).is_some(), "{:?}", domain.usual());
        assert_eq!(domain.usual().engine.extra["nvshmem"], "off");
    }
}

#[test]
fn a_rank_of_another_engine_has_its_threads_on_one_node() {
    let of = |most_threads| ForeignSpec { most_threads, ..foreign(&["nb"], &[128], true) };
    let threads = |most_threads| -> HashSet<usize> {
        let domain = ForeignDomain::new(&spec(8000, 16), &of(most_threads)).unwrap();
        domain.points().iter().map(|point| domain.candidate(point).engine.threads).collect()
    };
    assert_eq!((threads(None).len(), threads(Some(4))), (5, HashSet::from([1, 2, 4])));
    let two = DomainSpec { ranks: Some(2), ..spec(8000, 16) };
    assert_eq!(ForeignDomain::new(&two, &of(Some(4))).unwrap().usual().engine.threads, 4);
    let wide = DomainSpec { threads: Some(8), ..spec(8000, 16) };
    assert!(ForeignDomain::new(&wide, &of(Some(4))).is_err());
}

#[test]
fn what_another_engine_does_not_obey_has_one_value() {
    let domain = ForeignDomain::new(&spec(20_000, 8), &foreign(&["nb"], &[384, 512], false)).unwrap();
    let names: Vec<&str> = domain.dims().iter().map(|dim| dim.name.as_str()).collect();
    assert_eq!(names, ["ranks", "grid", "nb", "nvshmem"]);
    // 8 ranks have 4 grids; one thread each is the only split.
    assert_eq!(domain.points().len(), 4 * 2 * 2);
    assert_eq!(domain.usual().hpl.nb, 384);
}

#[test]
fn our_engine_refuses_the_dimension_of_another() {
    let domain = ForeignDomain::new(&spec(8000, 2), &foreign(&["nb"], &[], true)).unwrap();
    let message = domain.usual().check().unwrap_err().to_string();
    assert!(message.contains("extra.nvshmem"), "{message}");
}

#[test]
fn ranks_of_another_engine_may_be_those_of_thousands_of_nodes() {
    let many = |cores| DomainSpec { memory_bytes: u64::MAX, ..spec(100_000, cores) };
    let engine = foreign(&["nb"], &[256, 512], false);
    let domain = ForeignDomain::new(&many(9408 * 8), &engine).unwrap();
    assert_eq!(domain.usual().hpl.ranks(), 75_264);
    assert!(HplDomain::new(&many(9408 * 8)).unwrap_err().to_string().contains("threads in one process"));
    // What no machine has is refused before anything of that size is made.
    for cores in [usize::MAX, 1_000_000 * 100_000_000] {
        let message = ForeignDomain::new(&many(cores), &engine).unwrap_err().to_string();
        assert!(message.contains("see count and cores of [[node]]"), "{message}");
    }
    let beyond = DomainSpec { n: 1 << 40, ..many(8) };
    assert!(ForeignDomain::new(&beyond, &engine).unwrap_err().to_string().contains("N must be at most"));
}
