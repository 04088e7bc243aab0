//! Whatever is changed in a pack or a run folder is found and named.

use std::path::Path;

use serde_json::Value;
use tuner::pack::folder::{SUMS, sums};
use tuner::record::sha256;

use super::{copy, edit, intact, run, verify};
use crate::program::out;

/// Makes the hashes of the list fit again.
pub(super) fn sum_up(folder: &Path) {
    std::fs::write(folder.join(SUMS), sums(folder).unwrap()).unwrap();
}

/// Changes the row of the packed run, or the first one where `which` holds, in the journal of `place`.
fn edit_row(folder: &Path, place: &str, which: impl Fn(&Value) -> bool, change: impl Fn(&mut Value)) {
    let done = std::cell::Cell::new(false);
    edit(folder, &format!("{place}journal.jsonl"), |text| {
        let lines = text.lines().map(|line| {
            let mut row: Value = serde_json::from_str(line).unwrap();
            if !done.get() && which(&row) {
                done.set(true);
                change(&mut row);
            }
            row.to_string() + "\n"
        });
        lines.collect()
    });
    assert!(done.get());
}

/// Whether it is the row of the packed run.
fn is_final(row: &Value) -> bool {
    row["trial"] == super::packed_trial()
}

/// Gives the journal the hash of HPL.out as it is now, as somebody would who forges both.
fn forge_hash(folder: &Path) {
    let hash = sha256::of_file(&folder.join("HPL.out")).unwrap();
    edit_row(folder, "record/", is_final, |row| row["output_sha256"] = hash.clone().into());
}

/// Changes a copy of the pack by `change`, and looks for each of `words` among what `verify` finds.
pub(super) fn found(name: &str, change: impl Fn(&Path), words: &[&str]) {
    found_in(intact(), name, change, words);
}

/// The same of a copy of `pack`.
pub(super) fn found_in(pack: &Path, name: &str, change: impl Fn(&Path), words: &[&str]) {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("packed");
    copy(pack, &folder);
    change(&folder);
    let output = verify(&folder);
    let text = out(&output);
    assert_eq!(output.status.code(), Some(6), "{name}: {text}");
    for word in words {
        let told = text.lines().any(|line| line.contains(word) && line.contains("; "));
        assert!(told, "{name}: '{word}' is not in: {text}");
    }
}

/// The last result line of an output with its word number `at` replaced.
fn with_word(text: &str, at: usize, change: impl Fn(&str) -> String) -> String {
    let line = text.lines().find(|line| line.starts_with("WR") || line.starts_with("WC")).unwrap();
    let word = line.split_whitespace().nth(at).unwrap();
    text.replacen(line, &line.replacen(&format!(" {word}"), &format!(" {}", change(word)), 1), 1)
}

fn doubled(word: &str) -> String {
    let text = format!("{:.4e}", 2.0 * word.parse::<f64>().unwrap());
    let (digits, exponent) = text.split_once('e').unwrap();
    format!("{digits}e{:+03}", exponent.parse::<i32>().unwrap())
}

#[test]
fn files_that_were_changed_added_or_taken_away_are_named() {
    let byte = |folder: &Path| edit(folder, "HPL.out", |text| text.replacen("HPLinpack", "HPLinpacK", 1));
    found("a byte of the output", byte, &["HPL.out: its SHA-256 is"]);
    found("a byte, with its sum", |f| (byte(f), sum_up(f)).1, &["journal.jsonl has"]);
    let gone = |folder: &Path| std::fs::remove_file(folder.join("tunables.csv")).unwrap();
    found("a file less", gone, &["tunables.csv: SHA256SUMS lists it, and it cannot be read"]);
    let more = |folder: &Path| std::fs::write(folder.join("record/extra.txt"), "x").unwrap();
    found("a file more", more, &["record/extra.txt: it is not part of the pack"]);
    found("no sums", |f| std::fs::remove_file(f.join(SUMS)).unwrap(), &["SHA256SUMS: cannot be read"]);
    found(
        "sums that are none",
        |f| edit(f, SUMS, |text| text.replacen("  ", " ", 1)),
        &["SHA256SUMS: line 1 is not a hash"],
    );
    found("no output", |f| std::fs::remove_file(f.join("HPL.out")).unwrap(), &["HPL.out: cannot be read"]);
}

