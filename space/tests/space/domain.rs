//! The search domain: complete, canonical, bounded, connected.

use std::collections::HashSet;
use std::sync::LazyLock;

use proptest::prelude::*;
use rand::SeedableRng;
use space::candidate::EngineProfile;
use space::dims::{DimKind, Point, Space};
use space::domain::{DomainSpec, Expert, HplDomain, Limits, MAX_POINTS, default_candidate, required_bytes, squarest};
use space::draw;
use space::workspace::Workspace;
use space::{Candidate, Candidates, KernelChoice, Unequal};

pub(crate) fn spec(n: usize, cores: usize) -> DomainSpec {
    DomainSpec {
        n,
        cores,
        memory_bytes: 1 << 40,
        kernels: KernelChoice::Builtin,
        ranks: None,
        threads: None,
        most_threads: None,
        common_cores: None,
        unequal: Unequal::default(),
    }
}

/// A few domains that tests share.
fn domains() -> &'static [HplDomain; 7] {
    static DOMAINS: LazyLock<[HplDomain; 7]> = LazyLock::new(|| {
        [(1, 1), (20, 2), (100, 3), (8000, 1), (8000, 2), (8000, 4), (30_000, 12)]
            .map(|(n, cores)| HplDomain::new(&spec(n, cores)).unwrap())
    });
    &DOMAINS
}

/// The valid candidate of a point, both of which stand for themselves and for each other.
pub(crate) fn canonical_candidate(domain: &impl Candidates, point: &Point) -> Candidate {
    assert_eq!(domain.canonical(point).as_ref(), Some(point));
    let candidate = domain.candidate(point);
    assert_eq!(candidate.check(), Ok(()));
    assert_eq!(candidate.canonical(EngineProfile::Ours), candidate);
    assert_eq!(domain.point(&candidate).as_ref(), Some(point));
    candidate
}

#[test]
fn points_are_canonical_valid_and_distinct() {
    for domain in domains() {
        let mut runs = HashSet::new();
        for point in domain.points() {
            let candidate = canonical_candidate(domain, point);
            assert_eq!(candidate.hpl.ranks() * candidate.engine.threads, domain.spec().cores);
            assert!(candidate.hpl.nbmin <= candidate.hpl.nb && candidate.hpl.nb <= candidate.hpl.n);
            assert!(runs.insert(candidate));
        }
        assert!(!runs.is_empty());
    }
}

/// Points are found by pruning: here without.
#[test]
fn no_canonical_point_is_missing() {
    let tight = required_bytes(100, 1, 3, 32, 1);
    let tight = HplDomain::new(&DomainSpec { memory_bytes: tight, ..spec(100, 4) }).unwrap();
    // At DEPTH 0 the threads that a rank borrows need more than a panel: they have a copy of L1 each.
    let (wide, least) =
        (Limits::parse("nb = 4096\ngrid = '1:4'\nranks = 4\nndiv = 2\nnbmin = 8").unwrap(), spec(8192, 32));
    let free = HplDomain::within(&least, &wide).unwrap();
    let of = |depth| {
        let hpl = space::HplParams { nb: 4096, depth, ..space::HplParams::baseline(8192, 1, 4) };
        space::workspace::Workspace::Hpl.bytes(space::workspace::RunShape::on_hosts(&hpl, 8, 32))
    };
    assert!(of(0) > of(1));
    let borrowing = HplDomain::within(&DomainSpec { memory_bytes: of(1), ..least }, &wide).unwrap();
    assert!(borrowing.points().len() < free.points().len());
    for domain in [&domains()[0], &domains()[1], &domains()[2], &tight, &borrowing] {
        let lengths: Vec<_> = domain.dims().iter().map(|dim| dim.levels.len()).collect();
        let mut levels = vec![0u16; lengths.len()];
        let mut canonical = HashSet::new();
        for index in 0..lengths.iter().product() {
            let mut rest: usize = index;
            for (level, length) in levels.iter_mut().zip(&lengths) {
                *level = (rest % length) as u16;
                rest /= length;
            }
            canonical.extend(domain.canonical(&Point(levels.clone())));
        }
        assert_eq!(canonical.len(), domain.points().len());
        assert!(domain.points().iter().all(|point| canonical.contains(point)));
    }
}

#[test]
fn a_sample_of_core_counts_has_bounded_domains() {
    check_counts(&[1, 2, 7, 16, 120]);
}

