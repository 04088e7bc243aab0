//! `tests/run --install` on a system of its own: programs that answer as those of the system do, and no other ones.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::docs::pages::root;
use crate::program::{err, out};

/// Programs of this machine that the script needs.
const NEEDED: [&str; 12] = ["awk", "bash", "cat", "date", "dirname", "env", "grep", "ls", "mktemp", "rm", "tee", "sh"];

/// A program that does this.
fn script(path: &Path, body: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("#!/bin/sh\n{body}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// The path of a program of this machine.
fn which(name: &str) -> PathBuf {
    let folders = std::env::var_os("PATH").unwrap();
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file()).unwrap()
}

/// A tree with `tests/run`, and beside it the programs of a system on which nothing is installed and the user is not root.
fn system() -> TempDir {
    let home = tempfile::tempdir().unwrap();
    let (tree, bin) = (home.path().join("a tree"), home.path().join("bin"));
    fs::create_dir_all(tree.join("tests")).unwrap();
    fs::copy(root().join("tests/run"), tree.join("tests/run")).unwrap();
    // What pip installs is there.
    script(&tree.join("target/readers/bin/python"), "exit 0");
    fs::create_dir_all(tree.join("target/nvrtc/nvidia/cuda_nvrtc/lib")).unwrap();
    for (name, body) in [
        ("cargo", "exit 0"),
        ("id", "echo 1000"),
        ("ldconfig", "exit 0"),
        ("sudo", r#"exec env -i PATH="$PATH" "$@""#),
        ("uname", "echo x86_64"),
    ] {
        script(&bin.join(name), body);
    }
    for name in NEEDED {
        symlink(which(name), bin.join(name)).unwrap();
    }
    home
}

/// `tests/run --install` there.
fn install(home: &Path) -> Output {
    let mut bash = Command::new(which("bash"));
    bash.arg(home.join("a tree/tests/run")).arg("--install").env("PATH", home.join("bin")).output().unwrap()
}

#[test]
fn packages_that_the_system_lacks_are_named_and_the_others_are_installed() {
    let home = system();
    script(&home.path().join("bin/apt-get"), r#"echo "$DEBIAN_FRONTEND $*" >> asked"#);
    script(&home.path().join("bin/apt-cache"), r#"[ "$2" = libamdhip64-5 ] || echo "  Candidate: 1.0-1""#);
    let output = install(home.path());
    let said = format!("{}{}", out(&output), err(&output));
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(err(&output).contains("this system has no package named libamdhip64-5\n"), "{said}");
    assert!(out(&output).contains("not installed, as this system has no such package: libamdhip64-5\n"), "{said}");
    let asked = fs::read_to_string(home.path().join("a tree/asked")).unwrap();
    let words = asked.lines().last().unwrap();
    assert!(words.starts_with("noninteractive install ") && words.contains(" libopenblas0-pthread"), "{asked}");
    assert!(!words.contains("libamdhip64"), "{asked}");
}

#[test]
fn a_system_without_apt_get_is_told_the_way_out() {
    let home = system();
    let output = install(home.path());
    assert_eq!(output.status.code(), Some(2), "{}{}", out(&output), err(&output));
    assert!(err(&output).starts_with("tests/run: --install needs apt-get"), "{}", err(&output));
}
