//! Predictions of all candidates of a search before its first run: a coarse walk of all, a fine walk of the best.
//!
//! Candidates that are equal for the model are predicted once; those that differ in the panel's recursion or the
//! broadcast only share the tasks of their steps. First a few steps and process columns of each candidate are walked (the
//! coarse time). Then the best are walked in detail (the fine time), with the best of each grid, NB and kind of schedule; the
//! ratio of fine to coarse times corrects the coarse times of similar candidates.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use hpl::plan::layout::Layout;
use hpl::plan::recursion::Recipe;
use space::stats::mean;
use space::{Candidate, HplParams, Looking, Pmap, Share, Weights};

use super::sampling::SampleSize;
use super::{MOST_RANK_STEPS, OwnModel, PredictedRun, without_variant};

/// Classes of candidates that get a fine walk, besides one of each family.
const WALKED: usize = 256;
/// A candidate within this ratio of the best is corrected by those of its own NB.
const NEAR: f64 = 0.15;
/// Rounds of fine walks: after a correction other candidates may be among the best.
const ROUNDS: usize = 2;

/// Where ranks are unequal, families with equal weights of which one candidate gets a walk of all its steps, the best first.
const WALKED_WHOLLY: usize = 48;

/// Candidates that share the tasks of their steps.
struct SharedTasks {
    /// One of them, with fixed values of the parameters in which they differ.
    tasks: Candidate,
    /// The parameters in which the classes of candidates differ.
    variants: Vec<HplParams>,
    coarse_s: Vec<f64>,
    /// Times of the fine walks; `None` for classes without one.
    fine_s: Vec<Option<f64>>,
}

/// Candidates of the same family share corrections: P, Q, PMAP, threads, NB, whether there is look-ahead, and a split.
type Family = (usize, usize, Pmap, usize, usize, bool, bool);

impl SharedTasks {
    fn family(&self) -> Family {
        let (hpl, engine) = (&self.tasks.hpl, &self.tasks.engine);
        (hpl.p, hpl.q, hpl.pmap, engine.threads, hpl.nb, hpl.depth > 0, engine.split.get() > 0.0)
    }

    /// The family and the weights: samples of the steps are off alike.
    fn weighted_family(&self) -> (Family, &Weights) {
        (self.family(), &self.tasks.engine.weights)
    }

    fn shares_layout(&self, other: &Self) -> bool {
        let of = |group: &Self| (group.tasks.hpl.n, group.tasks.hpl.nb, group.tasks.hpl.p, group.tasks.hpl.q);
        of(self) == of(other) && self.tasks.engine.weights == other.tasks.engine.weights
    }

    /// Logarithms of fine over coarse times.
    fn corrections(&self) -> impl Iterator<Item = f64> {
        self.fine_s.iter().zip(&self.coarse_s).filter_map(|(fine_s, coarse_s)| Some((fine_s.as_ref()? / coarse_s).ln()))
    }
}

impl OwnModel {
    /// Predicted times of `count` candidates in seconds, on `threads` threads of this process. `candidate` is called once for
    /// each; all should have the same order N. The times of the best are those of [`OwnModel::time_s`]; where ranks are unequal, these
    /// corrected by walks of all steps.
    pub fn screen(&self, count: usize, candidate: impl Fn(usize) -> Candidate, threads: usize) -> Vec<f64> {
        let (mut groups, of) = self.grouped(count, &candidate);
        let all: Vec<(usize, Vec<usize>)> =
            groups.iter().map(|group| (0..group.variants.len()).collect()).enumerate().collect();
        let few = all.iter().map(|(_, variants)| variants.len()).sum::<usize>() <= WALKED;
        if few {
            self.walk_well(&mut groups, all, threads);
        } else {
            if self.unequal.is_empty() {
                for (group, coarse_s) in self.walk_all(&groups, all, SampleSize::COARSE, threads) {
                    groups[group].coarse_s = coarse_s;
                }
            } else {
                self.walk_roughly(&mut groups, &of, candidate, threads);
            }
            for round in 0..ROUNDS {
                let wanted = wanted(&groups, round == 0);
                self.walk_well(&mut groups, wanted, threads);
            }
        }
        let mut times = corrected(&groups);
        if !self.unequal.is_empty() {
            self.correct_samples(&groups, &mut times, threads);
        }
        of.into_iter().map(|(group, variant)| times[group as usize][variant as usize]).collect()
    }

