//! How a session ended: its last messages, and the exit code.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use anyhow::anyhow;
use objectives::real::RealRuns;

use crate::commands::report::{Files, publish};
use crate::error::RecordError;
use crate::exit;
use crate::record::session::RowsByPlace;
use crate::record::store::Store;
use crate::record::{Finished, Identity, Outcome};
use crate::search::drive::SessionEnd;
use crate::search::progress::Progress;

/// How `search` ended. A panic is an error of it: the results are made of the record, which is whole.
pub(super) fn caught(search: impl FnOnce() -> anyhow::Result<SessionEnd>) -> anyhow::Result<SessionEnd> {
    catch_unwind(AssertUnwindSafe(search)).unwrap_or_else(|panic| Err(fault(&*panic)))
}

/// The error of a panic.
fn fault(panic: &(dyn Any + Send)) -> anyhow::Error {
    let formatted = panic.downcast_ref::<String>().map(String::as_str);
    let said = formatted.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
    anyhow!("the search broke off by a fault of hpl-tune: {said}; what was recorded is whole")
}

/// Says how a session ended, where that is not what the user expects.
pub(super) fn say_how_it_ended(ended: &anyhow::Result<SessionEnd>, store: &Store, progress: &Progress) {
    let failed = store.last_failure().unwrap_or("none failed");
    let folder = objectives::real::quoted([store.folder().root()]).join("");
    match ended {
        Ok(SessionEnd::Interrupted) => progress.line(&format!("stopped; continue with: hpl-tune --resume {folder}")),
        Ok(SessionEnd::NothingWorks) => progress.warn(&format!(
            "trial after trial failed, the last one: {failed}; when this is fixed, continue with: hpl-tune --resume {folder}"
        )),
        Ok(SessionEnd::Done) if store.rows().is_empty() => match store.elsewhere().len() {
            0 => progress.warn("no trial fitted into the budget; give a longer --budget"),
            before => progress.warn(&format!(
                "no time was left for a trial on the nodes that the session has now; {before} trials on those before are in the record: a new \
                 session with --warm-start {folder} begins with them"
            )),
        },
        Ok(SessionEnd::Done) if !store.rows().iter().any(|row| row.passed()) => {
            progress.warn(&format!("no trial succeeded, the last one: {failed}"));
        }
        Ok(SessionEnd::Done) if !store.has_final() => {
            progress.warn("the budget was used up before the final run; the best of the trials is shown");
        }
        Ok(SessionEnd::Done) if !store.final_passed() => {
            progress.warn(&format!("no final run succeeded, the last trial: {failed}; the best of the trials is shown"));
        }
        Ok(SessionEnd::NodesLost(nodes)) => progress.warn(&format!(
            "{}: no answer any more, and too little time is left to go on without; the best of the trials is shown, when there is an answer \
             again continue with: hpl-tune --resume {folder}",
            nodes.join(" ")
        )),
        Ok(SessionEnd::Done) | Err(_) => {}
    }
}

/// Writes the table of all trials, and at the same time the report with its summary; what went wrong with either.
pub(super) fn write_results(
    store: &Store,
    runs: &RealRuns,
    program: &Path,
    json: bool,
) -> (Result<(), RecordError>, anyhow::Result<()>) {
    std::thread::scope(|scope| {
        let table = scope.spawn(|| store.write_table());
        let rows = store.recorded().map_err(anyhow::Error::from);
        let published = rows.and_then(|all| {
            let rows = RowsByPlace { all, some: store.on_some_nodes().to_vec(), elsewhere: Vec::new() };
            publish(store.folder(), store.session(), &rows, runs, program, json, Files::Written)
        });
        (table.join().expect("writing a table does not panic"), published)
    })
}

