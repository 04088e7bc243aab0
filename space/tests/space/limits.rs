//! Limits of the user: what they leave, and what is said when they leave nothing.

use std::collections::BTreeSet;

use space::dims::Space;
use space::domain::{
    DomainError, DomainSpec, Extra, ForeignDomain, ForeignSpec, HplDomain, Limits, MAX_POINTS, ProcessRows,
    required_bytes,
};
use space::guide::GUIDELINES;
use space::{Bcast, Candidate, Candidates, Looking, Pmap};

use crate::domain;

fn spec(cores: usize) -> DomainSpec {
    DomainSpec { memory_bytes: 1 << 33, ..domain::spec(4000, cores) }
}

fn within(cores: usize, limits: &str) -> Result<HplDomain, String> {
    let limits = Limits::parse(limits).map_err(|error| error.to_string())?;
    HplDomain::within(&spec(cores), &limits).map_err(|error| error.to_string())
}

fn candidates(domain: &HplDomain) -> Vec<Candidate> {
    domain.points().iter().map(|point| domain.candidate(point)).collect()
}

#[test]
fn limits_narrow_fix_and_widen() {
    let domain = within(
        4,
        "[nb]\nvalues = [1000, 192]\n[depth]\nfixed = 3\n[bcast]\nwithout = ['long', 'longM']\n[split]\nmax = 0.5\n[nbmin]\nmin = 4\nmax = 8",
    )
    .unwrap();
    let all = candidates(&domain);
    assert!(!all.is_empty());
    assert_eq!(all.iter().map(|run| run.hpl.nb).collect::<BTreeSet<_>>(), [192, 1000].into());
    for run in &all {
        assert!(run.hpl.depth == 3 && (4..=8).contains(&run.hpl.nbmin) && run.engine.split.get() <= 0.5);
        assert!(!matches!(run.hpl.bcast, Bcast::Long | Bcast::LongM));
    }
}

#[test]
fn a_list_alone_means_its_values_and_a_value_alone_is_fixed() {
    let short = "nb = [192, 1000]\ndepth = 1\nsplit = 0.5\nbcast = '1ringM'\n[nbmin]\nmax = 8";
    let long = "[nb]\nvalues = [192, 1000]\n[depth]\nfixed = 1\n[split]\nfixed = 0.5\n[bcast]\nfixed = '1ringM'\n[nbmin]\nmax = 8";
    assert_eq!(Limits::parse(short), Limits::parse(long));
    let refused = |text: &str| Limits::parse(text).unwrap_err().to_string();
    assert!(refused("nb = true").contains("a table with values, fixed, without, min or max, or a list of values"));
    assert!(refused("[nb]\nvalue = [192]").contains("unknown field `value`"));
    // Levels are counted in 16 bits: of 65,536 none would be left.
    let many: Vec<usize> = (1..=65_536).collect();
    assert_eq!(refused(&format!("nb = {many:?}")), "[nb]: 'values' are more than 65535; give fewer");
    assert!(Limits::parse(&format!("nb = {:?}", &many[1..])).is_ok());
}

#[test]
fn every_point_is_canonical_and_comes_back_from_its_candidate() {
    for limits in [
        "",
        "[bcast]\nfixed = 'long'",
        "[pfact]\nvalues = ['left', 'right']\n[rfact]\nfixed = 'left'",
        "[ndiv]\nvalues = [3, 5]\n[nb]\nvalues = [64, 100]",
        "[swap]\nfixed = 'long'\n[split]\nvalues = [0.25, 0.6]",
        "[grid]\nvalues = ['1:1', '1:4']",
    ] {
        let domain = within(4, limits).unwrap();
        let mut seen = BTreeSet::new();
        for point in domain.points() {
            assert_eq!(domain.canonical(point).as_ref(), Some(point), "{limits}");
            assert_eq!(domain.point(&domain.candidate(point)).as_ref(), Some(point), "{limits}");
            assert!(seen.insert(point), "{limits}");
        }
    }
}

#[test]
fn a_value_that_cannot_matter_hides_no_grid() {
    // With Q = 1 nothing is sent: the only allowed broadcast stands for all.
    let domain = within(4, "[bcast]\nfixed = 'long'").unwrap();
    assert!(candidates(&domain).iter().any(|run| run.hpl.q == 1));
    assert!(candidates(&domain).iter().any(|run| run.hpl.q == 4));
}

/// Where there are many grids, fewer values are usual: those that are left out there stay possible.
#[test]
fn limits_choose_among_all_values_also_where_there_are_many_grids() {
    let all = candidates(&within(8, "[rfact]\nwithout = ['crout']").unwrap());
    assert!((1..=MAX_POINTS).contains(&all.len()) && all.iter().all(|run| run.hpl.rfact != Looking::Crout));
    let all = candidates(&within(120, "[nb]\nmax = 24").unwrap());
    assert_eq!(all.iter().map(|run| run.hpl.nb).collect::<BTreeSet<_>>(), [16, 24].into());
    // What is no value anywhere is refused, and the message has all values.
    let error = within(120, "[nb]\nmax = 12").err().unwrap();
    assert!(error.contains("leaves no value of 16, 24, 32"), "{error}");
}

