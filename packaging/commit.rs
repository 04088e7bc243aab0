//! Which commit a program is built from: the build script of the packages `hpl` and `hpl-tune`, whose programs say it with `--version`.
//!
//! Taken is the first that is there: the variable `HPL_TUNE_COMMIT`; `packaging/COMMIT`, which `git archive` has filled in; the
//! repository, with a word where sources were changed since the commit. Without them it is `unknown`.

use std::path::Path;
use std::process::Command;

/// What a build of the package `hpl` is made of; of the whole program.
const ENGINE: [&str; 3] = ["space/src", "hpl/src", "Cargo.lock"];
const PROGRAM: [&str; 5] = ["space/src", "hpl/src", "objectives/src", "tuner/src", "Cargo.lock"];

fn main() {
    let engine = std::env::var("CARGO_PKG_NAME").is_ok_and(|name| name == "hpl");
    let sources: &[&str] = if engine { &ENGINE } else { &PROGRAM };
    // A change of a source builds the package again anyhow; a commit alone does not, so what is said holds for these sources.
    for source in sources {
        println!("cargo::rerun-if-changed=../{source}");
    }
    println!("cargo::rerun-if-changed=../packaging/COMMIT");
    println!("cargo::rerun-if-env-changed=HPL_TUNE_COMMIT");
    let commit = given().or_else(archived).or_else(|| in_repository(sources));
    println!("cargo::rustc-env=HPL_BUILT_FROM={}", commit.as_deref().unwrap_or("unknown"));
}

/// The commit that whoever builds has named.
fn given() -> Option<String> {
    std::env::var("HPL_TUNE_COMMIT").ok().filter(|name| !name.is_empty() && !name.contains('\n'))
}

/// The commit of an archive: the first word, where `git archive` has put it in the place of `$Format…$`.
fn archived() -> Option<String> {
    let text = std::fs::read_to_string("../packaging/COMMIT").ok()?;
    let word = text.split_whitespace().next()?;
    word.chars().all(|c| c.is_ascii_hexdigit()).then(|| word.to_owned())
}

/// The commit of the repository that this folder is the root of.
fn in_repository(sources: &[&str]) -> Option<String> {
    if !Path::new("../.git").exists() {
        return None;
    }
    let commit = git(&["rev-parse", "HEAD"])?;
    let changed = git(&[&["status", "--porcelain", "--untracked-files=no", "--"], sources].concat())?;
    Some(if changed.is_empty() { commit } else { format!("{commit}, with changes") })
}

/// What git prints in the root, which must be there and succeed; it writes nothing.
fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git").args(["-C", "..", "--no-optional-locks"]).args(words).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
