//! The corpora of the fuzz targets: every file that was kept is read as the program reads it (`fuzz/targets`).

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tuner::record::decode::MEMORY_BYTES;

use crate::docs::pages::root;
use crate::program::err;

#[path = "../fuzz/targets/mod.rs"]
mod targets;

use targets::TARGETS;

/// What all corpora take at most, in bytes.
const SMALL: u64 = 1_000_000;

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

#[test]
fn every_input_that_was_kept_is_read_without_a_panic() {
    let corpora = root().join("fuzz/corpus");
    let mut read = 0;
    for target in TARGETS {
        assert!((target.memory_mib as u64) << 20 <= MEMORY_BYTES, "{} may take more than a child", target.name);
        let files = entries(&corpora.join(target.name));
        assert!(!files.is_empty(), "{} has no corpus", target.name);
        for file in files {
            let bytes = std::fs::read(&file).unwrap();
            let name = file.strip_prefix(root()).unwrap().display().to_string();
            let done = std::panic::catch_unwind(|| (target.run)(&bytes));
            assert!(done.is_ok(), "{name}: FUZZ_TARGET={} of fuzz/run panics on it", target.name);
            read += 1;
        }
    }
    assert!(read > 200, "{read} files");
}

#[test]
fn the_corpora_are_small_and_of_targets() {
    let mut bytes = 0;
    for folder in entries(&root().join("fuzz/corpus")) {
        let name = folder.file_name().unwrap().to_str().unwrap();
        assert!(TARGETS.iter().any(|target| target.name == name), "{name} is no target");
        bytes += entries(&folder).iter().map(|file| file.metadata().unwrap().len()).sum::<u64>();
    }
    assert!(bytes < SMALL, "{bytes} bytes");
}

/// `fuzz/` has a lock file of its own, which a new dependency of the program has to reach, too.
#[test]
fn the_lock_file_of_the_fuzz_program_is_up_to_date() {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--format-version", "1", "--locked", "--offline", "--manifest-path"]);
    let output = cargo.arg(root().join("fuzz/Cargo.toml")).output().unwrap();
    // Offline, its own packages may be missing: then it has at least agreed with the lock file.
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("lock file"), "{said}; run cargo metadata --manifest-path fuzz/Cargo.toml, and commit it");
}

/// `fuzz/shrink` with a program that does this in the place of libFuzzer: the names that the corpus has then, and what was said.
fn shrunk(program: &str) -> (Vec<String>, String) {
    let home = tempfile::tempdir().unwrap();
    let corpus = home.path().join("corpus/target");
    std::fs::create_dir_all(&corpus).unwrap();
    for name in ["seed", "0123456789ab"] {
        std::fs::write(corpus.join(name), name).unwrap();
    }
    std::fs::copy(root().join("fuzz/shrink"), home.path().join("shrink")).unwrap();
    let fuzzer = home.path().join("target/release/hpl-tune-fuzz");
    std::fs::create_dir_all(fuzzer.parent().unwrap()).unwrap();
    std::fs::write(&fuzzer, format!("#!/bin/sh\n{program}\n")).unwrap();
    std::fs::set_permissions(&fuzzer, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut bash = Command::new("bash");
    let output = bash.arg(home.path().join("shrink")).arg("target").env("FUZZ_BUILT", "1").output().unwrap();
    let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    (entries(&corpus).iter().map(name).collect(), err(&output))
}

#[test]
fn a_corpus_is_kept_where_its_merge_fails() {
    let (kept, said) = shrunk("echo 'libFuzzer: out-of-memory'; exit 71");
    assert_eq!(kept, ["0123456789ab", "seed"], "{said}");
    assert!(said.contains("out-of-memory\nfuzz/shrink: the merge did not end"), "{said}");
    let (kept, said) = shrunk("echo 'MERGE-OUTER: 0 new files with 0 new features added; 0 new coverage edges'");
    assert_eq!(kept, ["seed"], "{said}");
}
