//! Whole sessions on a made-up machine: runs cost what the model says, their rates are given by a function.

use objectives::predict::Predictor;
use objectives::real::PairRule;
use space::dims::Space;
use space::domain::{DomainSpec, HplDomain, default_candidate};
use space::machine::{Host, Machine, Node, Rate, RateKernel};
use space::{KernelChoice, Unequal};

use super::*;
use crate::record::arbitrary::row_of;
use crate::search::model_prior;
use crate::search::rounds;
use crate::search::strategy::bayes::Bayes;

const N: usize = 4000;
pub(crate) const TOTAL_S: f64 = 60.0;

/// What predicts for [`machine`].
pub(crate) fn predictor() -> Predictor {
    Predictor::new(&machine()).unwrap()
}

/// Two cores of 20 GFLOP/s.
pub(crate) fn machine() -> Machine {
    let rate = |kernel: RateKernel, sizes: usize| {
        let mut coefficients = vec![0.0; kernel.coefficient_count()];
        coefficients[0] = 1e-10;
        let (origin, date) = ("made up".to_owned(), "2026-11-20".to_owned());
        let valid = vec![[1.0, 1e5]; sizes];
        Rate { kernel, threads: 1, coefficients, valid, spread: 0.0, fit_error: 0.0, date, origin }
    };
    let kernels = RateKernel::ALL;
    let rates = kernels.iter().flat_map(|&kernel| {
        let one = rate(kernel, kernel.size_count());
        let mut two = Rate { threads: 2, ..one.clone() };
        two.coefficients[0] /= 2.0;
        [one, two]
    });
    let [name, cpu, origin, kernels] = ["host", "cpu", "made up", "builtin"].map(str::to_owned);
    let (memory_bytes, reserved_bytes) = (8 << 30, 0);
    let node = Node {
        name: "host".into(),
        count: 1,
        cores: 2,
        memory_bytes,
        reserved_bytes,
        peak_gflops: 40.0,
        ..Node::default()
    };
    let host = Host { name, cpu, origin, kernels };
    Machine { host, nodes: vec![node], rates: rates.collect(), ..Machine::default() }
}

pub(crate) fn spec() -> DomainSpec {
    let kernels = KernelChoice::Builtin;
    DomainSpec {
        n: N,
        cores: 2,
        memory_bytes: 8 << 30,
        kernels,
        ranks: None,
        threads: None,
        most_threads: None,
        common_cores: None,
        unequal: Unequal::default(),
    }
}

/// Runs a session in which a candidate reaches `rate` GFLOP/s, `None` for one that fails; its rows with their plans.
pub(super) fn session(rate: impl Fn(&Candidate) -> Option<f64>) -> Vec<(PlannedTrial, Row)> {
    session_by(Extent::Whole, N, rate)
}

/// The same, by whole runs or by windows, at this N.
pub(crate) fn session_by(
    extent: Extent,
    n: usize,
    rate: impl Fn(&Candidate) -> Option<f64>,
) -> Vec<(PlannedTrial, Row)> {
    session_until(None, extent, n, rate)
}

