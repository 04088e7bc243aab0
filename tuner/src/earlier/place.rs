//! The points of this space that earlier runs stand for.
//!
//! A run of the same parameters at another N is the same point. One of another machine may have a grid, a number of ranks
//! or an NB that is not searched here: it stands for the nearest point, or for none where a categorical parameter has no
//! like here.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use objectives::real::Extent;
use space::dims::Point;
use space::{Candidate, Candidates, HplParams, NodeSettings};

use super::Earlier;
use crate::search::near::{Distances, used_cores};
use crate::search::strategy::informed::ComparableRuns;

/// Most different runs for which all points are gone through: of 100,000 points that takes some milliseconds each.
const SCANS: usize = 200;

/// Which runs were measured alike: source, host, cores, N, whether by windows, and the settings of the nodes that are not searched.
type Alike<'a> = (&'a str, Option<&'a str>, Option<usize>, usize, bool, [Option<u32>; 3]);

/// The runs of earlier sessions at the points of a space that they stand for.
#[derive(Debug, Clone, PartialEq)]
pub struct Placed {
    /// Those that were measured alike together.
    pub groups: Vec<ComparableRuns>,
    /// Runs for which no point was sought, as it had been for as many different ones as are allowed.
    pub left_out: usize,
    /// Runs of other engines, which say nothing of this one.
    pub of_others: usize,
    /// The names of these engines.
    pub others: BTreeSet<String>,
}

impl Placed {
    /// What is said of them; `of` runs were read.
    pub fn sentence(&self, of: usize) -> String {
        let placed = |here: bool| -> usize {
            let groups = self.groups.iter().filter(|group| group.of_this_machine == here);
            groups.map(|group| group.runs.len()).sum()
        };
        let (here, elsewhere) = (placed(true), placed(false));
        let left_out = match self.left_out {
            0 => String::new(),
            left_out => {
                format!("; {left_out} are left out, as the nearest point is sought for {SCANS} different runs at most")
            }
        };
        let others: Vec<&str> = self.others.iter().map(String::as_str).collect();
        let of_others = match self.of_others {
            0 => String::new(),
            of_others => format!("; {of_others} are left out, as another engine made them: {}", others.join(", ")),
        };
        format!(
            "{} of {of} earlier runs are used: {here} of this machine by their rate differences, {elsewhere} of other machines by \
            their ranking{left_out}{of_others}",
            here + elsewhere
        )
    }
}

/// The earlier runs of `engine`, and those of which it is not known, as points of `space`, those that were measured alike together. A
/// group counts as of this machine where its host and its cores are.
pub fn groups(space: &dyn Candidates, earlier: &[Earlier], host: &str, engine: &str) -> Placed {
    let cores = used_cores(space);
    let mut places = Places::new(space, SCANS);
    let mut groups: BTreeMap<Alike<'_>, Vec<(Point, f64)>> = BTreeMap::new();
    let (mut of_others, mut others) = (0, BTreeSet::new());
    for run in earlier {
        if let Some(other) = run.engine.as_ref().filter(|name| *name != engine) {
            of_others += 1;
            others.insert(other.clone());
            continue;
        }
        let Earlier { source, host, candidate: Candidate { hpl, engine }, extent, .. } = run;
        let settings = not_searched(space, &engine.settings);
        let alike = (source.as_str(), host.as_deref(), run.cores, hpl.n, *extent == Extent::Windows, settings);
        if let Some(point) = places.of(&run.candidate, run.cores) {
            groups.entry(alike).or_default().push((point, run.rate_gflops.ln()));
        }
    }
    let group = |((_, from, used, ..), runs): (Alike<'_>, _)| ComparableRuns {
        of_this_machine: from == Some(host) && used == Some(cores),
        runs,
    };
    Placed { groups: groups.into_iter().map(group).collect(), left_out: places.left_out, of_others, others }
}

/// The points that runs stand for, each nearest point sought once.
struct Places<'a> {
    space: &'a dyn Candidates,
    /// By the run as it would be here, and its cores.
    nearest: HashMap<(Candidate, Option<usize>), Option<Point>>,
    scans_left: usize,
    left_out: usize,
}

impl<'a> Places<'a> {
    /// Of `space`, of which all points are gone through `scans` times at most.
    fn new(space: &'a dyn Candidates, scans: usize) -> Self {
        Self { space, nearest: HashMap::new(), scans_left: scans, left_out: 0 }
    }

    /// [`place`], or nothing where all points would have to be gone through once too often.
    fn of(&mut self, of: &Candidate, cores: Option<usize>) -> Option<Point> {
        let candidate = here(self.space, of, cores)?;
        if let Some(point) = self.space.point(&candidate) {
            return Some(point);
        }
        let key = (candidate, cores);
        if let Some(known) = self.nearest.get(&key) {
            return known.clone();
        }
        let distances = Distances::new(self.space, &key.0, cores);
        let place = match distances.combined(self.space) {
            _ if distances.all_far() => None,
            Some(point) => Some(point),
            None if self.scans_left == 0 => {
                self.left_out += 1;
                return None;
            }
            None => {
                self.scans_left -= 1;
                distances.nearest(self.space)
            }
        };
        self.nearest.insert(key, place.clone());
        place
    }
}

