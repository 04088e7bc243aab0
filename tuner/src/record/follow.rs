//! The journal while it grows: each look reads what is new.

use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::RecordError;
use crate::record::Row;
use crate::record::journal::{BadLine, Contents};
use crate::record::plain;

/// What a look at a journal has found.
#[derive(Debug, Default, PartialEq)]
pub struct News {
    /// Whether the journal was read from its start: what was known before is void.
    pub anew: bool,
    /// The rows that are new.
    pub rows: Vec<Row>,
}

/// A journal that another process may write to. Its lock is not needed, and nothing is written.
#[derive(Debug)]
pub struct Follower {
    path: PathBuf,
    /// Device and number of the file that was read.
    file: Option<(u64, u64)>,
    contents: Contents,
    /// Whether the last line had no end when it was looked at; the writer may still be at it.
    torn: bool,
}

impl Follower {
    /// Follows the journal at `path`, which may not be there yet.
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_path_buf(), file: None, contents: Contents::default(), torn: false }
    }

    /// Reads on. A journal that has become shorter, or is another file, is read from its start. The file is opened each time, which
    /// on a network file system is what brings news of other machines.
    ///
    /// # Errors
    /// As [`super::journal::read`]; a journal that is not there is empty.
    pub fn look(&mut self) -> Result<News, RecordError> {
        let damaged = self.contents.bad_lines.len();
        let mut news = self.read_on()?;
        // A line that was taken back and written again elsewhere looks damaged from where the last look ended.
        if self.contents.bad_lines.len() > damaged && !news.anew {
            self.file = None;
            news = self.read_on()?;
        }
        Ok(news)
    }

    /// Lines that were left out so far.
    pub fn bad_lines(&self) -> &[BadLine] {
        &self.contents.bad_lines
    }

    /// Whether the last line had no end. Where no session is at work it is lost.
    pub fn is_torn(&self) -> bool {
        self.torn
    }

    fn read_on(&mut self) -> Result<News, RecordError> {
        let read_error = |cause| RecordError::Read { path: self.path.clone(), cause };
        let mut file = match plain::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let anew = self.file.is_some();
                *self = Self::new(&self.path);
                return Ok(News { anew, rows: Vec::new() });
            }
            file => file.map_err(read_error)?,
        };
        let about = file.metadata().map_err(read_error)?;
        let found = Some((about.dev(), about.ino()));
        let anew = self.file != found || about.len() < self.contents.len;
        if anew {
            self.contents = Contents::default();
        }
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(self.contents.len))
            .and_then(|_| file.read_to_end(&mut bytes))
            .map_err(|cause| RecordError::Read { path: self.path.clone(), cause })?;
        self.file = found;
        self.torn = self.contents.take(&bytes).map_err(|newer| newer.of(&self.path))?;
        Ok(News { anew, rows: std::mem::take(&mut self.contents.rows) })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::record::arbitrary::row;
    use crate::record::journal;

    fn line(trial: u64) -> Vec<u8> {
        let mut line = serde_json::to_vec(&row(trial)).unwrap();
        line.push(b'\n');
        line
    }

    fn numbers(news: &News) -> Vec<u64> {
        news.rows.iter().map(|row| row.trial).collect()
    }

    /// However the writes are cut, every row comes once, and all of them are what a whole reading finds.
    #[test]
    fn each_row_comes_once_wherever_a_look_falls() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let bytes: Vec<u8> = (0..3).flat_map(line).collect();
        for piece in [1, 7, 300, 997, bytes.len()] {
            let mut follower = Follower::new(&path);
            assert_eq!(follower.look().unwrap(), News::default(), "it is not there yet");
            let mut rows = Vec::new();
            for end in (piece..bytes.len()).step_by(piece).chain([bytes.len()]) {
                fs::write(&path, &bytes[..end]).unwrap();
                rows.extend(follower.look().unwrap().rows);
            }
            assert_eq!(rows, journal::read(&path).unwrap().rows, "pieces of {piece}");
            assert!(follower.bad_lines().is_empty() && !follower.is_torn());
            fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn a_journal_that_shrinks_or_is_replaced_is_read_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let mut follower = Follower::new(&path);
        fs::write(&path, [line(0), line(1)].concat()).unwrap();
        assert_eq!(numbers(&follower.look().unwrap()), [0, 1]);
        assert_eq!(follower.look().unwrap(), News::default());
        fs::write(&path, line(0)).unwrap();
        let news = follower.look().unwrap();
        assert!(news.anew);
        assert_eq!(numbers(&news), [0]);
        let other = folder.path().join("other");
        fs::write(&other, [line(5), line(6), line(7)].concat()).unwrap();
        fs::rename(&other, &path).unwrap();
        let news = follower.look().unwrap();
        assert!(news.anew);
        assert_eq!(numbers(&news), [5, 6, 7]);
        fs::remove_file(&path).unwrap();
        assert_eq!(follower.look().unwrap(), News { anew: true, rows: Vec::new() });
    }

    /// A line that could not be synced is taken back, and a longer one may be there at the next look.
    #[test]
    fn a_line_that_was_written_again_is_found_from_the_start() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let mut follower = Follower::new(&path);
        fs::write(&path, [line(0), line(1)].concat()).unwrap();
        follower.look().unwrap();
        let longer = Row { why: "longer ".repeat(100), ..row(2) };
        let longer = serde_json::to_vec(&longer).unwrap();
        fs::write(&path, [line(0), longer, b"\n".to_vec()].concat()).unwrap();
        let news = follower.look().unwrap();
        assert!(news.anew && follower.bad_lines().is_empty());
        assert_eq!(numbers(&news), [0, 2]);
    }

    #[test]
    fn a_damaged_line_is_told_once_and_a_torn_one_waits_for_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let mut follower = Follower::new(&path);
        let half = &line(1)[..100];
        fs::write(&path, [&line(0), &b"{]\n"[..], half].concat()).unwrap();
        assert_eq!(numbers(&follower.look().unwrap()), [0]);
        assert!(follower.is_torn());
        assert_eq!(follower.bad_lines().len(), 1);
        fs::write(&path, [&line(0), &b"{]\n"[..], &line(1)].concat()).unwrap();
        assert_eq!(numbers(&follower.look().unwrap()), [1]);
        assert!(!follower.is_torn());
        assert_eq!(follower.bad_lines().len(), 1);
    }
}