/// The same with a search that ends when no more than `until_gain` is left.
fn session_until(
    until_gain: Option<f64>,
    extent: Extent,
    n: usize,
    rate: impl Fn(&Candidate) -> Option<f64>,
) -> Vec<(PlannedTrial, Row)> {
    let predictor = predictor();
    let spec = DomainSpec { n, ..spec() };
    let domain = HplDomain::new(&spec).unwrap();
    let (prior, baseline) = (model_prior::table(&domain, &predictor, extent), default_candidate(&spec));
    let mut done: Vec<(PlannedTrial, Row)> = Vec::new();
    let mut left_s = TOTAL_S;
    let mut last = false;
    while !last {
        let rows: Vec<Row> = done.iter().map(|(_, row)| row.clone()).collect();
        let history = History::from_rows(&rows, &domain, Objective::Gflops);
        let mut view = View {
            setup: Setup {
                objective: Objective::Gflops,
                pairs: PairRule::Never,
                domain: &domain,
                strategy: &Bayes,
                designed: false,
                baseline: &baseline,
                expert: None,
                extent,
                seed: 1,
                until_gain,
                n_is_chosen: false,
                earlier_rows: 0,
            },
            prior: &prior,
            rows: &rows,
            interrupted: &[],
            history: &history,
            cost: &CostEstimate::new(&rows, &predictor),
            lead_of_search: None,
            left_s,
            total_s: TOTAL_S,
        };
        view.left_s -= view.final_reserve_s();
        let next = view.next();
        assert_eq!(next, view.next(), "the record decides, nothing else");
        last = next.is_none();
        let Some(mut plan) = next.or_else(|| view.final_plan()) else { break };
        if last {
            // As the driver does: the largest N that fits.
            while view.cost.at_most(&plan.candidate, Extent::Whole) > left_s / f64::from(view.final_runs()) {
                plan.candidate.hpl.n -= 256;
            }
        }
        let wall_s = crate::search::cost::model_s(&predictor, &plan.candidate, plan.extent);
        left_s -= wall_s;
        assert!(left_s >= 0.0, "overrun by {plan:?}");
        let number = rows.len() as u64;
        let measured = rate(&plan.candidate);
        let row = Row {
            strategy: plan.strategy.clone(),
            paired_with: plan.paired_with,
            repeat_of: plan.repeat_of,
            passed: measured.is_some(),
            outcome: if measured.is_some() { crate::record::Outcome::Passed } else { crate::record::Outcome::Crashed },
            rate_gflops: measured.filter(|_| plan.extent == Extent::Whole),
            estimated_rate_gflops: measured.filter(|_| plan.extent == Extent::Windows),
            extent: plan.extent,
            wall_s,
            ..row_of(number, &plan.candidate)
        };
        done.push((plan, row));
    }
    done
}

fn of<'a>(session: &'a [(PlannedTrial, Row)], strategy: &str) -> Vec<&'a Candidate> {
    session.iter().filter(|(plan, _)| plan.strategy == strategy).map(|(plan, _)| &plan.candidate).collect()
}

#[test]
fn a_search_that_may_end_early_does_and_its_leader_was_run_again() {
    let rate = |c: &Candidate| Some(30.0 - (c.hpl.nb as f64 - 256.0).abs() / 100.0);
    let searched = |until_gain| session_until(until_gain, Extent::Whole, 2500, rate);
    let (usual, done) = (searched(None), searched(Some(0.3)));
    let seconds = |rows: &[(PlannedTrial, Row)]| rows.iter().map(|(_, row)| row.wall_s).sum::<f64>();
    assert!(seconds(&done) < 0.7 * seconds(&usual), "{} of {} s", seconds(&done), seconds(&usual));
    let best = &done.last().unwrap().0;
    assert_eq!(best.strategy, Identity::FINAL);
    assert!(best.candidate.hpl.nb.abs_diff(256) <= 32, "{best:?}");
    assert!(done.iter().filter(|(plan, _)| plan.candidate == best.candidate).count() >= 4);
    // What is left is too much for this one.
    assert_eq!(searched(Some(1e-6)).len(), usual.len());
}

#[test]
fn a_session_searches_until_the_final_run_and_ends_with_the_best() {
    // Larger NB is better than the baseline's 128, up to 256.
    let done = session(|c| Some(30.0 - (c.hpl.nb as f64 - 256.0).abs() / 100.0));
    assert_eq!(done[0].0.strategy, Identity::BASELINE);
    let (last, searched) = done.split_last().unwrap();
    assert_eq!(last.0.strategy, Identity::FINAL);
    assert!(searched[1..].iter().all(|(plan, _)| plan.strategy == "bayes"), "{searched:?}");
    let tried_best = done.iter().filter_map(|(_, row)| row.rate_gflops).fold(0.0, f64::max);
    assert_eq!(last.1.rate_gflops, Some(tried_best));
    // But for the rounds after the final run, which have a quarter of it at most, the budget is used.
    let used_s: f64 = done.iter().map(|(_, row)| row.wall_s).sum();
    assert!(used_s > 0.75 * TOTAL_S - 2.0 * last.1.wall_s && used_s < TOTAL_S - 4.0 * last.1.wall_s, "{used_s} s used");
}