/// Five parts of four blocks are four.
#[test]
fn a_number_beyond_what_acts_stands_for_the_largest_that_does() {
    let domain = within(2, "nb = 64\nnbmin = 16\nndiv = [3, 5]").unwrap();
    let ndivs = candidates(&domain).iter().map(|run| run.hpl.ndiv).collect::<BTreeSet<_>>();
    assert_eq!(ndivs, [3, 5].into());
    for point in domain.points() {
        assert_eq!(domain.canonical(point).as_ref(), Some(point));
        assert_eq!(domain.point(&domain.candidate(point)).as_ref(), Some(point));
    }
}

/// All ranks are on one node by either order, also where they are processes.
#[test]
fn both_orders_of_ranks_are_one_on_one_node() {
    let limits = Limits::parse("nb = 64\npmap = ['row', 'column']").unwrap();
    for most_threads in [None, Some(4)] {
        let domain = HplDomain::within(&DomainSpec { most_threads, ..spec(4) }, &limits).unwrap();
        let runs = candidates(&domain);
        assert!(runs.iter().any(|run| (run.hpl.p, run.hpl.q) == (2, 2)), "{most_threads:?}");
        for run in runs {
            assert_eq!(run.hpl.pmap, Pmap::Row, "{most_threads:?}");
            let mut by_columns = run.clone();
            by_columns.hpl.pmap = Pmap::Column;
            assert_eq!(domain.point(&by_columns), domain.point(&run), "{most_threads:?}");
        }
    }
}

#[test]
fn nb_below_every_nbmin_hides_no_other_nb() {
    let domain = within(2, "[nb]\nvalues = [16, 64]\n[nbmin]\nfixed = 32").unwrap();
    assert!(candidates(&domain).iter().all(|run| run.hpl.nb == 64 && run.hpl.nbmin == 32));
}

#[test]
fn what_is_wrong_is_named_with_its_dimension() {
    for (limits, words) in [
        ("[blocks]\nfixed = 3", ["[blocks]", "nb, nbmin"]),
        ("[nb]\nvalues = [64", ["TOML", "line 2"]),
        ("[nb]\nsize = 64", ["size", "values"]),
        ("[nb]\nfixed = 64\nvalues = [64]", ["[nb]", "exclude"]),
        ("[nb]\nfixed = 0", ["[nb]", "'0'"]),
        ("[nb]\nfixed = 'big'", ["[nb]", "'big'"]),
        ("[nb]\nfixed = 3000000000", ["'3000000000'", "from 1 to 2147483647"]),
        ("[nb]\nmin = 300\nmax = 200", ["[nb]", "min 300 is above max 200"]),
        ("[nb]\nmin = 5000", ["[nb]", "leaves no value"]),
        ("[bcast]\nmin = 2", ["[bcast]", "no order"]),
        ("[bcast]\nfixed = 'ring'", ["'ring'", "1ringM"]),
        ("[ranks]\nfixed = 3", ["'3'", "1, 2, 4"]),
        ("[split]\nfixed = 1.0", ["[split]", "below 1"]),
        ("[depth]", ["[depth]", "no key"]),
        ("[ranks]\nfixed = 4\n[grid]\nfixed = '1:2'", ["[ranks] and [grid]", "allow more values"]),
        ("[nb]\nfixed = 16\n[nbmin]\nfixed = 32", ["NBMIN <= NB", "16"]),
    ] {
        let error = within(4, limits).err().unwrap_or_default();
        for word in words {
            assert!(error.contains(word), "'{word}' is not in: {error} ({limits})");
        }
    }
}

#[test]
fn the_memory_that_is_lacking_is_that_of_the_allowed_grids() {
    let memory_bytes = required_bytes(4000, 2, 2, 16, 0);
    let limits = Limits::parse("grid = '1:4'").unwrap();
    let at = |n| HplDomain::within(&DomainSpec { n, memory_bytes, ..spec(4) }, &limits);
    let error = at(4000).unwrap_err();
    let DomainError::Memory { needed_bytes, largest_n, .. } = error else { panic!("{error}") };
    assert_eq!(needed_bytes, required_bytes(4000, 1, 4, 16, 0));
    assert!(at(largest_n).is_ok() && largest_n > 3900, "{largest_n}");
}

#[test]
fn every_dimension_has_its_guideline() {
    let domain = within(4, "").unwrap();
    let names: Vec<&str> = domain.dims().iter().map(|dim| dim.name.as_str()).collect();
    assert_eq!(names, GUIDELINES.map(|guideline| guideline.dim));
}

