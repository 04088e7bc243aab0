//! Summaries of made-up records.

use space::result::PhaseTime;
use space::{HplParams, KernelChoice};

use super::super::{html, table};
use super::*;
use crate::record::Objective;
use crate::record::arbitrary::{row, row_of, windows};
use crate::record::lead::Lead;
use crate::record::session::SESSION_SCHEMA;

mod claims;
mod power;

pub(crate) fn session() -> Session {
    Session {
        settings: space::SettingLevels::default(),
        schema_version: SESSION_SCHEMA,
        name: "host-20261120-070000".into(),
        version: "0.1.0".into(),
        host: "host".into(),
        started_utc: "2026-11-20T07:00:00Z".into(),
        command: "hpl-tune --budget 2m".into(),
        budget_s: 120.0,
        elapsed_s: 12.5,
        seed: 1,
        engine: Session::OURS.into(),
        extent: Extent::Whole,
        strategy: "bayes".into(),
        objective: Objective::default(),
        cores: vec![0, 1],
        memory_bytes: 8 << 30,
        kernels: Some(KernelChoice::Builtin),
        ranks: None,
        threads: None,
        n: Some(1000),
        n_fixed: false,
        n_memory: Some(20_000),
        n_limited_by_budget: true,
        notes: Vec::new(),
        expert: None,
        hosts: Vec::new(),
        spares: Vec::new(),
        groups: None,
        lost: Vec::new(),
        moved_from: Vec::new(),
        mpi_job: None,
        nodes: Vec::new(),
        until_gain: None,
        left: None,
        lead_of_search: None,
        unequal: space::Unequal::default(),
        power_log: None,
        slurm_clock: None,
        gpus_found: None,
    }
}

/// Trial `number` of the candidate with this NB.
fn run(number: u64, nb: usize, rate: f64, paired_with: Option<u64>) -> Row {
    Row { trial: number, nb, rate_gflops: Some(rate), paired_with, ..row(0) }
}

fn confirm(number: u64, nb: usize, rate: f64, paired_with: Option<u64>) -> Row {
    Row { strategy: Identity::CONFIRM.into(), ..run(number, nb, rate, paired_with) }
}

fn failed(number: u64, outcome: Outcome) -> Row {
    let row = run(number, 256, 99.0, None);
    Row { outcome, passed: false, ..row }
}

#[test]
fn the_best_is_what_the_final_run_verified_not_the_luckiest() {
    let mut rows =
        vec![run(0, 128, 10.0, None), run(1, 64, 12.0, None), run(2, 192, 11.0, None), run(3, 192, 11.2, None)];
    assert_eq!(Summary::new(&session(), &rows).best.unwrap().candidate.hpl.nb, 64);
    rows.push(Row { strategy: Identity::FINAL.into(), ..run(4, 192, 11.1, None) });
    let summary = Summary::new(&session(), &rows);
    let best = summary.best.unwrap();
    assert_eq!((best.candidate.hpl.nb, best.runs, best.rate_gflops), (192, 3, 11.1));
    assert_eq!(best.range_gflops, [11.0, 11.2]);
    assert_eq!(summary.top.iter().map(|score| score.candidate.hpl.nb).collect::<Vec<_>>(), [64, 192, 128]);
}

#[test]
fn a_failed_residual_never_ranks() {
    let rows = [run(0, 128, 10.0, None), failed(1, Outcome::Residual), failed(2, Outcome::Infeasible)];
    let summary = Summary::new(&session(), &rows);
    assert_eq!(summary.best.unwrap().rate_gflops, 10.0);
    assert_eq!(summary.top.len(), 1);
    assert_eq!((summary.trials, summary.distinct_candidates), (3, 2));
    assert_eq!(summary.failures, [(Outcome::Infeasible, 1), (Outcome::Residual, 1)].into());
}

#[test]
fn a_final_run_that_failed_is_not_called_lack_of_time() {
    let baseline = HplParams::baseline(1000, 1, 2).nb;
    let mut rows = vec![Row { strategy: Identity::BASELINE.into(), ..run(0, baseline, 10.0, None) }];
    rows.push(run(1, 192, 20.0, None));
    let detail = Some("the residual is 99".to_owned());
    rows.push(Row { strategy: Identity::FINAL.into(), failure_detail: detail, ..failed(2, Outcome::Residual) });
    let mut summary = Summary::new(&session(), &rows);
    summary.closing = super::super::closing::closing(&summary, "runs/x");
    let text = table::summary(&summary, None) + &summary.closing.join("\n");
    assert!(
        text.contains("not measured: the final run, after which it is measured, failed: the residual is 99"),
        "{text}"
    );
    assert!(text.contains("Next: the final run failed, the residual is 99; the best is not verified"), "{text}");
    assert!(!text.contains("no time was left") && !text.contains("leaves time for one"), "{text}");
}