#[test]
fn the_expert_s_configuration_is_run_right_after_the_default_and_once_where_it_fails() {
    let spec = spec();
    let [expert, elsewhere] = [224, 225].map(|nb| {
        let usual = default_candidate(&spec);
        Candidate { hpl: space::HplParams { nb, ..usual.hpl }, ..usual }
    });
    let next = |rows: &[Row], expert: &Candidate| {
        look(rows, 30.0, |view| View { setup: Setup { expert: Some(expert), ..view.setup }, ..*view }.next()).unwrap()
    };
    let usual = Row { strategy: Identity::BASELINE.into(), ..row_of(0, &default_candidate(&spec)) };
    let second = next(std::slice::from_ref(&usual), &expert);
    assert_eq!((second.strategy.as_str(), &second.candidate), (Identity::EXPERT, &expert));
    assert_ne!(next(std::slice::from_ref(&usual), &elsewhere).strategy, Identity::EXPERT, "not among what is searched");
    let failed = Row { strategy: Identity::EXPERT.into(), passed: false, ..row_of(1, &expert) };
    assert_ne!(next(&[usual, failed], &expert).strategy, Identity::EXPERT);
}

/// The final run has the N that the user has chosen where that leaves time for a search.
#[test]
fn more_time_is_kept_for_the_final_run_of_a_chosen_n() {
    let kept = |whole_s: f64, chosen| super::kept_for_final_s([whole_s, whole_s + 1.0], 100.0, chosen);
    assert_eq!([10.0, 40.0, 60.0].map(|whole_s| kept(whole_s, false)), [11.0, 15.0, 15.0]);
    assert_eq!([10.0, 40.0, 60.0].map(|whole_s| kept(whole_s, true)), [11.0, 41.0, 15.0]);
}

#[test]
fn where_runs_are_dear_windows_search_and_whole_runs_confirm() {
    // A whole run takes 7.4 s of 60 and just fits a tenth of the budget no more; windows take a tenth of that.
    let best = |c: &Candidate| Some(30.0 - (c.hpl.nb as f64 - 256.0).abs() / 100.0);
    let done = session_by(Extent::Windows, 8000, best);
    let (last, searched) = done.split_last().unwrap();
    assert_eq!((last.0.strategy.as_str(), last.0.extent), (Identity::FINAL, Extent::Whole));
    assert!(searched.len() > 20, "{} trials", searched.len());
    for (plan, row) in searched {
        let whole = plan.strategy == Identity::PROMOTE;
        assert_eq!(row.extent, if whole { Extent::Whole } else { Extent::Windows }, "{plan:?}");
        assert_eq!(row.score_gflops().is_some(), whole);
    }
    let seen = searched.iter().filter_map(|(_, row)| row.comparable_rate_gflops()).fold(0.0, f64::max);
    assert!(best(&last.0.candidate).unwrap() > seen - 0.2, "{:?}", last.0.candidate);
    // At 5000 a whole run takes 1.9 s: the leaders get one.
    let done = session_by(Extent::Windows, 5000, best);
    let promoted = of(&done, Identity::PROMOTE);
    assert!(promoted.len() >= 2, "{} promoted", promoted.len());
    assert!(promoted.iter().all(|candidate| candidate.hpl.n == 5000));
    assert_eq!(of(&done, Identity::FINAL)[0].hpl.n, 5000);
}

#[test]
fn where_nothing_beats_the_baseline_it_is_the_answer() {
    let baseline = default_candidate(&spec());
    let done = session(|c| Some(if *c == baseline { 25.0 } else { 20.0 + (c.hpl.nb % 7) as f64 / 10.0 }));
    assert_eq!(of(&done, Identity::FINAL), [&baseline]);
}

