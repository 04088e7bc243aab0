//! The pages on formats have every column and every key, and none that the program does not know.
//!
//! Columns come from the writer. Keys of files come from their readers: each refuses an unknown key and names the known ones.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use hpl::measure::survey::{LinkSurvey, RankSurvey, Survey};
use objectives::foreign::Profile;
use objectives::simulated::SimulatedCluster;
use space::EngineFile;
use space::domain::Limits;
use space::machine::Machine;
use space::result::PhaseTime;
use space::weights_file::WeightsFile;
use tuner::earlier::Earlier;
use tuner::record::parquet::ParquetRow;
use tuner::record::session::Session;
use tuner::record::{ROW_SCHEMA, Row};
use tuner::replay::landscape::Description;

use super::commands::simulated_session;
use super::pages::{Page, root};
use crate::program::{err, hpl_dat, hpl_tune, tune};

type Names = BTreeSet<String>;

/// A key that no format has.
const UNKNOWN: &str = "no_such_key";

fn names<'a>(names: impl IntoIterator<Item = &'a str>) -> Names {
    names.into_iter().map(str::to_owned).collect()
}

/// The keys that a reader says to know when it meets [`UNKNOWN`].
fn known(error: Option<impl ToString>) -> Names {
    let text = error.expect("an unknown key is refused").to_string();
    let (_, expected) = text.split_once(&format!("unknown field `{UNKNOWN}`, ")).unwrap_or_else(|| panic!("{text}"));
    let expected = expected.lines().next().unwrap();
    names(expected.split('`').skip(1).step_by(2))
}

/// Asserts that the tables below `heading` hold these names.
fn same(page: &str, heading: &str, known: &Names) {
    let documented = Page::read(page).first_cells(heading);
    let missing: Vec<_> = known.difference(&documented).collect();
    let strange: Vec<_> = documented.difference(known).collect();
    assert!(
        missing.is_empty() && strange.is_empty(),
        "{page}, {heading}: missing {missing:?}, unknown to the program {strange:?}"
    );
}

/// The keys of all objects in a document.
fn keys_within(document: &serde_json::Value) -> Names {
    match document {
        serde_json::Value::Object(object) => {
            object.iter().flat_map(|(key, value)| keys_within(value).into_iter().chain([key.clone()])).collect()
        }
        serde_json::Value::Array(items) => items.iter().flat_map(keys_within).collect(),
        _ => Names::new(),
    }
}

/// Asserts that the tables below `heading` hold the version and all keys of these documents, and the `rare` ones.
fn same_json(heading: &str, documents: &[serde_json::Value], rare: &[&str]) {
    let page = "docs/columns.md";
    let mut all = names(rare.iter().copied());
    documents.iter().for_each(|document| all.extend(keys_within(document)));
    same(page, heading, &all);
    let text = Page::read(page).text;
    let (_, below) = text.split_once(heading).unwrap();
    let section = below.split("\n## ").next().unwrap();
    for document in documents {
        let version = format!("version of this format, {} |", document["schema_version"]);
        assert!(section.contains(&version), "{heading}: {version}");
    }
}

#[test]
fn the_columns_of_the_records_are_those_of_the_writer() {
    let page = "docs/columns.md";
    let text = Page::read(page);
    let row = names(Row::COLUMNS.iter().map(|(name, _)| *name));
    let headings = [
        "### Which trial",
        "### What ran",
        "### What was expected",
        "### What came of it",
        "### Under which conditions",
    ];
    let documented: Vec<String> = headings.iter().flat_map(|heading| text.first_cells(heading)).collect();
    assert_eq!(documented.len(), row.len(), "a column is there twice, or missing");
    assert_eq!(documented.into_iter().collect::<Names>(), row);
    assert!(text.text.contains(&format!("The row schema has version {ROW_SCHEMA}.")));
    same(page, "## phases/N.parquet", &names(PhaseTime::COLUMNS.iter().map(|(name, _)| *name)));
    let earlier = serde_json::from_str::<Earlier>(&format!("{{\"{UNKNOWN}\": 1}}"));
    same(page, "## earlier.jsonl", &known(earlier.err()));
}

#[test]
fn the_results_of_runs_have_the_keys_of_the_page() {
    let folder = tempfile::tempdir().unwrap();
    let dat = hpl_dat(folder.path(), 200, 32, 1, 1);
    let dat = dat.to_str().unwrap();
    let keys = |more: &[&str]| {
        let result = folder.path().join("result.json");
        let output = tune(["run", "--dat", dat, "--result", result.to_str().unwrap()].iter().chain(more));
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        let value: serde_json::Value = serde_json::from_str(&fs::read_to_string(result).unwrap()).unwrap();
        names(value.as_object().unwrap().keys().map(String::as_str))
    };
    let (whole, windows, pair) = (keys(&[]), keys(&["--windows", "0:2"]), keys(&["--reference", dat]));
    let page = Page::read("docs/columns.md");
    let documented = page.first_cells("## result.json");
    let all: Names = whole.union(&windows).cloned().collect();
    assert_eq!(documented, all);
    for key in pair {
        assert!(page.codes().contains(&key), "columns.md says nothing of {key}");
    }
}