#[test]
fn the_ratio_is_that_of_the_best_at_the_target_n() {
    let baseline = HplParams::baseline(1000, 1, 2).nb;
    let mut rows = vec![Row { strategy: Identity::BASELINE.into(), ..run(0, baseline, 10.0, None) }];
    rows.push(run(1, 192, 20.0, None));
    // The final run is larger: it names the best, and is no pair.
    rows.push(Row { strategy: Identity::FINAL.into(), n: 1200, ..run(2, 192, 12.0, None) });
    rows.push(confirm(3, baseline, 10.0, None));
    rows.push(confirm(4, 192, 11.0, Some(3)));
    let summary = Summary::new(&session(), &rows);
    let ratio = summary.best_by_baseline.ratio().unwrap();
    assert_eq!((ratio.pairs, ratio.median), (1, 1.1));
    assert_eq!(summary.best_by_baseline.words(), "1.100 (1 pair, too few for an interval)");
    let text = table::summary(&summary, None);
    assert!(text.contains("Best/expert   not measured: the session chose no expert's configuration"), "{text}");
}

/// The baseline (NB 128), then what the search found (NB 192) with its final run, then rounds of baseline, expert (NB 240) and best.
fn session_with_rounds(rounds: &[(f64, f64, f64)]) -> (Session, Vec<Row>) {
    let rule = space::domain::Expert { ranks: 2, threads: 1, nb: 240 };
    let session = Session { expert: Some(crate::record::session::ExpertChoice::Rule(rule)), ..session() };
    // The same run of our engine's usual parameters.
    let as_run = |source: Row, nb: usize| {
        let hpl = HplParams { nb, ..HplParams::baseline(source.n, 1, 2) };
        let candidate = Candidate { hpl, engine: source.candidate().engine };
        let Row { strategy, paired_with, rate_gflops, trial, .. } = source;
        Row { strategy, paired_with, rate_gflops, ..row_of(trial, &candidate) }
    };
    let mut rows = vec![as_run(Row { strategy: Identity::BASELINE.into(), ..run(0, 128, 10.0, None) }, 128)];
    rows.push(as_run(run(1, 192, 20.0, None), 192));
    rows.push(as_run(confirm(2, 128, 10.0, None), 128));
    rows.push(as_run(confirm(3, 192, 13.0, Some(2)), 192));
    rows.push(as_run(Row { strategy: Identity::FINAL.into(), n: 1200, ..run(4, 192, 12.0, None) }, 192));
    for (i, &(baseline, expert, best)) in rounds.iter().enumerate() {
        let first = 5 + 3 * i as u64;
        rows.push(as_run(confirm(first, 128, baseline, None), 128));
        let expert = Row { strategy: Identity::EXPERT.into(), ..run(first + 1, 240, expert, Some(first)) };
        rows.push(as_run(expert, 240));
        rows.push(as_run(confirm(first + 2, 192, best, Some(first)), 192));
    }
    (session, rows)
}

#[test]
fn pairs_after_the_choice_are_reported_not_runs_before_it() {
    let (session, rows) = session_with_rounds(&[(10.0, 8.0, 11.0); 6]);
    let summary = Summary::new(&session, &rows);
    assert_eq!(summary.best.as_ref().unwrap().candidate.hpl.nb, 192);
    assert_eq!(summary.best_by_baseline.words(), "1.100 (1.100-1.100, 96.9 %, 6 pairs)");
    assert_eq!(summary.best_by_expert.words(), "1.375 (1.375-1.375, 96.9 %, 6 pairs)");
    assert_eq!(summary.expert.as_ref().map(|expert| (expert.candidate.hpl.nb, expert.runs)), Some((240, 6)));
    let json: serde_json::Value = serde_json::from_str(&summary.json().unwrap()).unwrap();
    assert_eq!(json["best_by_baseline"]["pairs"], 6);
    assert_eq!(json["best_by_expert"]["level"], 0.96875);
    // Without rounds nothing is claimed.
    let summary = Summary::new(&session, &rows[..5]);
    assert_eq!(summary.best_by_baseline.words(), "not measured: the session has not come to it");
    let session = Session { elapsed_s: session.budget_s, ..session };
    let summary = Summary::new(&session, &rows[..5]);
    assert_eq!(summary.best_by_baseline.words(), "not measured: no time was left for pairs of the two");
    assert_eq!(summary.best_by_expert.words(), "not measured: no time was left after the final run");
    let reason = crate::record::session::ExpertChoice::None { reason: "the vendor of the processor is unknown".into() };
    let unknown = Session { expert: Some(reason), ..session };
    let summary = Summary::new(&unknown, &rows);
    for text in [table::summary(&summary, None), html::ReportPage::new(&summary, &rows).html(), summary.json().unwrap()]
    {
        assert!(text.contains("the vendor of the processor is unknown"), "{text}");
    }
}