    /// Multiplies times by that of all steps over that of a sample: of the best candidate of each family with equal weights, for the others of
    /// these, and by the mean of all such ratios for families that have none. Blocks of unequal ranks have no short cycle of owners, so
    /// that sampled steps are up to a hundredth off.
    fn correct_samples(&self, groups: &[SharedTasks], times: &mut [Vec<f64>], threads: usize) {
        let mut best: HashMap<(Family, &Weights), (f64, usize, usize)> = HashMap::new();
        for (group, (of, times)) in groups.iter().zip(&*times).enumerate() {
            let own = times.iter().copied().zip(0..).min_by(|a, b| a.0.total_cmp(&b.0));
            let Some((time_s, variant)) = own else { continue };
            let known = best.entry(of.weighted_family()).or_insert((time_s, group, variant));
            if time_s < known.0 {
                *known = (time_s, group, variant);
            }
        }
        let mut first: Vec<(f64, usize, usize)> = best.into_values().collect();
        first.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        first.truncate(WALKED_WHOLLY);
        let mut left = MOST_RANK_STEPS;
        first.retain(|&(_, group, _)| {
            let rest = left.checked_sub(self.rank_steps(&groups[group].tasks));
            left = rest.unwrap_or(left);
            rest.is_some()
        });
        first.sort_unstable_by_key(|&(_, group, _)| group);
        let wanted = first.iter().map(|&(_, group, variant)| (group, vec![variant])).collect();
        let walked = self.walk_all(groups, wanted, SampleSize::ALL_STEPS, threads);
        let log =
            |(&(sampled_s, ..), (_, all_s)): (&(f64, usize, usize), &(usize, Vec<f64>))| (all_s[0] / sampled_s).ln();
        let logs: Vec<f64> = first.iter().zip(&walked).map(log).collect();
        let families = first.iter().map(|&(_, group, _)| groups[group].weighted_family());
        let own: HashMap<(Family, &Weights), f64> = families.zip(logs.iter().copied()).collect();
        let usual = mean(&logs);
        for (of, times) in groups.iter().zip(times) {
            let factor = own.get(&of.weighted_family()).unwrap_or(&usual).exp();
            times.iter_mut().for_each(|time_s| *time_s *= factor);
        }
    }

    /// The coarse walk. Ranks of unequal speed are walked as equal ones; the time is then multiplied by the largest relative
    /// load, see [`OwnModel::load`].
    fn walk_roughly(
        &self,
        groups: &mut [SharedTasks],
        of: &[(u32, u32)],
        candidate: impl Fn(usize) -> Candidate,
        threads: usize,
    ) {
        let without_weights = |i: usize| {
            let mut candidate = candidate(i);
            candidate.engine.weights = Weights::default();
            candidate
        };
        let (mut alike, of_alike) = self.grouped(of.len(), without_weights);
        let all: Vec<(usize, Vec<usize>)> =
            alike.iter().map(|group| (0..group.variants.len()).collect()).enumerate().collect();
        for (group, coarse_s) in self.walk_all(&alike, all, SampleSize::COARSE, threads) {
            alike[group].coarse_s = coarse_s;
        }
        let loads: Vec<f64> = groups.iter().map(|group| self.load(&group.tasks)).collect();
        for (&(group, variant), &(twin, of_twin)) in of.iter().zip(&of_alike) {
            let alike_s = alike[twin as usize].coarse_s[of_twin as usize];
            groups[group as usize].coarse_s[variant as usize] = loads[group as usize] * alike_s;
        }
    }

