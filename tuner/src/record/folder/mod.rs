//! The run folder: where each file of a session lies, and who may write there.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use hpl::program::files::{sync_folder, write_atomically};
use jiff::Timestamp;

use crate::error::RecordError;
use crate::record::plain;

mod lock;
mod owner;
#[cfg(test)]
pub(crate) mod small_disk;

pub use self::lock::Lock;

/// The paths of one run folder. Making this value touches nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFolder {
    root: PathBuf,
}

/// Room that a trial should find for its output, and for a result without phases, in bytes.
const SPACE_OF_A_TRIAL: u64 = 4 << 20;

/// Room kept for the last records of a session whose disk is full, in bytes.
const BALLAST: usize = 1 << 20;

/// What the start of a session makes before `session.toml`, the last of it.
const FIRST: [&str; 7] = ["lock", "phases", "machine.toml", "limits.toml", "earlier.jsonl", "engine.toml", "ballast"];
/// What there is more of a simulated session.
const FIRST_SIMULATED: [&str; 2] = ["calibration", "simulated.toml"];

impl RunFolder {
    /// The run folder of a session without --out: `runs/<host>-<date-time>`, in UTC, below the current folder.
    pub fn default_path(host: &str, now: Timestamp) -> PathBuf {
        let host: String =
            host.chars().map(|c| if c.is_alphanumeric() || "-._".contains(c) { c } else { '_' }).collect();
        Path::new("runs").join(format!("{host}-{}", now.strftime("%Y%m%d-%H%M%S")))
    }

    /// Make the folder of a new session, for its user alone, and lock it. A folder that a session was killed in before it
    /// began counts as empty. An empty one that was there keeps its mode, but others may not write in it.
    ///
    /// # Errors
    /// [`RecordError::Exists`] when something is there already, [`RecordError::NotYours`] when it is another user's,
    /// [`RecordError::Write`] without permission or space.
    pub fn create(root: &Path) -> Result<(Self, Lock), RecordError> {
        owner::make_private(root).map_err(RecordError::write(root))?;
        let folder = Self::absolute(root)?;
        if !folder.never_began()? {
            return Err(RecordError::Exists { path: root.to_path_buf() });
        }
        owner::is_mine(&folder.root)?;
        let lock = folder.lock()?;
        // Whoever held the lock until now may have begun.
        if !folder.never_began()? {
            return Err(RecordError::Exists { path: root.to_path_buf() });
        }
        owner::keep_others_out(&folder.root);
        let phases = folder.root.join("phases");
        fs::create_dir_all(&phases).map_err(RecordError::write(&phases))?;
        sync_folder(&phases);
        sync_folder(&folder.root);
        Ok((folder, lock))
    }

    /// Whether a session can begin at `root`, as far as can be seen without making anything.
    ///
    /// # Errors
    /// [`RecordError::Exists`] where one has, and what cannot be read.
    pub fn is_free(root: &Path) -> Result<(), RecordError> {
        match root.exists() && !Self::absolute(root)?.never_began()? {
            true => Err(RecordError::Exists { path: root.to_path_buf() }),
            false => Ok(()),
        }
    }

    /// Whether nothing is there but what the start of a session makes before `session.toml`.
    fn never_began(&self) -> Result<bool, RecordError> {
        let entries = fs::read_dir(&self.root).map_err(RecordError::read(&self.root))?;
        let first = |entry: io::Result<fs::DirEntry>| {
            let name = entry.ok()?.file_name();
            let name = name.to_str()?;
            let mut all = FIRST.iter().chain(&FIRST_SIMULATED);
            let named =
                |first: &&str| name == *first || name.starts_with(&format!(".{first}.")) && name.ends_with(".tmp");
            Some(all.any(named) || name.starts_with(".session.toml.") && name.ends_with(".tmp"))
        };
        Ok(entries.map(first).all(|first| first == Some(true)))
    }

    /// As [`create`](Self::create), with `-2`, `-3` … behind the name when the folder is taken: sessions may begin in
    /// the same second.
    ///
    /// # Errors
    /// [`RecordError::Write`] without permission or space.
    pub fn create_numbered(root: &Path) -> Result<(Self, Lock), RecordError> {
        let mut path = root.to_path_buf();
        let mut number = 1;
        loop {
            match Self::create(&path) {
                Err(RecordError::Exists { .. } | RecordError::Locked { .. }) => number += 1,
                created => return created,
            }
            let mut name = root.as_os_str().to_owned();
            name.push(format!("-{number}"));
            path = name.into();
        }
    }

    /// From now on this process and its children make nothing that others may write.
    pub fn let_others_write_nothing() {
        owner::let_others_write_nothing();
    }