#[test]
fn a_choice_that_the_pairs_after_it_take_back_gives_way_to_the_default() {
    let (session, mut rows) = session_with_rounds(&[(10.0, 8.0, 9.9); 6]);
    let summary = Summary::new(&session, &rows);
    let best = summary.best.as_ref().unwrap();
    assert_eq!((best.candidate.hpl.nb, best.candidate.hpl.n), (128, 1000));
    assert_eq!(summary.best_by_baseline.words(), "1: the best is the default");
    assert_eq!(summary.best_by_expert.ratio().unwrap().median, 1.25);
    let text = table::summary(&summary, None);
    assert!(
        text.contains("is 0.990 (0.990-0.990, 96.9 %, 6 pairs) of the default") && text.contains("default is best"),
        "{text}"
    );
    // The final run is no longer that of what is exported, and the table says so.
    assert!(summary.verified_run().is_none() && text.contains("of the candidate that was chosen before"), "{text}");
    assert_eq!(summary.shown_trial(), Some(20));
    // Once the default has a final run of its own, it is that.
    rows.push(Row { strategy: Identity::FINAL.into(), trial: 23, n: 1100, paired_with: None, ..rows[0].clone() });
    let summary = Summary::new(&session, &rows);
    assert_eq!((summary.shown_trial(), summary.best.unwrap().candidate.hpl.nb), (Some(23), 128));
    // Against a search that is surer than two pairs they are too few, and the summary says so.
    let (session, rows) = session_with_rounds(&[(10.0, 8.0, 9.9); 2]);
    let ahead = Lead { mean: 0.03, sd: 0.005, pair_sd: 0.015 };
    let summary = Summary::new(&Session { lead_of_search: Some(ahead), ..session.clone() }, &rows);
    let text = table::summary(&summary, None);
    assert_eq!((summary.best.unwrap().candidate.hpl.nb, summary.taken_back), (192, None));
    let said = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let why = "is 0.990 (2 pairs, too few for an interval) of the default; the runs of the search had it 3.0 % ahead (standard deviation 0.5 %); all in all it is";
    assert!(said.contains(why), "{text}");
    let summary = Summary::new(&Session { lead_of_search: Some(Lead { sd: 0.05, ..ahead }), ..session }, &rows);
    let said = crate::report::sentences::choice(&summary).join(" ");
    assert!(summary.taken_back.is_some() && said.contains("the runs of the search had it 3.0 % ahead"), "{said}");
    assert!(said.contains("all in all it is") && said.contains("the default is best"), "{said}");
}

#[test]
fn where_only_windows_have_seen_the_default_what_was_verified_stays_and_says_so() {
    let (session, rows) = session_with_rounds(&[(10.0, 8.0, 9.9); 6]);
    let session = Session { extent: Extent::Windows, ..session };
    let as_windows = |row: Row| match row.strategy.as_str() {
        Identity::FINAL => row,
        _ => Row { extent: Extent::Windows, estimated_rate_gflops: row.rate_gflops, rate_gflops: None, ..row },
    };
    let mut rows: Vec<Row> = rows.into_iter().map(as_windows).collect();
    let summary = Summary::new(&session, &rows);
    assert_eq!(summary.best.as_ref().unwrap().candidate.hpl.nb, 192);
    assert_eq!(summary.best_by_baseline.ratio().unwrap().median, 0.99);
    let text = table::summary(&summary, None);
    assert!(text.contains("no whole run was made") && text.contains("in the pairs by windows after"), "{text}");
    let own =
        Row { extent: Extent::Whole, n: 800, rate_gflops: Some(9.0), estimated_rate_gflops: None, ..rows[0].clone() };
    rows.push(Row { strategy: Identity::FINAL.into(), trial: 23, ..own });
    let summary = Summary::new(&session, &rows);
    let best = summary.best.as_ref().unwrap();
    assert_eq!((best.candidate.hpl.nb, best.candidate.hpl.n, best.rate_gflops), (128, 800, 9.0));
    assert_eq!(summary.shown_trial(), Some(23));
    let text = table::summary(&summary, None);
    assert!(text.contains("of the default in pairs by windows after it"), "{text}");
}