#[test]
fn the_keys_of_a_machine_description_are_those_of_its_reader() {
    let page = "docs/machine-toml.md";
    let tables = known(Machine::parse(&format!("{UNKNOWN} = 1")).err());
    for name in &tables {
        let single = ["host", "accelerator", "offload", "device", "timeline", "choices"].contains(&name.as_str());
        let table = if single { format!("[{name}]") } else { format!("[[{name}]]") };
        let mut keys = known(Machine::parse(&format!("{table}\n{UNKNOWN} = 1")).err());
        match name.as_str() {
            "rate" => keys.extend(["dgemm", "dtrsm", "panel", "swap"].map(str::to_owned)),
            "phase" => keys.extend(["fact", "rows-here", "rows-exchanged", "update", "trsv"].map(str::to_owned)),
            _ => {}
        }
        same(page, &format!("## {table}"), &keys);
    }
}

#[test]
fn the_keys_of_a_comparison_and_of_the_doctor_are_those_that_are_printed() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("HPL.out");
    let result = "WR11C2R4 8000 128 1 2 3.50 9.7500e+01\n||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)= 2.1e-03 ...... PASSED\n";
    fs::write(&output, result).unwrap();
    let path = output.to_str().unwrap();
    let printed = tune(["compare", path, path, "--json"]);
    let report: serde_json::Value = serde_json::from_slice(&printed.stdout).unwrap();
    let keys = |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<Names>();
    let known = keys(&report).union(&keys(&report["a"])).cloned().collect();
    same("docs/columns.md", "## JSON of a comparison", &known);
    let advice: serde_json::Value = serde_json::from_slice(&tune(["doctor", "--json"]).stdout).unwrap();
    same("docs/columns.md", "## JSON of the doctor", &keys(&advice));
    let codes = Page::read("docs/columns.md").codes();
    let checks = keys(&advice["checks"][0]);
    assert!(checks.iter().all(|key| codes.contains(key)), "{checks:?}");
}

