//! Since when the trials under way run, by the clock of this machine.
//!
//! now.json is written anew when one of several trials ends: its age says nothing of those that go on.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Instant, SystemTime};

use crate::record::folder::RunFolder;
use crate::record::now::Now;
use crate::record::store::trial_file;

/// When each trial under way was first seen, and how old it was by then.
#[derive(Debug, Default)]
pub(super) struct Begun {
    /// By number and start: a resume begins a trial again under its number.
    seen: HashMap<(u64, String), (Instant, f64)>,
    /// Whether there was a look before: what is new since then has begun since then.
    looked: bool,
}

impl Begun {
    /// What runs by the now.json of `folder`, which is `age_s` seconds old.
    pub(super) fn look(&mut self, folder: &RunFolder, now: Option<&Now>, age_s: f64) {
        let is_first = !std::mem::replace(&mut self.looked, true);
        let Some(now) = now else { return };
        let before = std::mem::take(&mut self.seen);
        for trial in std::iter::once(now).chain(&now.beside) {
            let which = which(trial);
            let first_seen = || {
                // Only then the time stamp of a file is believed, which another machine may have given.
                let begun = if is_first { old_s(&trial_file(folder, trial.trial)) } else { None };
                let old_s = begun.unwrap_or(age_s);
                (Instant::now(), if old_s.is_finite() { old_s } else { 0.0 })
            };
            let seen = before.get(&which).copied().unwrap_or_else(first_seen);
            self.seen.insert(which, seen);
        }
    }

    /// Seconds since a trial of the last look began.
    pub(super) fn since_s(&self, trial: &Now) -> f64 {
        self.seen.get(&which(trial)).map_or(0.0, |(seen, before_s)| seen.elapsed().as_secs_f64() + before_s)
    }
}

fn which(trial: &Now) -> (u64, String) {
    (trial.trial, trial.started_utc.clone())
}

/// Seconds since a file was written; `None` where it is not there.
fn old_s(path: &Path) -> Option<f64> {
    let written = std::fs::metadata(path).ok()?.modified().ok()?;
    Some(SystemTime::now().duration_since(written).unwrap_or_default().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::Duration;

    use super::*;
    use crate::watch::model::tests::now;

    fn folder() -> (tempfile::TempDir, RunFolder) {
        let home = tempfile::tempdir().unwrap();
        let (folder, lock) = RunFolder::create(&home.path().join("run")).unwrap();
        drop(lock);
        (home, folder)
    }

    /// The trials 3 and 4 side by side.
    fn two() -> Now {
        let mut first = now(3, "bayes");
        first.beside = vec![now(4, "bayes")];
        first
    }

    #[test]
    fn a_trial_begins_once_however_often_now_json_is_written() {
        let (_home, folder) = folder();
        let mut begun = Begun::default();
        begun.look(&folder, Some(&two()), 50.0);
        // The first has ended, and another one has begun.
        let mut later = now(4, "bayes");
        later.beside = vec![now(5, "bayes")];
        begun.look(&folder, Some(&later), 0.0);
        let since_s = [&later, &later.beside[0]].map(|trial| begun.since_s(trial));
        assert!(since_s[0] >= 50.0 && since_s[1] < 50.0, "{since_s:?}");
        // Begun again by a resume.
        later.started_utc = "2026-11-20T09:00:00Z".to_owned();
        begun.look(&folder, Some(&later), 1.0);
        assert!(begun.since_s(&later) < 50.0);
    }

    #[test]
    fn at_the_first_look_the_file_of_the_trial_says_when_it_began() {
        let (_home, folder) = folder();
        std::fs::create_dir_all(folder.trial(4)).unwrap();
        let file = File::create(trial_file(&folder, 4)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(300)).unwrap();
        let (now, mut begun, mut late) = (two(), Begun::default(), Begun::default());
        begun.look(&folder, Some(&now), 7.0);
        assert!(begun.since_s(&now) < 300.0 && begun.since_s(&now.beside[0]) >= 300.0);
        late.look(&folder, None, f64::INFINITY);
        late.look(&folder, Some(&now), 1.0);
        assert!(late.since_s(&now.beside[0]) < 300.0, "it was not there at the look before");
    }
}