#[test]
fn an_output_that_cannot_be_is_found_whatever_hashes_were_made_anew() {
    let forged = |change: fn(&str) -> String| {
        move |folder: &Path| {
            edit(folder, "HPL.out", change);
            forge_hash(folder);
            sum_up(folder);
        }
    };
    let faster = |text: &str| with_word(text, 6, doubled);
    found("a higher rate", forged(faster), &["HPL.out: ", "GFLOP/s, but N =", "journal.jsonl has"]);
    let shorter = |text: &str| with_word(text, 5, |time| format!("{:.2}", 0.5 * time.parse::<f64>().unwrap() - 0.02));
    found("a shorter time", forged(shorter), &["GFLOP/s, but N ="]);
    let larger = |text: &str| with_word(text, 1, |n| (2 * n.parse::<usize>().unwrap()).to_string());
    found("a larger N", forged(larger), &["HPL.dat: N is"]);
    found("a failed residual", forged(|text| text.replacen("PASSED", "FAILED", 1)), &["is FAILED"]);
    let above = |text: &str| {
        let line = text.lines().find(|line| line.starts_with("||Ax-b||") && line.contains("PASSED")).unwrap();
        let (start, _) = line.split_once("= ").unwrap();
        text.replacen(line, &format!("{start}=   3.20000000e+01 ...... PASSED"), 1)
    };
    found("a residual above the threshold", forged(above), &["PASSED with a residual of 32, the threshold is 16"]);
    let stamp = |text: &str| {
        let line = text.lines().find(|line| line.starts_with("HPL_pdgesv() end time")).unwrap();
        let (start, year) = line.rsplit_once(' ').unwrap();
        text.replacen(line, &format!("{start} {}", year.parse::<u32>().unwrap() + 1), 1)
    };
    found("another end", forged(stamp), &["between its start and end stamps"]);
    found("no result", forged(|text| text.replace("\nWR", "\nXR").replace("\nWC", "\nXC")), &["no result line of HPL"]);
}

#[test]
fn an_hpl_dat_that_is_not_that_of_the_run_is_named_with_the_parameter() {
    let changed = |change: fn(&mut space::HplParams)| {
        move |folder: &Path| {
            edit(folder, "HPL.dat", |text| {
                let mut params = space::dat::HplDat::parse(text).unwrap().runs()[0];
                change(&mut params);
                space::dat::HplDat::single(&params).write().unwrap()
            });
            std::fs::copy(folder.join("HPL.dat"), folder.join("hpl/cert-1-hpl.input")).unwrap();
            sum_up(folder);
        }
    };
    found("another NB", changed(|params| params.nb += 1), &["HPL.dat: NB is"]);
    found("another grid", changed(|params| params.q += 1), &["HPL.dat: Q is"]);
    found("another NBMIN", changed(|params| params.nbmin += 1), &["NBMIN is", "T/V W"]);
    found("another ALIGN", changed(|params| params.align += 8), &["ALIGN is"]);
    found("another EQUIL", changed(|params| params.equil = !params.equil), &["EQUIL is"]);
    let threads = |folder: &Path| {
        edit(folder, "engine-params.toml", |text| text.replacen("threads = ", "threads = 1", 1));
        sum_up(folder);
    };
    found("other threads", threads, &["engine-params.toml: it is not that of the packed run"]);
    let none = |folder: &Path| std::fs::remove_file(folder.join("engine-params.toml")).unwrap();
    found("no engine-params.toml", |f| (none(f), sum_up(f)).1, &["engine-params.toml: cannot be read"]);
    found("no HPL.dat", |f| (edit(f, "HPL.dat", |_| "x".to_owned()), sum_up(f)).1, &["HPL.dat: it is not an HPL.dat"]);
}

#[test]
fn a_record_that_was_changed_is_named_with_the_trial() {
    let changed = |which: fn(&Value) -> bool, change: fn(&mut Value)| {
        move |folder: &Path| {
            edit_row(folder, "record/", which, change);
            sum_up(folder);
        }
    };
    let raise = |row: &mut Value| row["rate_gflops"] = (2.0 * row["rate_gflops"].as_f64().unwrap()).into();
    found("a rate", changed(is_final, raise), &["differs from journal.jsonl in rate_gflops", "GFLOP/s, but N ="]);
    let windows = |row: &mut Value| row["extent"] = "windows".into();
    found("windows", changed(is_final, windows), &["windows with a measured rate", "is not a passed whole run"]);
    let simulated = |row: &mut Value| row["engine"] = "hpl, simulated".into();
    found(
        "a simulation",
        changed(is_final, simulated),
        &["its score is simulated", "its engine is \"hpl, simulated\""],
    );
    let other = |row: &mut Value| row["session"] = "another".into();
    found("a session", changed(is_final, other), &["it is of the session another"]);
    let unhashed = |row: &mut Value| row["output_sha256"] = Value::Null;
    found("no hash", changed(is_final, unhashed), &["nothing shows that it is unmodified"]);
    // A lucky run of the search has a record, an output and a hash, too.
    let of_search = |row: &mut Value| row["strategy"] = "bayes".into();
    let words = format!("its trial {} is not the passed final run of the best", super::packed_trial());
    found("another run than the final one", changed(is_final, of_search), &[&words]);
    let first = |row: &Value| row["trial"] == 0;
    found(
        "a reason",
        changed(first, |row| row["why"] = "because".into()),
        &["trial 0 differs from journal.jsonl in why"],
    );
    // Start and end of the first trial.
    let fewer =
        |folder: &Path| edit(folder, "record/journal.jsonl", |text| text.split_inclusive('\n').skip(2).collect());
    found("a row less", |f| (fewer(f), sum_up(f)).1, &["record/trials.parquet: "]);
    let torn = |folder: &Path| edit(folder, "record/journal.jsonl", |text| text.replacen('{', "[", 1));
    found("a damaged row", |f| (torn(f), sum_up(f)).1, &["journal.jsonl line 1: damaged"]);
}