/// The settings of a run, without those that are dimensions of `space`.
fn not_searched(space: &dyn Candidates, settings: &NodeSettings) -> [Option<u32>; 3] {
    let is_searched = |name: &str| space.dims().iter().any(|dim| dim.name == name);
    let values = settings.values();
    std::array::from_fn(|at| values[at].filter(|_| !is_searched(NodeSettings::NAMES[at])))
}

/// The point that a run of `of` on so many cores stands for.
pub(super) fn place(space: &dyn Candidates, of: &Candidate, cores: Option<usize>) -> Option<Point> {
    Places::new(space, 1).of(of, cores)
}

/// A run of `of` on so many cores as a candidate of `space`, which need not have it.
fn here(space: &dyn Candidates, of: &Candidate, cores: Option<usize>) -> Option<Candidate> {
    let spec = space.spec();
    let mut candidate = space.candidate(space.points().first()?);
    candidate.hpl = HplParams { n: spec.n, ..of.hpl };
    candidate.engine.split = of.engine.split;
    candidate.engine.weights = of.engine.weights.clone();
    candidate.engine.extra = of.engine.extra.clone();
    candidate.engine.settings = of.engine.settings;
    candidate.engine.threads = match cores {
        Some(_) => of.engine.threads,
        None => (spec.cores / candidate.hpl.ranks()).max(1),
    };
    Some(candidate)
}

#[cfg(test)]
mod tests {
    use space::dims::Space;
    use space::domain::{DomainSpec, HplDomain, Limits, SettingsDomain, default_candidate};
    use space::{EngineParams, KernelChoice, SettingLevels, Share, Unequal};

    use super::super::tests::run;
    use super::*;

    fn domain() -> HplDomain {
        let kernels = KernelChoice::Builtin;
        let spec = DomainSpec {
            n: 4000,
            cores: 2,
            memory_bytes: 1 << 32,
            kernels,
            ranks: None,
            threads: None,
            most_threads: None,
            common_cores: None,
            unequal: Unequal::default(),
        };
        HplDomain::new(&spec).unwrap()
    }

    #[test]
    fn the_same_parameters_at_another_n_are_the_same_point() {
        let domain = domain();
        let usual = default_candidate(domain.spec());
        let earlier = Earlier { candidate: usual.at_n(9000), ..run(0, "here", 10.0) };
        assert_eq!(domain.candidate(&place(&domain, &earlier.candidate, earlier.cores).unwrap()), usual);
        // HPL.out says nothing of cores or threads.
        let single = HplParams { n: 9000, ..HplParams::baseline(9000, 1, 1) };
        let engine = EngineParams::default();
        let bare = Earlier { cores: None, host: None, candidate: Candidate { hpl: single, engine }, ..earlier };
        assert_eq!(domain.candidate(&place(&domain, &bare.candidate, bare.cores).unwrap()).engine.threads, 2);
    }

    #[test]
    fn a_run_of_a_larger_machine_stands_for_the_nearest_point() {
        let domain = domain();
        let hpl = HplParams { nb: 232, depth: 1, ..HplParams::baseline(100_000, 4, 8) };
        let earlier = Earlier {
            cores: Some(32),
            candidate: Candidate { hpl, engine: EngineParams::default() },
            ..run(0, "cluster", 900.0)
        };
        let found = domain.candidate(&place(&domain, &earlier.candidate, earlier.cores).unwrap());
        assert_eq!((found.hpl.p, found.hpl.q, found.engine.threads), (1, 2, 1));
        assert!([224, 240].contains(&found.hpl.nb) && found.hpl.bcast == hpl.bcast, "{found:?}");
        assert!(domain.points().contains(&place(&domain, &earlier.candidate, earlier.cores).unwrap()));
    }

    #[test]
    fn only_runs_measured_alike_are_together_and_only_here_is_here() {
        let domain = domain();
        let windows = Earlier { extent: Extent::Windows, ..run(2, "here", 12.0) };
        let earlier = [run(0, "here", 10.0), run(1, "here", 11.0), windows, run(0, "there", 99.0)];
        let groups = groups(&domain, &earlier, "here", "hpl").groups;
        let counts: Vec<(bool, usize)> = groups.iter().map(|group| (group.of_this_machine, group.runs.len())).collect();
        assert_eq!(counts, [(true, 2), (true, 1), (false, 1)]);
    }

