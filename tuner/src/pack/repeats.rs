//! Runs of the packed candidate: its repeats, with the exact interval of their median.

use serde::{Deserialize, Serialize};
use space::Candidate;

use crate::record::{Identity, Row};
use crate::report::stats::paired_ratio;

/// The passed whole runs of a candidate at one order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Repeats {
    /// Order N.
    pub n: usize,
    /// Their number.
    pub runs: usize,
    /// Median of their rates, in GFLOP/s.
    pub median_gflops: f64,
    /// Lowest and highest of them.
    pub range_gflops: [f64; 2],
    /// Exact interval of the median; `None` for fewer than six runs.
    pub interval_gflops: Option<[f64; 2]>,
    /// Its level.
    pub level: Option<f64>,
}

/// The runs of `candidate` whatever their order, each order by itself, the largest first; of a session that has chosen, those from the
/// final run on: the ones before it made it the best, so their luck is in them.
pub fn repeats(rows: &[Row], candidate: &Candidate) -> Vec<Repeats> {
    let chosen = rows.iter().position(|row| row.strategy == Identity::FINAL && row.passed);
    let runs = runs(&rows[chosen.unwrap_or(0)..], candidate);
    let mut orders: Vec<usize> = runs.iter().map(|row| row.n).collect();
    orders.sort_unstable_by(|a, b| b.cmp(a));
    orders.dedup();
    let of_order = |n: usize| {
        let rates: Vec<f64> = runs.iter().filter(|row| row.n == n).filter_map(|row| row.score_gflops()).collect();
        // A rate by one: the exact interval of a median of ratios is that of a median.
        let by_one: Vec<(f64, f64)> = rates.iter().map(|rate| (*rate, 1.0)).collect();
        let ratio = paired_ratio(&by_one)?;
        Some(Repeats {
            n,
            runs: rates.len(),
            median_gflops: ratio.median,
            range_gflops: [rates.iter().copied().reduce(f64::min)?, rates.iter().copied().reduce(f64::max)?],
            interval_gflops: ratio.interval,
            level: ratio.level,
        })
    };
    orders.into_iter().filter_map(of_order).collect()
}

/// Passed whole runs of `candidate`, whatever their order, as they were run.
pub fn runs<'a>(rows: &'a [Row], candidate: &Candidate) -> Vec<&'a Row> {
    let same = |row: &&Row| row.score_gflops().is_some() && row.candidate().at_n(candidate.hpl.n) == *candidate;
    rows.iter().filter(same).collect()
}

/// `repeats.csv`: each of these runs.
///
/// # Errors
/// None that a text in memory can have.
pub fn table(rows: &[Row], candidate: &Candidate) -> Result<Vec<u8>, csv::Error> {
    let mut table = csv::Writer::from_writer(Vec::new());
    table.write_record([
        "trial",
        "started_utc",
        "strategy",
        "n",
        "time_s",
        "rate_gflops",
        "residual",
        "clock_hz",
        "steal_share",
    ])?;
    let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    for row in runs(rows, candidate) {
        table.write_record([
            row.trial.to_string(),
            row.started_utc.clone(),
            row.strategy.clone(),
            row.n.to_string(),
            number(row.time_s),
            number(row.rate_gflops),
            number(row.residual),
            number(row.clock_hz),
            number(row.steal_share),
        ])?;
    }
    table.into_inner().map_err(|error| error.into_error().into())
}

/// N½ as a run of the session shows it: the order of a passed whole run of the packed configuration whose rate is
/// within 2 % of half of `rmax_gflops`. It is measured or missing, never interpolated.
pub fn n_half(rows: &[Row], packed: &Row, rmax_gflops: f64) -> Option<(usize, f64)> {
    let like = |row: &&Row| row.n < packed.n && row.candidate().at_n(packed.n) == packed.candidate();
    let off = |rate: f64| (rate / (0.5 * rmax_gflops) - 1.0).abs();
    let rates = rows.iter().filter(like).filter_map(|row| Some((row.n, row.score_gflops()?)));
    rates.filter(|(_, rate)| off(*rate) <= HALF).min_by(|a, b| off(a.1).total_cmp(&off(b.1)))
}

/// How far the rate of a run may be from half of Rmax to show N½, as a share.
const HALF: f64 = 0.02;

#[cfg(test)]
mod tests {
    use objectives::real::Extent;

    use super::*;
    use crate::record::arbitrary::row;

    fn run(trial: u64, n: usize, rate: f64) -> Row {
        Row { trial, n, rate_gflops: Some(rate), ..row(0) }
    }

    #[test]
    fn repeats_are_whole_runs_of_the_candidate_by_order() {
        let mut rows: Vec<Row> = (0..6).map(|i| run(i, 1000, 20.0 + i as f64)).collect();
        rows.push(run(6, 2000, 30.0));
        rows.push(Row { extent: Extent::Windows, rate_gflops: None, ..run(7, 2000, 0.0) });
        rows.push(Row { passed: false, ..run(8, 1000, 99.0) });
        rows.push(Row { nb: 999, ..run(9, 1000, 99.0) });
        let found = repeats(&rows, &rows[6].candidate());
        assert_eq!((found[0].n, found[0].runs, found[0].interval_gflops), (2000, 1, None));
        assert_eq!((found[1].n, found[1].runs, found[1].median_gflops), (1000, 6, 22.5));
        // Six values: the interval of the median by the sign test is from the lowest to the highest, at 96.875 %.
        assert_eq!((found[1].interval_gflops, found[1].level), (Some([20.0, 25.0]), Some(0.96875)));
        let table = String::from_utf8(table(&rows, &rows[0].candidate()).unwrap()).unwrap();
        assert_eq!(table.lines().count(), 1 + 7, "{table}");
    }

    #[test]
    fn runs_that_made_the_candidate_the_best_are_no_repeats() {
        let mut rows: Vec<Row> = (0..6).map(|i| run(i, 1000, 29.0)).collect();
        rows.push(Row { strategy: Identity::FINAL.into(), ..run(6, 2000, 30.0) });
        rows.push(run(7, 1000, 25.0));
        let found = repeats(&rows, &rows[0].candidate());
        let all: Vec<_> = found.iter().map(|found| (found.n, found.runs, found.median_gflops)).collect();
        assert_eq!(all, [(2000, 1, 30.0), (1000, 1, 25.0)]);
    }

    #[test]
    fn half_of_rmax_is_measured_or_missing() {
        let packed = run(9, 4000, 40.0);
        let rows = [run(0, 500, 15.0), run(1, 800, 20.3), run(2, 900, 20.1), packed.clone()];
        assert_eq!(n_half(&rows, &packed, 40.0), Some((900, 20.1)));
        assert_eq!(n_half(&rows[..1], &packed, 40.0), None);
        let other = [Row { nb: 7, ..run(1, 800, 20.0) }];
        assert_eq!(n_half(&other, &packed, 40.0), None);
    }
}
