//! What compares: passed runs of one configuration on each side, of the same N and extent.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::PathBuf;

use objectives::real::Extent;
use space::Candidate;
use space::stats::median;

use super::run::{Ended, Known, Run, RunOrigin};
use super::source::Source;

/// Why nothing compares.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoSides {
    /// No run of a side has passed, and some have failed their check.
    #[error("{}: no run in it has passed, the residual of {wrong} failed", path.display())]
    Wrong {
        /// The side.
        path: PathBuf,
        /// How many failed.
        wrong: usize,
    },
    /// No run of a side was checked.
    #[error("{}: no run in it has passed a residual check; runs without one do not count", path.display())]
    Unchecked {
        /// The side.
        path: PathBuf,
    },
    /// One is simulated.
    #[error("{} is simulated and {} is measured: they do not compare; compare two sessions of one kind", simulated.display(), real.display())]
    Simulated {
        /// The simulated side.
        simulated: PathBuf,
        /// The other.
        real: PathBuf,
    },
    /// They have no N and extent in common.
    #[error(
        "nothing compares: {a}, {b}; rates at different N, or of whole runs and windows, do not compare. Make runs of the same N \
        (--n of a session, Ns of HPL.dat)"
    )]
    Apart {
        /// What A has.
        a: String,
        /// What B has.
        b: String,
    },
}

/// Runs of each side that an interval needs.
pub const RUNS_TO_JUDGE: usize = 6;

/// The runs of one configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Side<'a> {
    /// Where it is from.
    pub source: &'a Source,
    /// The passed runs, as they were made.
    pub runs: Vec<&'a Run>,
    /// Runs of the configuration whose residual failed.
    pub wrong: usize,
    /// Runs of the other side's configuration here whose residual failed, where that is another one.
    pub wrong_of_other: usize,
    /// Runs of it without a check.
    pub unchecked: usize,
    /// Runs of it without a rate.
    pub lost: usize,
    /// How many other configurations of the source compare as well: then these very runs chose the one with the highest median.
    pub others: usize,
}

impl<'a> Side<'a> {
    /// Of `all` runs of a configuration in `source`.
    fn new(source: &'a Source, all: &[&'a Run]) -> Self {
        let count = |ended: Ended| all.iter().filter(|run| run.ended == ended).count();
        Self {
            source,
            runs: all.iter().copied().filter(|run| run.rate_gflops().is_some()).collect(),
            wrong: count(Ended::Wrong) + source.wrong_before,
            wrong_of_other: 0,
            unchecked: count(Ended::Unchecked),
            lost: count(Ended::Lost),
            others: 0,
        }
    }

    /// Rates of the passed runs.
    pub fn rates(&self) -> Vec<f64> {
        self.runs.iter().filter_map(|run| run.rate_gflops()).collect()
    }

    /// Their median.
    pub fn median(&self) -> f64 {
        median(&self.rates()).unwrap_or(0.0)
    }

    /// Lowest and highest of them.
    pub fn range(&self) -> [f64; 2] {
        let fold = |pick: fn(f64, f64) -> f64| self.rates().into_iter().reduce(pick).unwrap_or(0.0);
        [fold(f64::min), fold(f64::max)]
    }

    /// The largest of their residuals.
    pub fn residual(&self) -> Option<f64> {
        let of = |run: &&Run| match run.ended {
            Ended::Passed { residual, .. } => residual,
            _ => None,
        };
        self.runs.iter().filter_map(of).reduce(f64::max)
    }

    /// Any of the runs, to ask for what they share.
    pub fn first(&self) -> Option<&'a Run> {
        self.runs.first().copied()
    }

    /// Where and by what the runs were made: of each fact all that is among them, as a file may have been put together. The command is that
    /// of the first.
    pub fn origin(&self) -> RunOrigin {
        let all = |of: fn(&RunOrigin) -> Option<&str>| {
            let found: BTreeSet<&str> = self.runs.iter().filter_map(|run| of(&run.origin)).collect();
            (!found.is_empty()).then(|| found.into_iter().collect::<Vec<_>>().join(", "))
        };
        RunOrigin {
            host: all(|origin| origin.host.as_deref()),
            engine: all(|origin| origin.engine.as_deref()),
            kernel: all(|origin| origin.kernel.as_deref()),
            versions: all(|origin| origin.versions.as_deref()),
            command: self.first().and_then(|run| run.origin.command.clone()),
        }
    }

    /// Whether its runs chose the configuration, so that the luck of the choice is in their rates.
    pub fn chosen_here(&self) -> bool {
        self.others > 0 && !self.source.chosen_before
    }
}

