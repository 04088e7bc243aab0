//! A trial that was begun, and what its folder says of it.

use std::path::{Path, PathBuf};

use objectives::real::{GuardRecord, RunSpec};

use crate::record::folder::RunFolder;
use crate::record::plain::{self, TEXT_BYTES};
use crate::record::{Begun, Identity, Prediction};

/// Who a trial is, in its folder, written before it runs.
pub(super) const TRIAL: &str = "trial.json";

/// A trial that was begun: where its run works.
#[derive(Debug)]
pub struct RunningTrial {
    pub(super) folder: PathBuf,
    pub(super) begun: Begun,
    /// Where its run writes its results.
    pub(super) results: PathBuf,
}

impl RunningTrial {
    /// Who it is, and what chose it.
    pub fn identity(&self) -> &Identity {
        &self.begun.identity
    }

    /// Its run.
    pub fn run(&self) -> RunSpec {
        self.begun.run()
    }

    /// The trial's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Takes away what says how its run has ended, where that says nothing of its candidate: on resume it is run once more.
    pub fn forget_end(&self) {
        // One that cannot be removed is seen on resume, as a failure.
        let _ = std::fs::remove_file(GuardRecord::path(&self.folder));
    }
}

/// The file that says who a trial of `folder` is, written right before it runs.
pub fn trial_file(folder: &RunFolder, trial: u64) -> PathBuf {
    folder.trial(trial).join(TRIAL)
}

/// What was predicted of a trial that was begun in `folder`; `None` where nothing was, and where its file is gone or damaged.
pub fn predicted(folder: &RunFolder, trial: u64) -> Option<Prediction> {
    begun(&folder.trial(trial))?.predicted
}

/// What a trial's folder says of it; `None` where the trial was never started.
pub(super) fn begun(folder: &Path) -> Option<Begun> {
    serde_json::from_slice(&plain::read(&folder.join(TRIAL), TEXT_BYTES).ok()?).ok()
}
