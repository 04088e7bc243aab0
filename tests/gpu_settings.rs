//! Power limits of accelerators as a dimension of the search: on a library in the place of the driver's.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::engine::{Fake, run_until};
use crate::kill::nothing_is_left;
use crate::program::{err, hpl_tune};

/// An accelerator whose limit is the number in a file, so that all processes have the same.
const LIBRARY: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 1; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) { *device = &nvmlInit_v2; return 0; }
int nvmlDeviceGetPowerManagementLimit(void *device, unsigned *mw) {
    FILE *file = fopen(getenv("GPU_LIMIT"), "r");
    if (!file) return 15;
    int read = fscanf(file, "%u", mw);
    fclose(file);
    return read == 1 ? 0 : 999;
}
int nvmlDeviceGetPowerManagementLimitConstraints(void *device, unsigned *least, unsigned *most) {
    *least = 200000; *most = 700000; return 0;
}
int nvmlDeviceSetPowerManagementLimit(void *device, unsigned mw) {
    if (getenv("GPU_DENIED")) return 4;
    char next[4096];
    snprintf(next, sizeof next, "%s.%d", getenv("GPU_LIMIT"), getpid());
    FILE *file = fopen(next, "w");
    if (!file) return 999;
    fprintf(file, "%u\n", mw);
    fclose(file);
    return rename(next, getenv("GPU_LIMIT")) ? 999 : 0;
}
"#;

const FOUND: &str = "700000\n";

struct OnGpu {
    tree: tempfile::TempDir,
    fake: Fake,
}

impl OnGpu {
    fn new() -> Self {
        let tree = tempfile::tempdir().unwrap();
        fs::create_dir_all(tree.path().join("usr/lib")).unwrap();
        let source = tree.path().join("nvml.c");
        fs::write(&source, LIBRARY).unwrap();
        let library = tree.path().join("usr/lib/libnvidia-ml.so.1");
        let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(library).arg(source).status();
        assert!(built.unwrap().success());
        let limit = tree.path().join("limit");
        fs::write(&limit, FOUND).unwrap();
        let body = format!(
            r#"
limit=$(cat {})
echo "limit $limit"
echo "WR11C2R4 $1 $2 1 2 0.00 0.$((limit / 10000 + $2 / 8))"
echo "||Ax-b||_oo/(eps)= 2.1e-03 ...... PASSED"
sleep 0.02
"#,
            limit.display()
        );
        Self { tree, fake: Fake::new(&body) }
    }

    fn limit(&self) -> PathBuf {
        self.tree.path().join("limit")
    }

    /// A new session, or the one that was begun.
    fn next(&self) -> Command {
        let mut command = if self.fake.folder().join("session.toml").exists() {
            let mut command = hpl_tune();
            command.arg("--resume").arg(self.fake.folder());
            command
        } else {
            let mut command = self.fake.session();
            command.args(["--vary", "gpu-power-cap"]);
            command
        };
        command.arg("--power-root").arg(self.tree.path()).env("GPU_LIMIT", self.limit());
        command
    }

    fn is_as_found(&self) -> bool {
        fs::read_to_string(self.limit()).unwrap() == FOUND
    }
}

#[test]
fn each_trial_runs_at_its_limit_and_the_accelerator_is_left_as_it_was() {
    let on = OnGpu::new();
    let folder = on.fake.folder();
    let rows = run_until(&mut on.next(), &folder, 12);
    assert!(on.is_as_found() && !folder.join("node-settings.json").exists());
    let mut limits = std::collections::BTreeSet::new();
    for row in &rows {
        let limit = row.gpu_limit_w.unwrap();
        let printed = fs::read_to_string(folder.join(format!("trials/{}/stdout.txt", row.trial))).unwrap();
        assert!(printed.starts_with(&format!("limit {}\n", limit * 1000)), "{limit} {printed}");
        limits.insert(limit);
    }
    assert!(rows[0].gpu_limit_w == Some(700) && limits.len() > 1, "{limits:?}");
    let script = fs::read_to_string(folder.join("run.sh")).unwrap();
    assert!(script.contains("nvidia-smi --power-limit="), "{script}");
}

#[test]
fn a_limit_that_may_not_be_set_is_refused_before_anything_runs() {
    let on = OnGpu::new();
    let output = on.next().env("GPU_DENIED", "1").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        err(&output).contains("--vary: gpu-0: this user may not set its power limit; run as root"),
        "{}",
        err(&output)
    );
    assert!(!on.fake.folder().exists());
}

#[test]
fn killed_at_ten_moments_the_limit_is_as_it_was() {
    killed(10);
}

/// By hand: `cargo test --release -p hpl-tune --test tests -- --ignored --nocapture gpu_settings::killed_at_a_hundred`.
#[test]
#[ignore = "100 kills, two minutes; run by hand"]
fn killed_at_a_hundred_moments_the_limit_is_as_it_was() {
    killed(100);
}

fn killed(kills: usize) {
    let on = OnGpu::new();
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut while_changed = 0;
    for index in 0..kills {
        let mut child = on.next().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(rng.random_range(50..1200)));
        while_changed += usize::from(!on.is_as_found());
        child.kill().unwrap();
        child.wait().unwrap();
        nothing_is_left(&on.fake.folder());
        assert!(on.is_as_found() && !on.fake.folder().join("node-settings.json").exists(), "kill {index}");
    }
    println!("{kills} kills, {while_changed} of them at a limit that was changed: all put back");
    assert!(while_changed > 0);
}