#[test]
fn the_keys_of_other_documents_are_those_that_are_printed() {
    let printed = |args: &[&str]| -> serde_json::Value {
        let output = tune(args.iter().chain(&["--json"]));
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", err(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let one_rank = ["predict", "--machine", "p100-cluster", "--nodes", "1", "--p", "1", "--q", "1"];
    let predictions = [
        printed(&["predict", "--machine", "dahu", "--n", "20000"]),
        printed(&one_rank),
        printed(&["predict", "--machine", "p100-cluster", "--measured"]),
    ];
    same_json("## JSON of a prediction", &predictions, &[]);
    let weights = printed(&["weights", "--machine", "isabella-hpc2", "--p", "4"]);
    same_json("## JSON of weights", &[weights], &["error"]);
    same_json("## JSON of a search space", &[printed(&["space", "--n", "2000"])], &[]);
    let shared = [
        printed(&["balance", "--rows", "200", "--cols", "200", "--repeats", "1"]),
        printed(&["balance", "--simulate", "4.22,0.58"]),
    ];
    same_json("## JSON of a shared product", &shared, &[]);
    let landscape = root().join("datasets/landscapes/xhpl-busy-n4000.toml");
    let replay = ["replay", landscape.to_str().unwrap(), "--quiet", "--seeds", "1", "--strategy", "random"];
    let replays = [&["--evals", "20"], &["--session", "4"]].map(|more| printed(&[&replay[..], &more[..]].concat()));
    same_json("## JSON of a replay", &replays, &["at_most"]);
}

/// A job that prints what its ranks are, of which the second is slow.
#[test]
fn the_keys_of_a_survey_are_those_that_are_printed() {
    let rank = |rank: usize, rate_gflops: f64| {
        let link =
            LinkSurvey { other: 1 - rank, latency_s: 1e-6, gbytes_per_s: 1.0, spread: 0.0, alone_gbytes_per_s: None };
        RankSurvey {
            rank,
            host: format!("n{rank}"),
            memory_bytes: 1 << 30,
            dgemm_gflops: vec![rate_gflops],
            hpl_gflops: vec![rate_gflops],
            links: vec![link],
            ..RankSurvey::default()
        }
    };
    let survey = Survey { kernels: "builtin".to_owned(), ranks: vec![rank(0, 9.0), rank(1, 5.0)] };
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("xhpl");
    let answer = serde_json::to_string(&survey).unwrap();
    fs::write(&program, format!("#!/bin/sh\necho '{answer}'\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let flags = ["survey", "--json", "--ranks", "2", "--launcher", "none", "--program"];
    let output = hpl_tune().args(flags).arg(&program).current_dir(&folder).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    same_json("## JSON of a survey", &[serde_json::from_slice(&output.stdout).unwrap()], &[]);
}

#[test]
fn the_keys_of_input_files_are_those_of_their_readers() {
    let page = "docs/input-files.md";
    let unknown = |table: &str| format!("{table}\n{UNKNOWN} = 1\n");
    let mut space = known(Limits::parse(&unknown("[nb]")).err());
    let dimensions = Limits::parse("[no_such_dimension]\nfixed = 1").unwrap_err().to_string();
    space.extend(dimensions.split_once("the dimensions are ").unwrap().1.split(", ").map(str::to_owned));
    same(page, "## space.toml: what is searched", &space);
    same(page, "## engine-params.toml: what HPL.dat cannot say", &known(EngineFile::parse(&unknown("")).err()));
    same(page, "## weights.toml: shares of unequal ranks", &known(WeightsFile::parse(&unknown("")).err()));
    let profile = |table: &str| known(toml::from_str::<Profile>(&unknown(table)).err());
    let all = ["", "[patterns]", "[[dimension]]"].into_iter().flat_map(profile).collect();
    same(page, "## The profile of another HPL", &all);
    same(page, "## A simulated cluster", &known(SimulatedCluster::parse(&unknown("")).err()));
    let description = |table: &str| known(toml::from_str::<Description>(&unknown(table)).err());
    same(page, "## A recorded landscape", &["", "[[dimension]]"].into_iter().flat_map(description).collect());
    let codes = Page::read(page).codes();
    let nested = ["[value]", "[cost]", "[failure]", "[model]"].into_iter().flat_map(description);
    let nested = nested.chain(
        ["[[slow]]", "[[change]]"].into_iter().flat_map(|table| known(SimulatedCluster::parse(&unknown(table)).err())),
    );
    for key in nested {
        assert!(codes.contains(&key), "{page} says nothing of {key}");
    }
}

#[test]
fn the_keys_of_a_session_are_those_of_its_reader() {
    let page = "docs/run-folder.md";
    let session = |table: &str| known(toml::from_str::<Session>(&format!("{table}\n{UNKNOWN} = 1\n")).err());
    same(page, "## session.toml", &session(""));
    let codes = Page::read(page).codes();
    for key in session("[mpi_job]").union(&session("[unequal]")) {
        assert!(codes.contains(key), "{page} says nothing of {key}");
    }
}

/// Files that the code of the run folder names, and those that a session leaves.
#[test]
fn the_files_of_a_run_folder_are_on_its_page() {
    let page = Page::read("docs/run-folder.md");
    let text = fs::read_to_string(root().join("tuner/src/record/folder/mod.rs")).unwrap();
    let code = text.split("mod tests").next().unwrap();
    let joined = code.split(".join(\"").skip(1).filter_map(|rest| rest.split('"').next());
    let mut files = names(joined.filter(|name| !name.is_empty() && *name != "runs"));
    let parent = tempfile::tempdir().unwrap();
    let folder = simulated_session(parent.path());
    let list = |path| fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    files.extend(list(folder.clone()));
    files.extend(list(folder.join("trials/0")));
    assert!(files.len() > 20, "{files:?}");
    let codes = page.codes();
    for file in files {
        let said = |code: &String| {
            code == &file || code.starts_with(&format!("{file}/")) || code.starts_with(&format!("{file}."))
        };
        assert!(codes.iter().any(said), "run-folder.md says nothing of {file}");
    }
    let space: toml::Table = toml::from_str(&fs::read_to_string(folder.join("space.toml")).unwrap()).unwrap();
    let dim = space["dim"][0].as_table().unwrap();
    let keys = space.keys().chain(dim.keys()).map(String::as_str);
    same("docs/run-folder.md", "## space.toml of the run folder", &names(keys));
}

/// The names that the code of the summary gives its lines.
#[test]
fn the_lines_of_the_summary_are_explained() {
    let code = fs::read_to_string(root().join("tuner/src/report/table.rs")).unwrap();
    let named = code.split("line(").filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next());
    let lines = names(named.filter(|name| !name.is_empty()));
    assert!(lines.len() > 10, "{lines:?}");
    same("docs/report.md", "## The lines of the summary", &lines);
}
