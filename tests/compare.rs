//! Two sets of runs compared, as a nightly test asks.

use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

use crate::program::{err, hpl_dat, out, tune};

/// HPL.out with runs of these rates at order `n`.
fn output(folder: &Path, name: &str, n: usize, rates: &[f64], verdict: &str) -> PathBuf {
    let result = |rate: &f64| {
        format!(
            "WR11C2R4        {n}   128     1     2               3.50             {:.4}e+01\n\
             ||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=   2.11204902e-03 ...... {verdict}\n",
            rate / 10.0
        )
    };
    let path = folder.join(name);
    std::fs::write(&path, rates.iter().map(result).collect::<String>()).unwrap();
    path
}

fn compare(a: &Path, b: &Path, more: &[&str]) -> Output {
    tune([&["compare", a.to_str().unwrap(), b.to_str().unwrap()], more].concat())
}

const NIGHT: [f64; 7] = [97.5, 98.0, 97.8, 97.9, 98.1, 97.6, 97.7];

#[test]
fn the_exit_code_says_whether_the_second_is_slower() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str, factor: f64| output(folder.path(), name, 8000, &NIGHT.map(|rate| factor * rate), "PASSED");
    let (old, slow, like) = (at("old.out", 1.0), at("slow.out", 0.95), at("like.out", 0.995));
    let code = |a: &Path, b: &Path, more: &[&str]| compare(a, b, more).status.code();
    assert_eq!(code(&old, &slow, &[]), Some(6));
    assert_eq!(code(&old, &slow, &["--tolerance", "10%"]), Some(0));
    assert_eq!((code(&old, &like, &[]), code(&slow, &old, &[])), (Some(0), Some(0)));
    let json = compare(&old, &slow, &["--json"]);
    assert_eq!(json.status.code(), Some(6));
    let report: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!((&report["schema_version"], &report["exit_code"]), (&Value::from(1), &Value::from(6)));
    assert_eq!((&report["verdict"], &report["ratio"]["by"]), (&Value::from("slower"), &Value::from("medians")));
    assert!((report["ratio"]["ratio"].as_f64().unwrap() - 0.95).abs() < 1e-4, "{report}");
    let text = out(&compare(&old, &slow, &[]));
    for words in ["B/A           0.950 (0.94", "at least 96.9 %, 7 and 7 runs)", "residual at most 0.002112", "slower:"]
    {
        assert!(text.contains(words), "'{words}' is not in:\n{text}");
    }
}

#[test]
fn few_runs_have_no_interval_and_a_rule() {
    let folder = tempfile::tempdir().unwrap();
    let old = output(folder.path(), "old.out", 8000, &NIGHT, "PASSED");
    let one = |rate| output(folder.path(), "new.out", 8000, &[rate], "PASSED");
    let slow = compare(&old, &one(96.0), &[]);
    assert_eq!(slow.status.code(), Some(6));
    let text = out(&slow);
    assert!(text.contains("no interval below 6") && text.contains("this is not an interval"), "{text}");
    assert_eq!(compare(&old, &one(97.0), &[]).status.code(), Some(0), "within 1 % of the lowest of the other");
}

#[test]
fn wrong_results_end_with_3_and_bad_files_with_2() {
    let folder = tempfile::tempdir().unwrap();
    let good = output(folder.path(), "good.out", 8000, &NIGHT, "PASSED");
    let wrong = output(folder.path(), "wrong.out", 8000, &[97.0], "FAILED");
    assert_eq!(compare(&good, &wrong, &[]).status.code(), Some(3));
    let both = folder.path().join("both.out");
    let text = |path: &Path| std::fs::read_to_string(path).unwrap();
    std::fs::write(&both, text(&good) + &text(&wrong)).unwrap();
    // B chooses another configuration, as that of A fails its residual there.
    let other = folder.path().join("other.out");
    std::fs::write(&other, text(&good).replace("   128     1", "   192     1") + &text(&wrong)).unwrap();
    let hidden = compare(&good, &other, &[]);
    assert_eq!(hidden.status.code(), Some(3));
    assert!(
        out(&hidden).contains("B: the residual of 1 run of the other side's configuration FAILED"),
        "{}",
        out(&hidden)
    );
    let mixed = compare(&good, &both, &[]);
    assert_eq!(mixed.status.code(), Some(3));
    assert!(out(&mixed).contains("a residual FAILED"), "{}", out(&mixed));
    let torn = folder.path().join("torn.out");
    std::fs::write(&torn, &text(&good)[..text(&good).len() - 130]).unwrap();
    let smaller = output(folder.path(), "smaller.out", 4000, &NIGHT, "PASSED");
    let dat = hpl_dat(folder.path(), 100, 16, 1, 1);
    for (bad, words) in [
        (&torn, &["torn.out: line 13", "cut off"][..]),
        (&smaller, &["N = 8000", "N = 4000", "do not compare"]),
        (&dat, &["HPL.dat: no result"]),
        (&folder.path().to_path_buf(), &["session.toml"]),
        (&folder.path().join("typo"), &["typo", "run folder"]),
    ] {
        let refused = compare(&good, bad, &[]);
        assert_eq!(refused.status.code(), Some(2), "{}", out(&refused));
        for word in words {
            assert!(err(&refused).contains(word), "'{word}' is not in: {}", err(&refused));
        }
    }
}

/// A session and what its final run printed: the same rate.
#[test]
fn a_run_folder_compares_with_an_output() {
    let folder = crate::tune::folder();
    let output = compare(&folder.join("HPL.out"), folder, &["--json", "--tolerance", "50%"]);
    assert_eq!(output.status.code(), Some(0), "{}{}", out(&output), err(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((report["b"]["kind"].as_str(), report["a"]["n"] == report["b"]["n"]), (Some("run folder"), true));
    assert!(report["b"]["session_command"].as_str().unwrap().contains("--budget"), "{report}");
    assert!(report["b"]["residual"].as_f64().unwrap() < 16.0);
}

/// Results of the engine as it writes them, two of them one after the other.
#[test]
fn results_of_the_engine_compare() {
    let folder = tempfile::tempdir().unwrap();
    let dat = hpl_dat(folder.path(), 300, 32, 1, 1);
    let result = folder.path().join("result.json");
    let run = |dat: &Path| {
        let words = ["run", "--dat", dat.to_str().unwrap(), "--result", result.to_str().unwrap()];
        assert_eq!(tune(words).status.code(), Some(0));
        std::fs::read_to_string(&result).unwrap()
    };
    let both = folder.path().join("both.json");
    std::fs::write(&both, run(&dat) + &run(&dat)).unwrap();
    let output = compare(&result, &both, &["--json", "--tolerance", "50%"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["b"]["rates_gflops"].as_array().unwrap().len(), 2, "{report}");
    assert_eq!((report["a"]["n"].as_u64(), report["a"]["engine"].as_str()), (Some(300), Some("hpl")));
}
