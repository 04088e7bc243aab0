//! The comparison with the baseline: challengers run in pairs with it, each pair one right after the other.
//!
//! A machine's speed drifts over a session; the ratio of a pair does not. So the pairs decide: a challenger that loses
//! most of them gives way to the next, and the best is whoever won, or the baseline.

use std::collections::HashMap;

use space::Candidate;

use crate::record::{Identity, Row};
use crate::report::stats::median;

/// Pairs after which a challenger whose median ratio is below 1 has lost.
const PAIRS_TO_LOSE: usize = 3;

/// Rates of challenger and baseline, pair by pair.
type Pairs = Vec<(f64, f64)>;

/// Rates of challenger and baseline from the pairs that were run to compare the two. Runs that helped to find the
/// challenger are not among them: their luck would count for it.
pub fn pairs(rows: &[Row], challenger: &Candidate, baseline: &Candidate) -> Vec<(f64, f64)> {
    let mut all = compared(rows, baseline).into_iter();
    all.find(|(candidate, _)| candidate == challenger).map(|(_, pairs)| pairs).unwrap_or_default()
}

/// All that were compared with the baseline so far, in order.
pub fn challengers(rows: &[Row], baseline: &Candidate) -> Vec<Candidate> {
    challenges(rows, baseline).map(|(challenger, _)| challenger).collect()
}

/// The challenger of the moment; `None` when there was none, or the last one has lost.
pub fn current(rows: &[Row], baseline: &Candidate) -> Option<Candidate> {
    let (last, pairs) = challenges(rows, baseline).last()?;
    let lost = pairs.len() >= PAIRS_TO_LOSE && ratio(&pairs).is_some_and(|ratio| ratio < 1.0);
    (!lost).then_some(last)
}

/// Who is best by the pairs: the challenger with the highest median ratio, the baseline when none is above 1, `None`
/// before the first pair.
pub fn winner(rows: &[Row], baseline: &Candidate) -> Option<Candidate> {
    let rated = challenges(rows, baseline).filter_map(|(challenger, pairs)| Some((ratio(&pairs)?, challenger)));
    let (ratio, best) = rated.max_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(if ratio > 1.0 { best } else { baseline.clone() })
}

/// Challengers in the order of their first comparisons, with their pairs.
fn challenges<'a>(rows: &[Row], baseline: &'a Candidate) -> impl Iterator<Item = (Candidate, Pairs)> + use<'a> {
    compared(rows, baseline).into_iter().filter(move |(candidate, _)| candidate != baseline)
}

/// All that ran in comparisons, the baseline too, in the order of their first ones, each with its pairs.
fn compared(rows: &[Row], baseline: &Candidate) -> Vec<(Candidate, Pairs)> {
    let by_number: HashMap<u64, &Row> = rows.iter().rev().map(|row| (row.trial, row)).collect();
    let mut places = HashMap::new();
    let mut compared: Vec<(Candidate, Pairs)> = Vec::new();
    for row in rows.iter().filter(|row| row.strategy == Identity::CONFIRM) {
        let candidate = row.candidate();
        let place = *places.entry(candidate.clone()).or_insert(compared.len());
        if place == compared.len() {
            compared.push((candidate, Vec::new()));
        }
        let before = row.paired_with.and_then(|trial| by_number.get(&trial));
        let before = before.filter(|before| before.fidelity == row.fidelity && before.candidate() == *baseline);
        let rates = before.and_then(|before| Some((row.figure_gflops()?, before.figure_gflops()?)));
        compared[place].1.extend(rates);
    }
    compared
}

/// Median of challenger by baseline.
fn ratio(pairs: &[(f64, f64)]) -> Option<f64> {
    median(&pairs.iter().map(|(challenger, baseline)| challenger / baseline).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::arbitrary::row;

    const BASELINE: usize = 128;

    fn confirm(number: u64, nb: usize, rate: f64, paired_with: Option<u64>) -> Row {
        Row { strategy: Identity::CONFIRM.into(), trial: number, nb, rate_gflops: Some(rate), paired_with, ..row(0) }
    }

    /// Rows of pairs (NB, its rate, the baseline's rate).
    fn rows(pairs: &[(usize, f64, f64)]) -> Vec<Row> {
        let pair = |(i, &(nb, rate, baseline)): (usize, &(usize, f64, f64))| {
            let number = 2 * i as u64;
            [confirm(number, BASELINE, baseline, None), confirm(number + 1, nb, rate, Some(number))]
        };
        pairs.iter().enumerate().flat_map(pair).collect()
    }

    fn nb(candidate: Option<Candidate>) -> Option<usize> {
        candidate.map(|candidate| candidate.hpl.nb)
    }

    fn baseline() -> Candidate {
        confirm(0, BASELINE, 1.0, None).candidate()
    }

    #[test]
    fn only_whole_pairs_of_the_two_count() {
        let mut rows = rows(&[(192, 11.0, 10.0), (64, 5.0, 10.0)]);
        rows.push(Row { passed: false, ..confirm(4, BASELINE, 1.0, None) });
        rows.push(confirm(5, 192, 12.0, Some(4)));
        // Not run to compare.
        rows.push(Row { strategy: "bayes".into(), ..confirm(6, 192, 90.0, Some(0)) });
        let challenger = confirm(0, 192, 1.0, None).candidate();
        assert_eq!(pairs(&rows, &challenger, &baseline()), [(11.0, 10.0)]);
    }

    #[test]
    fn a_challenger_that_loses_its_pairs_gives_way_and_the_best_wins() {
        let lost = rows(&[(192, 9.0, 10.0), (192, 11.0, 10.0), (192, 9.5, 10.0)]);
        assert_eq!(nb(current(&lost, &baseline())), None);
        assert_eq!(nb(winner(&lost, &baseline())), Some(BASELINE));
        let next = rows(&[(192, 9.0, 10.0), (192, 9.0, 10.0), (192, 9.5, 10.0), (64, 10.2, 10.0)]);
        assert_eq!(nb(current(&next, &baseline())), Some(64));
        assert_eq!(nb(winner(&next, &baseline())), Some(64));
        assert_eq!(winner(&[], &baseline()), None);
    }
}
