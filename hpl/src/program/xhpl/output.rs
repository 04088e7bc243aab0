//! Destination of the output.

use std::fs::File;
use std::io::{self, Write};

use space::dat::HplDat;

use super::error::XhplError;

/// Destination of the output.
pub(super) struct Out {
    name: String,
    pub(super) sink: Box<dyn Write + Send>,
}

impl Out {
    pub(super) fn stdout() -> Self {
        Self { name: "stdout".to_owned(), sink: Box::new(io::stdout()) }
    }

    pub(super) fn stderr() -> Self {
        Self { name: "stderr".to_owned(), sink: Box::new(io::stderr()) }
    }

    /// The destination given by lines 3 and 4 of HPL.dat.
    pub(super) fn open(dat: &HplDat) -> Result<Self, XhplError> {
        Ok(match dat.device {
            6 => Self::stdout(),
            7 => Self::stderr(),
            _ => {
                let name = dat.output_file.clone();
                let file = File::create(&name).map_err(|source| XhplError::Unopened { name: name.clone(), source })?;
                Self { name, sink: Box::new(file) }
            }
        })
    }

    /// Writes and flushes, so that each run can be read as soon as it is complete.
    pub(super) fn write(&mut self, text: &str) -> Result<(), XhplError> {
        let written = self.sink.write_all(text.as_bytes()).and_then(|()| self.sink.flush());
        written.map_err(|source| XhplError::Unwritten { name: self.name.clone(), source })
    }
}
