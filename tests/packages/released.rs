//! Packages as they are released: built by zig, installed as users install them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Instant;

use tempfile::TempDir;

use super::{ZSH, ZSH_OF_DEBIAN, check_versions, ending, packed, said, system, wheel, which};
use crate::docs::pages::root;
use crate::program::out;

/// The newest C library that a released program may need.
const GLIBC: (u32, u32) = (2, 17);

/// All packages, made once as for a release.
fn released() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let make = || {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("released");
        let _ = fs::remove_dir_all(&folder);
        let sizes = timed("packaging/build", || packed(&["wheel", "deb", "rpm", "source"], &[], &folder));
        println!("{}", out(&sizes));
        folder
    };
    FOLDER.get_or_init(make)
}

/// Prints how long something took.
fn timed<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let done = work();
    println!("{what}: {:.1} s", start.elapsed().as_secs_f64());
    done
}

#[test]
#[ignore = "minutes: tests/run --release-builds"]
fn released_programs_need_an_old_c_library_and_name_no_path_of_this_machine() {
    let folder = tempfile::tempdir().unwrap();
    said(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(ending(released(), ".whl")).arg(folder.path()));
    let scripts = folder.path().join(format!("hpl_tune-{}.data/scripts", env!("CARGO_PKG_VERSION")));
    assert!(ending(released(), ".whl").to_str().unwrap().contains("manylinux_2_17"));
    let workspace = root().canonicalize().unwrap();
    for name in ["hpl-tune", "xhpl"] {
        let symbols = said(Command::new("objdump").arg("-T").arg(scripts.join(name)));
        let versions = symbols.split("GLIBC_").skip(1).map(|rest| {
            let digits = rest.split(|c: char| !(c.is_ascii_digit() || c == '.')).next().unwrap();
            let mut parts = digits.split('.').map(|part| part.parse::<u32>().unwrap());
            (parts.next().unwrap(), parts.next().unwrap())
        });
        let newest = versions.max().unwrap();
        assert!(newest <= GLIBC && newest.0 == 2, "{name} needs glibc {newest:?}");
        let program = fs::read(scripts.join(name)).unwrap();
        let home = std::env::var("HOME").unwrap() + "/.cargo";
        for path in [workspace.to_str().unwrap(), &home] {
            let found = program.windows(path.len()).any(|bytes| bytes == path.as_bytes());
            assert!(!found, "{name} holds the path {path}");
        }
    }
}

#[test]
#[ignore = "minutes: tests/run --release-builds"]
fn released_wheel_finds_an_hpl_dat() {
    let made = released();
    let (_environment, programs) = timed("a new environment with the wheel in it", || wheel::installed(made));
    let folder = tempfile::tempdir().unwrap();
    let start = |program: &Path| wheel::alone(program, folder.path());
    check_versions(start, &programs);
    let session = ["--budget", "30s", "--n", "1000", "--out", "run"];
    let text = timed("hpl-tune --budget 30s --n 1000", || said(start(&programs.tune).args(session)));
    assert!(text.contains("GFLOP/s") && text.contains("PASSED"), "{text}");
    println!("{text}");
    assert!(folder.path().join("run/HPL.dat").is_file());
}

/// uv and pipx from PyPI, in an environment of their own.
#[test]
#[ignore = "minutes: tests/run --release-builds"]
fn released_wheel_is_run_by_uvx_and_pipx() {
    let folder = tempfile::tempdir().unwrap();
    let bin = folder.path().join("tools/bin");
    said(Command::new("python3").args(["-m", "venv"]).arg(folder.path().join("tools")));
    said(Command::new(bin.join("pip")).args(["install", "--quiet", "uv", "pipx"]));
    let wheel = ending(released(), ".whl");
    let version = format!("hpl-tune {}", env!("CARGO_PKG_VERSION"));
    let caches =
        ["UV_CACHE_DIR", "UV_TOOL_DIR", "PIPX_HOME", "PIPX_BIN_DIR"].map(|name| (name, folder.path().join(name)));
    for (name, words) in [("uvx", ["--from"].as_slice()), ("pipx", &["run", "--spec"])] {
        let mut command = Command::new(bin.join(name));
        command.envs(caches.iter().map(|(name, path)| (*name, path)));
        command.args(words).arg(&wheel).args(["hpl-tune", "--version"]);
        let text = timed(name, || said(&mut command));
        assert!(text.starts_with(&version), "{text}");
    }
}

