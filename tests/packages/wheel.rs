//! The wheel, in a Python environment of its own.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use super::{Programs, ZSH, check_runs, check_shared, check_versions, ending, packages, said, which};

/// A new environment with the wheel of a folder in it, and the programs there.
pub(super) fn installed(packages: &Path) -> (TempDir, Programs) {
    let folder = tempfile::tempdir().unwrap();
    said(Command::new("python3").args(["-m", "venv"]).arg(folder.path()));
    let wheel = ending(packages, ".whl");
    let mut pip = Command::new(folder.path().join("bin/pip"));
    said(pip.args(["install", "--quiet", "--no-index", "--disable-pip-version-check"]).arg(wheel));
    let program = |name: &str| folder.path().join("bin").join(name);
    let programs = Programs { tune: program("hpl-tune"), xhpl: program("xhpl") };
    (folder, programs)
}

/// A program with nothing but its own folder: no variable, and no other program on the search path.
pub(super) fn alone(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", "").current_dir(folder);
    command
}

#[test]
#[ignore = "needs python3 with venv, dpkg-deb and rpm: tests/run --install"]
fn needs_packages_a_wheel_runs_with_an_empty_path() {
    let (environment, programs) = installed(packages());
    let folder = tempfile::tempdir().unwrap();
    let start = |program: &Path| alone(program, folder.path());
    check_versions(start, &programs);
    check_runs(start, &programs, folder.path());
    check_shared(&environment.path().join("share"), "", ZSH);
}

/// `mpi-setup` compiles the source that is in the program; the compiler here copies it.
#[test]
#[ignore = "needs python3 with venv, dpkg-deb and rpm: tests/run --install"]
fn needs_packages_a_wheel_holds_the_source_for_mpi() {
    let (_environment, programs) = installed(packages());
    let folder = tempfile::tempdir().unwrap();
    let mpicc = folder.path().join("mpicc");
    let copy = which("cp");
    fs::write(&mpicc, format!("#!/bin/sh\n[ \"$4\" = -o ] && exec {} \"$6\" \"$5\"\n", copy.display())).unwrap();
    fs::set_permissions(&mpicc, fs::Permissions::from_mode(0o755)).unwrap();
    let mut setup = alone(&programs.tune, folder.path());
    said(setup.args(["mpi-setup", "--no-check", "--out", "mpi", "--mpicc"]).arg(&mpicc));
    let compiled = fs::read_to_string(folder.path().join("mpi").join(hpl::comm::mpi::LIBRARY)).unwrap();
    assert_eq!(compiled, hpl::comm::mpi::SOURCE);
    assert!(folder.path().join("mpi/xhpl").is_file());
}

/// Read by Python's own library, as PyPI does.
#[test]
#[ignore = "needs python3 with venv, dpkg-deb and rpm: tests/run --install"]
fn needs_packages_a_wheel_has_all_that_pypi_shows() {
    const READ: &str = "
import base64, csv, email, hashlib, io, sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
names = wheel.namelist()
info = next(name for name in names if name.endswith('.dist-info/RECORD')).rsplit('/', 1)[0]
rows = list(csv.reader(io.StringIO(wheel.read(info + '/RECORD').decode())))
assert sorted(row[0] for row in rows) == sorted(names), 'RECORD lists each file'
for name, digest, size in rows:
    if name.endswith('/RECORD'):
        continue
    data = wheel.read(name)
    right = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()
    assert digest == 'sha256=' + right and int(size) == len(data), name
scripts = {name.rsplit('/', 1)[1]: wheel.getinfo(name).external_attr >> 16 for name in names if '.data/scripts/' in name}
assert scripts == {'hpl-tune': 0o100755, 'xhpl': 0o100755}, scripts
facts = email.message_from_bytes(wheel.read(info + '/METADATA'))
for key in ['Metadata-Version', 'Name', 'Version', 'Summary', 'License-Expression', 'Keywords', 'Description-Content-Type']:
    print(key + ':', facts[key])
for name in facts.get_all('License-File'):
    assert wheel.read(info + '/licenses/' + name), name
assert len(facts.get_all('Classifier')) > 5
text = facts.get_payload()
assert text.startswith('# hpl-tune') and '](docs/' not in text, 'no link leads nowhere'
tag = email.message_from_bytes(wheel.read(info + '/WHEEL'))['Tag']
assert sys.argv[1].endswith('-' + tag + '.whl') or '.manylinux2014' in sys.argv[1], tag
";
    let wheel = ending(packages(), ".whl");
    let text = said(Command::new("python3").args(["-c", READ]).arg(&wheel));
    let version = format!("Version: {}", env!("CARGO_PKG_VERSION"));
    for line in
        ["Name: hpl-tune", &version, "License-Expression: MIT OR Apache-2.0", "Description-Content-Type: text/markdown"]
    {
        assert!(text.lines().any(|said| said == line), "{line} is not in: {text}");
    }
}