#[test]
fn drift_is_later_by_earlier_runs_in_pairs_that_share_none() {
    let run = |trial, rate| confirm(trial, 128, rate, None);
    let rows = [run(0, 10.0), run(1, 20.0), run(2, 9.0), run(3, 18.0)];
    let drift = Summary::new(&session(), &rows).drift.unwrap();
    assert_eq!((drift.median, drift.pairs), (0.9, 2));
    // The middle one of five is in no pair.
    let rows = [run(0, 10.0), run(1, 20.0), run(2, 99.0), run(3, 9.0), run(4, 18.0)];
    assert_eq!(Summary::new(&session(), &rows).drift.unwrap(), drift);
    assert_eq!(Summary::new(&session(), &rows[..1]).drift, None);
}

/// What the search ran again is what had luck at first: without that run there is no drift where the machine has none.
#[test]
fn the_run_that_made_the_search_repeat_a_candidate_is_no_sign_of_drift() {
    let lucky = [run(0, 128, 12.0, None), run(1, 128, 10.0, None), run(2, 128, 10.0, None)];
    assert_eq!(Summary::new(&session(), &lucky).drift.unwrap().median, 1.0);
    assert_eq!(Summary::new(&session(), &lucky[..2]).drift, None);
}

#[test]
fn where_the_machine_changed_its_speed_no_dimension_is_named() {
    let explored = |trial: u64| Row {
        nb: [64, 192, 256][trial as usize % 3],
        nbmin: [4, 8, 16, 32][trial as usize / 3 % 4],
        ..run(trial, 64, [20.0, 25.0, 22.0][trial as usize % 3], None)
    };
    let mut rows: Vec<Row> = (0..12).map(explored).collect();
    let summary = Summary::new(&session(), &rows);
    assert_eq!(summary.importance_not_judged, None);
    let text = table::summary(&summary, None);
    assert!(text.contains("explained by NB 100 % (chance: up to ") && !text.contains("NBMIN 0 %"), "{text}");
    rows.push(confirm(12, 128, 10.0, None));
    rows.push(confirm(13, 128, 9.0, None));
    let summary = Summary::new(&session(), &rows);
    assert!(summary.importance.is_empty());
    for text in [table::summary(&summary, None), html::ReportPage::new(&summary, &rows).html()] {
        assert!(text.to_lowercase().contains("not judged: the machine"), "{text}");
    }
}

/// One tick of a trial of 0.1 s is a tenth of it.
#[test]
fn time_that_was_stolen_of_short_trials_is_not_told() {
    let most = |wall_s: f64| Summary::new(&session(), &[Row { wall_s, steal_share: Some(0.1), ..row(0) }]).most_stolen;
    assert_eq!([0.9, 1.0].map(most), [None, Some(0.1)]);
}

#[test]
fn phases_are_means_over_ranks() {
    let phase = |rank, fact_s| PhaseTime { rank, fact_s, ..PhaseTime::default() };
    let totals = PhaseTotals::new(3, &[phase(0, 1.0), phase(1, 3.0), phase(0, 1.0), phase(1, 1.0)]).unwrap();
    assert_eq!((totals.fact_s, totals.trial), (3.0, 3));
    assert_eq!(PhaseTotals::new(3, &[]), None);
    // Of nothing there are no parts.
    for nothing in [0.0, f64::NAN, f64::INFINITY] {
        assert_eq!(PhaseTotals::new(3, &[phase(0, nothing)]), None);
    }
}

#[test]
fn where_windows_search_the_whole_run_is_measured_and_the_target_estimated() {
    let session = Session { extent: Extent::Windows, ..session() };
    let baseline = HplParams::baseline(1000, 1, 2).nb;
    let rows = [
        Row { strategy: Identity::BASELINE.into(), ..windows(0, baseline, 20.0) },
        windows(1, 192, 22.0),
        Row { strategy: Identity::CONFIRM.into(), ..windows(2, baseline, 20.0) },
        Row { strategy: Identity::CONFIRM.into(), paired_with: Some(2), ..windows(3, 192, 22.4) },
        Row { strategy: Identity::FINAL.into(), n: 800, ..run(4, 192, 19.0, None) },
    ];
    let summary = Summary::new(&session, &rows);
    let best = summary.best.as_ref().unwrap();
    assert_eq!((best.candidate.hpl.n, best.rate_gflops, best.extent), (800, 19.0, Extent::Whole));
    let estimate = summary.estimate.as_ref().unwrap();
    assert_eq!((estimate.candidate.hpl.n, &estimate.trials), (1000, &vec![1, 3]));
    assert!((22.0..22.4).contains(&estimate.estimated_rate_gflops), "{estimate:?}");
    assert!((0.01..0.03).contains(&estimate.estimated_sd), "{estimate:?}");
    assert_eq!(summary.baseline.as_ref().unwrap().extent, Extent::Windows);
    assert_eq!(summary.top[0].candidate.hpl.nb, 192);
    let text = table::summary(&summary, None);
    assert!(text.contains("19.00 GFLOP/s at N = 800") && text.contains("at N = 1000"), "{text}");
}