    #[test]
    fn runs_of_another_engine_are_left_out_and_those_of_an_unknown_one_are_not() {
        let domain = domain();
        let of = |engine: Option<&str>| Earlier { engine: engine.map(str::to_owned), ..run(0, "here", 10.0) };
        let earlier = [of(Some("hpl")), of(Some("netlib")), of(None), of(Some("cuda")), of(Some("netlib"))];
        let placed = |engine: &str| groups(&domain, &earlier, "here", engine);
        let runs = |engine: &str| placed(engine).groups.iter().map(|group| group.runs.len()).sum::<usize>();
        assert_eq!(["hpl", "netlib", "cuda", "hip"].map(runs), [2, 3, 2, 1]);
        let said = placed("hpl").sentence(5);
        assert!(said.ends_with("ranking; 3 are left out, as another engine made them: cuda, netlib"), "{said}");
    }

    #[test]
    fn runs_are_at_the_settings_that_they_had_or_those_as_found() {
        let limits = Limits::parse("[nb]\nvalues = [64, 128]\n").unwrap();
        let inner = HplDomain::within(domain().spec(), &limits).unwrap();
        let levels = SettingLevels { max_clock_mhz: vec![1500, 2500], ..SettingLevels::default() };
        let searched = SettingsDomain::new(Box::new(inner), &levels, &limits).unwrap();
        let at = |nb: usize, max_clock_mhz: Option<u32>| {
            let mut earlier = run(0, "here", 10.0);
            earlier.candidate.hpl.nb = nb;
            earlier.candidate.engine.settings.max_clock_mhz = max_clock_mhz;
            earlier
        };
        // One that is searched here, and one that is not.
        for nb in [128, 120] {
            let clock = |asked| {
                let Earlier { candidate, cores, .. } = at(nb, asked);
                searched.candidate(&place(&searched, &candidate, cores).unwrap()).engine.settings.max_clock_mhz
            };
            assert_eq!([None, Some(1600), Some(2500)].map(clock), [Some(2500), Some(1500), Some(2500)], "NB {nb}");
        }
        let earlier = [at(64, None), at(64, Some(1500)), at(128, None), at(128, Some(1500)), at(128, Some(2000))];
        let counts = |space: &dyn Candidates| -> Vec<usize> {
            groups(space, &earlier, "here", "hpl").groups.iter().map(|group| group.runs.len()).collect()
        };
        // Half the rate at half the clock says nothing of NB.
        assert_eq!((counts(&domain()), counts(&searched)), (vec![2, 2, 1], vec![5]));
    }

    /// A run of NB `nb` on the grid 1×4 of four cores with a split, which has no effect there.
    fn split_run(nb: usize) -> Candidate {
        let hpl = HplParams { nb, ..HplParams::baseline(9000, 1, 4) };
        Candidate { hpl, engine: EngineParams { split: Share::new(0.5).unwrap(), ..EngineParams::default() } }
    }

    #[test]
    fn a_combination_of_nearest_levels_is_the_nearest_of_all_points() {
        let domain = HplDomain::new(&DomainSpec { cores: 4, ..domain().spec().clone() }).unwrap();
        let grids = [(1, 1), (1, 2), (1, 4), (2, 2), (4, 1), (2, 4)];
        let mut combined = 0;
        for (at, (p, q)) in grids.into_iter().cycle().take(48).enumerate() {
            let hpl = HplParams { nb: 33 + 11 * at, depth: at % 3, ..HplParams::baseline(9000, p, q) };
            let candidate = Candidate { hpl, engine: EngineParams::default() };
            let distances = Distances::new(&domain, &here(&domain, &candidate, Some(p * q)).unwrap(), Some(p * q));
            let Some(point) = distances.combined(&domain) else { continue };
            combined += 1;
            assert!(domain.points().contains(&point), "{point:?}");
            let nearest = domain.points().iter().map(|point| distances.to(point)).fold(f64::INFINITY, f64::min);
            assert!(distances.to(&point) <= nearest, "{point:?}");
        }
        assert!(combined > 24, "{combined}");
    }

    #[test]
    fn all_points_are_gone_through_once_for_equal_runs_and_so_many_times_in_all() {
        let domain = HplDomain::new(&DomainSpec { cores: 4, ..domain().spec().clone() }).unwrap();
        let mut places = Places::new(&domain, 2);
        let found: Vec<Option<Point>> =
            [33, 33, 150, 33, 300, 300, 150].map(|nb| places.of(&split_run(nb), Some(4))).into();
        assert_eq!((places.scans_left, places.left_out), (0, 2));
        assert!(
            found[0].is_some() && found[1] == found[0] && found[3] == found[0] && found[6] == found[2],
            "{found:?}"
        );
        assert_eq!((&found[4], &found[5]), (&None, &None));
        // What needs no look at all points is placed all the same.
        assert!(places.of(&default_candidate(domain.spec()), Some(4)).is_some());
        let placed = Placed { groups: Vec::new(), left_out: 2, of_others: 0, others: BTreeSet::new() };
        let said = "0 of 7 earlier runs are used: 0 of this machine by their rate differences, 0 of other machines by their \
            ranking; 2 are left out, as the nearest point is sought for 200 different runs at most";
        assert_eq!(placed.sentence(7), said);
    }
}
