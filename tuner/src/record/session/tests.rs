use space::Share;

use super::*;
use crate::record::arbitrary::row;

fn session() -> Session {
    let kernels = Some(KernelChoice::Blas("/usr/lib/libopenblas.so.0".into()));
    Session { seed: u64::MAX, kernels, ..crate::report::summary::tests::session() }
}

#[test]
fn a_session_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.toml");
    let unequal = Unequal {
        speeds: vec![Share::new(0.3).unwrap(); 2],
        kernels: vec![KernelChoice::Builtin; 2],
        ..Unequal::default()
    };
    let rule = ExpertChoice::Rule(Expert { ranks: 2, threads: 8, nb: 240 });
    let none = ExpertChoice::None { reason: "the vendor of the processor is unknown".into() };
    let expert = [None, Some(rule), Some(none)];
    for (unequal, expert) in [Unequal::default(), unequal.clone(), unequal].into_iter().zip(expert) {
        let n = expert.as_ref().map(|_| 8000);
        let groups = n.map(|_| GroupSizes(vec![1, 4]));
        let saved = Session { n, unequal, expert, groups, ..session() };
        saved.save(&path).unwrap();
        assert_eq!(Session::load(&path).unwrap(), saved);
    }
}

#[test]
fn the_command_says_whether_the_folder_is_shared() {
    let is_shared = |command: &str| Session { command: command.into(), ..session() }.is_shared();
    assert!(is_shared("hpl-tune --budget 2m --shared-folder"));
    assert!(!is_shared("hpl-tune --budget 2m --out 'a --shared-folder'"));
}

fn version(version: u32) -> String {
    format!("schema_version = {version}")
}

#[test]
fn wrong_files_are_named_with_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.toml");
    session().save(&path).unwrap();
    let good = std::fs::read_to_string(&path).unwrap();
    for (bad, expected) in [
        (good.replace("budget_s", "budgie_s"), "budgie_s"),
        (good.replace(&version(SESSION_SCHEMA), &version(SESSION_SCHEMA + 1)), "newer"),
        (good.replace("18446744073709551615", "-1"), "invalid digit"),
        (String::new(), "schema_version"),
        (good.replace("elapsed_s = 12.5", "elapsed_s = nan"), "elapsed_s is NaN"),
        (format!("{good}\n[[nodes]]\nname = \"a\"\ncount = 1\ncores = 2\npeak_gflops = nan\n"), "peak_gflops is NaN"),
    ] {
        std::fs::write(&path, bad).unwrap();
        let message = Session::load(&path).unwrap_err().to_string();
        assert!(message.contains(expected) && message.contains("session.toml"), "{message}");
    }
}

#[test]
fn a_session_of_another_engine_names_no_kernels() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session.toml");
    let notes = vec!["the memory of the accelerators is unknown".to_owned()];
    let foreign = Session { engine: "netlib".into(), kernels: None, notes, ..session() };
    foreign.save(&path).unwrap();
    assert!(!std::fs::read_to_string(&path).unwrap().contains("kernels"));
    assert_eq!(Session::load(&path).unwrap(), foreign);
}

#[test]
fn the_clock_is_the_later_of_file_and_journal() {
    let session = session();
    assert_eq!(session.used_s::<Row>(&[]), 12.5);
    assert_eq!(session.used_s(&[row(0), row(5)]), 120.0 - 95.0);
}

#[test]
fn what_ran_on_a_host_that_the_session_has_left_is_elsewhere() {
    let session = Session { host: "b".into(), moved_from: vec!["a".into()], ..session() };
    let places = ["a", "b", "b2"].map(|host| session.place_of(&Row { host: host.into(), ..row(0) }));
    assert_eq!(places, [RanOn::OtherNodes, RanOn::AllNodes, RanOn::AllNodes]);
}
