//! Makes the settings of trials.

use std::path::{Path, PathBuf};
use std::process::Child;

use hpl::machine::controls::{ControlError, NodeControls};
use space::NodeSettings;

use super::found::FoundSettings;
use super::restorer;

/// Makes the settings of trials, and puts back what it found when it is dropped.
#[derive(Debug)]
pub struct NodeSetter {
    controls: NodeControls,
    record: PathBuf,
    root: PathBuf,
    /// `None` once it was waited for.
    restorer: Option<Child>,
}

impl NodeSetter {
    /// Of the `controls` below `root`; what they were found with is kept at `record`. Changes nothing yet.
    ///
    /// # Errors
    /// A file that cannot be written, or no process, in words.
    pub fn start(controls: NodeControls, record: PathBuf, root: &Path) -> Result<Self, String> {
        let named =
            |error: std::io::Error| format!("{}: {error}; the settings of the node are not changed", record.display());
        // The process first: whenever the session is killed, it takes away the record that it finds.
        let mut restorer = restorer::start(&record, root).map_err(named)?;
        if let Err(error) = FoundSettings::of(&controls, root).write(&record) {
            drop(restorer.stdin.take());
            let _ = restorer.wait();
            return Err(named(error));
        }
        Ok(Self { controls, root: root.to_owned(), restorer: Some(restorer), record })
    }

    /// Makes `settings`; where that fails, all are as they were found.
    ///
    /// # Errors
    /// [`ControlError`] of the first file that was not set.
    pub fn set(&self, settings: &NodeSettings) -> Result<(), ControlError> {
        self.controls.set(settings).inspect_err(|_| {
            // The file that cannot be written stays what it is.
            let _ = self.controls.set(&NodeSettings::default());
        })
    }

    /// Puts back what was found.
    ///
    /// # Errors
    /// What is not as it was, in words.
    pub fn end(mut self) -> Result<(), String> {
        self.put_back()
    }

    fn put_back(&mut self) -> Result<(), String> {
        if let Some(mut restorer) = self.restorer.take() {
            // Its end of the pipe is the sign.
            drop(restorer.stdin.take());
            let _ = restorer.wait();
        }
        // Where that process was killed, or has failed.
        FoundSettings::restore(&self.record, &self.root).map(|_| ())
    }
}

impl Drop for NodeSetter {
    fn drop(&mut self) {
        if self.restorer.is_some() {
            // Nobody is left to tell; the process has.
            let _ = self.put_back();
        }
    }
}
