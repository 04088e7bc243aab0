//! The .deb and the .rpm, unpacked into a root of their own and run there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::{Programs, ZSH, ZSH_OF_DEBIAN, check_runs, check_shared, check_versions, ending, packages, said, which};

/// The programs by their paths in a root.
pub(super) fn usr_bin() -> Programs {
    Programs { tune: "/usr/bin/hpl-tune".into(), xhpl: "/usr/bin/xhpl".into() }
}

/// A program inside of `root`, with no variable and nothing of this machine but its processors and memory.
pub(super) fn inside(root: &Path, program: &Path) -> Command {
    fs::create_dir_all(root.join("proc")).unwrap();
    let mut command = Command::new(which("unshare"));
    if !nix::unistd::Uid::effective().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["--mount", "--pid", "--fork"]).arg(format!("--mount-proc={}", root.join("proc").display()));
    command.arg(which("chroot")).arg(root).arg(program).env_clear().env("PATH", "").stdin(Stdio::null());
    command
}

/// Puts the shared libraries of this machine that the programs in `root` name into it.
pub(super) fn with_libraries(root: &Path) {
    fs::create_dir_all(root.join("tmp")).unwrap();
    for name in ["hpl-tune", "xhpl"] {
        let list = said(Command::new("ldd").arg(root.join("usr/lib/hpl-tune").join(name)));
        for path in list.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from) {
            let target = root.join(path.strip_prefix("/").unwrap());
            fs::create_dir_all(target.parent().unwrap()).unwrap();
            fs::copy(&path, target).unwrap();
        }
    }
}

/// What holds in a root that has the package and the C library; `zsh` are the completions for it below usr/share.
pub(super) fn check(root: &Path, zsh: &str) {
    let programs = usr_bin();
    let start = |program: &Path| inside(root, program);
    check_versions(start, &programs);
    check_runs(start, &programs, root);
    check_shared(&root.join("usr/share"), ".gz", zsh);
    assert_eq!(fs::read_link(root.join("usr/bin/hpl-tune")).unwrap(), Path::new("../lib/hpl-tune/hpl-tune"));
    let page = Command::new("gzip").args(["-dc"]).arg(root.join("usr/share/man/man1/hpl-tune.1.gz")).output().unwrap();
    assert!(String::from_utf8_lossy(&page.stdout).contains(".TH hpl-tune 1"));
}

#[test]
#[ignore = "needs python3 with venv, dpkg-deb and rpm: tests/run --install"]
fn needs_packages_a_deb_runs_in_a_bare_root() {
    let deb = ending(packages(), ".deb");
    let field = |name: &str| said(Command::new("dpkg-deb").arg("-f").arg(&deb).arg(name)).trim().to_owned();
    assert_eq!((field("Package").as_str(), field("Version").as_str()), ("hpl-tune", env!("CARGO_PKG_VERSION")));
    assert!(field("Depends").contains("libc6 (>= 2."), "{}", field("Depends"));
    let root = TempDir::new().unwrap();
    said(Command::new("dpkg-deb").arg("-x").arg(&deb).arg(root.path()));
    assert!(root.path().join("usr/share/doc/hpl-tune/copyright").is_file());
    with_libraries(root.path());
    check(root.path(), ZSH_OF_DEBIAN);
    let owners = said(Command::new("dpkg-deb").arg("-c").arg(&deb));
    assert!(owners.lines().all(|line| line.contains(" root/root ")), "{owners}");
}

#[test]
#[ignore = "needs python3 with venv, dpkg-deb and rpm: tests/run --install"]
fn needs_packages_an_rpm_runs_in_a_bare_root() {
    let rpm = ending(packages(), ".rpm");
    let query = |words: &[&str]| said(Command::new("rpm").arg("-qp").args(words).arg(&rpm));
    let facts = query(&["--queryformat", "%{NAME} %{VERSION} %{LICENSE}"]);
    assert_eq!(facts, format!("hpl-tune {} MIT OR Apache-2.0", env!("CARGO_PKG_VERSION")));
    assert!(query(&["--requires"]).contains("libc.so.6(GLIBC_2."), "{}", query(&["--requires"]));
    let root = TempDir::new().unwrap();
    let unpack = "rpm2cpio \"$1\" | cpio -id --quiet";
    said(Command::new("sh").args(["-c", unpack, "sh"]).arg(&rpm).current_dir(root.path()));
    with_libraries(root.path());
    check(root.path(), ZSH);
}
