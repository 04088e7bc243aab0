//! Where a model says less than it seems to, for the candidates of a space.

use std::collections::HashSet;

use objectives::predict::Predictor;
use space::{Candidate, Candidates};

/// Sentences at most; what is said of further kinds is counted.
const MOST: usize = 4;

/// What the predictor cannot know of the usual candidate and of each kind that the space contains, a sentence each: that of
/// the usual one first, and one for all that differ in numbers alone.
pub fn of(predictor: &Predictor, domain: &dyn Candidates, usual: &Candidate) -> Vec<String> {
    let mut kinds = HashSet::new();
    let candidates = domain.points().iter().map(|point| domain.candidate(point));
    let of_each_kind = candidates.filter(|candidate| kinds.insert(kind(candidate)));
    let said = std::iter::once(usual.clone()).chain(of_each_kind).flat_map(|candidate| predictor.warnings(&candidate));
    grouped(said)
}

/// What a model may know of some candidates and not of others: ranks, threads, whether rows are exchanged, weights.
fn kind(candidate: &Candidate) -> (usize, usize, bool, bool) {
    let (hpl, engine) = (&candidate.hpl, &candidate.engine);
    (hpl.ranks(), engine.threads, hpl.p > 1, engine.weights.is_empty())
}

/// The first sentence of those that differ in numbers alone, with the count of the others.
fn grouped(said: impl Iterator<Item = String>) -> Vec<String> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for sentence in said {
        let words = without_numbers(&sentence);
        match groups.iter_mut().find(|(known, _)| *known == words) {
            Some((_, alike)) if alike.contains(&sentence) => {}
            Some((_, alike)) => alike.push(sentence),
            None => groups.push((words, vec![sentence])),
        }
    }
    let line = |(_, alike): &(String, Vec<String>)| match alike.len() {
        1 => format!("prediction: {}", alike[0]),
        count => format!("prediction: {} (and {} like it)", alike[0], count - 1),
    };
    let mut lines: Vec<String> = groups.iter().take(MOST).map(line).collect();
    if groups.len() > MOST {
        lines.push(format!("prediction: {} more kinds of warnings", groups.len() - MOST));
    }
    lines
}

fn without_numbers(sentence: &str) -> String {
    sentence.chars().filter(|c| !c.is_ascii_digit() && *c != '.').collect()
}

#[cfg(test)]
mod tests {
    use objectives::predict::Predictor;
    use space::domain::HplDomain;

    use super::*;
    use crate::search::schedule::tests::{machine, spec};

    #[test]
    fn sentences_that_differ_in_numbers_alone_are_one() {
        let said = ["a at 1", "a at 2", "a at 1", "b", "b"].map(str::to_owned);
        assert_eq!(grouped(said.into_iter()), ["prediction: a at 1 (and 1 like it)", "prediction: b"]);
        let many = (b'a'..=b'z').map(|letter| char::from(letter).to_string());
        let lines = grouped(many);
        assert_eq!((lines.len(), lines[MOST].as_str()), (MOST + 1, "prediction: 22 more kinds of warnings"));
    }

    #[test]
    fn what_no_calibration_has_seen_is_said_of_each_kind_once() {
        let mut machine = machine();
        machine.rates.retain(|rate| rate.threads == 1);
        machine.layers.clear();
        let domain = HplDomain::new(&spec()).unwrap();
        let usual = space::domain::default_candidate(&spec());
        let lines = of(&Predictor::new(&machine).unwrap(), &domain, &usual);
        let count = |words: &str| lines.iter().filter(|line| line.contains(words)).count();
        assert_eq!(count("Dgemm was not measured with 2 threads"), 1, "{lines:?}");
        assert_eq!(count("no [[layer]] joins"), 1, "{lines:?}");
        assert!(lines.len() <= MOST + 1, "{lines:?}");
    }
}
