//! Sessions whose trials measure two candidates in turn in one process.

use std::fs;
use std::path::Path;

use tuner::record::parquet;
use tuner::record::{Identity, Outcome, Row};

use crate::program::{err, out, tune};

/// Sessions that are tried where others on this machine leave no time for a pair.
const TRIES: usize = 3;

/// The search has two candidates, which differ by little, so that there is nothing to do but to tell them apart. Whether pairs pay is
/// up to the machine, but before one was made they are expected to.
#[test]
fn a_session_measures_candidates_in_turn_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let space = folder.path().join("space.toml");
    let fixed = [("depth", "1"), ("bcast", "\"1ringM\""), ("pfact", "\"right\""), ("rfact", "\"crout\"")];
    let fixed = fixed
        .into_iter()
        .chain([("nbmin", "4"), ("ndiv", "2")])
        .map(|(dim, value)| format!("[{dim}]\nfixed = {value}\n"));
    fs::write(&space, format!("[nb]\nvalues = [128, 144]\n{}", fixed.collect::<String>())).unwrap();
    let (said, rows) = (1..=TRIES)
        .map(|number| session(&space, &folder.path().join(number.to_string())))
        .find(has_pairs)
        .expect("a session with pairs");
    let (passed, ended): (Vec<&Row>, Vec<&Row>) = pairs(&rows).partition(|row| row.passed);
    // Other work may hold one up for longer than its limit.
    assert!(ended.iter().all(|row| row.outcome == Outcome::TimedOut), "{ended:?}");
    for row in passed {
        let of = |trial: u64| rows.iter().find(|row| row.trial == trial).unwrap().candidate();
        assert!(of(row.reference_trial.unwrap()) != row.candidate(), "{row:?}");
        let [ratio, sd] = [row.log_ratio, row.log_ratio_sd].map(Option::unwrap);
        let apart = row.estimated_rate_gflops.unwrap() / row.reference_rate_gflops.unwrap();
        assert!(ratio.abs() < 1.0 && sd >= 0.0 && (apart.ln() - ratio).abs() < 0.5, "{row:?}");
        assert!(row.command.contains("--reference") && row.rate_gflops.is_none(), "{row:?}");
        assert!(said.contains(&format!("times trial {} in turn", row.reference_trial.unwrap())), "{said}");
    }
    assert!(rows.iter().any(|row| row.strategy == Identity::FINAL && row.passed), "{rows:?}");
}

/// What a session says, and its trials. Its N follows from the speed that it finds, so that on a slow or busy machine, too, a pair takes less than
/// a tenth of the budget: beside runs of a given N it may have no time.
fn session(space: &Path, run: &Path) -> (String, Vec<Row>) {
    let words = ["--budget", "50s", "--ranks", "1", "--threads", "2", "--verbose"];
    let files = ["--space", space.to_str().unwrap(), "--out", run.to_str().unwrap()];
    let output = tune(words.into_iter().chain(files));
    let said = err(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(out(&output).contains("PASSED"), "{}", out(&output));
    (said, parquet::read(&run.join("trials.parquet")).unwrap())
}

/// The trials that measured two candidates in turn, or were to.
fn pairs(rows: &[Row]) -> impl Iterator<Item = &Row> {
    rows.iter().filter(|row| row.reference_trial.is_some())
}

fn has_pairs((said, rows): &(String, Vec<Row>)) -> bool {
    let has = pairs(rows).any(|row| row.passed);
    if !has {
        println!("no pairs: {said}");
    }
    has
}
