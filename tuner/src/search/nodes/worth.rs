//! Which sizes of groups are worth their time before all nodes, and for how many trials.
//!
//! What a value of a dimension does to a run on all nodes beyond the model has the variance of its dimension's usual effect before any run.
//! A run on a group shows a part of it: as much as the two have in common by the model ([`super::shifts`]), and the rest is the group's own.
//! So NB is shown by single nodes already, BCAST by no single node. A size is taken where a second of its trials, references included,
//! removes more of these variances, all together, than a second of the best trial on all nodes does, and for as long as that holds.

use super::batch::{EVERY, MOST, SHARE};
use super::shifts::{ArmShift, size};

/// Variance of the logarithm of the ratio of two runs' rates, as they scatter by 1 %.
const PAIR: f64 = 2e-4;

/// Standard deviation of an effect, in logarithms of rates, up to which it is known well enough: as well as one run of it says.
const KNOWN: f64 = 0.01;

/// Length of a shift below which the model does not see an effect at all.
const UNSEEN: f64 = 1e-6;

/// What runs on a group show of one effect on all nodes.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Shown {
    /// What the group's effect has of that on all nodes.
    slope: f64,
    /// Variance of the rest of it, in that of the effect on all nodes.
    own: f64,
}

/// Runs on groups of some nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeStage {
    /// Nodes of a run.
    pub nodes: usize,
    /// Runs at the same time.
    pub groups: usize,
    /// Expected seconds of a trial.
    pub trial_s: f64,
    shown: Vec<Shown>,
}

/// Runs on all nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct AllNodes<'a> {
    /// Expected seconds of a trial.
    pub trial_s: f64,
    /// What wrong rates do to the effects that are looked for.
    pub arms: &'a [ArmShift],
}

impl NodeStage {
    /// So many groups of `nodes` nodes each, of whose effects wrong rates do `arms`, before runs on `all`.
    pub fn new(nodes: usize, groups: usize, trial_s: f64, arms: &[ArmShift], all: &AllNodes<'_>) -> Self {
        let shown = all.arms.iter().map(|of| {
            let here = arms.iter().find(|arm| arm.dim == of.dim && arm.towards == of.towards);
            here.map_or(Shown { slope: 0.0, own: 0.0 }, |here| shown(&here.shifts, &of.shifts))
        });
        Self { nodes, groups, trial_s, shown: shown.collect() }
    }

    /// The variances that so many trials besides the references leave of `before`, each for the effect that they say most of.
    fn after(&self, before: &[f64], effects: &[f64], trials: usize) -> Vec<f64> {
        let mut counts = vec![0_usize; before.len()];
        let left = |at: usize, count: usize| {
            let Shown { slope, own } = self.shown[at];
            if count == 0 || before[at] == 0.0 {
                return before[at];
            }
            let noise = own * effects[at].powi(2) + PAIR / count as f64;
            (before[at].recip() + slope.powi(2) / noise).recip()
        };
        for _ in 0..trials {
            let removed = (0..before.len()).map(|at| left(at, counts[at]) - left(at, counts[at] + 1));
            let most = removed.enumerate().max_by(|a, b| a.1.total_cmp(&b.1));
            let Some((at, _)) = most.filter(|(_, removed)| *removed > 0.0) else { break };
            counts[at] += 1;
        }
        counts.iter().enumerate().map(|(at, &count)| left(at, count)).collect()
    }

    /// Whether another round, the reference and [`EVERY`] trials on each group, is worth its time after `trials` others of it: the variance
    /// that a second of it removes, then.
    fn per_second(&self, before: &[f64], all: &AllNodes<'_>, trials: usize, total_s: f64) -> Option<f64> {
        let effects = effects(all);
        let round = EVERY * self.groups;
        let (round_s, rounds) = ((EVERY + 1) as f64 * self.trial_s, trials / round.max(1) + 1);
        if self.groups < 2 || trials >= MOST || rounds as f64 * round_s > SHARE * total_s {
            return None;
        }
        let [now, then] = [trials, trials + round].map(|trials| self.after(before, &effects, trials));
        let largest = now.iter().copied().fold(0.0, f64::max);
        let on_all = largest - (largest.max(f64::MIN_POSITIVE).recip() + PAIR.recip()).recip();
        let removed: f64 = now.iter().zip(&then).map(|(now, then)| now - then).sum();
        let per_second = removed / round_s;
        (largest.sqrt() > KNOWN && per_second > on_all / all.trial_s).then_some(per_second)
    }
}

/// What runs on a group, whose effect has the shifts `here`, show of one with the shifts `there`.
fn shown(here: &[f64], there: &[f64]) -> Shown {
    let common: f64 = here.iter().zip(there).map(|(here, there)| here * there).sum();
    let (own, of_all) = (size(here), size(there));
    if of_all < UNSEEN || own < UNSEEN {
        return Shown { slope: 0.0, own: 0.0 };
    }
    let (ratio, correlation) = (own / of_all, (common / own / of_all).clamp(-1.0, 1.0));
    Shown { slope: ratio * correlation, own: ratio.powi(2) * (1.0 - correlation.powi(2)) }
}

/// Standard deviation of each effect before any run; 0 where the model sees none.
fn effects(all: &AllNodes<'_>) -> Vec<f64> {
    all.arms.iter().map(|arm| if size(&arm.shifts) < UNSEEN { 0.0 } else { arm.effect }).collect()
}

/// A size of groups that is worth its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Worthwhile {
    /// Nodes of a group.
    pub nodes: usize,
    /// Trials besides the references.
    pub trials: usize,
}

