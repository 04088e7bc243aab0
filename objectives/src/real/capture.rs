//! The output of a run, stored in a file of bounded size.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Bytes kept of the beginning, which can be read during the run: a line of progress for each step of the largest ones.
const HEAD_BYTES: usize = 1024 * 1024;

/// Bytes kept of the end.
const TAIL_BYTES: usize = 256 * 1024;

/// One output stream of the run: the first MiB and the last 256 KiB are written to the file, the bytes between are
/// counted. The beginning is written at once, so the file can be read during the run.
pub(super) struct Capture {
    /// `None` once the stream has ended.
    pipe: Option<File>,
    file: File,
    room: usize,
    tail: VecDeque<u8>,
    dropped: u64,
    error: Option<io::Error>,
}

impl Capture {
    /// Captures `pipe` into a new file at `path`.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let file = File::create(path)?;
        Ok(Self { pipe: None, file, room: HEAD_BYTES, tail: VecDeque::new(), dropped: 0, error: None })
    }

    /// Begins to read from the run's end of `pipe`.
    pub(super) fn attach(&mut self, pipe: impl Into<OwnedFd>) {
        self.pipe = Some(File::from(pipe.into()));
    }

    /// The file descriptor to poll, while the stream is open.
    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(File::as_fd)
    }

    /// Reads the available bytes, at most one buffer full; returns whether there were any. Never blocks.
    pub(super) fn pump(&mut self) -> bool {
        let Some(pipe) = &mut self.pipe else { return false };
        let mut ready = [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)];
        if !matches!(poll(&mut ready, PollTimeout::ZERO), Ok(1..)) {
            return false;
        }
        let mut buffer = [0; 64 * 1024];
        match pipe.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => true,
            Ok(0) | Err(_) => {
                self.pipe = None;
                false
            }
            Ok(count) => {
                self.keep(&buffer[..count]);
                true
            }
        }
    }

    /// Reads the remaining bytes and completes the file. The error is the first write error.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        while self.pump() {}
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        if self.dropped > 0 {
            writeln!(self.file, "\n[{} bytes left out here]", self.dropped)?;
        }
        let (front, back) = self.tail.as_slices();
        self.file.write_all(front)?;
        self.file.write_all(back)
    }

    fn keep(&mut self, bytes: &[u8]) {
        let (head, rest) = bytes.split_at(bytes.len().min(self.room));
        self.room -= head.len();
        if self.error.is_none() {
            self.error = self.file.write_all(head).err();
        }
        self.tail.extend(rest);
        let over = self.tail.len().saturating_sub(TAIL_BYTES);
        self.tail.drain(..over);
        self.dropped += over as u64;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn captured(output: &[u8]) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let (reader, mut writer) = std::io::pipe().unwrap();
        let mut capture = Capture::create(&path).unwrap();
        capture.attach(reader);
        std::thread::scope(|scope| {
            scope.spawn(move || writer.write_all(output).unwrap());
            while capture.fd().is_some() {
                capture.pump();
            }
        });
        capture.finish().unwrap();
        std::fs::read(path).unwrap()
    }

    #[test]
    fn small_output_is_kept_whole() {
        let output: Vec<u8> = (0..HEAD_BYTES + TAIL_BYTES).map(|i| i as u8).collect();
        for size in [0, 1, HEAD_BYTES - 1, HEAD_BYTES, HEAD_BYTES + 1, HEAD_BYTES + TAIL_BYTES] {
            assert!(captured(&output[..size]) == output[..size], "{size} bytes");
        }
    }

    #[test]
    fn a_flood_keeps_its_beginning_and_its_end() {
        let flood = HEAD_BYTES + 10 * TAIL_BYTES;
        let output: Vec<u8> = (0..flood).map(|i| (i / 1000) as u8).collect();
        let kept = captured(&output);
        assert!(kept.len() < HEAD_BYTES + TAIL_BYTES + 100);
        assert!(kept.starts_with(&output[..HEAD_BYTES]) && kept.ends_with(&output[flood - TAIL_BYTES..]));
        let note = format!("[{} bytes left out here]", 9 * TAIL_BYTES);
        assert!(kept.windows(note.len()).any(|window| window == note.as_bytes()));
    }

    /// A run of more than 5000 steps seemed to stand still after them, and its nodes were asked whether they were there.
    #[test]
    fn the_progress_of_the_longest_runs_can_be_read_while_they_run() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let mut capture = Capture::create(&path).unwrap();
        let line = space::out::progress(4_000_000, 4_000_000, 1e6) + "\n";
        (0..20_000).for_each(|_| capture.keep(line.as_bytes()));
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 20_000 * line.len() as u64);
    }
}
