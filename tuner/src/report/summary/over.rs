//! Whether a session is over, rather than stopped: what is left of its budget is too little for a run that is still missing.

use objectives::real::Extent;

use crate::record::session::Session;
use crate::record::{Identity, Row};
use crate::search::budget::CLOSING_S;

/// Part of the budget after which a session that has a passed final run is over.
const OVER: f64 = 0.9;

/// Whether a session is over. Before a final run has passed, less time is left than a whole run takes as the search made them, or a pair of its
/// windows; after it, little of the budget is left, or less than such a pair takes.
pub(crate) fn is_over(session: &Session, rows: &[Row]) -> bool {
    let used_s = session.used_s(rows);
    let left_s = session.budget_s - used_s;
    let shortest_s = |extent: Extent| {
        rows.iter().filter(|row| row.passed && row.extent == extent).map(|row| row.wall_s).reduce(f64::min)
    };
    let pair_s = 2.0 * shortest_s(session.extent).unwrap_or(0.0);
    if rows.iter().any(|row| row.strategy == Identity::FINAL && row.passed) {
        return used_s > OVER * session.budget_s || left_s < pair_s;
    }
    let is_whole = session.extent == Extent::Whole;
    left_s <= shortest_s(Extent::Whole).filter(|_| is_whole).unwrap_or(pair_s).max(CLOSING_S)
}

#[cfg(test)]
mod tests {
    use super::super::tests::session;
    use super::*;
    use crate::record::arbitrary::{row, windows};

    /// Whether a session of 120 s is over of which so many are left, after a run of this time and, perhaps, a passed final run.
    fn over(left_s: f64, run: Row, wall_s: f64, has_final: bool) -> bool {
        let session = Session { elapsed_s: 120.0 - left_s, extent: run.extent, ..session() };
        let run = Row { wall_s, ..run };
        let last = Row { strategy: Identity::FINAL.into(), wall_s, ..row(1) };
        let rows: Vec<Row> = [run].into_iter().chain(has_final.then_some(last)).collect();
        is_over(&session, &rows)
    }

    #[test]
    fn a_session_without_a_final_run_is_over_where_no_time_for_one_is_left() {
        // Used to 92 %, with time for twenty whole runs; then with less than one.
        assert_eq!([9.6, 0.4].map(|left_s| over(left_s, row(0), 0.5, false)), [false, true]);
        assert_eq!([9.6, 11.0].map(|left_s| over(left_s, row(0), 10.0, false)), [true, false]);
        // By windows a pair of them.
        assert_eq!([9.6, 3.0].map(|left_s| over(left_s, windows(0, 128, 20.0), 2.0, false)), [false, true]);
        // A final run that failed is made again.
        let failed = Row { strategy: Identity::FINAL.into(), passed: false, ..row(1) };
        assert!(!is_over(&Session { elapsed_s: 110.0, ..session() }, &[row(0), failed]));
        let none = |elapsed_s: f64| is_over(&Session { elapsed_s, ..session() }, &[]);
        assert_eq!([110.0, 119.9].map(none), [false, true]);
    }

    #[test]
    fn a_session_with_a_final_run_is_over_near_its_end_or_without_time_for_a_pair() {
        assert_eq!([9.6, 20.0].map(|left_s| over(left_s, row(0), 0.5, true)), [true, false]);
        assert!(over(20.0, row(0), 11.0, true));
    }
}