#[test]
#[ignore = "half a minute"]
fn every_core_count_has_a_bounded_domain() {
    check_counts(&[1, 2, 3, 4, 6, 7, 8, 16, 24, 32, 48, 60, 64, 96, 120, 128, 192, 240, 256]);
}

fn check_counts(counts: &[usize]) {
    for &cores in counts {
        let domain = HplDomain::new(&spec(50_000, cores)).unwrap();
        let count = domain.points().len();
        assert!((500..=MAX_POINTS).contains(&count), "{cores} cores: {count} points");
        let grids: HashSet<_> = domain.points().iter().map(|point| (point.0[0], point.0[1])).collect();
        let divisors = |n: usize| (1..=n).filter(move |d| n.is_multiple_of(*d));
        assert_eq!(grids.len(), divisors(cores).map(|ranks| divisors(ranks).count()).sum::<usize>());
        let baseline = default_candidate(domain.spec());
        assert!(domain.point(&baseline).is_some(), "{cores} cores: the default is no point");
    }
}

/// At 9 clocks and 6 power limits each candidate is 54 points, with 4 weights 216.
#[test]
fn candidates_at_many_settings_and_weights_are_few_on_any_machine() {
    for (cores, most_threads) in [(64, None), (256, None), (384, None), (256, Some(64)), (5040, Some(720))] {
        for most in [MAX_POINTS / 9, MAX_POINTS / 54, MAX_POINTS / 216] {
            let spec = DomainSpec { most_threads, ..spec(50_000, cores) };
            let domain = HplDomain::with_at_most(&spec, &Limits::default(), most).unwrap();
            let count = domain.points().len();
            assert!((100..=most).contains(&count), "{cores} cores, at most {most}: {count} points");
            assert!(domain.point(&default_candidate(&spec)).is_some(), "{cores} cores: the default is no point");
            let expert = Expert { ranks: 2, threads: cores / 2, nb: 240 };
            let expert = expert.candidate(&default_candidate(&spec), EngineProfile::Ours);
            assert!(most_threads.is_some() || domain.point(&expert).is_some(), "{cores} cores: the expert's is none");
        }
    }
}

/// Of 64 cores they are 5376 with all of BCAST, 3048 with three of it.
#[test]
fn few_candidates_have_fewer_values_of_bcast_before_those_of_nb() {
    let domain = HplDomain::with_at_most(&spec(50_000, 64), &Limits::default(), 4000).unwrap();
    let levels = ["nb", "bcast"].map(|name| domain.dims().iter().find(|dim| dim.name == name).unwrap().levels.len());
    assert_eq!(levels, [12, 3]);
}

#[test]
fn dimensions_are_well_formed() {
    for domain in domains() {
        for dim in domain.dims() {
            assert!(!dim.levels.is_empty());
            assert!(dim.levels.iter().all(|level| level.feature.is_finite()));
            if dim.kind == DimKind::Ordered {
                assert!(dim.levels.windows(2).all(|pair| pair[0].feature < pair[1].feature), "{}", dim.name);
            }
        }
    }
}

#[test]
fn memory_excludes_wide_panels_first() {
    let n = 8000;
    let tight = required_bytes(n, 1, 2, 128, 1);
    let domain = HplDomain::new(&DomainSpec { memory_bytes: tight, ..spec(n, 2) }).unwrap();
    for point in domain.points() {
        let hpl = domain.candidate(point).hpl;
        assert!(required_bytes(n, hpl.p, hpl.q, hpl.nb, hpl.depth) <= tight);
    }
    let all = HplDomain::new(&spec(n, 2)).unwrap();
    assert!(domain.points().len() < all.points().len());
}

