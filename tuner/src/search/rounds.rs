//! The rounds after the choice: baseline, expert and best, one right after the other, or two of them in turn in one process.
//!
//! A machine's speed changes over a session; the ratio of runs one right after the other hardly does. The runs of the search
//! choose the best, so their luck is in its figures; the rounds are run when nothing is left to choose: they are what is
//! reported, and they can take the choice back.

use std::f64::consts::FRAC_PI_2;

use objectives::real::Extent;
use space::Candidate;
use space::stats::{median, squared_deviations};

use crate::record::lead::Lead;
use crate::record::{Finished, Identity, Objective, limited_power_w};
use crate::search::history::{NO_CHANCE, RUN_SD};

/// Pairs after the choice that an interval needs.
pub const PAIRS_TO_JUDGE: usize = 6;

/// Pairs that the deviation of one, as the search has known it, counts for.
const PAIRS_OF_PRIOR_SD: f64 = 2.0;

/// Where the search has said nothing of the two, once there are as many pairs as an interval needs: they differ by about as much as runs do.
const UNKNOWN: Lead = Lead { mean: 0.0, sd: RUN_SD, pair_sd: RUN_SD * std::f64::consts::SQRT_2 };

/// The rows up to the choice, the first passed final run included, and those after it; all are before it while there is none.
pub fn at_choice<R: Finished>(rows: &[R]) -> (&[R], &[R]) {
    let chosen = rows.iter().position(|row| row.strategy() == Identity::FINAL && row.passed());
    rows.split_at(chosen.map_or(rows.len(), |at| at + 1))
}

/// The baseline: what ran as such, or else, where time for the final run alone was expected, what rounds begin with.
pub fn baseline<R: Finished>(rows: &[R]) -> Option<Candidate> {
    let named = || {
        let first = rows.iter().find_map(|row| row.paired_with())?;
        rows.iter().find(|row| row.trial() == first)
    };
    rows.iter().find(|row| row.strategy() == Identity::BASELINE).or_else(named).map(Finished::candidate)
}

/// What the first passed final run verified, at order `n`.
pub fn verified<R: Finished>(rows: &[R], n: usize) -> Option<Candidate> {
    let row = rows.iter().find(|row| row.strategy() == Identity::FINAL && row.passed())?;
    Some(row.candidate().at_n(n))
}

/// Whether so many of the runs `after` the choice failed that it is no chance, those of the expert's configuration apart.
pub fn have_failed<R: Finished>(after: &[R]) -> bool {
    after.iter().filter(|row| !row.passed() && row.strategy() != Identity::EXPERT).count() >= NO_CHANCE
}

/// Values of the objective of `a` and `b` from what ran after the choice: from the rounds that have both, a run of the baseline with the runs
/// right after it that name it, and from pairs of both in one process. Below a power limit these are rates: whether a candidate keeps the
/// limit is a matter of all its runs, see [`power_w`].
pub fn in_turn<R: Finished>(rows: &[R], a: &Candidate, b: &Candidate, objective: Objective) -> Vec<(f64, f64)> {
    let (_, after) = at_choice(rows);
    let of_round = |first: &R| {
        let in_round = |row: &&R| row.trial() == first.trial() || row.paired_with() == Some(first.trial());
        let round: Vec<&R> = after.iter().filter(in_round).filter(|row| row.extent() == first.extent()).collect();
        let value = |of: &Candidate| objective.unlimited().value(*round.iter().find(|row| row.is_of(of))?);
        Some((value(a)?, value(b)?))
    };
    let of_pair = |row: &R| {
        let pair = row.pair().filter(|_| row.passed() && objective.is_rate())?;
        let reference = rows.iter().find(|row| row.trial() == pair.reference_trial)?;
        let (own, other) = (pair.reference_rate_gflops * pair.log_ratio.exp(), pair.reference_rate_gflops);
        match row {
            _ if row.is_of(a) && reference.is_of(b) => Some((own, other)),
            _ if row.is_of(b) && reference.is_of(a) => Some((other, own)),
            _ => None,
        }
    };
    let compared = |row: &&R| [Identity::CONFIRM, Identity::EXPERT].contains(&row.strategy());
    let values = |row: &R| match row.reference_trial() {
        Some(_) => of_pair(row),
        None if row.strategy() == Identity::CONFIRM && row.paired_with().is_none() => of_round(row),
        None => None,
    };
    after.iter().filter(compared).filter_map(values).collect()
}

