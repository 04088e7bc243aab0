//! The domain of ranks of unequal speed: weights as dimensions, complete, canonical, bounded.

use std::collections::{BTreeSet, HashSet};

use space::dims::{DimKind, Space};
use space::domain::{DomainError, DomainSpec, Limits, MAX_POINTS, WeightedDomain, default_candidate};
use space::{Candidates, KernelChoice, Share, Unequal, deal, draw};

use crate::domain::canonical_candidate;

fn spec(n: usize, speeds: &[f64]) -> DomainSpec {
    let speeds: Vec<Share> = speeds.iter().map(|&speed| Share::new(speed).unwrap()).collect();
    DomainSpec {
        n,
        cores: speeds.len(),
        memory_bytes: 1 << 40,
        kernels: KernelChoice::Builtin,
        ranks: Some(speeds.len()),
        threads: None,
        most_threads: None,
        common_cores: None,
        unequal: Unequal { speeds, ..Unequal::default() },
    }
}

fn domain(n: usize, speeds: &[f64]) -> WeightedDomain {
    WeightedDomain::within(&spec(n, speeds), &Limits::default()).unwrap()
}

#[test]
fn points_are_canonical_valid_and_distinct() {
    for domain in [domain(4000, &[1.0, 0.3]), domain(300, &[0.2, 1.0, 1.0]), domain(2000, &[4.0, 3.0, 4.0, 1.0])] {
        assert!((100..=MAX_POINTS).contains(&domain.points().len()), "{}", domain.points().len());
        assert!(domain.points().is_sorted());
        let mut runs = HashSet::new();
        for point in domain.points() {
            assert!(runs.insert(canonical_candidate(&domain, point)));
        }
        let usual = default_candidate(domain.spec());
        assert!(domain.point(&usual).is_some(), "equal weights are searched, too");
        for dim in domain.dims().iter().filter(|dim| dim.kind == DimKind::Ordered) {
            assert!(dim.levels.windows(2).all(|pair| pair[0].feature < pair[1].feature), "{}", dim.name);
        }
    }
}

/// No two points deal the same blocks to the same ranks and agree in all else.
#[test]
fn weights_that_deal_alike_are_one_point() {
    let domain = domain(500, &[1.0, 0.4]);
    let mut runs = HashSet::new();
    for point in domain.points() {
        let mut candidate = domain.candidate(point);
        let weights = std::mem::take(&mut candidate.engine.weights);
        let owners = |len: usize, shares: &[Share]| {
            let shares: Vec<f64> = shares.iter().map(|share| share.get()).collect();
            deal(len.div_ceil(candidate.hpl.nb), if shares.is_empty() { &[1.0, 1.0] } else { &shares })
        };
        let dealt = if candidate.hpl.q == 2 { owners(501, &weights.columns) } else { owners(500, &weights.rows) };
        assert!(runs.insert((candidate, dealt)), "{weights}");
    }
}

#[test]
fn the_measured_weights_are_a_level_and_others_lie_around_them() {
    let domain = domain(20_000, &[70.0, 24.5]);
    let columns = |candidate: &space::Candidate| candidate.engine.weights.columns.get(1).map(|share| share.get());
    let found: BTreeSet<u64> = domain
        .points()
        .iter()
        .map(|point| domain.candidate(point))
        .filter(|candidate| candidate.hpl.q == 2)
        .filter_map(|candidate| columns(&candidate))
        .map(|share| (share * 1e4).round() as u64)
        .collect();
    let expected = [-0.16f64, -0.08, -0.04, 0.0, 0.04, 0.08, 0.16].map(|step| (3500.0 * step.exp()).round() as u64);
    assert_eq!(found, BTreeSet::from(expected));
    let weights = domain.dims().last().unwrap();
    assert_eq!((weights.name.as_str(), weights.levels.len()), ("weights", 8));
    assert_eq!(weights.levels[3].label, "0.350");
    // A step in the weights alone is a step of a search.
    let measured = domain.points().iter().find(|point| columns(&domain.candidate(point)) == Some(0.35)).unwrap();
    let near = draw::neighbours(&domain, measured);
    let others: Vec<_> = near.iter().filter(|point| point.0[..12] == measured.0[..12]).collect();
    assert_eq!(others.len(), 2, "{others:?}");
}

#[test]
fn three_speeds_are_two_dimensions_and_all_ranks_keep_their_measured_ratios() {
    let domain = domain(20_000, &[1.0, 0.5, 0.52, 0.1]);
    let names: Vec<&str> = domain.dims()[12..].iter().map(|dim| dim.name.as_str()).collect();
    assert_eq!(names, ["weights", "weights-slowest"]);
    let all = domain.points().iter().map(|point| domain.candidate(point).engine.weights);
    let rows: Vec<Vec<f64>> = all.map(|w| w.columns.iter().map(|share| share.get()).collect()).collect();
    assert!(rows.iter().any(|w| *w == [1.0, 0.5, 0.52, 0.1]), "the measured ones");
    let of_four = |w: &&Vec<f64>| w.len() == 4 && w[1] < 1.0;
    assert!(rows.iter().filter(of_four).all(|w| (w[1] / w[2] - 0.5 / 0.52).abs() < 1e-3));
    assert!(rows.iter().any(|w| w.len() == 4 && w[1] == 1.0 && w[3] < 0.2), "one class equal, the other not");
}