#[test]
fn an_empty_domain_says_why() {
    let message = |spec: DomainSpec| HplDomain::new(&spec).unwrap_err().to_string();
    let memory = message(DomainSpec { memory_bytes: 16 << 20, ..spec(8000, 2) });
    assert!(memory.starts_with("N=8000 needs 52") && memory.contains("16777216 are usable"), "{memory}");
    let (_, lower) = memory.split_once("lower N to at most ").expect(&memory);
    let lower = lower.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap();
    let in_16_mib = |n| HplDomain::new(&DomainSpec { memory_bytes: 16 << 20, ..spec(n, 2) });
    assert!(in_16_mib(lower).is_ok() && in_16_mib(lower + 100).is_err(), "{memory}");
    // Many grids, so the smallest NB is 32.
    let needed = required_bytes(8000, 1, 1, 32, 0) + (1 << 20);
    assert!(HplDomain::new(&DomainSpec { memory_bytes: needed, ..spec(8000, 240) }).is_ok());
    assert!(message(DomainSpec { memory_bytes: needed / 2, ..spec(8000, 240) }).contains("lower N to at most"));
    assert_eq!(message(spec(0, 2)), "N must be at least 1, found 0");
    assert_eq!(message(spec(100, 0)), "cores must be at least 1, found 0");
    assert_eq!(message(DomainSpec { ranks: Some(0), ..spec(100, 2) }), "ranks must be at least 1, found 0");
    assert_eq!(
        message(DomainSpec { ranks: Some(4), ..spec(100, 2) }),
        "4 ranks with 1 thread each need more than 2 cores; lower ranks or threads"
    );
    assert!(message(spec(usize::MAX, 2)).starts_with("N must be at most 2147483647"));
    assert!(message(spec(100, 16_385)).contains("more than 16384 threads in one process"));
    assert!(message(spec(100, usize::MAX)).contains("see count and cores of [[node]]"));
}

#[test]
fn ranks_and_threads_can_be_fixed() {
    let domain = HplDomain::new(&DomainSpec { ranks: Some(2), ..spec(1000, 6) }).unwrap();
    assert!(domain.points().iter().all(|point| domain.candidate(point).engine.threads == 3));
    let domain = HplDomain::new(&DomainSpec { threads: Some(2), ..spec(1000, 5) }).unwrap();
    assert!(domain.points().iter().all(|point| domain.candidate(point).hpl.ranks() == 2));
}

#[test]
fn other_runs_are_no_points() {
    let domain = HplDomain::new(&spec(8000, 4)).unwrap();
    let known = default_candidate(domain.spec());
    let mut others = vec![known.clone(); 8];
    others[0].hpl.n = 4000;
    others[1].hpl.nb = 129;
    others[2].engine.threads = 2;
    others[3].engine.kernels = KernelChoice::Auto;
    others[4].hpl.align = 16;
    others[5].hpl.l1 = space::Form::NotTransposed;
    // Of a damaged record.
    (others[7].hpl.p, others[7].hpl.q) = (0, 0);
    others[6].engine.weights.rows = vec![space::Share::ZERO, space::Share::new(1.0).unwrap()];
    for other in others {
        assert_eq!(domain.point(&other), None);
    }
    // With two process columns any broadcast is one message: this is the same run.
    let mut same = known.clone();
    same.hpl.bcast = space::Bcast::LongM;
    assert_eq!(domain.point(&same), domain.point(&known));
}

#[test]
fn the_squarest_grid_has_p_at_most_q() {
    assert_eq!([1, 2, 6, 7, 12, 16, 272].map(squarest), [(1, 1), (1, 2), (2, 3), (1, 7), (3, 4), (4, 4), (16, 17)]);
}

#[test]
fn twice_the_ranks_of_one_are_neighbours() {
    let domain = HplDomain::new(&spec(8000, 2)).unwrap();
    let one = domain.points().iter().find(|point| domain.candidate(point).hpl.ranks() == 1).unwrap();
    let grids: HashSet<_> = draw::neighbours(&domain, one)
        .iter()
        .map(|point| domain.candidate(point).hpl)
        .map(|hpl| (hpl.p, hpl.q))
        .collect();
    assert_eq!(grids, HashSet::from([(1, 1), (1, 2), (2, 1)]));
}

#[test]
fn neighbours_connect_the_whole_domain() {
    for domain in domains().iter().take(4) {
        let mut seen = HashSet::from([domain.points()[0].clone()]);
        let mut open = vec![domain.points()[0].clone()];
        while let Some(point) = open.pop() {
            for next in draw::neighbours(domain, &point) {
                if seen.insert(next.clone()) {
                    open.push(next);
                }
            }
        }
        assert_eq!(seen.len(), domain.points().len());
    }
}

#[test]
fn draws_are_points_and_cover_the_domain() {
    let domain = HplDomain::new(&spec(20, 2)).unwrap();
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(7);
    let points: HashSet<&Point> = domain.points().iter().collect();
    let drawn: HashSet<&Point> = (0..40 * points.len()).filter_map(|_| draw::uniform(&domain, &mut rng)).collect();
    assert_eq!(drawn, points);
}

