//! The comparison with the baseline: challengers run in pairs with it, each pair one right after the other.
//!
//! A machine's speed drifts over a session; the ratio of a pair does not. So the pairs decide: a challenger that loses
//! most of them gives way to the next, and the best is whoever won, or the baseline. Those pairs choose; what is reported
//! comes from pairs that are run after the final run, when nothing is left to choose, and that can take the choice back.

use std::collections::HashMap;

use space::Candidate;
use space::stats::median;

use crate::record::{Identity, Row};

/// Pairs after which a challenger whose median ratio is below 1 has lost.
pub const PAIRS_TO_LOSE: usize = 3;

/// Pairs after the choice that are enough to take it back.
pub const PAIRS_TO_JUDGE: usize = 6;

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

/// The rows up to the choice, the first passed final run included, and those after it; all are before it while there is none.
pub fn at_choice(rows: &[Row]) -> (&[Row], &[Row]) {
    let chosen = rows.iter().position(|row| row.strategy == Identity::FINAL && row.passed);
    rows.split_at(chosen.map_or(rows.len(), |at| at + 1))
}

/// The baseline: what ran as such, or else, where time for the final run alone was expected, what rounds begin with.
pub fn baseline(rows: &[Row]) -> Option<Candidate> {
    let named = || {
        let first = rows.iter().find_map(|row| row.paired_with)?;
        rows.iter().find(|row| row.trial == first)
    };
    rows.iter().find(|row| row.strategy == Identity::BASELINE).or_else(named).map(Row::candidate)
}

/// What the first passed final run verified, at order `n`.
pub fn verified(rows: &[Row], n: usize) -> Option<Candidate> {
    let row = rows.iter().find(|row| row.strategy == Identity::FINAL && row.passed)?;
    Some(row.candidate().at_n(n))
}

/// Rates of `a` and `b` from the rounds in `rows` that have both: a run of the baseline with the runs right after it that name it.
pub fn in_turn(rows: &[Row], a: &Candidate, b: &Candidate) -> Vec<(f64, f64)> {
    let firsts = rows.iter().filter(|row| row.strategy == Identity::CONFIRM && row.paired_with.is_none());
    let rates = |first: &Row| {
        let in_round = |row: &&Row| row.trial == first.trial || row.paired_with == Some(first.trial);
        let round: Vec<&Row> = rows.iter().filter(in_round).filter(|row| row.fidelity == first.fidelity).collect();
        let rate = |of: &Candidate| round.iter().find(|row| row.candidate() == *of)?.figure_gflops();
        Some((rate(a)?, rate(b)?))
    };
    firsts.filter_map(rates).collect()
}

/// Whether the pairs after the choice take it back: there are enough of them, and by their median the baseline is faster.
pub fn taken_back(rows: &[Row], baseline: &Candidate) -> bool {
    let Some(verified) = verified(rows, baseline.hpl.n) else { return false };
    let pairs = in_turn(at_choice(rows).1, &verified, baseline);
    pairs.len() >= PAIRS_TO_JUDGE && ratio(&pairs).is_some_and(|ratio| ratio < 1.0)
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
pub(crate) mod tests {
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

    /// A final run of NB 192, then rounds of (baseline, expert with NB 240, NB 192).
    pub(crate) fn with_rounds(rounds: &[(f64, f64, f64)]) -> Vec<Row> {
        let mut rows = rows(&[(192, 11.0, 10.0)]);
        rows.push(Row { strategy: Identity::FINAL.into(), n: 1200, ..confirm(2, 192, 12.0, None) });
        for (i, &(baseline, expert, verified)) in rounds.iter().enumerate() {
            let first = 3 + 3 * i as u64;
            rows.push(confirm(first, BASELINE, baseline, None));
            rows.push(Row { strategy: Identity::EXPERT.into(), ..confirm(first + 1, 240, expert, Some(first)) });
            rows.push(confirm(first + 2, 192, verified, Some(first)));
        }
        rows
    }

    #[test]
    fn rounds_after_the_choice_compare_all_that_ran_in_them() {
        let rows = with_rounds(&[(10.0, 8.0, 12.0), (20.0, 16.0, 22.0)]);
        let (before, after) = at_choice(&rows);
        assert_eq!((before.len(), after.len()), (3, 6));
        let [expert, challenger] = [240, 192].map(|nb| confirm(0, nb, 1.0, None).candidate());
        assert_eq!(in_turn(after, &challenger, &baseline()), [(12.0, 10.0), (22.0, 20.0)]);
        assert_eq!(in_turn(after, &challenger, &expert), [(12.0, 8.0), (22.0, 16.0)]);
        assert_eq!(pairs(before, &challenger, &baseline()), [(11.0, 10.0)]);
        // The expert is no challenger.
        assert_eq!(challengers(&rows, &baseline()), [challenger]);
        assert_eq!(at_choice(&rows[..2]), (&rows[..2], &rows[2..2]));
    }

    #[test]
    fn six_pairs_after_the_choice_with_a_median_below_1_take_it_back() {
        let worse = (10.0, 9.0, 9.9);
        assert!(taken_back(&with_rounds(&[worse; 6]), &baseline()));
        assert!(!taken_back(&with_rounds(&[worse; 5]), &baseline()), "too few");
        let better = (10.0, 9.0, 10.1);
        assert!(!taken_back(&with_rounds(&[worse, worse, worse, better, better, better, better]), &baseline()));
        assert!(!taken_back(&rows(&[(192, 9.0, 10.0); 8]), &baseline()), "nothing was chosen");
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
