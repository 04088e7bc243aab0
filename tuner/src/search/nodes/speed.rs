//! Which groups of nodes can take a trial, and how fast each is: by the reference, which all of them run.

use std::collections::BTreeMap;

use space::Candidate;
use space::stats::median;

use super::group::NodeGroup;
use crate::record::{Identity, Outcome, Row};

/// Failures in a row after which a group takes no more trials.
const FAILURES: usize = 2;

/// Those of `groups` that can take a trial: one whose last two trials have failed can not. A candidate of the search that
/// is ended at its limit may be slow, the reference is not.
pub fn fit<'a>(groups: &'a [NodeGroup], rows: &[Row]) -> Vec<&'a NodeGroup> {
    let failed = |row: &&Row| !row.passed && (row.strategy == Identity::REFERENCE || row.outcome != Outcome::TimedOut);
    let is_fit = |group: &&NodeGroup| {
        let last = rows.iter().rev().filter(|row| row.nodes.as_ref() == Some(&group.name));
        last.take_while(failed).count() < FAILURES
    };
    groups.iter().filter(is_fit).collect()
}

/// Natural logarithm of the speed of each group (by name) over that of the typical one: of the median of its references over the
/// median of all groups'. A group on which no reference has passed has none. All `rows` are of groups of one size.
pub fn speeds<'a>(rows: &'a [Row], reference: &Candidate) -> BTreeMap<&'a str, f64> {
    let mut logs: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.strategy == Identity::REFERENCE && row.candidate() == *reference) {
        if let (Some(group), Some(rate)) = (row.nodes.as_deref(), row.comparable_rate_gflops()) {
            logs.entry(group).or_default().push(rate.ln());
        }
    }
    let of_group: Vec<(&str, f64)> =
        logs.into_iter().filter_map(|(group, logs)| Some((group, median(&logs)?))).collect();
    let typical = median(&of_group.iter().map(|(_, log)| *log).collect::<Vec<f64>>()).unwrap_or(0.0);
    of_group.into_iter().map(|(group, log)| (group, log - typical)).collect()
}

/// The rows of groups of known speed with the rates and times of the typical one, by rising number; the reference is there once, as it has
/// the same rate on all of them then. Their wall-clock times are those that they took.
pub fn cancelled(rows: &[Row], reference: &Candidate) -> Vec<Row> {
    let speeds = speeds(rows, reference);
    let mut seen_reference = false;
    let mut of_known: Vec<(&Row, f64)> =
        rows.iter().filter_map(|row| Some((row, *speeds.get(row.nodes.as_deref()?)?))).collect();
    of_known.sort_by_key(|(row, _)| row.trial);
    let mut first = |row: &Row| {
        let is_reference = row.strategy == Identity::REFERENCE && row.candidate() == *reference;
        if !is_reference {
            return true;
        }
        row.passed && !std::mem::replace(&mut seen_reference, true)
    };
    let of_typical = |(row, log): (&Row, f64)| {
        let slower = (-log).exp();
        Row {
            rate_gflops: row.rate_gflops.map(|rate| rate * slower),
            estimated_rate_gflops: row.estimated_rate_gflops.map(|rate| rate * slower),
            time_s: row.time_s.map(|time_s| time_s / slower),
            ..row.clone()
        }
    };
    of_known.into_iter().filter(|(row, _)| first(row)).map(of_typical).collect()
}