    /// From now on all users may read what this process and its children make, whatever the umask says.
    pub fn let_others_read() {
        owner::let_others_read();
    }

    /// Lets everybody read the folder.
    ///
    /// # Errors
    /// [`RecordError::Write`] when its mode cannot be changed.
    pub fn share(&self) -> Result<(), RecordError> {
        owner::share(&self.root).map_err(RecordError::write(&self.root))
    }

    /// Makes sure that nobody else has written what a resume would run: the folder, and the files that it trusts there, belong to
    /// this user, and no other may write there.
    ///
    /// # Errors
    /// [`RecordError::NotYours`] and [`RecordError::Open`] with the file.
    pub fn check_owner(&self) -> Result<(), RecordError> {
        owner::check(&self.root)
    }

    /// Takes away the folder of a session that was refused before it measured anything, so that its name is free
    /// for the next attempt. The lock is to be held.
    pub fn discard(&self) {
        // What stays only costs the name.
        let _ = fs::remove_dir_all(&self.root);
    }

    /// The folder of an earlier session, to read from.
    ///
    /// # Errors
    /// [`RecordError::NoSession`] when it has no `session.toml`.
    pub fn open(root: &Path) -> Result<Self, RecordError> {
        let folder = Self::absolute(root)?;
        let looked = fs::metadata(folder.session_toml());
        if looked.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied) {
            return Err(RecordError::Private { path: root.to_path_buf() });
        }
        if !looked.is_ok_and(|looked| looked.is_file()) {
            let path = root.to_path_buf();
            // A folder that is not there cannot be listed.
            let began = !folder.lock_file().exists() || !folder.never_began().unwrap_or(false);
            return Err(if began { RecordError::NoSession { path } } else { RecordError::NeverBegan { path } });
        }
        Ok(folder)
    }

    /// Makes sure that what is read first of it may be read: somebody else may have made it.
    ///
    /// # Errors
    /// As [`plain::check`], with the file.
    pub fn check_record(&self) -> Result<(), RecordError> {
        let files = [self.session_toml(), self.journal(), self.engine_toml()];
        files.iter().try_for_each(|path| plain::check(path).map_err(RecordError::read(path)))
    }

    /// Makes sure that a trial finds room for its files, among them a result of `result_bytes`: on a full disk it would fail, and its candidate be
    /// blamed.
    ///
    /// # Errors
    /// [`RecordError::Write`] when less is free than 4 MiB and twice the result, whose phases are recorded after the run.
    pub fn check_space(&self, result_bytes: u64) -> Result<(), RecordError> {
        let needed_bytes = SPACE_OF_A_TRIAL.saturating_add(result_bytes.saturating_mul(2));
        // A file system that reports nothing, or no blocks at all, is tried.
        let Ok(disk) = nix::sys::statvfs::statvfs(&self.root) else { return Ok(()) };
        let free_bytes = disk.blocks_available().saturating_mul(disk.fragment_size());
        if disk.blocks() == 0 || free_bytes >= needed_bytes {
            return Ok(());
        }
        let needed_mib = needed_bytes.div_ceil(1 << 20);
        let cause = io::Error::new(io::ErrorKind::StorageFull, format!("less than {needed_mib} MiB are free"));
        Err(RecordError::Write { path: self.root.clone(), cause })
    }

    /// Keeps room for the last records: a file that is given up when the disk is full. Without room for it there is none.
    pub fn lay_ballast(&self) {
        let path = self.ballast();
        if fs::metadata(&path).is_ok_and(|about| about.len() == BALLAST as u64) {
            return;
        }
        // No zeros: a file system that compresses would keep no room for them.
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut noise = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        };
        let bytes: Vec<u8> = (0..BALLAST).map(|_| noise()).collect();
        if fs::write(&path, bytes).is_err() {
            self.drop_ballast();
        }
    }

    /// Gives the ballast up; true when there was one.
    pub fn drop_ballast(&self) -> bool {
        fs::remove_file(self.ballast()).is_ok()
    }

    /// Writes a record that is worth the ballast: where the disk is full, once more without it.
    ///
    /// # Errors
    /// That of `write`, the second time where there was a ballast.
    pub fn write_with_ballast(&self, mut write: impl FnMut() -> Result<(), RecordError>) -> Result<(), RecordError> {
        match write() {
            Err(error) if error.is_full() && self.drop_ballast() => write(),
            written => written,
        }
    }

    fn ballast(&self) -> PathBuf {
        self.root.join("ballast")
    }

    fn absolute(root: &Path) -> Result<Self, RecordError> {
        let root = std::path::absolute(root).map_err(RecordError::read(root))?;
        Ok(Self { root })
    }

    /// The folder itself, absolute.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder's name, which names the session too.
    pub fn name(&self) -> String {
        self.root.file_name().unwrap_or(self.root.as_os_str()).to_string_lossy().into_owned()
    }

    /// `lock`: held by the tuner at work, with its process id.
    pub fn lock_file(&self) -> PathBuf {
        self.root.join("lock")
    }

    /// `journal.jsonl`: the truth, see [`crate::record::journal`].
    pub fn journal(&self) -> PathBuf {
        self.root.join("journal.jsonl")
    }

    /// `trials.parquet`: the same rows.
    pub fn trials(&self) -> PathBuf {
        self.root.join("trials.parquet")
    }

    /// `phases/<trial>.parquet`: time per phase and step of one trial.
    pub fn phases(&self, trial: u64) -> PathBuf {
        self.root.join("phases").join(format!("{trial}.parquet"))
    }

    /// `trials/<trial>`: input and output of one run.
    pub fn trial(&self, trial: u64) -> PathBuf {
        self.root.join("trials").join(trial.to_string())
    }

    /// Numbers of the trials that were begun, ascending; finished or not.
    ///
    /// # Errors
    /// [`RecordError::Read`] when `trials/` is there but cannot be listed.
    pub fn trials_begun(&self) -> Result<Vec<u64>, RecordError> {
        let path = self.root.join("trials");
        let entries = match fs::read_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(RecordError::read(&path))?,
        };
        let number = |entry: io::Result<fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
        let mut numbers: Vec<u64> = entries.filter_map(number).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// `calibration/`: output of the calibration.
    pub fn calibration(&self) -> PathBuf {
        self.root.join("calibration")
    }

    /// `calibration/machine.toml`: what was measured of this node, where a session has several.
    pub fn calibrated_node(&self) -> PathBuf {
        self.calibration().join("machine.toml")
    }

    /// `nodes.html` or `nodes.json`: what the nodes reach, where a session has several.
    pub fn nodes(&self, extension: &str) -> PathBuf {
        self.root.join("nodes").with_extension(extension)
    }

    /// `session.toml`: what a resume needs besides the journal.
    pub fn session_toml(&self) -> PathBuf {
        self.root.join("session.toml")
    }

    /// `engine.toml`: the profile of another engine, where the session has one.
    pub fn engine_toml(&self) -> PathBuf {
        self.root.join("engine.toml")
    }

    /// `machine.toml`: the calibrated machine.
    pub fn machine_toml(&self) -> PathBuf {
        self.root.join("machine.toml")
    }

    /// `space.toml`: what was searched.
    pub fn space_toml(&self) -> PathBuf {
        self.root.join("space.toml")
    }

    /// `simulated.toml`: the cluster of a simulated session.
    pub fn simulated_toml(&self) -> PathBuf {
        self.root.join("simulated.toml")
    }

    /// `limits.toml`: what the user allowed; only there with `--space`.
    pub fn limits_toml(&self) -> PathBuf {
        self.root.join("limits.toml")
    }

    /// `earlier.jsonl`: runs of earlier sessions that this one starts from; only there with `--warm-start`.
    pub fn earlier(&self) -> PathBuf {
        self.root.join("earlier.jsonl")
    }

    /// `now.json`: what runs at this moment.
    pub fn now(&self) -> PathBuf {
        self.root.join("now.json")
    }

    /// `HPL.dat`: the best configuration.
    pub fn hpl_dat(&self) -> PathBuf {
        self.root.join("HPL.dat")
    }

    /// `engine-params.toml`: what HPL.dat cannot say of it.
    pub fn engine_params(&self) -> PathBuf {
        self.root.join("engine-params.toml")
    }

    /// `HPL.out`: the output of the final run, else of the last whole run of the best.
    pub fn hpl_out(&self) -> PathBuf {
        self.root.join("HPL.out")
    }

    /// `run.sh`: repeats the final run.
    pub fn run_sh(&self) -> PathBuf {
        self.root.join("run.sh")
    }

    /// `report.html`: the report for people.
    pub fn report_html(&self) -> PathBuf {
        self.root.join("report.html")
    }
}

/// Removes the file at `path`, where there is one.
///
/// # Errors
/// [`RecordError::Write`] with the path.
pub fn remove_file(path: &Path) -> Result<(), RecordError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(RecordError::write(path)(error)),
        _ => Ok(()),
    }
}

/// Replaces the file at `path` in one step, as [`write_atomically`].
///
/// # Errors
/// [`RecordError::Write`]; what was there stays then.
pub fn replace_file(path: &Path, bytes: &[u8]) -> Result<(), RecordError> {
    write_atomically(path, bytes).map_err(RecordError::write(path))
}

#[cfg(test)]
mod tests;