/// On nodes any number of ranks has weights, and none more to do than its speed allows by the measured ones.
#[test]
fn the_speeds_of_nodes_weigh_ranks_of_any_grid() {
    let speeds = [1.0, 1.0, 0.8, 1.0].map(|speed| Share::new(speed).unwrap());
    let unequal = Unequal::nodes(speeds.to_vec(), 4);
    let on_nodes = |memory_bytes| {
        let rooms = DomainSpec { cores: 16, ranks: None, most_threads: Some(4), memory_bytes, ..spec(20_000, &[]) };
        WeightedDomain::within(&DomainSpec { unequal: unequal.clone(), ..rooms }, &Limits::default()).unwrap()
    };
    let domain = on_nodes(1 << 40);
    assert!(domain.point(&default_candidate(domain.spec())).is_some(), "equal weights");
    let mut ranks = BTreeSet::new();
    let levels = &domain.dims().last().unwrap().levels;
    let measured = levels.iter().position(|level| level.label == "0.800").unwrap() as u16;
    for point in domain.points().iter().filter(|point| point.0.last() == Some(&measured)) {
        let candidate = domain.candidate(point);
        let (hpl, weights) = (candidate.hpl, &candidate.engine.weights);
        let share = |of: &[Share], at: usize| of.get(at).map_or(1.0, |share| share.get());
        let slowness = unequal.slowness(&hpl, candidate.engine.threads);
        let load = |at: usize| share(&weights.rows, at / hpl.q) * share(&weights.columns, at % hpl.q) * slowness[at];
        assert!((0..hpl.ranks()).all(|at| load(at) < 1.001), "{hpl:?} {weights}");
        assert!(!weights.is_empty());
        ranks.insert(hpl.ranks());
    }
    assert_eq!(ranks, BTreeSet::from([4, 8, 16]));
    // What fits by equal shares leaves too little room on the faster nodes.
    let tight = space::domain::required_bytes(20_000, 1, 4, 48, 0) * 101 / 100;
    let tight = on_nodes(tight);
    let with_measured =
        |domain: &WeightedDomain| domain.points().iter().filter(|point| point.0.last() == Some(&measured)).count();
    let slow_at = domain.points().iter().find(|point| point.0.last() == Some(&measured)).unwrap();
    assert!(domain.canonical(slow_at).as_ref() == Some(slow_at) && tight.canonical(slow_at).is_none());
    assert!(tight.point(&domain.candidate(slow_at)).is_none());
    assert!(with_measured(&domain) > 100 && with_measured(&tight) == 0 && !tight.points().is_empty());
}

/// Each run with the measured weights was refused by the fast node, and the session began with these.
#[test]
fn weights_of_ranks_on_several_nodes_fit_the_memory_of_each() {
    let needed = space::domain::required_bytes(20_000, 1, 4, 48, 0) * 101 / 100;
    let weighted = |most_threads| {
        let spec = DomainSpec { memory_bytes: needed, most_threads, ..spec(20_000, &[1.0, 1.0, 0.5, 1.0]) };
        let domain = WeightedDomain::within(&spec, &Limits::default()).unwrap();
        domain.points().iter().filter(|point| !domain.candidate(point).engine.weights.is_empty()).count()
    };
    assert!(weighted(None) > 0, "they share one memory");
    assert_eq!(weighted(Some(1)), 0);
}

/// Where each weight is run at many settings, the measured and the equal ones are searched alone.
#[test]
fn few_points_have_the_measured_and_equal_weights_alone() {
    let speeds = [1.0, 1.0, 0.8, 0.5].map(|speed| Share::new(speed).unwrap()).to_vec();
    let unequal = Unequal::nodes(speeds, 16);
    let on_nodes = DomainSpec { cores: 64, ranks: None, most_threads: Some(16), unequal, ..spec(8_000, &[]) };
    for (most, levels) in [(32_000, [4, 4]), (MAX_POINTS / 54, [2, 2])] {
        let domain = WeightedDomain::with_at_most(&on_nodes, &Limits::default(), most).unwrap();
        assert!((100..=most).contains(&domain.points().len()), "{} points", domain.points().len());
        assert_eq!([12, 13].map(|at| domain.dims()[at].levels.len()), levels);
        assert!(domain.point(&default_candidate(domain.spec())).is_some(), "equal weights");
    }
}

/// Each point has one with the measured weights, and all else the same.
#[test]
fn points_are_balanced_by_the_measured_speeds() {
    for domain in [domain(20_000, &[70.0, 24.5]), domain(20_000, &[1.0, 0.5, 0.52, 0.1])] {
        for point in domain.points().iter().step_by(97) {
            let balanced = domain.balanced(point);
            assert_eq!(domain.balanced(&balanced), balanced);
            let [own, other] = [point, &balanced].map(|point| domain.candidate(point));
            assert_eq!(own.hpl, other.hpl);
            if own.engine.weights.columns.len() == 2 && own.hpl.p == 1 {
                let weight = other.engine.weights.columns[1].get();
                assert!((weight - 0.35).abs() < 1e-3, "{weight}");
            }
        }
    }
}

#[test]
fn what_is_no_weight_is_named() {
    let message = |speeds: &[f64]| {
        WeightedDomain::within(&spec(1000, speeds), &Limits::default()).map(|_| ()).unwrap_err().to_string()
    };
    assert_eq!(message(&[1.0, 0.0]), "rank 1 has speed 0; leave it out, or give it a speed");
    assert!(message(&[1.0, 0.99]).contains("differ by less than 2 %"), "{}", message(&[1.0, 0.99]));
    let other = DomainSpec { ranks: Some(1), ..spec(1000, &[1.0, 0.5]) };
    let error = WeightedDomain::within(&other, &Limits::default()).map(|_| ()).unwrap_err();
    assert_eq!(error, DomainError::Unequal { found: 2, ranks: "1".into() });
}