#[test]
fn what_the_pack_says_is_what_its_files_say() {
    let said = |change: fn(&mut Value)| {
        move |folder: &Path| {
            edit(folder, "pack.json", |text| {
                let mut value: Value = serde_json::from_str(text).unwrap();
                change(&mut value);
                serde_json::to_string_pretty(&value).unwrap()
            });
            sum_up(folder);
        }
    };
    let raise = |value: &mut Value| value["score"]["rmax_gflops"] = 1e6.into();
    found("Rmax", said(raise), &["is not a result in HPL.out", "its field run.rmax_gflops is"]);
    let trial = |value: &mut Value| value["trial"] = 99_999.into();
    found("the trial", said(trial), &["journal.jsonl has no trial 99999"]);
    let earlier = |value: &mut Value| value["stamps"]["core"]["start_utc"] = "2020-01-01T00:00:00Z".into();
    found(
        "the core phase",
        said(earlier),
        &["its time stamps are not those", "its core phase lies outside of its job"],
    );
    let fields = |value: &mut Value| {
        let field =
            value["fields"].as_array_mut().unwrap().iter_mut().find(|field| field["key"] == "run.nmax").unwrap();
        field["value"] = "1000000".into();
    };
    found("a field", said(fields), &["its field run.nmax is 1000000", "scc.txt: it does not say what pack.json has"]);
    found(
        "a sheet",
        |f| (edit(f, "scc.txt", |text| text.replacen("Nmax: ", "Nmax: 9", 1)), sum_up(f)).1,
        &["scc.txt: it does not"],
    );
    let copy = |folder: &Path| edit(folder, "hpl/cert-1-hpl.rslts", |text| text.replacen("HPL", "HPl", 1));
    found("a copy", |f| (copy(f), sum_up(f)).1, &["hpl/cert-1-hpl.rslts: it is not the same as HPL.out"]);
    found("no pack.json", |f| std::fs::write(f.join("pack.json"), "{").unwrap(), &["pack.json", "is damaged"]);
}

#[test]
fn a_session_at_work_is_not_called_changed() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("run");
    copy(run(), &folder);
    let lock = tuner::record::folder::RunFolder::open(&folder).unwrap().lock().unwrap();
    let output = verify(&folder);
    assert_eq!(output.status.code(), Some(2), "{}", out(&output));
    assert!(crate::program::err(&output).contains("a session works there"), "{}", crate::program::err(&output));
    drop(lock);
    assert_eq!(verify(&folder).status.code(), Some(0));
}

#[test]
fn a_run_folder_is_verified_too() {
    let whole = verify(run());
    assert_eq!(whole.status.code(), Some(0), "{}", out(&whole));
    assert!(out(&whole).contains("run folder, all checks passed"), "{}", out(&whole));
    let changed = |name: &str, change: &dyn Fn(&Path), words: &[&str]| {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("run");
        copy(run(), &folder);
        change(&folder);
        let output = verify(&folder);
        assert_eq!(output.status.code(), Some(6), "{name}: {}", out(&output));
        assert!(words.iter().all(|word| out(&output).contains(word)), "{name}: {words:?} in {}", out(&output));
    };
    let rows = crate::tune::rows(run());
    let output = format!("trials/{}/stdout.txt", super::packed_trial());
    let faster = |folder: &Path| edit(folder, &output, |text| with_word(text, 6, doubled));
    changed("the output of a trial", &faster, &[&format!("{output}: its SHA-256 is"), "GFLOP/s, but N ="]);
    let session = tuner::record::session::Session::load(&run().join("session.toml")).unwrap();
    let shown = tuner::report::Summary::new(&session, &rows).shown_trial().unwrap();
    let printed = |folder: &Path| edit(folder, "HPL.out", |text| text.replacen("HPL", "HPl", 1));
    changed("HPL.out", &printed, &[&format!("HPL.out: it is not what trial {shown} printed")]);
    let dat = |folder: &Path| {
        edit(folder, "HPL.dat", |text| {
            let mut params = space::dat::HplDat::parse(text).unwrap().runs()[0];
            params.nb += 8;
            space::dat::HplDat::single(&params).write().unwrap()
        });
    };
    changed("HPL.dat", &dat, &["HPL.dat: it is not the configuration of the best"]);
    let params =
        |folder: &Path| edit(folder, "engine-params.toml", |text| text.replacen("threads = ", "threads = 1", 1));
    changed("engine-params.toml", &params, &["engine-params.toml: it is not that of the best"]);
    let relabel = |folder: &Path| edit_row(folder, "", is_final, |row| row["engine"] = "hpl, simulated".into());
    changed("an engine", &relabel, &["its engine is \"hpl, simulated\""]);
    // Packing refuses what verify finds in the output.
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("run");
    copy(run(), &folder);
    faster(&folder);
    let refused = crate::program::tune([
        "pack",
        folder.to_str().unwrap(),
        "--for",
        "scc",
        "--out",
        home.path().join("no").to_str().unwrap(),
    ]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(crate::program::err(&refused).contains("changed after the run"), "{}", crate::program::err(&refused));
}
