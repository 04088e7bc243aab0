//! What `packaging/build` makes: unpacked, looked at and run.
//!
//! `needs_packages_*` pack the programs of the workspace as they are, in seconds. `released_*` build as for a release, by zig for an old C library,
//! which takes minutes: `tests/run --release-builds`.

mod completions;
mod released;
mod system;
mod wheel;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use crate::docs::pages::root;
use crate::program::{err, hpl_dat, out};

/// Both programs by their paths.
struct Programs {
    tune: PathBuf,
    xhpl: PathBuf,
}

/// Makes packages in `out` and returns what was printed.
fn packed(kinds: &[&str], more: &[&str], out: &Path) -> Output {
    let mut command = Command::new(root().join("packaging/build"));
    command.args(kinds).args(more).arg("--out").arg(out);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", err(&output));
    output
}

/// A folder with a wheel, a .deb and an .rpm of the programs of the workspace, made once for all tests. It stays in target/ until the next time: a
/// temporary one would stay for ever, as nothing static is dropped.
fn packages() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let make = || {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("packages");
        let _ = fs::remove_dir_all(&folder);
        packed(&["wheel", "deb", "rpm"], &["--programs", programs().to_str().unwrap()], &folder);
        folder
    };
    FOLDER.get_or_init(make)
}

/// The folder of the programs of the workspace.
fn programs() -> &'static Path {
    let folder = Path::new(env!("CARGO_BIN_EXE_hpl-tune")).parent().unwrap();
    assert!(folder.join("xhpl").is_file(), "no xhpl in {}: cargo build --release -p hpl", folder.display());
    folder
}

/// The one file of a folder whose name ends so.
fn ending(folder: &Path, end: &str) -> PathBuf {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let found: Vec<PathBuf> = paths.filter(|path| path.to_str().unwrap().ends_with(end)).collect();
    assert_eq!(found.len(), 1, "{end} in {}", folder.display());
    found[0].clone()
}

/// Standard output of a command that must succeed.
fn said(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}{}", out(&output), err(&output));
    out(&output)
}

/// The path of a program of this machine.
fn which(name: &str) -> PathBuf {
    let folders = std::env::var_os("PATH").unwrap();
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file()).unwrap()
}

/// What `--version` of both programs says: version, commit, kernels.
fn check_versions(start: impl Fn(&Path) -> Command, programs: &Programs) {
    for (program, name) in [(&programs.tune, "hpl-tune"), (&programs.xhpl, "xhpl")] {
        let text = said(start(program).arg("--version"));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], format!("{name} {}", env!("CARGO_PKG_VERSION")), "{text}");
        assert!(
            lines[1].starts_with("commit: ") && lines[2].starts_with("kernels: builtin avx512, avx2, portable"),
            "{text}"
        );
        assert_eq!(said(start(program).arg("-V")).trim_end(), lines[0]);
    }
}

/// A run of both programs in `folder`, which `start` sees as its current one.
fn check_runs(start: impl Fn(&Path) -> Command, programs: &Programs, folder: &Path) {
    hpl_dat(folder, 200, 32, 1, 1);
    assert!(said(&mut start(&programs.xhpl)).contains("PASSED"));
    assert!(said(start(&programs.tune).args(["run", "--dat", "HPL.dat"])).contains("PASSED"));
}

/// The completions for zsh below a folder `share`: in most systems, and in Debian, whose zsh looks for those of packages elsewhere.
const ZSH: &str = "zsh/site-functions/_hpl-tune";
const ZSH_OF_DEBIAN: &str = "zsh/vendor-completions/_hpl-tune";

/// Pages of the manual, completions and licences below a folder `share`; names of pages end with `end`, and `zsh` are the completions for it.
fn check_shared(share: &Path, end: &str, zsh: &str) {
    for verb in ["", "-run", "-watch", "-mpi-setup", "-completions"] {
        let page = share.join(format!("man/man1/hpl-tune{verb}.1{end}"));
        assert!(page.is_file(), "{}", page.display());
    }
    for file in [
        &format!("man/man1/xhpl.1{end}"),
        "bash-completion/completions/hpl-tune",
        zsh,
        "fish/vendor_completions.d/hpl-tune.fish",
        "doc/hpl-tune/calls.c",
        "doc/hpl-tune/LICENSE-MIT",
    ] {
        assert!(fs::metadata(share.join(file)).is_ok_and(|file| file.len() > 0), "{file}");
    }
    let notices = fs::read_to_string(share.join("doc/hpl-tune/third-party.txt")).unwrap();
    assert!(
        ["\nclap 4", "plotly.js 4", "Permission is hereby granted"].iter().all(|words| notices.contains(words)),
        "licences of what is linked"
    );
}

/// Words of the checksum of each file of a folder.
fn sums(folder: &Path) -> String {
    said(Command::new("sh").args(["-c", "sha256sum *"]).current_dir(folder))
}

#[test]
#[ignore = "needs python3 with venv, dpkg-deb and rpm: tests/run --install"]
fn needs_packages_made_again_are_equal() {
    let again = tempfile::tempdir().unwrap();
    // Also by a user whose files nobody else may read.
    let mut build = Command::new("sh");
    build.args(["-c", "umask 077; exec \"$@\"", "sh"]).arg(root().join("packaging/build"));
    build.args(["wheel", "deb", "rpm", "--out"]).arg(again.path()).arg("--programs").arg(programs());
    said(&mut build);
    assert_eq!(sums(again.path()), sums(packages()));
}

