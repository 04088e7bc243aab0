//! What a pack says is found where it does not follow from its files, whatever hashes and sheets were made anew.

use std::path::Path;

use serde_json::Value;
use tuner::pack::manifest::Manifest;
use tuner::pack::sheet;

use super::power::readings;
use super::tampered::{found, found_in, sum_up};
use super::{SITE, edit, intact, pack, site, verify};
use crate::program::{err, out};

/// Changes what the pack says, and makes its sheet and hashes anew, as somebody would who forges it.
fn forged(change: impl Fn(&mut Value)) -> impl Fn(&Path) {
    move |folder: &Path| {
        edit(folder, "pack.json", |text| {
            let mut value: Value = serde_json::from_str(text).unwrap();
            change(&mut value);
            serde_json::to_string_pretty(&value).unwrap()
        });
        let manifest = Manifest::read(folder).unwrap();
        std::fs::write(folder.join(format!("{}.txt", manifest.purpose.name())), sheet::sheet(&manifest)).unwrap();
        sum_up(folder);
    }
}

/// The field of this key.
fn field<'a>(value: &'a mut Value, key: &str) -> &'a mut Value {
    value["fields"].as_array_mut().unwrap().iter_mut().find(|field| field["key"] == key).unwrap()
}

#[test]
fn fields_that_do_not_follow_from_the_record_are_named() {
    let says = |key: &'static str| forged(move |value| field(value, key)["value"] = "7".into());
    for key in ["run.residual", "run.core_start_utc", "run.repeats", "peak.gflops", "system.nodes", "power.peak_watts"]
    {
        found(key, says(key), &[&format!("pack.json: its field {key} is 7, by the files of the pack it is")]);
    }
    let from = forged(|value| field(value, "power.peak_watts")["from"] = "the meter".into());
    found("where it is from", from, &["its field power.peak_watts is from site.toml, not from the meter"]);
    let higher = forged(|value| {
        value["peak"]["gflops"] = 1e5.into();
        field(value, "peak.gflops")["value"] = "100000".into();
    });
    found("Rpeak", higher, &["its Rpeak does not follow from", "its field peak.gflops is 100000"]);
    let fewer = forged(|value| value["repeats"] = Value::Array(Vec::new()));
    found("the repeats", fewer, &["its repeats are not those of record/journal.jsonl"]);
    let elsewhere = forged(|value| value["nodes"][0]["host"] = "fast-node".into());
    found("the node", elsewhere, &["its nodes are not those of record/session.toml"]);
}

#[test]
fn fields_that_are_renamed_repeated_or_made_up_are_named() {
    let renamed = forged(|value| field(value, "run.residual")["label"] = "Scaled residual, best of 9".into());
    found("a label", renamed, &["its field run.residual is called \"Scaled residual, best of 9\""]);
    let twice = forged(|value| {
        let copy = field(value, "run.residual").clone();
        value["fields"].as_array_mut().unwrap().push(copy);
    });
    found("twice", twice, &["its field run.residual is there 2 times"]);
    let more = forged(|value| {
        let mut copy = field(value, "run.residual").clone();
        copy["key"] = "run.award".into();
        value["fields"].as_array_mut().unwrap().push(copy);
    });
    found("made up", more, &["its field run.award is none that a pack for scc has"]);
    let fewer = forged(|value| value["fields"].as_array_mut().unwrap().retain(|field| field["key"] != "run.residual"));
    found("left out", fewer, &["its field run.residual is not there"]);
}

#[test]
fn tables_and_stamps_that_were_changed_are_named() {
    for (name, old, new) in [
        ("repeats.csv", "final", "best"),
        ("nodes.csv", "host,", "Host,"),
        ("tunables.csv", "NB,128", "NB,129"),
        ("hpl/cert-1-hpl.tstamps", " UTC 2", " UTC 3"),
    ] {
        let change = |folder: &Path| (edit(folder, name, |text| text.replacen(old, new, 1)), sum_up(folder)).1;
        found(name, change, &[&format!("{name}: it is not")]);
    }
}

#[test]
fn a_level_and_power_that_no_meter_measured_are_named() {
    let home = tempfile::tempdir().unwrap();
    let text = SITE.to_owned() + "nodes_measured = 1\naccuracy_percent = 1\n";
    let (site, log) = (site(home.path(), &text), readings(home.path(), 0.0, false));
    let folder = home.path().join("measured");
    let packed = pack("green500", &folder, &["--site", site.to_str().unwrap(), "--power-log", &log]);
    assert_eq!(packed.status.code(), Some(0), "{}", err(&packed));
    let whole = verify(&folder);
    assert_eq!(whole.status.code(), Some(0), "{}", out(&whole));
    let level = forged(|value| value["level"] = serde_json::json!({ "level": 3, "missing_for_next": [] }));
    found_in(&folder, "the level", level, &["its level does not follow from power.csv and site.toml"]);
    for key in ["power.core_watts", "power.gflops_per_watt", "power.level", "power.coverage"] {
        let says = forged(|value| field(value, key)["value"] = "7".into());
        found_in(&folder, key, says, &[&format!("its field {key} is 7, by the files of the pack it is")]);
    }
    let gone = |folder: &Path| {
        ["power.json", "power.csv"].iter().for_each(|name| std::fs::remove_file(folder.join(name)).unwrap());
        sum_up(folder);
    };
    found_in(&folder, "no readings", gone, &["its field power.core_watts is 150.0", "it is nothing"]);
    let unsaid = |folder: &Path| (std::fs::remove_file(folder.join("site.toml")).unwrap(), sum_up(folder)).1;
    found_in(&folder, "no site file", unsaid, &["its field site.city is Town", "its level does not follow"]);
}

#[test]
fn a_verdict_that_does_not_follow_from_the_score_is_named() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("refused");
    let packed = pack("acceptance", &folder, &["--target", "1000000", "--no-archive"]);
    assert_eq!(packed.status.code(), Some(6), "{}", err(&packed));
    let yes = forged(|value| {
        value["accepted"]["accepted"] = true.into();
        field(value, "acceptance.verdict")["value"] = "accepted".into();
    });
    found_in(&folder, "accepted", yes, &["its verdict does not follow", "its field acceptance.verdict is accepted"]);
}

#[test]
fn words_of_somebody_else_do_not_control_the_terminal() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("packed");
    super::copy(intact(), &folder);
    forged(|value| {
        let missing = field(value, "run.n_half");
        (missing["value"], missing["how"]) = (Value::Null, "\u{1b}[2Jall is well".into());
    })(&folder);
    let checked = super::check(&folder);
    assert!(!out(&checked).contains('\u{1b}') && out(&checked).contains("[2Jall is well"), "{:?}", out(&checked));
    let run = home.path().join("run");
    super::copy(super::run(), &run);
    let renamed = |text: &str| {
        let session: tuner::record::session::Session = toml::from_str(text).unwrap();
        let named = tuner::record::session::Session { name: "\u{1b}[2Jgone".to_owned(), ..session };
        named.to_toml().unwrap()
    };
    edit(&run, "session.toml", renamed);
    let packed = super::pack_of(&run, "scc", &home.path().join("of it"), &["--no-archive"]);
    assert_eq!(packed.status.code(), Some(0), "{}", err(&packed));
    assert!(!out(&packed).contains('\u{1b}') && out(&packed).contains("[2Jgone"), "{:?}", out(&packed));
}
