//! Trials on some of the nodes of a session.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::record::{Outcome, Row};
use crate::report::counted;

/// Nodes, or groups of them, that are named with their failures.
const NAMED: usize = 4;

/// The trials on single nodes and on groups of them. They correct what is expected of all nodes, and are no part of the result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TrialsOnSomeNodes {
    /// Finished trials, failures included.
    pub trials: usize,
    /// Failed trials by the nodes that they were on, as in [`Row::nodes`], and by kind.
    pub failures: BTreeMap<String, BTreeMap<Outcome, usize>>,
}

impl TrialsOnSomeNodes {
    /// `None` without such `rows`.
    pub fn new(rows: &[Row]) -> Option<Self> {
        let mut failures: BTreeMap<String, BTreeMap<Outcome, usize>> = BTreeMap::new();
        for row in rows.iter().filter(|row| !row.passed) {
            let nodes = row.nodes.clone().unwrap_or_default();
            *failures.entry(nodes).or_default().entry(row.outcome).or_default() += 1;
        }
        (!rows.is_empty()).then_some(Self { trials: rows.len(), failures })
    }

    /// How many there were, and on which nodes they failed, most failures first.
    pub(crate) fn words(&self) -> String {
        let count = |kinds: &BTreeMap<Outcome, usize>| kinds.values().sum::<usize>();
        let mut all: Vec<_> = self.failures.iter().collect();
        all.sort_by_key(|(_, kinds)| std::cmp::Reverse(count(kinds)));
        let (named, others) = all.split_at(all.len().min(NAMED));
        let mut failed: Vec<String> =
            named.iter().map(|(nodes, kinds)| format!("{} on {}", by_kind(kinds), ends(nodes))).collect();
        if !others.is_empty() {
            let count: usize = others.iter().map(|(_, kinds)| count(kinds)).sum();
            failed.push(format!("{count} on {}", counted(others.len(), "other")));
        }
        let failed = if failed.is_empty() { "none".to_owned() } else { failed.join("; ") };
        format!("{} on single nodes or groups of them; failed: {failed}", counted(self.trials, "trial"))
    }
}

/// Failures by kind, `2 timed-out, 1 crashed`; `none`.
pub(crate) fn by_kind(failures: &BTreeMap<Outcome, usize>) -> String {
    let kinds: Vec<String> = failures.iter().map(|(kind, count)| format!("{count} {}", kind.name())).collect();
    if kinds.is_empty() { "none".to_owned() } else { kinds.join(", ") }
}

/// Few names as they are, of many the first and the last.
fn ends(nodes: &str) -> String {
    match nodes.split(' ').collect::<Vec<_>>()[..] {
        [first, .., last] if nodes.split(' ').count() > 2 => format!("{first} … {last}"),
        _ => nodes.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::arbitrary::row;

    #[test]
    fn failures_are_told_by_their_nodes() {
        assert_eq!(TrialsOnSomeNodes::new(&[]), None);
        let on = |trial: u64, nodes: &str, outcome: Outcome| Row {
            nodes: Some(nodes.into()),
            outcome,
            passed: outcome == Outcome::Passed,
            ..row(trial)
        };
        let mut rows = vec![on(0, "n1", Outcome::Passed), on(1, "n2", Outcome::Passed)];
        let said = |rows: &[Row]| TrialsOnSomeNodes::new(rows).unwrap().words();
        assert_eq!(said(&rows), "2 trials on single nodes or groups of them; failed: none");
        assert_eq!(said(&rows[..1]), "1 trial on single nodes or groups of them; failed: none");
        rows.extend([on(2, "n1 n2 n3", Outcome::Crashed), on(3, "n3", Outcome::Crashed)]);
        rows.extend([on(4, "n3", Outcome::TimedOut), on(5, "n3", Outcome::Crashed)]);
        let failed = "1 timed-out, 2 crashed on n3; 1 crashed on n1 … n3";
        assert_eq!(said(&rows), format!("6 trials on single nodes or groups of them; failed: {failed}"));
        rows.extend((6..10).map(|trial| on(trial, &format!("n{trial}"), Outcome::Killed)));
        assert!(said(&rows).ends_with("1 killed on n7; 2 on 2 others"), "{}", said(&rows));
        rows.pop();
        assert!(said(&rows).ends_with("1 killed on n7; 1 on 1 other"), "{}", said(&rows));
    }
}
