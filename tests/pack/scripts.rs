//! The scripts of a pack of a run that a launcher has started.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{copy, edit, pack_of, run, verify};
use crate::program::{err, out};

/// A script in `home` that can be run.
fn script(home: &Path, name: &str, body: &str) -> PathBuf {
    let path = home.join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// A program that writes its result and a file of its own, as xhpl under a launcher does, and prints HPL.dat of its folder.
const PROGRAM: &str = r#"cat HPL.dat || exit 1
echo trace > trace.txt
while [ $# -gt 0 ]; do
    [ "$1" = --result ] && echo '{}' > "$2"
    shift
done"#;

#[test]
fn the_scripts_of_a_launched_run_leave_the_pack_as_it_is() {
    let home = tempfile::tempdir().unwrap();
    let (launcher, program) =
        (script(home.path(), "launch", "shift 2; exec \"$@\""), script(home.path(), "xhpl", PROGRAM));
    let (folder, packed) = (home.path().join("run"), home.path().join("my pack"));
    copy(run(), &folder);
    edit(&folder, "session.toml", |text| {
        let (launcher, program) = (launcher.display(), program.display());
        text.to_owned() + &format!("\n[mpi_job]\nlauncher = \"{launcher} -n {{np}}\"\nprogram = \"{program}\"\n")
    });
    let output = pack_of(&folder, "scc", &packed, &["--no-archive"]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let dat = super::read(&packed, "HPL.dat");
    for name in ["run.sh", "hpl/cert-1-hpl.run"] {
        let ran = Command::new("bash").arg(packed.join(name)).current_dir("/").output().unwrap();
        assert_eq!(ran.status.code(), Some(0), "{name}: {}", err(&ran));
        assert_eq!(out(&ran), dat, "{name}");
        let verified = verify(&packed);
        assert_eq!(verified.status.code(), Some(0), "{name}: {}", out(&verified));
    }
    let beside = std::fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().path());
    let ran: Vec<PathBuf> = beside.filter(|path| path.join("trace.txt").is_file()).collect();
    assert_eq!(ran.len(), 2, "{ran:?}");
    assert!(ran.iter().all(|folder| folder.join("result.json").is_file()), "{ran:?}");
}
