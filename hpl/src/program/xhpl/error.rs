//! Errors of the program, and its exit codes.

use std::io::{self, ErrorKind};

use space::HplParams;
use space::dat::DatError;

use super::dat_text::MAX_DAT;
use super::engine::EngineError;
use super::pair::PairError;
use super::records::WriteError;
use super::result_file::ResultUnwritten;
use crate::plan::windows::WindowError;
use crate::program::{Emulated, RunError, UnderMpi};

/// Errors of the program.
#[derive(Debug, thiserror::Error)]
pub(super) enum XhplError {
    #[error(transparent)]
    UnderMpi(#[from] UnderMpi),
    #[error(transparent)]
    Emulated(#[from] Emulated),
    #[error("HPL.dat has more than {MAX_DAT} bytes, its 31 lines need less than 10000; is it another file?")]
    TooLong,
    #[error("cannot read HPL.dat in {folder}: {source}; xhpl takes its parameters from there")]
    Unreadable { folder: String, source: io::Error },
    #[error(transparent)]
    Dat(#[from] DatError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("HPL.dat line {line}: {source}")]
    Refused { line: usize, source: RunError },
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(
        "HPL.dat line 3: cannot open {name} for output: {source}; name another file, or set line 4 to 6 for stdout"
    )]
    Unopened { name: String, source: io::Error },
    #[error("cannot write to {name}: {source}")]
    Unwritten { name: String, source: io::Error },
    #[error(transparent)]
    Result(#[from] ResultUnwritten),
    #[error(transparent)]
    Record(#[from] WriteError),
    #[error("--windows: {0} of N={n} NB={nb}", n = .1.n, nb = .1.nb)]
    Window(WindowError, HplParams),
    #[error(transparent)]
    Pair(#[from] PairError),
}

impl XhplError {
    /// The exit code; `asks_for_files`: whether files are to be written, too. These are not, where nobody reads the output any more.
    pub(super) fn exit_code(&self, asks_for_files: bool) -> u8 {
        match self {
            Self::Unwritten { source, .. } if source.kind() == ErrorKind::BrokenPipe && !asks_for_files => 0,
            Self::Unwritten { .. } | Self::Result(_) | Self::Record(WriteError::Unwritten { .. }) => 5,
            Self::Run(RunError::Thread { .. } | RunError::Panicked { .. } | RunError::Engine { .. }) => 1,
            _ => 2,
        }
    }
}