#[test]
fn the_final_run_is_set_beside_the_windows_before_it() {
    let last = Row { strategy: Identity::FINAL.into(), wall_s: 60.0, clock_hz: Some(2.5e9), ..run(3, 192, 21.0, None) };
    let clocked = |row| Row { wall_s: 4.0, clock_hz: Some(3e9), ..row };
    let mut rows =
        vec![clocked(windows(0, 128, 20.0)), clocked(windows(1, 192, 22.0)), clocked(windows(2, 192, 22.0)), last];
    let beside = |rows: &[Row]| Summary::new(&session(), rows).final_by_estimate;
    let slower = beside(&rows).unwrap();
    assert!((slower.ratio - 21.0 / 22.0).abs() < 1e-12 && slower.estimate.trials == [1, 2], "{slower:?}");
    assert_eq!((slower.final_s, slower.windows_s, slower.clock_hz), (60.0, 4.0, Some([3e9, 2.5e9])));
    // What comes after it is not what was expected.
    rows.push(windows(4, 192, 30.0));
    rows.push(run(5, 128, 5.0, None));
    assert_eq!(beside(&rows), Some(slower));
    rows[3].rate_gflops = Some(15.0);
    let summary = Summary::new(&session(), &rows);
    for text in [table::summary(&summary, None), html::ReportPage::new(&summary, &rows).html()] {
        assert!(text.contains("0.682") && text.contains("clock 3.00 and 2.50 GHz; long runs are slower"), "{text}");
    }
    rows[3].n = 800;
    assert_eq!(beside(&rows), None, "another N");
    assert_eq!(beside(&[run(0, 192, 22.0, None), rows[3].clone()]), None, "no windows");
}

#[test]
fn nothing_recorded_is_no_best_and_the_json_says_its_version() {
    let summary = Summary::new(&session(), &[]);
    assert_eq!(
        (summary.best.clone(), summary.best_by_baseline.words().as_str()),
        (None, "not measured: no trial has passed")
    );
    let json: serde_json::Value = serde_json::from_str(&summary.json().unwrap()).unwrap();
    assert_eq!(json["schema_version"], REPORT_SCHEMA);
    assert!(json["best"].is_null());
    let full = Summary::new(&session(), &[run(0, 64, 2.0, None), failed(1, Outcome::TimedOut)]).json().unwrap();
    let full: serde_json::Value = serde_json::from_str(&full).unwrap();
    assert_eq!(full["best"]["candidate"]["engine"]["kernels"], "builtin");
    let foreign = Session { engine: "netlib".into(), kernels: None, ..session() };
    let other: serde_json::Value =
        serde_json::from_str(&Summary::new(&foreign, &[run(0, 64, 2.0, None)]).json().unwrap()).unwrap();
    assert!(other["best"]["candidate"]["engine"]["kernels"].is_null(), "{other}");
    assert_eq!(other["best"]["candidate"]["engine"]["threads"], 1);
    assert_eq!((&full["best"]["rate_gflops"], &full["failures"]["timed-out"]), (&2.0.into(), &1.into()));
}

/// The final run had time for a smaller N only: the line of the estimate at the N of the search is followed by that N.
#[test]
fn the_parameters_below_an_estimate_have_its_n() {
    let last = Row { strategy: Identity::FINAL.into(), n: 800, ..run(2, 192, 12.0, None) };
    let rows = [windows(0, 192, 20.0), windows(1, 192, 20.4), last];
    let session = Session { extent: Extent::Windows, ..session() };
    let text = table::summary(&Summary::new(&session, &rows), None);
    let mut lines = text.lines().skip_while(|line| !line.starts_with("Best "));
    let (first, second) = (lines.next().unwrap(), lines.next().unwrap());
    assert!(first.contains("at N = 1000, by windows of 2 trials"), "{text}");
    assert!(second.trim_start().starts_with("N 1000  NB 192"), "{text}");
    assert!(text.contains("at N = 800, residual"), "{text}");
}