/// The watts of a candidate that are compared with a power limit, and the extent of the runs that they are of: the median of its passed
/// whole runs at its N, else of those at others, as a final run has, else of what its windows predict.
pub fn power_w<R: Finished>(rows: &[R], candidate: &Candidate) -> Option<(f64, Extent)> {
    let of = |extent: Extent, is_own: &dyn Fn(&R) -> bool| {
        let own = rows.iter().filter(|row| row.passed() && row.extent() == extent && is_own(row));
        Some((median(&own.filter_map(limited_power_w).collect::<Vec<_>>())?, extent))
    };
    let here = |row: &R| row.is_of(candidate);
    let elsewhere = |row: &R| row.candidate().at_n(candidate.hpl.n) == *candidate;
    of(Extent::Whole, &here).or_else(|| of(Extent::Whole, &elsewhere)).or_else(|| of(Extent::Windows, &here))
}

/// [`power_w`] of a candidate where it is above the power limit of the objective.
pub fn above_limit_w<R: Finished>(rows: &[R], candidate: &Candidate, objective: Objective) -> Option<(f64, Extent)> {
    power_w(rows, candidate).filter(|(watts, _)| !objective.allows(*watts))
}

/// Why the choice is taken back: the baseline is the best.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TakesBack {
    /// All that is known of their values is in favour of the baseline.
    Ahead(Lead),
    /// What was verified takes so many watts, more than the power limit, which the baseline keeps.
    WithinLimit(f64),
}

/// Whether and why the choice is taken back, as [`lead`] has it; never for a baseline that is above the power limit.
pub fn takes_back<R: Finished>(
    rows: &[R],
    baseline: &Candidate,
    objective: Objective,
    search: Option<Lead>,
) -> Option<TakesBack> {
    let verified = verified(rows, baseline.hpl.n).filter(|verified| verified != baseline)?;
    if objective.power_limit_w().is_some() {
        let keeps = power_w(rows, baseline).is_some_and(|(watts, _)| objective.allows(watts));
        match above_limit_w(rows, &verified, objective) {
            _ if !keeps => return None,
            Some((watts, _)) => return Some(TakesBack::WithinLimit(watts)),
            None => {}
        }
    }
    lead(rows, baseline, objective, search).filter(Lead::is_behind).map(TakesBack::Ahead)
}

/// How far what was verified is ahead of the baseline by the pairs after the choice together with `search`, what the runs of the search
/// say of it; `None` before the first pair, and where it is the baseline. Either alone is wrong too often: few pairs by their noise, the
/// search by the luck of single runs, such as the baseline's on memory that is used for the first time.
pub fn lead<R: Finished>(rows: &[R], baseline: &Candidate, objective: Objective, search: Option<Lead>) -> Option<Lead> {
    let verified = verified(rows, baseline.hpl.n).filter(|verified| verified != baseline)?;
    let pairs = in_turn(rows, &verified, baseline, objective);
    let search = search.filter(|lead| lead.mean.is_finite() && lead.sd > 0.0 && lead.pair_sd > 0.0);
    let unknown = (pairs.len() >= PAIRS_TO_JUDGE).then_some(UNKNOWN);
    with_pairs(search.or(unknown)?, pairs.iter().map(|(best, baseline)| best / baseline))
}

