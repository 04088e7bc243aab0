//! What summaries of made-up records say of the choice.

use super::*;

/// These rows with some more right before the final run.
fn before_the_choice(mut rows: Vec<Row>, more: impl IntoIterator<Item = Row>) -> Vec<Row> {
    let after = rows.split_off(rows.iter().position(|row| row.strategy == Identity::FINAL).unwrap());
    rows.extend(more);
    rows.extend(after);
    rows
}

#[test]
fn a_higher_median_of_another_candidate_is_explained() {
    let (session, rows) = session_with_rounds(&[(10.0, 8.0, 11.0); 6]);
    assert_eq!(Summary::new(&session, &rows).higher, None);
    let other = Row { nb: 64, rate_gflops: Some(30.0), ..rows[1].clone() };
    let rows = before_the_choice(rows, [23, 24].map(|trial| Row { trial, strategy: "race".into(), ..other.clone() }));
    let summary = Summary::new(&session, &rows);
    assert_eq!(summary.higher.as_ref().map(|higher| (higher.score.candidate.hpl.nb, higher.score.runs)), Some((64, 2)));
    let text = table::summary(&summary, None);
    let said = "another candidate has the higher median of unpaired runs (30.00, 2 runs; the best 20.00, 1 run); in pairs, run in \
        turn, the best is 1.100 (1.100-1.100, 96.9 %, 6 pairs) of the default";
    assert!(text.contains(said), "{text}");
    let by_windows = Summary { session: Session { extent: Extent::Windows, ..session.clone() }, ..summary };
    assert!(table::summary(&by_windows, None).contains("in pairs by windows, run in turn, the best is 1.100"));
    let (passed, outcome) = (false, Outcome::Crashed);
    let failed = [25, 26].map(|trial| Row { trial, passed, outcome, rate_gflops: None, ..other.clone() });
    let text = table::summary(&Summary::new(&session, &before_the_choice(rows, failed)), None);
    assert!(text.contains("unpaired runs (30.00, 2 runs, 2 failed; the best"), "{text}");
}

/// The median of all runs of the best, most of them of pairs, was set beside those of the search.
#[test]
fn runs_of_pairs_and_those_after_the_choice_are_no_unpaired_ones() {
    let (session, rows) = session_with_rounds(&[(10.0, 8.0, 11.0); 6]);
    let other = |rate: f64| Row { trial: 23, nb: 64, rate_gflops: Some(rate), ..rows[1].clone() };
    let higher = |rows: &[Row]| Summary::new(&session, rows).higher.map(|higher| higher.score.rate_gflops);
    let before = |row: Row| higher(&before_the_choice(rows.clone(), [row]));
    assert_eq!(before(other(15.0)), None, "the run of the best that is in no pair had 20");
    assert_eq!(before(other(30.0)), Some(30.0));
    assert_eq!(before(Row { reference_trial: Some(0), ..other(30.0) }), None, "a pair of the search");
    assert_eq!(higher(&[rows.clone(), vec![other(30.0)]].concat()), None, "after the choice");
}

/// The session was said not to have come to it.
#[test]
fn an_expert_in_turn_with_a_choice_that_was_taken_back_is_not_compared_with_the_default() {
    let (session, mut rows) = session_with_rounds(&[]);
    let pair = |trial: u64, nb: usize, reference_trial: u64, ratio: f64| Row {
        trial,
        nb,
        reference_trial: Some(reference_trial),
        reference_rate_gflops: Some(10.0),
        log_ratio: Some(ratio.ln()),
        ..rows[1].clone()
    };
    let round = |round: u64| {
        let best = Row { strategy: Identity::CONFIRM.into(), ..pair(5 + 2 * round, 192, 0, 0.9) };
        let expert = pair(6 + 2 * round, 240, 1, 0.8);
        let expert = Row { strategy: Identity::EXPERT.into(), paired_with: Some(best.trial), ..expert };
        [best, expert]
    };
    let rounds: Vec<Row> = (0..6).flat_map(round).collect();
    rows.extend(rounds);
    let summary = Summary::new(&session, &rows);
    assert!(summary.default_is_back(), "{:?}", summary.taken_back);
    let said = "not measured: it ran in turn with the candidate that was chosen before, not with the default";
    assert_eq!(summary.best_by_expert.words(), said);
}

/// The best counted twice where its final run had time for a smaller N, or was larger.
#[test]
fn a_final_run_of_another_n_is_no_other_candidate() {
    let (session, rows) = session_with_rounds(&[(10.0, 8.0, 11.0)]);
    assert!(rows.iter().any(|row| row.n != 1000));
    assert_eq!(Summary::new(&session, &rows).distinct_candidates, 3, "default, expert and best");
}