/// The exit code of a session.
pub(super) fn exit_code<R: Finished>(ended: SessionEnd, rows: &[R]) -> u8 {
    let wrong = |row: &R| row.outcome() == Outcome::Residual;
    let passed = rows.iter().any(|row| row.passed());
    match ended {
        SessionEnd::Interrupted => exit::INTERRUPTED,
        SessionEnd::Done | SessionEnd::NodesLost(_) if passed => {
            let mut finals = rows.iter().filter(|row| row.strategy() == Identity::FINAL);
            match finals.clone().next_back() {
                Some(last) if wrong(last) => exit::RESIDUAL,
                _ if finals.any(|row| row.passed()) => exit::DONE,
                _ => exit::NO_FINAL,
            }
        }
        _ if rows.last().is_some_and(wrong) => exit::RESIDUAL,
        _ => exit::NO_TRIAL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Row;
    use crate::record::arbitrary::row;

    /// It ended the program, and no results were written.
    #[test]
    fn a_panic_of_the_search_is_an_error_with_its_message() {
        let said = |error: anyhow::Error| (exit::code(&error), error.to_string());
        let broke_off = |why: &str| {
            let text = format!("the search broke off by a fault of hpl-tune: {why}; what was recorded is whole");
            (exit::UNEXPECTED, text)
        };
        let points = 0;
        assert_eq!(said(caught(|| panic!("{points} points")).unwrap_err()), broke_off("0 points"));
        assert_eq!(said(caught(|| panic!("no point")).unwrap_err()), broke_off("no point"));
        assert_eq!(said(caught(|| std::panic::panic_any(7)).unwrap_err()), broke_off("a panic"));
        assert_eq!(caught(|| Ok(SessionEnd::Done)).unwrap(), SessionEnd::Done);
    }

    fn code(finals: &[Outcome]) -> u8 {
        let trial = |strategy: &str, outcome| Row {
            strategy: strategy.to_owned(),
            outcome,
            passed: outcome == Outcome::Passed,
            ..row(0)
        };
        let finals = finals.iter().map(|&outcome| trial(Identity::FINAL, outcome));
        let rows: Vec<Row> = [trial(Identity::BASELINE, Outcome::Passed)].into_iter().chain(finals).collect();
        exit_code(SessionEnd::Done, &rows)
    }

    #[test]
    fn only_a_final_run_that_passed_is_success() {
        assert_eq!(code(&[Outcome::Passed]), exit::DONE);
        assert_eq!(code(&[Outcome::Crashed, Outcome::Passed]), exit::DONE);
        assert_eq!(code(&[]), exit::NO_FINAL);
        assert_eq!(code(&[Outcome::Crashed, Outcome::TimedOut]), exit::NO_FINAL);
        assert_eq!(code(&[Outcome::Residual]), exit::RESIDUAL);
    }

    #[test]
    fn a_session_without_a_trial_that_passed_ends_with_the_code_of_its_last() {
        let code = |ended: SessionEnd, outcomes: &[Outcome]| {
            let trial = |&outcome: &Outcome| Row { outcome, passed: outcome == Outcome::Passed, ..row(0) };
            exit_code(ended, &outcomes.iter().map(trial).collect::<Vec<Row>>())
        };
        let lost = || SessionEnd::NodesLost(vec!["n2".to_owned()]);
        for ended in [SessionEnd::Done, SessionEnd::NothingWorks, lost()] {
            assert_eq!(code(ended.clone(), &[Outcome::Residual, Outcome::Crashed]), exit::NO_TRIAL, "{ended:?}");
            assert_eq!(code(ended.clone(), &[Outcome::Crashed, Outcome::Residual]), exit::RESIDUAL, "{ended:?}");
            assert_eq!(code(ended.clone(), &[]), exit::NO_TRIAL, "{ended:?}");
        }
        assert_eq!(code(lost(), &[Outcome::Passed]), exit::NO_FINAL);
        for outcomes in [&[Outcome::Passed][..], &[Outcome::Residual], &[]] {
            assert_eq!(code(SessionEnd::Interrupted, outcomes), exit::INTERRUPTED);
        }
    }
}