/// The sides at the same N and extent: with enough runs for an interval where there are such, whole runs before windows, more runs
/// before fewer, the larger N at last.
///
/// # Errors
/// [`NoSides`] where nothing compares.
pub fn sides<'a>(a: &'a Source, b: &'a Source) -> Result<[Side<'a>; 2], NoSides> {
    for source in [a, b] {
        if source.runs.iter().all(|run| run.rate_gflops().is_none()) {
            let wrong = source.runs.iter().filter(|run| run.ended == Ended::Wrong).count();
            let path = source.path.clone();
            return Err(if wrong > 0 { NoSides::Wrong { path, wrong } } else { NoSides::Unchecked { path } });
        }
    }
    if a.simulated != b.simulated {
        let (real, simulated) = if a.simulated { (b, a) } else { (a, b) };
        return Err(NoSides::Simulated { simulated: simulated.path.clone(), real: real.path.clone() });
    }
    let (all_a, all_b) = (Configurations::new(a), Configurations::new(b));
    let pairs = all_a.passed.keys().filter_map(|place| Some([all_a.best_at(*place)?, all_b.best_at(*place)?]));
    let worth = |[a, b]: &[Side<'_>; 2]| {
        let runs = a.runs.len().min(b.runs.len());
        let place = a.first().map(|run| (run.extent == Extent::Whole, run.candidate.hpl.n));
        let (whole, n) = place.unwrap_or_default();
        (runs >= RUNS_TO_JUDGE, whole, runs, n)
    };
    let [of_a, of_b] = pairs.max_by_key(worth).ok_or_else(|| NoSides::Apart { a: listed(a), b: listed(b) })?;
    let wrong_of = |other: &Side<'_>, own: &Side<'_>| {
        let other = other.first().filter(|run| own.first().is_some_and(|own| !is_alike(own, run)));
        let all = || own.source.runs.iter().filter(|run| run.ended == Ended::Wrong);
        other.map_or(0, |other| all().filter(|run| run.extent == other.extent && is_alike(run, other)).count())
    };
    let [wrong_a, wrong_b] = [wrong_of(&of_b, &of_a), wrong_of(&of_a, &of_b)];
    Ok([Side { wrong_of_other: wrong_a, ..of_a }, Side { wrong_of_other: wrong_b, ..of_b }])
}

/// Whether two runs are of one configuration, as far as both sources tell.
fn is_alike(a: &Run, b: &Run) -> bool {
    let is_told = [a, b].iter().all(|run| run.known != Known::Output);
    a.candidate.hpl == b.candidate.hpl && (!is_told || a.candidate.engine == b.candidate.engine)
}

/// Extent and N: rates compare where these are the same.
type Place = (Extent, usize);

/// The configurations of a source.
struct Configurations<'a> {
    source: &'a Source,
    /// The runs of each, at each extent, as they were made.
    runs: HashMap<(Extent, &'a Candidate), Vec<&'a Run>>,
    /// Those with passed runs at each place, in the order of the first of these.
    passed: HashMap<Place, Vec<&'a Candidate>>,
}