/// Of `ndiv: 2` it was said: 2 to 4 parts of a panel.
#[test]
fn a_guideline_says_that_there_may_be_fewer_values() {
    // Each candidate at many settings of the nodes: the fewest values of all.
    let fewest = HplDomain::with_at_most(&spec(64), &Limits::default(), 1).unwrap();
    let all = within(1, "").unwrap();
    for (dim, most) in fewest.dims().iter().zip(all.dims()) {
        let says = GUIDELINES.iter().any(|guide| guide.dim == dim.name && guide.why.contains("fewer where"));
        assert!(says || dim.levels.len() >= most.levels.len(), "{}", dim.name);
    }
}

#[test]
fn another_engines_dimensions_are_limited_too() {
    let extra = |name: &str, ordered: bool| Extra {
        name: name.into(),
        labels: ["2", "4", "8"].map(str::to_owned).into(),
        features: vec![2.0, 4.0, 8.0],
        ordered,
        acts: ProcessRows::Any,
    };
    let foreign = ForeignSpec {
        obeys: vec!["nb".into(), "depth".into()],
        nb: vec![256, 512],
        threads: true,
        extra: vec![extra("chunks", true), extra("policy", false)],
        ..ForeignSpec::default()
    };
    let within = |limits: &str| {
        let limits = Limits::parse_for(limits, &foreign).map_err(|error| error.to_string())?;
        ForeignDomain::within(&spec(4), &foreign, &limits).map_err(|error| error.to_string())
    };
    let text =
        "[nb]\nvalues = [512, 640]\n[chunks]\nmin = 4\n[policy]\nfixed = '8'\n[depth]\nmax = 1\n[grid]\nfixed = '1:4'";
    let domain = within(text).unwrap();
    let all: Vec<Candidate> = domain.points().iter().map(|point| domain.candidate(point)).collect();
    assert_eq!(all.iter().map(|run| run.hpl.nb).collect::<BTreeSet<_>>(), [512, 640].into());
    for run in &all {
        assert!(run.hpl.depth <= 1 && (run.hpl.p, run.hpl.q) == (1, 4), "{run:?}");
        assert!(run.engine.extra["chunks"] != "2" && run.engine.extra["policy"] == "8", "{run:?}");
    }
    assert_eq!(all.len(), 2 * 2 * 2);
    for (limits, words) in [
        (
            "[bcast]\nfixed = 'long'",
            "[bcast] is not a dimension; the dimensions are ranks, grid, nb, depth, chunks, policy",
        ),
        ("[policy]\nmin = 4", "no order"),
        ("[chunks]\nfixed = 3", "'3' is not possible here; possible are 2, 4, 8"),
        ("[chunks]\nmin = 9", "leaves no value of 2, 4, 8"),
    ] {
        let message = within(limits).unwrap_err();
        assert!(message.contains(words), "{limits}: {message}");
    }
}

/// Of 4096 ranks in few points those of SWAP and of the grids are fewer than all.
#[test]
fn listed_values_are_searched_also_where_they_are_not_usual() {
    let limits = Limits::parse("swap = ['mix', 'bin-exch']\ngrid = ['1:1', '1:64']\nnb = 128").unwrap();
    let spec = DomainSpec { ranks: Some(4096), ..spec(4096) };
    let domain = HplDomain::with_at_most(&spec, &limits, 20).unwrap();
    let all = candidates(&domain);
    assert!(all.len() <= 20 && all.iter().all(|run| run.hpl.nbmin == 4), "{} candidates", all.len());
    assert_eq!(all.iter().map(|run| run.hpl.swap.name()).collect::<BTreeSet<_>>(), ["bin-exch", "mix"].into());
    assert_eq!(all.iter().map(|run| run.hpl.p).collect::<BTreeSet<_>>(), [8, 64].into());
}

/// `split` is a dimension of our engine on devices, too, with values of its own.
#[test]
fn a_dimension_of_another_engine_with_a_name_of_ours_has_its_own_limits() {
    let split = Extra {
        name: "split".into(),
        labels: ["0", "0.3", "0.5"].map(str::to_owned).into(),
        features: vec![0.0, 0.3, 0.5],
        ordered: true,
        acts: ProcessRows::Any,
    };
    let foreign = ForeignSpec { obeys: vec!["nb".into()], nb: vec![256], extra: vec![split], ..ForeignSpec::default() };
    for text in ["[split]\nmin = 0.3", "[split]\nwithout = [0.0]"] {
        let limits = Limits::parse_for(text, &foreign).unwrap();
        let domain = ForeignDomain::within(&spec(4), &foreign, &limits).unwrap();
        let splits = domain.points().iter().map(|point| domain.candidate(point).engine.extra["split"].clone());
        assert_eq!(splits.collect::<BTreeSet<_>>(), ["0.3", "0.5"].map(str::to_owned).into());
    }
}