    /// The largest work of a rank divided by its relative speed; 1 is equal work on equal ranks.
    fn load(&self, candidate: &Candidate) -> f64 {
        let Candidate { hpl, engine } = candidate;
        let shares = |procs: usize, of: &[Share]| -> Vec<f64> {
            let share = |at: usize| of.get(at).map_or(1.0, |share| share.get());
            let sum: f64 = (0..procs).map(share).sum();
            (0..procs).map(|at| share(at) * procs as f64 / sum).collect()
        };
        let (rows, columns) = (shares(hpl.p, &engine.weights.rows), shares(hpl.q, &engine.weights.columns));
        let slowness = self.unequal.slowness(hpl, engine.threads);
        let of_rank = |at: usize| rows[at / hpl.q] * columns[at % hpl.q] * slowness.get(at).copied().unwrap_or(1.0);
        (0..hpl.ranks()).map(of_rank).fold(0.0, f64::max)
    }

    /// The candidates grouped by the tasks of their steps, and the group and variant of each.
    fn grouped(&self, count: usize, candidate: impl Fn(usize) -> Candidate) -> (Vec<SharedTasks>, Vec<(u32, u32)>) {
        let mut known: HashMap<Candidate, u32> = HashMap::new();
        let mut variants: HashMap<(u32, Recipe, space::Bcast), u32> = HashMap::new();
        let mut groups: Vec<SharedTasks> = Vec::new();
        let place = |i: usize| {
            let mut candidate = candidate(i);
            let seen = self.seen(&candidate.hpl);
            candidate.hpl = without_variant(&candidate.hpl);
            let group = *known.entry(candidate).or_insert_with_key(|tasks| {
                let (variants, coarse_s, fine_s) = (Vec::new(), Vec::new(), Vec::new());
                groups.push(SharedTasks { tasks: tasks.clone(), variants, coarse_s, fine_s });
                groups.len() as u32 - 1
            });
            let variant = *variants.entry((group, Recipe::new(&seen), seen.bcast)).or_insert_with(|| {
                let group = &mut groups[group as usize];
                group.variants.push(seen);
                group.coarse_s.push(0.0);
                group.fine_s.push(None);
                group.variants.len() as u32 - 1
            });
            (group, variant)
        };
        let of = (0..count).map(place).collect();
        (groups, of)
    }

    /// `hpl` with one value of the parameters that the model ignores.
    fn seen(&self, hpl: &HplParams) -> HplParams {
        let usual = HplParams::baseline(hpl.n, hpl.p, hpl.q);
        let counted = |looking| if looking == Looking::Left { Looking::Crout } else { looking };
        let bcast = if self.network.is_free() { usual.bcast } else { hpl.bcast };
        HplParams { pfact: counted(hpl.pfact), rfact: counted(hpl.rfact), bcast, ..*hpl }
    }

    fn walk_well(&self, groups: &mut [SharedTasks], wanted: Vec<(usize, Vec<usize>)>, threads: usize) {
        let times = self.walk_all(groups, wanted.clone(), SampleSize::FINE, threads);
        for ((group, variants), (_, fine_s)) in wanted.into_iter().zip(times) {
            for (variant, fine_s) in variants.into_iter().zip(fine_s) {
                groups[group].fine_s[variant] = Some(fine_s);
            }
        }
    }

