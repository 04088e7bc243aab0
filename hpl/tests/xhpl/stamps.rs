//! When a run began and ended, as the output says it.

use std::fs;

use space::RunResult;

use super::{DAT, command, folder, succeeds};

/// As Netlib's program, which has them from `ctime`.
#[test]
fn start_and_end_are_in_local_time() {
    // Zones without a table of the system: ahead of UTC by the seconds.
    for (zone, ahead_s) in [("UTC0", 0), ("XXX-5:45", 20_700), ("YYY9:30", -34_200)] {
        let folder = folder(DAT);
        let out = succeeds(&command(folder.path()).args(["--result", "result.json"]).env("TZ", zone).output().unwrap());
        let result = fs::read_to_string(folder.path().join("result.json")).unwrap();
        let result: RunResult = serde_json::from_str(&result).unwrap();
        let (core, before_s) = result.core_start();
        let stamp = |after_s: f64| space::out::ctime(core, before_s + after_s, |_| ahead_s).unwrap();
        let start = format!("HPL_pdgesv() start time {}\n\n", stamp(0.0));
        let end = format!("HPL_pdgesv() end time   {}\n\n", stamp(result.time_s));
        assert!(out.contains(&(start.clone() + &end)), "{zone}: {start}{end}{out}");
    }
}