/// `rows` with the wall-clock time that the typical group would have taken for each: it bounds the rate of a trial that was ended at its
/// limit. `speeds`: natural logarithm of the [speed](speeds) of each group.
pub fn in_typical_time(rows: &[Row], speeds: &BTreeMap<&str, f64>) -> Vec<Row> {
    let of = |row: &Row| {
        let log = row.nodes.as_deref().and_then(|group| speeds.get(group)).copied().unwrap_or(0.0);
        Row { wall_s: row.wall_s * log.exp(), ..row.clone() }
    };
    rows.iter().map(of).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::group::groups;
    use super::*;
    use crate::record::arbitrary::row;

    pub(crate) fn hosts(count: usize) -> Vec<String> {
        (1..=count).map(|number| format!("n{number}")).collect()
    }

    /// A row of NB `nb` on node `node`, of the speed `speed`, that reaches `rate` on the typical node.
    pub(crate) fn on(trial: u64, node: &str, nb: usize, (rate, speed): (f64, f64)) -> Row {
        let strategy = if nb == 64 { Identity::REFERENCE } else { "bayes" };
        let rate_gflops = Some(rate * speed);
        Row { nb, nodes: Some(node.into()), strategy: strategy.into(), rate_gflops, trial, ..row(0) }
    }

    #[test]
    fn the_speed_of_a_node_cancels() {
        let speeds_of = [1.0, 0.8, 1.0, 1.25, 1.0];
        let hosts = hosts(5);
        let mut rows: Vec<Row> =
            (0..5).map(|node| on(node as u64, &hosts[node], 64, (20.0, speeds_of[node]))).collect();
        // In the order in which they ended.
        rows.push(on(6, "n4", 96, (22.0, 1.25)));
        rows.push(on(5, "n2", 128, (24.0, 0.8)));
        rows.push(on(7, "n9", 128, (90.0, 1.0)));
        let reference = rows[0].candidate();
        let found = speeds(&rows, &reference);
        assert_eq!(found.len(), 5);
        assert!((found["n2"] - 0.8_f64.ln()).abs() < 1e-12 && found["n1"].abs() < 1e-12, "{found:?}");
        let of: Vec<(u64, usize, f64)> =
            cancelled(&rows, &reference).iter().map(|row| (row.trial, row.nb, row.rate_gflops.unwrap())).collect();
        assert_eq!(of.len(), 3, "the reference once, and no node of unknown speed: {of:?}");
        for (found, expected) in of.into_iter().zip([(0, 64, 20.0), (5, 128, 24.0), (6, 96, 22.0)]) {
            assert!((found.0, found.1) == (expected.0, expected.1) && (found.2 - expected.2).abs() < 1e-9, "{found:?}");
        }
    }

    /// 100 s on a node of speed 0.8 are 80 s on the typical one: the rate may be above that of 100 s.
    #[test]
    fn a_trial_that_was_ended_is_bounded_by_the_time_of_the_typical_group() {
        let mut rows: Vec<Row> =
            [("n1", 1.0), ("n2", 0.8), ("n3", 1.0)].map(|(node, speed)| on(0, node, 64, (20.0, speed))).to_vec();
        let ended = |trial, node: &str| Row {
            passed: false,
            outcome: Outcome::TimedOut,
            rate_gflops: None,
            wall_s: 100.0,
            ..on(trial, node, 96, (20.0, 1.0))
        };
        rows.extend([ended(3, "n2"), ended(4, "n3")]);
        let reference = rows[0].candidate();
        let known = cancelled(&rows, &reference);
        let walls =
            in_typical_time(&known, &speeds(&rows, &reference)).iter().map(|row| row.wall_s).collect::<Vec<_>>();
        assert_eq!(walls.len(), 3, "the reference once");
        assert!((walls[1] - 80.0).abs() < 1e-9 && walls[2] == 100.0, "{walls:?}");
        assert_eq!(known[1].wall_s, 100.0, "what it cost");
    }

    #[test]
    fn a_group_that_fails_twice_takes_no_more_trials() {
        let single = groups(&hosts(3), 1);
        let fails = |row: Row, outcome| Row { passed: false, outcome, rate_gflops: None, ..row };
        let run = |trial, node: &str, nb| on(trial, node, nb, (20.0, 1.0));
        let mut rows = vec![run(0, "n1", 64), fails(run(1, "n2", 64), Outcome::TimedOut), run(2, "n3", 64)];
        assert_eq!(fit(&single, &rows).len(), 3, "perhaps by chance");
        rows.push(fails(run(3, "n2", 64), Outcome::Crashed));
        rows.extend((4..7).map(|trial| fails(run(trial, "n3", 96), Outcome::TimedOut)));
        assert_eq!(fit(&single, &rows), [&single[0], &single[2]], "slow candidates are no fault of a node");
        rows.push(run(7, "n2", 64));
        assert_eq!(fit(&single, &rows).len(), 3);
        let pairs = groups(&hosts(4), 2);
        assert_eq!(fit(&pairs, &rows).len(), 2, "trials on single nodes say nothing of groups");
        rows.extend((8..10).map(|trial| fails(run(trial, "n3 n4", 96), Outcome::Crashed)));
        assert_eq!(fit(&pairs, &rows), [&pairs[0]]);
    }
}