    /// Times of some variants of some groups, in their order.
    fn walk_all(
        &self,
        groups: &[SharedTasks],
        wanted: Vec<(usize, Vec<usize>)>,
        detail: SampleSize,
        threads: usize,
    ) -> Vec<(usize, Vec<f64>)> {
        // Neighbours that share a layout are one work item.
        let mut pieces: Vec<Range<usize>> = Vec::new();
        for (i, (group, _)) in wanted.iter().enumerate() {
            match pieces.last_mut() {
                Some(piece) if groups[*group].shares_layout(&groups[wanted[piece.start].0]) => piece.end = i + 1,
                _ => pieces.push(i..i + 1),
            }
        }
        let (next, done) = (AtomicUsize::new(0), Mutex::new(vec![(0, Vec::new()); wanted.len()]));
        let work = || {
            while let Some(piece) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) {
                let first = &groups[wanted[piece.start].0].tasks;
                let mut layout = Layout::of(&first.hpl, &first.engine.weights);
                for i in piece.clone() {
                    let (group, variants) = &wanted[i];
                    let SharedTasks { tasks, variants: all, .. } = &groups[*group];
                    let chosen: Vec<HplParams> = variants.iter().map(|&variant| all[variant]).collect();
                    let mut run = PredictedRun::new(self, tasks);
                    if detail == SampleSize::COARSE {
                        run.slowness.clear();
                    }
                    let (times, back) = run.times_s(layout, &chosen, detail, None);
                    layout = back;
                    done.lock().unwrap_or_else(PoisonError::into_inner)[i] = (*group, times);
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..threads.min(pieces.len()) {
                // The threads that there are do the part of one that the system refuses.
                if std::thread::Builder::new().spawn_scoped(scope, work).is_err() {
                    break;
                }
            }
            work();
        });
        done.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The variants to walk in detail: those among the best without a fine time yet, and in the first round the best of each family.
fn wanted(groups: &[SharedTasks], one_of_each_family: bool) -> Vec<(usize, Vec<usize>)> {
    let times = corrected(groups);
    let mut order: Vec<(f64, usize, usize)> = times
        .iter()
        .enumerate()
        .flat_map(|(group, times)| times.iter().enumerate().map(move |(variant, &s)| (s, group, variant)))
        .collect();
    order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)));
    let mut chosen = order[..WALKED.min(order.len())].to_vec();
    if one_of_each_family {
        let near_s = order[0].0 * (1.0 + NEAR);
        let (mut family, mut grids) = (HashSet::new(), HashSet::new());
        chosen.extend(order.iter().filter(|(s, group, _)| {
            let of = groups[*group].family();
            let new_grid = grids.insert(grid(of));
            new_grid || (*s <= near_s && family.insert(of))
        }));
    }
    let mut wanted: Vec<(usize, Vec<usize>)> = Vec::new();
    chosen.retain(|&(_, group, variant)| groups[group].fine_s[variant].is_none());
    chosen.sort_unstable_by_key(|&(_, group, variant)| (group, variant));
    chosen.dedup_by_key(|&mut (_, group, variant)| (group, variant));
    for (_, group, variant) in chosen {
        match wanted.last_mut() {
            Some((last, variants)) if *last == group => variants.push(variant),
            _ => wanted.push((group, vec![variant])),
        }
    }
    wanted
}

/// The family of all candidates with one grid.
fn grid((p, q, pmap, threads, ..): Family) -> Family {
    (p, q, pmap, threads, 0, false, false)
}

/// The fine times, and the coarse times multiplied by the mean ratio of fine to coarse times of the group, else of its family,
/// else of its grid.
fn corrected(groups: &[SharedTasks]) -> Vec<Vec<f64>> {
    let mut means: HashMap<(bool, Family), (f64, f64)> = HashMap::new();
    for group in groups {
        for (whole_grid, family) in [(false, group.family()), (true, grid(group.family()))] {
            let (sum, count) = means.entry((whole_grid, family)).or_default();
            for log in group.corrections() {
                (*sum, *count) = (*sum + log, *count + 1.0);
            }
        }
    }
    let mean = |(sum, count): (f64, f64)| (count > 0.0).then(|| sum / count);
    let of = |group: &SharedTasks| {
        let own = group.corrections().fold((0.0, 0.0), |(sum, count), log| (sum + log, count + 1.0));
        let family = || mean(means[&(false, group.family())]).or_else(|| mean(means[&(true, grid(group.family()))]));
        let factor = mean(own).or_else(family).unwrap_or(0.0).exp();
        group.fine_s.iter().zip(&group.coarse_s).map(|(fine_s, coarse_s)| fine_s.unwrap_or(coarse_s * factor)).collect()
    };
    groups.iter().map(of).collect()
}
