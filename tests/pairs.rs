//! Sessions whose trials measure two candidates in turn in one process.

use std::fs;

use tuner::record::parquet;
use tuner::record::{Identity, Row};

use crate::program::{err, out, tune};

/// The search has two candidates, which differ by little, so that there is nothing to do but to tell them apart. Whether pairs pay is
/// up to the machine, but before one was made they are expected to.
#[test]
fn a_session_measures_candidates_in_turn_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let [space, run] = ["space.toml", "run"].map(|name| folder.path().join(name));
    let fixed = [("depth", "1"), ("bcast", "\"1ringM\""), ("pfact", "\"right\""), ("rfact", "\"crout\"")];
    let fixed = fixed
        .into_iter()
        .chain([("nbmin", "4"), ("ndiv", "2")])
        .map(|(dim, value)| format!("[{dim}]\nfixed = {value}\n"));
    fs::write(&space, format!("[nb]\nvalues = [128, 144]\n{}", fixed.collect::<String>())).unwrap();
    let words = ["--budget", "50s", "--n", "11520", "--ranks", "1", "--threads", "2", "--verbose"];
    let files = ["--space", space.to_str().unwrap(), "--out", run.to_str().unwrap()];
    let output = tune(words.into_iter().chain(files));
    let said = err(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(out(&output).contains("PASSED"), "{}", out(&output));
    let rows: Vec<Row> = parquet::read(&run.join("trials.parquet")).unwrap();
    let pairs: Vec<&Row> = rows.iter().filter(|row| row.reference_trial.is_some()).collect();
    assert!(!pairs.is_empty(), "{said}");
    for row in pairs {
        let of = |trial: u64| rows.iter().find(|row| row.trial == trial).unwrap().candidate();
        assert!(row.passed && of(row.reference_trial.unwrap()) != row.candidate(), "{row:?}");
        let [ratio, sd] = [row.log_ratio, row.log_ratio_sd].map(Option::unwrap);
        let apart = row.estimated_rate_gflops.unwrap() / row.reference_rate_gflops.unwrap();
        assert!(ratio.abs() < 1.0 && sd >= 0.0 && (apart.ln() - ratio).abs() < 0.5, "{row:?}");
        assert!(row.command.contains("--reference") && row.rate_gflops.is_none(), "{row:?}");
        assert!(said.contains(&format!("times trial {} in turn", row.reference_trial.unwrap())), "{said}");
    }
    assert!(rows.iter().any(|row| row.strategy == Identity::FINAL && row.passed), "{rows:?}");
}
