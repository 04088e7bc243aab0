use objectives::Failure;
use objectives::real::RunSpec;
use proptest::prelude::*;
use space::params::Coded;

use super::*;
use crate::record::session::Session;
use crate::report::summary::tests::session;

fn failed(candidate: &Candidate, failure: Failure) -> Row {
    let (repeat_of, paired_with) = (Some(1), Some(2));
    let identity = Identity { repeat_of, paired_with, ..arbitrary::identity(3) };
    Row::new(identity, &RunSpec::whole(candidate), None, &Err(failure), Circumstances::default(), &session())
}

proptest! {
    #[test]
    fn candidates_come_back(row in arbitrary::any_row()) {
        let candidate = row.candidate();
        prop_assert_eq!(failed(&candidate, Failure::TimedOut { limit_s: 1.0 }).candidate(), candidate);
    }
}

#[test]
fn a_wrong_residual_keeps_its_value_and_no_score() {
    let candidate = arbitrary::row(0).candidate();
    for (value, kept) in [(Some(1e6), Some(1e6)), (Some(f64::NAN), None), (None, None)] {
        let failure = Failure::Residual { value, info: 0 };
        let row = failed(&candidate, failure.clone());
        assert_eq!((row.residual, row.score_gflops(), row.passed), (kept, None, false));
        assert_eq!((row.outcome.name(), row.failure_detail), (failure.kind(), Some(failure.to_string())));
    }
}

#[test]
fn dimensions_of_another_engine_come_back() {
    let mut candidate = arbitrary::row(0).candidate();
    candidate.engine.extra.insert("HPL_P2P".into(), "4 \"x\"".into());
    let row = failed(&candidate, Failure::Skipped { why: "x".into() });
    assert_eq!(row.candidate(), candidate);
}

#[test]
fn another_engine_is_not_said_to_have_obeyed_ours() {
    let candidate = arbitrary::row(0).candidate();
    let identity = Identity { engine: "netlib".to_owned(), ..arbitrary::identity(3) };
    let session = Session { engine: "netlib".to_owned(), ..session() };
    let failed = Err(Failure::Skipped { why: "x".into() });
    let row = Row::new(identity, &RunSpec::whole(&candidate), None, &failed, Circumstances::default(), &session);
    assert_eq!((row.huge_pages, &row.kernels, row.split), (None, &None, None));
    let json = serde_json::to_string(&row).unwrap();
    assert!(json.contains(r#""kernels":null"#) && json.contains(r#""split":null"#), "{json}");
    let read: Row = serde_json::from_str(&json).unwrap();
    assert_eq!((&read, read.candidate()), (&row, candidate));
}

#[test]
fn an_estimate_is_no_score() {
    let row = arbitrary::windows(4, 64, 30.0);
    assert_eq!((row.score_gflops(), row.rate_gflops, row.time_s), (None, None, None));
    assert_eq!((row.comparable_rate_gflops(), row.extent), (Some(30.0), Extent::Windows));
    assert!(row.cost_fraction > 0.0 && row.cost_fraction < 0.2, "{}", row.cost_fraction);
    let beaten = Failure::Beaten { done_percent: 25.0, estimated_rate_gflops: 20.0, best_rate_gflops: 30.0 };
    let row = failed(&row.candidate(), beaten);
    assert_eq!((row.estimated_rate_gflops, row.cost_fraction, row.comparable_rate_gflops()), (Some(20.0), 0.25, None));
}

#[test]
fn words_are_those_of_the_parameters() {
    for (_, name) in space::Bcast::ALL {
        let json = format!("\"{name}\"");
        assert_eq!(serde_json::from_str::<Bcast>(&json).unwrap().name(), *name);
    }
    for swap in [Swap::BinExch, Swap::Long, Swap::Mix { threshold: 1 }] {
        assert_eq!(serde_json::to_value(SwapName::from(swap)).unwrap(), swap.name());
    }
}