impl<'a> Configurations<'a> {
    fn new(source: &'a Source) -> Self {
        let mut runs: HashMap<(Extent, &'a Candidate), Vec<&'a Run>> = HashMap::new();
        let mut passed: HashMap<Place, Vec<&'a Candidate>> = HashMap::new();
        let mut seen = HashSet::new();
        for run in &source.runs {
            let configuration = (run.extent, &run.candidate);
            runs.entry(configuration).or_default().push(run);
            if run.rate_gflops().is_some() && seen.insert(configuration) {
                passed.entry((run.extent, run.candidate.hpl.n)).or_default().push(&run.candidate);
            }
        }
        Self { source, runs, passed }
    }

    /// The side of one of them, without a run where the source has none of it.
    fn side(&self, extent: Extent, candidate: &Candidate) -> Side<'a> {
        let all = self.runs.get(&(extent, candidate)).map(Vec::as_slice).unwrap_or_default();
        Side::new(self.source, all)
    }

    /// The one with the highest median at a place.
    fn best_at(&self, place: Place) -> Option<Side<'a>> {
        let candidates = self.passed.get(&place)?;
        let sides = candidates.iter().map(|candidate| self.side(place.0, candidate));
        let best = sides.max_by(|a, b| a.median().total_cmp(&b.median()))?;
        Some(Side { others: candidates.len() - 1, ..best })
    }
}

/// Where a source has passed runs, each once.
fn places(source: &Source) -> Vec<Place> {
    let passed = source.runs.iter().filter(|run| run.rate_gflops().is_some());
    let mut seen = HashSet::new();
    passed.map(|run| (run.extent, run.candidate.hpl.n)).filter(|place| seen.insert(*place)).collect()
}

/// What a source has, `old.out has whole runs at N = 8000 and 16000`.
fn listed(source: &Source) -> String {
    let of = |extent: Extent| -> Option<String> {
        let orders = places(source).into_iter().filter(|place| place.0 == extent).map(|place| place.1.to_string());
        let orders: Vec<String> = orders.collect();
        let what = if extent == Extent::Whole { "whole runs" } else { "windows of runs" };
        (!orders.is_empty()).then(|| format!("{what} at N = {}", orders.join(", ")))
    };
    let parts: Vec<String> = [Extent::Whole, Extent::Windows].into_iter().filter_map(of).collect();
    format!("{} has {}", source.path.display(), parts.join(" and "))
}

#[cfg(test)]
pub(crate) mod tests {
    use space::{EngineParams, HplParams};

    use super::*;

    /// A passed whole run of NB `nb` at order `n`.
    pub(crate) fn run(n: usize, nb: usize, rate_gflops: f64) -> Run {
        let hpl = HplParams { nb, ..HplParams::baseline(n, 1, 2) };
        Run {
            candidate: Candidate { hpl, engine: EngineParams::default() },
            known: Known::All,
            extent: Extent::Whole,
            ended: Ended::Passed { rate_gflops, residual: Some(0.002) },
            started: None,
            origin: RunOrigin::default(),
        }
    }

    pub(crate) fn source(name: &str, runs: Vec<Run>) -> Source {
        Source {
            path: name.into(),
            kind: "HPL.out",
            runs,
            chosen_before: false,
            wrong_before: 0,
            session_command: None,
            simulated: false,
            notes: Vec::new(),
        }
    }

    #[test]
    fn sides_are_one_configuration_at_the_n_that_both_have() {
        let a = source("a", vec![run(1000, 96, 9.0), run(1000, 128, 11.0), run(1000, 128, 12.0), run(2000, 96, 20.0)]);
        let wrong = Run { ended: Ended::Wrong, ..run(1000, 64, 0.0) };
        let lost = Run { ended: Ended::Lost, ..wrong.clone() };
        let b = source("b", vec![run(1000, 64, 10.0), wrong, lost, run(3000, 64, 99.0)]);
        let [of_a, of_b] = sides(&a, &b).unwrap();
        assert_eq!((of_a.rates(), of_a.median(), of_a.others), (vec![11.0, 12.0], 11.5, 1));
        assert!(of_a.chosen_here() && !of_b.chosen_here());
        assert_eq!((of_b.rates(), of_b.wrong, of_b.lost), (vec![10.0], 1, 1));
        assert_eq!((of_a.range(), of_a.residual()), ([11.0, 12.0], Some(0.002)));
    }