/// What is known of two with the ratios of pairs: means weighed by the inverse of their variances, as of normal distributions. Of the
/// pairs the median is taken, as one may be far off; how much they differ shows what one says.
fn with_pairs(known: Lead, ratios: impl Iterator<Item = f64>) -> Option<Lead> {
    let logs: Vec<f64> = ratios.map(f64::ln).filter(|log| log.is_finite()).collect();
    let of_pairs = median(&logs)?;
    let count = logs.len() as f64;
    let squares = PAIRS_OF_PRIOR_SD * known.pair_sd.powi(2) + squared_deviations(&logs);
    let of_one = squares / (PAIRS_OF_PRIOR_SD + count - 1.0);
    // Two have their mean for a median; that of many scatters more.
    let of_median = if logs.len() > 2 { FRAC_PI_2 * of_one / count } else { of_one / count };
    let [before, added] = [known.sd.powi(-2), 1.0 / of_median];
    let mean = (before * known.mean + added * of_pairs) / (before + added);
    Some(Lead { mean, sd: (before + added).powf(-0.5), pair_sd: of_one.sqrt() })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::record::Row;
    use crate::record::arbitrary::row;

    const BASELINE: usize = 128;
    const RATE: Objective = Objective::Gflops;

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

    fn baseline() -> Candidate {
        confirm(0, BASELINE, 1.0, None).candidate()
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
        let [expert, best] = [240, 192].map(|nb| confirm(0, nb, 1.0, None).candidate());
        assert_eq!(in_turn(&rows, &best, &baseline(), RATE), [(12.0, 10.0), (22.0, 20.0)]);
        assert_eq!(in_turn(&rows, &best, &expert, RATE), [(12.0, 8.0), (22.0, 16.0)]);
        // What was run before the choice, what did not pass, and what was not run to compare is no pair.
        let mut more = rows.clone();
        more.push(Row { passed: false, ..confirm(9, BASELINE, 1.0, None) });
        more.push(confirm(10, 192, 12.0, Some(9)));
        more.push(Row { strategy: "bayes".into(), ..confirm(11, 192, 90.0, Some(3)) });
        assert_eq!(in_turn(&more, &best, &baseline(), RATE), [(12.0, 10.0), (22.0, 20.0)]);
        assert_eq!(at_choice(&rows[..2]), (&rows[..2], &rows[2..2]));
    }

    /// The best is the candidate of a pair with the baseline, and the reference of one with the expert's configuration.
    #[test]
    fn pairs_in_one_process_compare_their_two_candidates() {
        let mut rows = with_rounds(&[]);
        let (best, expert) = (confirm(0, 192, 1.0, None).candidate(), confirm(0, 240, 1.0, None).candidate());
        let of_baseline = rows[0].trial;
        let pair = |row: Row, reference_trial: u64, ratio: f64| Row {
            reference_trial: Some(reference_trial),
            reference_rate_gflops: Some(10.0),
            log_ratio: Some(f64::ln(ratio)),
            ..row
        };
        let of_best = rows[1].trial;
        rows.push(pair(confirm(3, 192, 99.0, None), of_baseline, 1.1));
        rows.push(Row { strategy: Identity::EXPERT.into(), ..pair(confirm(4, 240, 99.0, Some(3)), of_best, 0.8) });
        rows.push(Row { passed: false, ..pair(confirm(5, 192, 99.0, None), of_baseline, 9.0) });
        let ratio = |a: &Candidate, b: &Candidate| {
            let pairs = in_turn(&rows, a, b, RATE);
            pairs.into_iter().map(|(a, b)| (1000.0 * a / b).round()).collect::<Vec<_>>()
        };
        assert_eq!(ratio(&best, &baseline()), [1100.0]);
        assert_eq!(ratio(&best, &expert), [1250.0]);
        assert_eq!(ratio(&expert, &baseline()), [0.0; 0]);
    }

    const AHEAD: Lead = Lead { mean: 0.012, sd: 0.01, pair_sd: 0.01 };

    #[test]
    fn pairs_and_search_are_weighed_by_what_each_can_know() {
        assert_eq!(with_pairs(AHEAD, std::iter::empty()), None);
        // By hand: one pair has the variance of the search.
        let one = with_pairs(AHEAD, [(-0.02_f64).exp()].into_iter()).unwrap();
        assert!((one.mean + 0.004).abs() < 1e-12 && (one.sd - 0.01 / 2_f64.sqrt()).abs() < 1e-12, "{one:?}");
        // Three differ by squares of 2e-4 in all, so each has 2e-4 / (2 + 2).
        let exact = Lead { pair_sd: 1e-9, ..AHEAD };
        let three = with_pairs(exact, [-0.03, -0.02, -0.01].map(f64::exp).into_iter()).unwrap();
        let weight = 3.0 / 5e-5 / FRAC_PI_2;
        assert!((three.mean - (120.0 - weight * 0.02) / (1e4 + weight)).abs() < 1e-12, "{three:?}");
        // A pair that another program disturbed does not decide, once there are others.
        let [one, all] = [vec![0.8], vec![1.004, 1.006, 0.8, 1.005, 1.003]]
            .map(|ratios| with_pairs(UNKNOWN, ratios.into_iter()).unwrap().mean);
        assert!(one < -0.05 && all > 0.0, "{one} {all}");
        assert_eq!(with_pairs(AHEAD, [f64::NAN, 0.0].into_iter()), None);
    }

    /// Whether the baseline is the best.
    fn back(rows: &[Row], objective: Objective, search: Option<Lead>) -> bool {
        takes_back(rows, &baseline(), objective, search).is_some()
    }

    #[test]
    fn the_choice_is_taken_back_where_the_default_is_ahead_by_all_that_is_known() {
        let after = |rounds: &[(f64, f64, f64)], search| back(&with_rounds(rounds), RATE, search);
        let [worse, better, much_worse] = [9.9, 10.1, 9.4].map(|verified| (10.0, 9.0, verified));
        assert!(!after(&[], None) && !after(&[], Some(Lead { mean: -0.01, ..AHEAD })), "no pair");
        assert!(!after(&[worse], Some(AHEAD)), "the search is as sure as one pair");
        assert!(after(&[worse; 4], Some(AHEAD)) && after(&[much_worse], Some(AHEAD)));
        assert!(!after(&[worse; 3], Some(Lead { sd: 0.002, ..AHEAD })), "the search is surer");
        assert!(!after(&[worse, better, better, worse, better], Some(AHEAD)));
        assert!(!back(&rows(&[(192, 9.0, 10.0); 8]), RATE, Some(AHEAD)), "nothing was chosen");
        // An old record says nothing of the search, and one that is damaged no more.
        for search in [None, Some(Lead { sd: 0.0, ..AHEAD }), Some(Lead { mean: f64::NAN, ..AHEAD })] {
            assert!(!after(&[worse; 5], search) && after(&[worse; 6], search) && !after(&[better; 6], search));
        }
    }

    /// Rounds with these watts of the default and of the verified one in each, of which that with more than 120 W is above the limit.
    fn with_watts(verified: f64, watts: &[(f64, f64)]) -> Vec<Row> {
        let mut rows = with_rounds(&vec![(10.0, 8.0, verified); watts.len()]);
        rows[..3].iter_mut().for_each(|row| row.passed = row.strategy == Identity::FINAL);
        for (round, &(default, best)) in rows[3..].chunks_mut(3).zip(watts) {
            round.iter_mut().for_each(|row| row.run_power_w = Some(if row.nb == BASELINE { default } else { best }));
        }
        rows
    }

    const WITHIN: Objective = Objective::GflopsWithin { power_limit_w: 120 };

    /// Its median decides, not the one round in which it keeps the limit.
    #[test]
    fn a_default_above_the_power_limit_takes_nothing_back() {
        let back =
            |default: [f64; 3]| back(&with_watts(9.0, &default.map(|watts| (watts, 100.0))), WITHIN, Some(AHEAD));
        assert!(back([100.0; 3]), "both keep it");
        assert!(back([100.0, 150.0, 100.0]) && !back([150.0, 100.0, 150.0]));
    }

    #[test]
    fn a_choice_above_the_power_limit_gives_way_to_a_default_that_keeps_it() {
        let faster = |watts: [(f64, f64); 3]| takes_back(&with_watts(11.0, &watts), &baseline(), WITHIN, Some(AHEAD));
        assert_eq!(faster([(100.0, 110.0); 3]), None);
        assert_eq!(faster([(100.0, 130.0), (100.0, 110.0), (100.0, 131.0)]), Some(TakesBack::WithinLimit(130.0)));
        assert_eq!(faster([(125.0, 130.0); 3]), None, "neither keeps it");
        assert_eq!(takes_back(&with_watts(11.0, &[(100.0, 130.0); 3]), &baseline(), RATE, Some(AHEAD)), None);
    }

    /// A ratio of those pairs alone whose runs keep the limit would be one of selected runs.
    #[test]
    fn all_pairs_below_a_power_limit_count() {
        let rows = with_watts(11.0, &[(100.0, 110.0), (100.0, 121.0), (121.0, 110.0)]);
        assert_eq!(in_turn(&rows, &verified(&rows, 1000).unwrap(), &baseline(), WITHIN).len(), 3);
    }

    /// The verified one is faster in each round and takes more power than that is worth.
    #[test]
    fn by_gflops_per_watt_the_pairs_are_those_of_it() {
        let watts = |nb: usize| if nb == BASELINE { 100.0 } else { 150.0 };
        let mut rows = with_rounds(&[(10.0, 8.0, 12.0); 3]);
        rows.iter_mut().for_each(|row| row.run_power_w = Some(watts(row.nb)));
        assert!(!back(&rows, RATE, Some(AHEAD)));
        assert!(back(&rows, Objective::GflopsPerWatt, Some(AHEAD)));
        rows.iter_mut().for_each(|row| row.run_power_w = None);
        assert!(!back(&rows, Objective::GflopsPerWatt, Some(AHEAD)), "nothing was read");
    }
}
