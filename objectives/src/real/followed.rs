//! The progress of an active run; each call reads the new part of its output.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::printed::MOST_BYTES;
use super::run_spec::RunProgram;
use crate::progress::{ProgressPoint, add};

/// The files in which a run of `engine` in `folder` prints its progress, the likeliest first; none where it prints none.
pub(super) fn followed(engine: &RunProgram, folder: &Path) -> Vec<Followed> {
    let names = engine.progress_files().into_iter();
    names.map(|name| Followed { path: folder.join(name), ..Followed::default() }).collect()
}

/// An output file of an active run.
#[derive(Debug, Default)]
pub(super) struct Followed {
    path: PathBuf,
    /// Number of bytes read so far.
    read: u64,
    /// The last of them, if they are not a complete line yet.
    begun: Vec<u8>,
    trace: Vec<ProgressPoint>,
}

impl Followed {
    /// All progress printed so far, after reading the new lines.
    pub(super) fn look(&mut self, engine: &RunProgram) -> &[ProgressPoint] {
        // An unreadable file shows no progress.
        if let Ok(lines) = self.read_on() {
            let points = String::from_utf8_lossy(&lines);
            points.lines().filter_map(|line| engine.progress_of(line)).for_each(|point| add(&mut self.trace, point));
        }
        &self.trace
    }

    /// The lines completed since the last call.
    fn read_on(&mut self) -> io::Result<Vec<u8>> {
        let mut file = File::open(&self.path)?;
        if file.metadata()?.len() < self.read {
            // The program has restarted its file.
            *self = Self { path: std::mem::take(&mut self.path), ..Self::default() };
        }
        file.seek(SeekFrom::Start(self.read))?;
        let new = file.take(MOST_BYTES).read_to_end(&mut self.begun)?;
        self.read += new as u64;
        if self.begun.len() as u64 > 2 * MOST_BYTES {
            // No line of progress is as long.
            self.begun.clear();
        }
        let whole = self.begun.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        let begun = self.begun.split_off(whole);
        Ok(std::mem::replace(&mut self.begun, begun))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::io::Write;
    use std::sync::Arc;

    use super::*;
    use crate::foreign::{Foreign, Profile};

    fn foreign() -> Foreign {
        let text = "schema_version = 1\nname = 'x'\nabout = 'x'\nsource = 'x'\nprogram = '/x'\ncommand = ['{program}']\n\
                    input = 'HPL.dat'\nobeys = ['nb']\n[patterns]\n\
                    result = '(?<gflops>R\\S+) (?<n>\\d+) (?<time>\\S+)'\nresidual = '(?<residual>\\S+) (?<verdict>P)'\n\
                    progress = '^at (?<flops>\\S+) (?<gflops>\\S+)'\n";
        Foreign::new(Profile::parse(text).unwrap()).unwrap()
    }

    #[test]
    fn every_byte_is_read_once_and_tells_what_the_whole_text_tells() {
        let (engine, folder) = (RunProgram::Foreign(Arc::new(foreign())), tempfile::tempdir().unwrap());
        let mut followed = followed(&engine, folder.path()).into_iter().next().unwrap();
        assert!(followed.look(&engine).is_empty(), "there is no file yet");
        let line = |i: usize| format!("at {}.{} {}.5\nnoise é {i}\n", i / 10, i % 10, 100 + i % 7);
        let text: String = (0..1000).map(line).collect();
        let mut file = File::create(&followed.path).unwrap();
        let mut written = 0;
        // Pieces end at any byte, also within lines and characters.
        for (i, piece) in text.as_bytes().chunks(37).enumerate() {
            file.write_all(piece).unwrap();
            written += piece.len();
            if i.is_multiple_of(3) {
                let whole = text.as_bytes()[..written].iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
                assert_eq!(followed.look(&engine), foreign().progress(&text[..whole]));
                assert_eq!(followed.read, written as u64);
                assert!(followed.begun.len() < 40, "only what is no whole line is kept");
            }
        }
        assert_eq!(followed.look(&engine), foreign().progress(&text));
        assert_eq!(followed.trace.len(), 1000);
    }

    /// After 16 MiB a run seemed to stand still.
    #[test]
    fn progress_is_read_however_long_the_file_is() {
        let (engine, folder) = (RunProgram::Foreign(Arc::new(foreign())), tempfile::tempdir().unwrap());
        let mut followed = followed(&engine, folder.path()).into_iter().next().unwrap();
        let noise = "noise".repeat(200) + "\n";
        fs::write(&followed.path, noise.repeat(MOST_BYTES as usize / noise.len() + 1) + "at 10 5\n").unwrap();
        assert!(followed.look(&engine).is_empty(), "it is read in parts");
        assert_eq!(followed.look(&engine), [ProgressPoint { flops: 0.1, rate_gflops: 5.0 }]);
    }

    #[test]
    fn a_file_that_begins_anew_is_read_anew() {
        let (engine, folder) = (RunProgram::Foreign(Arc::new(foreign())), tempfile::tempdir().unwrap());
        let mut followed = followed(&engine, folder.path()).into_iter().next().unwrap();
        fs::write(&followed.path, "at 10 5\nat 20 5\n").unwrap();
        assert_eq!(followed.look(&engine).len(), 2);
        fs::write(&followed.path, "at 30 7\n").unwrap();
        assert_eq!(followed.look(&engine), [ProgressPoint { flops: 0.3, rate_gflops: 7.0 }]);
        // A run that the program repeats in the same file.
        OpenOptions::new().append(true).open(&followed.path).unwrap().write_all(b"at 5 6\n").unwrap();
        assert_eq!(followed.look(&engine), [ProgressPoint { flops: 0.05, rate_gflops: 6.0 }]);
    }
}