/// Debian and nothing else, made by debootstrap.
#[test]
#[ignore = "minutes, root and debootstrap: tests/run --release-builds"]
fn released_deb_is_installed_in_a_bare_debian() {
    let system = TempDir::new().unwrap();
    let targets = said(Command::new("apt-get").args([
        "indextargets",
        "--format",
        "$(REPO_URI) $(RELEASE)",
        "Created-By: Packages",
    ]));
    let (archive, release) = targets.lines().next().unwrap().split_once(' ').unwrap();
    let mut debootstrap = Command::new("debootstrap");
    debootstrap.args(["--variant=minbase", release]).arg(system.path()).arg(archive);
    timed("debootstrap", || said(&mut debootstrap));
    fs::copy(ending(released(), ".deb"), system.path().join("hpl-tune.deb")).unwrap();
    let mut install = Command::new(which("chroot"));
    install.arg(system.path()).args(["/usr/bin/dpkg", "-i", "/hpl-tune.deb"]);
    install.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    timed("dpkg -i", || said(&mut install));
    system::check(system.path(), ZSH_OF_DEBIAN);
    let mut remove = Command::new(which("chroot"));
    remove.arg(system.path()).args(["/usr/bin/dpkg", "-r", "hpl-tune"]).env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    said(&mut remove);
    assert!(!system.path().join("usr/bin/hpl-tune").exists() && !system.path().join("usr/lib/hpl-tune").exists());
}

/// By rpm, into a root that has its database and the C library of this machine.
#[test]
#[ignore = "minutes and root: tests/run --release-builds"]
fn released_rpm_is_installed_in_a_bare_root() {
    let system = TempDir::new().unwrap();
    let rpm = |words: &[&str]| {
        let mut command = Command::new("rpm");
        command.arg("--root").arg(system.path()).args(words);
        command
    };
    said(&mut rpm(&["--initdb"]));
    let package = ending(released(), ".rpm");
    // The C library is no package here.
    timed("rpm -i", || said(&mut rpm(&["-i", "--nodeps", package.to_str().unwrap()])));
    assert!(said(&mut rpm(&["-q", "hpl-tune"])).starts_with("hpl-tune-"));
    system::with_libraries(system.path());
    system::check(system.path(), ZSH);
}

/// With an empty home of cargo and, for root, without any network.
#[test]
#[ignore = "minutes: tests/run --release-builds"]
fn released_source_builds_without_a_network() {
    let folder = tempfile::tempdir().unwrap();
    let archive = ending(released(), ".tar.xz");
    timed("unpack", || said(Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(folder.path())));
    let source = folder.path().join(format!("hpl-tune-{}", env!("CARGO_PKG_VERSION")));
    let mut build = Command::new("unshare");
    if !nix::unistd::Uid::effective().is_root() {
        build.args(["--user", "--map-root-user"]);
    }
    build.args([
        "--net",
        env!("CARGO"),
        "build",
        "--release",
        "--offline",
        "--locked",
        "--bins",
        "-p",
        "hpl",
        "-p",
        "hpl-tune",
    ]);
    // Packages in the archive name compilers of their own, which a `rustc` of rustup would take where none is named.
    build.env("RUSTC", Path::new(env!("CARGO")).with_file_name("rustc"));
    build.current_dir(&source).env("CARGO_HOME", folder.path().join("home")).env_remove("CARGO_TARGET_DIR");
    timed("cargo build --offline --locked", || said(&mut build));
    let made = source.join("target/release");
    let programs = super::Programs { tune: made.join("hpl-tune"), xhpl: made.join("xhpl") };
    check_versions(|program| wheel::alone(program, folder.path()), &programs);
    let commit = said(Command::new("git").args(["rev-parse", "HEAD"]).current_dir(root()));
    let text = said(Command::new(&programs.tune).arg("--version"));
    assert!(text.contains(&format!("commit: {}\n", commit.trim())), "{text}");
}