#[test]
#[ignore = "needs python3 with venv, dpkg-deb and rpm: tests/run --install"]
fn needs_packages_a_time_before_zip_files_is_taken_and_one_that_is_none_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = |time: &str| {
        let mut build = Command::new(root().join("packaging/build"));
        build.args(["wheel", "--out"]).arg(folder.path()).arg("--programs").arg(programs());
        build.env("SOURCE_DATE_EPOCH", time).output().unwrap()
    };
    let output = at("0");
    assert!(output.status.success(), "{}", err(&output));
    let list = said(Command::new("python3").args(["-m", "zipfile", "-l"]).arg(ending(folder.path(), ".whl")));
    assert!(list.contains("1980-01-01 00:00:00"), "{list}");
    let output = at("noon");
    assert!(err(&output).starts_with("packaging/build: SOURCE_DATE_EPOCH=noon: "), "{}", err(&output));
}

#[test]
#[ignore = "needs python3 with venv, dpkg-deb and rpm: tests/run --install"]
fn needs_packages_missing_programs_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(root().join("packaging/build"));
    let output = command.args(["deb", "--out"]).arg(folder.path().join("out")).arg("--programs").arg(folder.path());
    let output = output.output().unwrap();
    assert!(!output.status.success() && err(&output).contains("cargo build --release"), "{}", err(&output));
}

/// What Python prints of `script`, which has packaging/programs.py as `programs` and this folder as `home`.
fn of_programs(home: &Path, script: &str) -> String {
    const BEFORE: &str = "
import os, pathlib, sys, types
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import programs
home = pathlib.Path(sys.argv[2])
";
    let mut python = Command::new(which("python3"));
    said(python.args(["-c", &format!("{BEFORE}{script}")]).arg(root().join("packaging")).arg(home))
}

/// The sources of the registry kept their path of this machine in the programs where cargo had fetched nothing before the build.
#[test]
#[ignore = "needs python3 with venv, dpkg-deb and rpm: tests/run --install"]
fn needs_packages_the_first_build_of_a_machine_names_no_path_of_it() {
    const ASK: &str = "
(home / 'sources/target/packaging').mkdir(parents=True)
os.environ['CARGO_HOME'] = str(home)

def run(command, **options):
    if 'fetch' in command:
        (home / 'registry/src/index').mkdir(parents=True)
    if 'zigbuild' in command:
        print(options['env']['RUSTFLAGS'])
    return ''

programs.run = run
programs.needed_glibc = lambda program: programs.GLIBC
text = lambda name: b'one==1'
programs.built(types.SimpleNamespace(root=home / 'sources', processor='x86_64', commit='0', text=text))
";
    let home = tempfile::tempdir().unwrap();
    let flags = of_programs(home.path(), ASK);
    let registry = home.path().join("registry/src/index");
    assert!(flags.contains(&format!("--remap-path-prefix={}=/cargo", registry.display())), "{flags}");
}

/// Those of an older zig, and of a Python that was updated and no longer finds its packages, were used for ever.
#[test]
#[ignore = "needs python3 with venv, dpkg-deb and rpm: tests/run --install"]
fn needs_packages_tools_of_other_requirements_are_made_anew() {
    const ASK: &str = "
os.environ['CARGO_HOME'] = str(home)
made = []

def run(command, **options):
    if 'venv' in command:
        made.append(command)
        command[-1].mkdir(parents=True, exist_ok=True)
    return ''

programs.run = run
programs.needed_glibc = lambda program: programs.GLIBC
for version in ['1', '1', '2']:
    text = lambda name: b'zig==' + version.encode()
    programs.built(types.SimpleNamespace(root=home, processor='x86_64', commit='0', text=text))
    print(len(made))
sys.version = 'another'
programs.built(types.SimpleNamespace(root=home, processor='x86_64', commit='0', text=text))
print(len(made))
";
    let home = tempfile::tempdir().unwrap();
    assert_eq!(of_programs(home.path(), ASK), "1\n1\n2\n3\n");
}

/// A readelf in the search path whose words are translated unless it is asked for English ones, and which finds nothing in `static`.
const READELF: &str = r#"#!/bin/sh
name=Nom
[ "$LC_ALL" = C ] && name=Name
[ "$2" = static ] && exit 0
echo "  0x0010:   $name: GLIBC_2.17  Flags: none  Version: 2"
"#;

#[test]
#[ignore = "needs python3 with venv, dpkg-deb and rpm: tests/run --install"]
fn needs_packages_the_c_library_is_found_in_any_language() {
    const ASK: &str = "
import sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import programs
print(programs.needed_glibc(sys.argv[2]))
";
    let folder = tempfile::tempdir().unwrap();
    let readelf = folder.path().join("readelf");
    fs::write(&readelf, READELF).unwrap();
    fs::set_permissions(&readelf, fs::Permissions::from_mode(0o755)).unwrap();
    let old = std::env::var_os("PATH").unwrap();
    let path = std::env::join_paths([folder.path().to_owned()].into_iter().chain(std::env::split_paths(&old))).unwrap();
    let ask = |program: &str| {
        let mut python = Command::new(which("python3"));
        python.args(["-c", ASK]).arg(root().join("packaging")).arg(program);
        python.env("PATH", &path).env("LC_ALL", "fr_FR.UTF-8").output().unwrap()
    };
    let output = ask("xhpl");
    assert_eq!(out(&output), "(2, 17)\n", "{}", err(&output));
    assert!(err(&ask("static")).contains("static names no version of glibc"), "{}", err(&ask("static")));
}