/// The sizes among `larger` that are worth their time before `all`, rising, after `seen`: stages with the number of their trials that have
/// passed. `total_s`: seconds of the budget.
pub fn worthwhile(
    seen: &[(NodeStage, usize)],
    larger: &[NodeStage],
    all: &AllNodes<'_>,
    total_s: f64,
) -> Vec<Worthwhile> {
    let effects = effects(all);
    let mut variances: Vec<f64> = effects.iter().map(|effect| effect.powi(2)).collect();
    for (stage, trials) in seen {
        variances = stage.after(&variances, &effects, *trials);
    }
    let mut chosen: Vec<Worthwhile> = Vec::new();
    loop {
        let last = chosen.last().map_or(1, |size| size.nodes);
        let after = larger.iter().filter(|stage| stage.nodes > last);
        let first = after.filter_map(|stage| Some((stage, stage.per_second(&variances, all, 0, total_s)?)));
        let Some((stage, _)) = first.max_by(|a, b| a.1.total_cmp(&b.1)) else { return chosen };
        let mut trials = 0;
        while stage.per_second(&variances, all, trials, total_s).is_some() {
            trials += EVERY * stage.groups;
        }
        let trials = trials.min(MOST);
        variances = stage.after(&variances, &effects, trials);
        chosen.push(Worthwhile { nodes: stage.nodes, trials });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NB acts within nodes, BCAST, SWAP and DEPTH by messages between `messages` of them.
    fn arms(messages: f64) -> Vec<ArmShift> {
        let arm = |dim: &str, towards, effect, shifts: [f64; 2]| ArmShift {
            dim: dim.to_owned(),
            towards,
            effect,
            shifts: shifts.to_vec(),
        };
        let of = |towards| {
            [
                arm("nb", towards, 0.036, [0.02, 0.001 * messages]),
                arm("bcast", towards, 0.02, [0.0, 0.01 * messages]),
                arm("depth", towards, 0.02, [0.002, 0.01 * messages]),
                arm("swap", towards, 0.01, [0.0, 0.02 * messages]),
            ]
        };
        [of(0), of(1)].concat()
    }

    fn chosen(larger: &[(usize, usize, f64, f64)], single: usize, total_s: f64) -> Vec<(usize, usize)> {
        let arms_of_all = arms(1.0);
        let all = AllNodes { trial_s: 60.0, arms: &arms_of_all };
        let stage = |&(nodes, groups, trial_s, messages): &(usize, usize, f64, f64)| {
            NodeStage::new(nodes, groups, trial_s, &arms(messages), &all)
        };
        let larger: Vec<NodeStage> = larger.iter().map(stage).collect();
        let found = worthwhile(&[(stage(&(1, 32, 10.0, 0.0)), single)], &larger, &all, total_s);
        found.into_iter().map(|size| (size.nodes, size.trials)).collect()
    }

    #[test]
    fn a_size_is_taken_for_what_smaller_ones_do_not_show() {
        // Eight groups in a third of the time.
        let of = chosen(&[(4, 8, 20.0, 0.8)], 64, 10_800.0);
        assert!(of.len() == 1 && of[0].0 == 4 && (24..=MOST).contains(&of[0].1), "{of:?}");
        assert!(chosen(&[(4, 8, 20.0, 0.0)], 64, 10_800.0).is_empty(), "no messages, as on single nodes");
        assert!(
            chosen(&[(4, 8, 20.0, 0.001)], 64, 10_800.0).is_empty(),
            "a thousandth of the messages is below the noise"
        );
    }

    #[test]
    fn sizes_that_cost_more_than_they_say_are_left_out() {
        let sizes = |larger: &[(usize, usize, f64, f64)]| -> Vec<usize> {
            chosen(larger, 64, 10_800.0).into_iter().map(|of| of.0).collect()
        };
        assert!(sizes(&[(16, 1, 40.0, 1.0)]).is_empty(), "one group");
        assert!(sizes(&[(4, 8, 900.0, 1.0)]).is_empty(), "not within its share of the budget");
        assert!(sizes(&[(16, 2, 200.0, 1.0)]).is_empty(), "slower than all nodes");
        assert_eq!(sizes(&[(4, 8, 20.0, 1.0), (16, 2, 40.0, 1.0)]), [4], "what it has shown, larger ones need not");
        assert_eq!(sizes(&[(4, 8, 20.0, 0.0), (8, 4, 30.0, 1.0)]), [8]);
    }

    #[test]
    fn groups_show_what_they_have_in_common_with_all_nodes() {
        let same = shown(&[0.0, 0.01], &[0.0, 0.02]);
        assert!((same.slope - 0.5).abs() < 1e-12 && same.own.abs() < 1e-12, "{same:?}");
        let other = shown(&[0.01, 0.0], &[0.0, 0.02]);
        assert!(other.slope.abs() < 1e-12 && (other.own - 0.25).abs() < 1e-12, "{other:?}");
        let arms_of_all = arms(1.0);
        let all = AllNodes { trial_s: 60.0, arms: &arms_of_all };
        let (stage, effects) = (NodeStage::new(4, 8, 20.0, &arms(1.0), &all), effects(&all));
        let before: Vec<f64> = effects.iter().map(|effect| effect.powi(2)).collect();
        let sums = [0, 1, 8, 32].map(|trials| stage.after(&before, &effects, trials).iter().sum::<f64>());
        assert!(sums.windows(2).all(|pair| pair[1] < pair[0]), "{sums:?}");
        // The first one goes to the largest effect, NB, and leaves 1/(1/0.036² + 1/0.0002) of it.
        let left = (0.036_f64.powi(-2) + PAIR.recip()).recip();
        assert!((sums[0] - sums[1] - (0.036_f64.powi(2) - left)).abs() < 1e-12, "{sums:?}");
    }
}