    #[test]
    fn what_failed_before_the_choice_counts_on_its_side() {
        let [a, b] = ["a", "b"].map(|name| source(name, vec![run(1000, 96, 9.0)]));
        let b = Source { wrong_before: 1, ..b };
        let [of_a, of_b] = sides(&a, &b).unwrap();
        assert_eq!((of_a.wrong, of_b.wrong), (0, 1));
    }

    /// HPL.out has nothing of the threads that a record has: by these no configuration was the same.
    #[test]
    fn what_failed_in_an_output_is_found_beside_a_record() {
        let threads = |run: Run| {
            let engine = EngineParams { threads: 4, ..run.candidate.engine.clone() };
            Run { candidate: Candidate { engine, ..run.candidate }, ..run }
        };
        let printed = |nb: usize, ended: Ended| Run { known: Known::Output, ended, ..run(1000, nb, 0.0) };
        let passed = Ended::Passed { rate_gflops: 10.0, residual: Some(0.002) };
        let a = source("a", vec![threads(run(1000, 128, 11.0))]);
        let wrong_in = |nb: usize| {
            let b = source("b", vec![printed(nb, passed), printed(128, Ended::Wrong)]);
            let [_, of_b] = sides(&a, &b).unwrap();
            (of_b.wrong, of_b.wrong_of_other)
        };
        assert_eq!((wrong_in(192), wrong_in(128)), ((0, 1), (1, 0)));
    }

    #[test]
    fn windows_are_compared_where_they_allow_an_interval() {
        let window = |rate| Run { extent: Extent::Windows, ..run(8000, 96, rate) };
        let of = |windows: usize| -> Vec<Run> {
            std::iter::once(run(1000, 96, 9.0)).chain((0..windows).map(|i| window(9.0 + i as f64))).collect()
        };
        let extent = |a: usize, b: usize| {
            let (a, b) = (source("a", of(a)), source("b", of(b)));
            sides(&a, &b).unwrap()[0].first().unwrap().extent
        };
        assert_eq!((extent(6, 7), extent(5, 7)), (Extent::Windows, Extent::Whole));
    }

    #[test]
    fn what_does_not_compare_says_why() {
        let at = |n| source("a.out", vec![run(n, 96, 9.0)]);
        let failed = source("b.out", vec![Run { ended: Ended::Wrong, ..run(1000, 96, 9.0) }]);
        let simulated = Source { simulated: true, ..at(1000) };
        for (a, b, words) in [
            (at(1000), at(2000), "a.out has whole runs at N = 1000, a.out has whole runs at N = 2000"),
            (at(1000), failed, "b.out: no run in it has passed, the residual of 1 failed"),
            (at(1000), simulated, "is simulated"),
        ] {
            let message = sides(&a, &b).unwrap_err().to_string();
            assert!(message.contains(words), "{message}");
        }
    }

    /// Each configuration was looked for among all others, and all runs were gone through for each.
    #[test]
    fn the_best_of_many_configurations_is_found_at_once() {
        let many = |name: &str| {
            source(name, (0..40_000_usize).map(|nb| run(1000, 1 + nb, 10.0 + (nb % 777) as f64)).collect())
        };
        let (mut a, mut b) = (many("a"), many("b"));
        // A single one is best in A, and has failed once in B.
        a.runs.push(run(1000, 5, 9999.0));
        a.runs.push(run(1000, 5, 9999.0));
        b.runs.push(Run { ended: Ended::Wrong, ..run(1000, 5, 0.0) });
        let [of_a, of_b] = sides(&a, &b).unwrap();
        assert_eq!((of_a.first().unwrap().candidate.hpl.nb, of_a.runs.len(), of_a.others), (5, 3, 39_999));
        assert_eq!((of_a.median(), of_b.median()), (9999.0, 786.0));
        assert_eq!((of_b.wrong, of_b.wrong_of_other, of_a.wrong_of_other), (0, 1, 0));
    }
}