proptest! {
    #[test]
    fn canonical_is_idempotent_on_any_levels(i in 0..7usize, seed in proptest::collection::vec(any::<u16>(), 11)) {
        let domain = &domains()[i];
        let levels = seed.iter().zip(domain.dims()).map(|(level, dim)| level % dim.levels.len() as u16);
        if let Some(once) = domain.canonical(&Point(levels.collect())) {
            prop_assert_eq!(domain.canonical(&once), Some(once.clone()));
            prop_assert!(domain.points().binary_search(&once).is_ok());
            for next in draw::neighbours(domain, &once) {
                prop_assert!(next != once && domain.points().binary_search(&next).is_ok());
            }
        }
    }
}

#[test]
fn an_expert_has_a_rank_for_each_cache_and_the_vendors_nb() {
    let of = |spec: &DomainSpec, sharing| Expert::new(spec, sharing, 240);
    let spec16 = spec(8000, 16);
    let expert = of(&spec16, 8).unwrap();
    assert_eq!((expert.ranks, expert.threads, expert.nb), (2, 8, 240));
    let default = default_candidate(&spec16);
    let candidate = expert.candidate(&default, EngineProfile::Ours);
    assert_eq!((candidate.hpl.p, candidate.hpl.q, candidate.engine.threads), (1, 2, 8));
    // All else is the default's, and the search can find it.
    let usual = space::HplParams { nb: 128, p: 4, q: 4, ..candidate.hpl };
    assert_eq!(usual, default.hpl);
    assert!(HplDomain::new(&spec16).unwrap().point(&candidate).is_some());
    // What the user fixed is obeyed; what cannot be says why.
    let fixed = of(&DomainSpec { ranks: Some(4), ..spec(8000, 16) }, 8).unwrap();
    assert_eq!((fixed.ranks, fixed.threads), (4, 4));
    let fixed = of(&DomainSpec { threads: Some(1), ..spec(8000, 16) }, 8).unwrap();
    assert_eq!((fixed.ranks, fixed.threads), (16, 1));
    assert!(of(&spec(8000, 12), 8).unwrap_err().contains("12 cores") && of(&spec16, 0).is_err());
    let checked = |expert: Expert, memory| expert.checked(&default, (memory, Workspace::Hpl), EngineProfile::Ours);
    assert_eq!(checked(expert, 1 << 40), Ok(expert));
    assert!(checked(expert, 1 << 20).unwrap_err().contains("memory"));
    let same = Expert { ranks: 16, threads: 1, nb: 128 };
    assert!(checked(same, 1 << 40).unwrap_err().contains("is the default"));
}

#[test]
fn ranks_that_are_processes_leave_memory_for_their_messages() {
    let memory_bytes = required_bytes(20_000, 4, 4, 256, 1);
    let has = |most_threads| {
        let spec = DomainSpec { most_threads, memory_bytes, ..spec(20_000, 16) };
        let domain = HplDomain::new(&spec).unwrap();
        let all = domain.points().iter().map(|point| domain.candidate(point).hpl);
        let on_grid: Vec<_> = all.filter(|hpl| (hpl.p, hpl.q) == (4, 4)).collect();
        assert!(on_grid.iter().all(|hpl| spec.workspace() != Workspace::OurProcesses || hpl.nb < 256));
        on_grid.iter().any(|hpl| (hpl.nb, hpl.depth) == (256, 1))
    };
    assert!(has(None) && !has(Some(16)));
}

#[test]
fn pmap_is_searched_where_nodes_have_several_ranks() {
    use space::Pmap;
    let on = |most_threads| HplDomain::new(&DomainSpec { most_threads, ..spec(20_000, 16) }).unwrap();
    let columns = |domain: &HplDomain| {
        let all = domain.points().iter().map(|point| domain.candidate(point));
        all.filter(|candidate| candidate.hpl.pmap == Pmap::Column).collect::<Vec<_>>()
    };
    assert!(columns(&on(None)).is_empty() && columns(&on(Some(16))).is_empty(), "one node");
    let nodes = on(Some(4));
    let found = columns(&nodes);
    assert!(!found.is_empty());
    for candidate in &found {
        assert!(candidate.engine.threads < 4 && candidate.hpl.p > 1 && candidate.hpl.q > 1, "{candidate:?}");
        let point = nodes.point(candidate).unwrap();
        assert_eq!(nodes.candidate(&point), *candidate);
    }
}
