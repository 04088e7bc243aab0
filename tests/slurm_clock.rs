//! The clock of the nodes of a job as Slurm is asked for it: by a script in the place of `srun`, which sets it in a tree of files.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::engine::{Fake, run_until};
use crate::program::{err, hpl_tune, out};

/// The clock that the tree is found with, in kHz.
pub(crate) const FOUND: &str = "2500000";

/// Files of cpufreq of this machine's processors below `root`, which may name several nodes.
pub(crate) fn tree(root: &Path) {
    for cpu in 0..std::thread::available_parallelism().unwrap().get() {
        let folder = root.join(format!("sys/devices/system/cpu/cpu{cpu}/cpufreq"));
        fs::create_dir_all(&folder).unwrap();
        for (name, text) in [
            ("scaling_max_freq", FOUND),
            ("cpuinfo_min_freq", "1000000"),
            ("scaling_governor", "powersave"),
            ("scaling_available_governors", "performance powersave"),
        ] {
            fs::write(folder.join(name), format!("{text}\n")).unwrap();
        }
    }
}

/// A program `srun` in `folder` that sets the limits of all processors below `root` as Slurm does: for the time of the step that `start` begins
/// with the other words. Its words are a line of `srun.log` each.
pub(crate) fn srun(folder: &Path, root: &Path, start: &str) -> PathBuf {
    let (path, log) = (folder.join("srun"), folder.join("srun.log"));
    let (log, root) = (log.display(), root.display());
    let script = format!(
        r#"#!/bin/bash
trap : TERM INT
echo "$*" >> '{log}'
words=() clock=
for word in "$@"; do
  case "$word" in
    --cpu-freq=*) range=${{word#--cpu-freq=}}; range=${{range%%:*}}; clock=${{range#*-}};;
    *) words+=("$word");;
  esac
done
set_all() {{
  [ -n "$clock" ] && [ -z "$IGNORES" ] && find '{root}' -name scaling_max_freq | while read -r file; do echo "$1" > "$file"; done
}}
set_all "$clock"
{start}
code=$?
set_all {FOUND}
exit $code
"#
    );
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// Starts what follows the flags.
const HERE: &str = r#"while [[ "${words[0]}" == --* ]]; do words=("${words[@]:1}"); done; "${words[@]}""#;

/// An engine that `srun` starts, which is the better the lower the clock is, and prints that.
struct BySrun {
    fake: Fake,
    root: PathBuf,
}

impl BySrun {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap().keep();
        let root = home.join("tree");
        let file = root.join("sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq");
        let fake = Fake::new(&format!(
            r#"
clock=$(cat '{}')
echo "clock $clock"
echo "WR11C2R4 $1 $2 1 2 0.00 0.$((700 - clock / 10000 + $2 / 8))"
echo "||Ax-b||_oo/(eps)= 2.1e-03 ...... PASSED"
"#,
            file.display()
        ));
        let srun = srun(&home, &root, HERE);
        let profile = fs::read_to_string(fake.profile()).unwrap();
        let launched = format!("launcher = '{} --ntasks={{np}}'\ncommand = ['{{launch}}', ", srun.display());
        fs::write(fake.profile(), profile.replace("command = [", &launched)).unwrap();
        Self { fake, root }
    }

    fn session(&self) -> Command {
        let mut command = self.fake.session();
        command.args(["--vary", "clock", "--power-root"]).arg(&self.root);
        command
    }

    fn clock(&self) -> String {
        let file = self.root.join("sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq");
        fs::read_to_string(file).unwrap().trim().to_owned()
    }
}

impl Drop for BySrun {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.root.parent().unwrap());
    }
}

#[test]
fn each_trial_asks_slurm_for_its_clock() {
    let on = BySrun::new();
    tree(&on.root);
    let folder = on.fake.folder();
    let rows = run_until(&mut on.session(), &folder, 12);
    assert_eq!(on.clock(), FOUND);
    assert!(!folder.join("node-settings.json").exists(), "nothing is put back but by Slurm");
    let mut clocks = std::collections::BTreeSet::new();
    for row in &rows {
        let clock = row.max_clock_mhz.unwrap();
        let printed = fs::read_to_string(folder.join(format!("trials/{}/stdout.txt", row.trial))).unwrap();
        assert!(printed.starts_with(&format!("clock {}\n", 1000 * u64::from(clock))), "{clock} {printed}");
        let asked = format!("--cpu-freq=1000000-{}:performance", 1000 * u64::from(clock));
        assert_eq!(row.command.contains(&asked), clock != 2500, "{}", row.command);
        clocks.insert(clock);
    }
    assert!(rows[0].max_clock_mhz == Some(2500) && clocks.len() > 2, "{clocks:?}");
    let session = fs::read_to_string(folder.join("session.toml")).unwrap();
    assert!(session.contains("[slurm_clock]") && session.contains("governor = \"performance\""), "{session}");
    // The best is at a low clock, and its script asks Slurm for that.
    let script = fs::read_to_string(folder.join("run.sh")).unwrap();
    assert!(script.contains("--cpu-freq=1000000-1") && !script.contains("scaling_max_freq"), "{script}");
    let again = Command::new(folder.join("run.sh")).current_dir("/").output().unwrap();
    assert!(out(&again).starts_with("clock 1") && out(&again).contains("PASSED"), "{}{}", out(&again), err(&again));
    assert_eq!(on.clock(), FOUND);
    // It goes on where Slurm sets the clock as before, and nowhere else.
    let resumed = || {
        let mut command = hpl_tune();
        command.arg("--resume").arg(&folder).arg("--power-root").arg(&on.root);
        command
    };
    let refused = resumed().env("IGNORES", "1").output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{}", err(&refused));
    assert!(err(&refused).contains("varies the clock by srun --cpu-freq: the highest clock of "), "{}", err(&refused));
    let more = run_until(&mut resumed(), &folder, rows.len() + 2);
    assert_eq!(more[..rows.len()], rows[..]);
}

#[test]
fn a_slurm_that_ignores_the_clock_is_told() {
    let on = BySrun::new();
    // No cpufreq at all: neither Slurm nor this user can set it.
    let refused = on.session().output().unwrap();
    let said = err(&refused);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(
        said.contains("there is no ") && said.contains("by srun --cpu-freq: ") && said.contains("has no cpufreq"),
        "{said}"
    );
    assert!(!on.fake.folder().exists());
    // The files of this node are there, and Slurm does nothing.
    tree(&on.root);
    let dry = on.session().arg("--dry-run").env("IGNORES", "1").output().unwrap();
    assert_eq!(dry.status.code(), Some(0), "{}", err(&dry));
    let said = err(&dry);
    assert!(said.contains("by the files of this node, as Slurm does not set it: the highest clock of"), "{said}");
    assert!(
        said.contains("is 2500 MHz where 1300 MHz was asked under ") && said.contains("Slurm has ignored it"),
        "{said}"
    );
    // Here it does, but the tree is not that of a processor.
    let dry = on.session().arg("--dry-run").output().unwrap();
    let said = err(&dry);
    assert!(said.contains("clock: Slurm sets it, seen on "), "{said}");
    assert!(out(&dry).contains("srun '--ntasks=1' "), "{}", out(&dry));
}