#[test]
fn a_candidate_that_fails_is_not_run_again_and_never_final() {
    let done = session(|c| (c.engine.threads == 2).then_some(20.0));
    let failed: Vec<&Candidate> = done.iter().filter(|(_, row)| !row.passed).map(|(plan, _)| &plan.candidate).collect();
    for candidate in &failed {
        // But the baseline, which all are compared with.
        let most = if *candidate == of(&done, Identity::BASELINE)[0] { 2 } else { 1 };
        assert!(failed.iter().filter(|other| other == &candidate).count() <= most, "{candidate:?}");
    }
    assert_eq!(of(&done, Identity::FINAL)[0].engine.threads, 2);
}

#[test]
fn a_baseline_that_fails_is_tried_once_more_and_where_it_never_passes_there_are_no_pairs() {
    let count = std::cell::Cell::new(0);
    let not_at_first = |c: &Candidate| {
        count.set(count.get() + 1);
        (count.get() > 1).then_some(if c.hpl.nb == 128 { 20.0 } else { 21.0 })
    };
    let done = session(not_at_first);
    assert_eq!(of(&done, Identity::BASELINE).len(), 2);
    let confirms = |plans: Vec<PlannedTrial>| plans.iter().filter(|plan| plan.strategy == Identity::CONFIRM).count();
    let run_s = done.last().unwrap().1.wall_s;
    assert!(confirms(after(&done, 7.5 * run_s).0) > 1);
    let baseline = default_candidate(&spec());
    let never = session(|c| (*c != baseline).then_some(20.0));
    assert_eq!(of(&never, Identity::BASELINE).len(), 2);
    assert!(never.len() > done.len(), "no time is kept for pairs: {} and {}", never.len(), done.len());
    assert_ne!(*of(&never, Identity::FINAL)[0], baseline);
    assert_eq!(confirms(after(&never, 7.5 * run_s).0), 0);
}

#[test]
fn where_a_candidate_that_passed_fails_time_is_kept_for_a_second_final_run() {
    let done = session(|_| Some(20.0));
    let mut rows: Vec<Row> = done[..done.len() - 1].iter().map(|(_, row)| row.clone()).collect();
    let kept = |rows: &[Row]| look(rows, 0.0, |view| (view.final_runs(), view.final_reserve_s()));
    let (once, once_s) = kept(&rows);
    let (trial, outcome) = (rows.len() as u64, crate::record::Outcome::Crashed);
    rows.push(Row { trial, passed: false, outcome, rate_gflops: None, ..rows[1].clone() });
    let (twice, twice_s) = kept(&rows);
    assert_eq!((once, twice), (1, 2));
    assert!((twice_s - CLOSING_S) / (once_s - CLOSING_S) > 1.9, "{once_s} {twice_s}");
}

