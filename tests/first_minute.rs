//! What a newcomer meets: no flag at all, advice on the machine, words that are nearly right.

use serde_json::Value;

use crate::program::{err, out, tune};

#[test]
fn without_a_terminal_the_budget_is_named() {
    let output = tune([""; 0]);
    let text = err(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    for words in ["fastest HPL.dat", "N         the largest", "results   runs/", "--budget is missing", "--budget 10m"]
    {
        assert!(text.contains(words), "'{words}' is not in: {text}");
    }
    // A file that cannot be read is told before anything is asked.
    let refused = tune(["--engine-params", "nowhere.toml"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(err(&refused).starts_with("hpl-tune: cannot read nowhere.toml: "), "{}", err(&refused));
    // What only rehearses asks for nothing.
    let dry = tune(["--dry-run"]);
    assert_eq!(dry.status.code(), Some(2));
    assert!(err(&dry).starts_with("hpl-tune: --budget is missing"), "{}", err(&dry));
}

#[test]
fn the_doctor_looks_at_this_machine() {
    let output = tune(["doctor", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let checks = report["checks"].as_array().unwrap();
    let check = |topic: &str| checks.iter().find(|check| check["topic"] == topic).unwrap_or_else(|| panic!("{topic}"));
    assert!(check("cores now")["found"].as_str().unwrap().contains("GFLOP/s"), "{report}");
    assert!(check("BLAS")["found"].as_str().unwrap().contains("builtin"), "{report}");
    assert!(check("memory")["found"].as_str().unwrap().contains("N up to"), "{report}");
    for check in checks {
        // What is to change says how.
        assert!(check["state"] != "change" || check["change"].is_string(), "{check}");
    }
    let text = out(&tune(["doctor"]));
    assert!(text.contains("huge pages") && text.trim_end().lines().count() > 12, "{text}");
    assert_eq!(tune(["doctor", "now"]).status.code(), Some(2));
}

/// A variable that a library would obey is advice, where there is a library.
#[test]
fn the_doctor_judges_variables_where_a_library_obeys_them() {
    let output =
        crate::program::hpl_tune().args(["doctor", "--json"]).env("OPENBLAS_CORETYPE", "Prescott").output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let checks = report["checks"].as_array().unwrap();
    let check = |topic: &str| checks.iter().find(|check| check["topic"] == topic).unwrap();
    let library = check("BLAS")["found"].as_str().unwrap().contains("/lib");
    let said = check("variables")["found"].as_str().unwrap().contains("OPENBLAS_CORETYPE=Prescott");
    assert_eq!((output.status.code(), said), (Some(0), library), "{report}");
}

#[test]
fn nearly_right_words_are_answered_with_the_right_one() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("space.toml");
    let path = file.to_str().unwrap();
    let space = |text: &str| {
        std::fs::write(&file, text).unwrap();
        err(&tune(["space", "--n", "2000", "--space", path]))
    };
    for (said, word) in [
        (space("[bcats]\nfixed = \"1ring\"\n"), "'bcast'"),
        (space("[bcast]\nfixed = \"1rnig\"\n"), "'1ring'"),
        (space("[nb]\nfixd = 128\n"), "'fixed'"),
        (err(&tune(["space", "--engine", "nvidai"])), "'nvidia'"),
        (err(&tune(["predict", "--machine", "cursher", "--n", "1000"])), "'crusher'"),
        (err(&tune(["--bugdet", "2m"])), "'--budget'"),
        (err(&tune(["--budget", "2m", "--strategy", "bays"])), "'bayes'"),
    ] {
        assert!(said.contains(word), "{word} is not in: {said}");
    }
}