/// Asks `what` of the session with these rows and this much time.
pub(super) fn look<T>(rows: &[Row], left_s: f64, what: impl FnOnce(&View<'_>) -> T) -> T {
    let predictor = predictor();
    let domain = HplDomain::new(&spec()).unwrap();
    let (prior, baseline) = (model_prior::table(&domain, &predictor, Extent::Whole), default_candidate(&spec()));
    what(&View {
        setup: Setup {
            objective: Objective::Gflops,
            pairs: PairRule::Never,
            domain: &domain,
            strategy: &Bayes,
            designed: false,
            baseline: &baseline,
            expert: None,
            extent: Extent::Whole,
            seed: 1,
            until_gain: None,
            n_is_chosen: false,
            earlier_rows: 0,
        },
        prior: &prior,
        rows,
        interrupted: &[],
        history: &History::from_rows(rows, &domain, Objective::Gflops),
        cost: &CostEstimate::new(rows, &predictor),
        lead_of_search: None,
        left_s,
        total_s: TOTAL_S,
    })
}

/// What is run in `left_s` seconds after a session's final run, with what it takes.
fn after(done: &[(PlannedTrial, Row)], left_s: f64) -> (Vec<PlannedTrial>, f64) {
    let predictor = predictor();
    let mut rows: Vec<Row> = done.iter().map(|(_, row)| row.clone()).collect();
    let (mut plans, mut used_s) = (Vec::new(), 0.0);
    loop {
        let Some(plan) = look(&rows, left_s - used_s, |view| view.after_final()) else { return (plans, used_s) };
        let wall_s = crate::search::cost::model_s(&predictor, &plan.candidate, plan.extent);
        used_s += wall_s;
        let row = row_of(rows.len() as u64, &plan.candidate);
        rows.push(Row { strategy: plan.strategy.clone(), paired_with: plan.paired_with, wall_s, ..row });
        plans.push(plan);
    }
}

#[test]
fn the_time_after_the_final_run_goes_to_more_pairs() {
    let done = session(|c| Some(if c.hpl.nb == 128 { 20.0 } else { 21.0 }));
    let run_s = done.last().unwrap().1.wall_s;
    let (plans, used_s) = after(&done, 7.5 * run_s);
    assert!(used_s <= 7.5 * run_s && used_s > 6.0 * run_s, "{used_s} of {}", 7.5 * run_s);
    let (baseline, verified) = (&done[0].0.candidate, &done.last().unwrap().0.candidate);
    for pair in plans.chunks_exact(2) {
        assert_eq!((&pair[0].candidate, &pair[1].candidate), (baseline, verified));
        assert!(pair[1].paired_with.is_some() && pair[0].paired_with.is_none());
    }
    // Where no pair fits, the verified one is measured once more alone; without a final run nothing is.
    let (plans, _) = after(&done, 1.6 * run_s);
    assert_eq!(plans.iter().map(|plan| plan.strategy.as_str()).collect::<Vec<_>>(), [Identity::RACE]);
    assert!(after(&done[..done.len() - 1], 100.0).0.is_empty() && after(&done, 0.5 * run_s).0.is_empty());
}

#[test]
fn a_record_of_20000_rows_is_looked_at_in_time_that_is_no_square_of_it() {
    const ROWS: u64 = 20_000;
    let (predictor, domain) = (predictor(), HplDomain::new(&spec()).unwrap());
    let baseline = default_candidate(&spec());
    let points = domain.points();
    // Whole runs and windows of new candidates, some of them ended early; then pairs, each with another candidate.
    let row = |number: u64| {
        let is_pair = number > ROWS / 2;
        let candidate = domain.candidate(&points[number as usize * 7 % points.len()]);
        let row = row_of(number, if is_pair && number.is_multiple_of(2) { &baseline } else { &candidate });
        match number % 5 {
            _ if is_pair => {
                let paired_with = (number % 2 == 1).then(|| number - 1);
                Row { strategy: Identity::CONFIRM.to_owned(), paired_with, ..row }
            }
            0 => Row { extent: Extent::Windows, rate_gflops: None, estimated_rate_gflops: Some(20.0), ..row },
            1 => Row { extent: Extent::Windows, passed: false, outcome: crate::record::Outcome::TimedOut, ..row },
            _ => row,
        }
    };
    let rows: Vec<Row> = (0..ROWS).map(row).collect();
    let begun = std::time::Instant::now();
    let history = History::from_rows(&rows, &domain, Objective::Gflops);
    let cost = CostEstimate::new(&rows, &predictor);
    assert!(cost.at_most(&baseline, Extent::Whole) > 0.0 && history.trials.len() == rows.len());
    assert!(rounds::lead(&rows, &baseline, Objective::Gflops, None).is_none());
    let session = crate::record::session::Session { n: Some(N), ..crate::report::summary::tests::session() };
    let summary = crate::report::Summary::new(&session, &rows);
    assert!(summary.drift.is_some() && crate::report::html::ReportPage::new(&summary, &rows).html().len() > rows.len());
    // About a second; looking through all rows for each of them takes minutes.
    assert!(begun.elapsed().as_secs() < 30, "{:?}", begun.elapsed());
}
