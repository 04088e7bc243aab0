//! Parquet files from elsewhere, decoded in a child with limits of memory and time.
//!
//! A file can make a decoder ask for any amount of memory, and a program that gets none is ended. The body of the hidden verb
//! `hpl-tune __decode KIND` reads the file from its standard input, under limits that it sets itself, and prints a line of JSON
//! for each row. It has no environment and can write no file.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use objectives::Exit;
use serde::Serialize;
use serde::de::DeserializeOwned;
use space::result::PhaseTime;

use crate::error::RecordError;
use crate::record::Row;
use crate::record::parquet::{self, Fault, ParquetRow};

/// The hidden verb, as the program must dispatch it to [`main`].
pub const VERB: &str = "__decode";

/// Memory of the child, in bytes: a session of 5000 trials takes a hundredth of it.
pub const MEMORY_BYTES: u64 = 2 << 30;
/// Its time on the cores, in seconds.
const CPU_S: u64 = 60;
/// What it may print, in bytes.
const OUTPUT_BYTES: u64 = 1 << 30;

/// What any table is called, see [`Decoder::cells`].
const CELLS: &str = "cells";
/// Exit code of a child that prints a [`Fault`].
const FAULTY: u8 = 2;

/// Where Parquet files are decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decoder {
    /// In this process: for files that it has written itself.
    Here,
    /// In a child.
    Child {
        /// The path of `hpl-tune`.
        program: PathBuf,
        /// Memory that it may have, in bytes.
        memory_bytes: u64,
    },
}

impl Decoder {
    /// In a child of this program.
    ///
    /// # Errors
    /// When the path of this program is not to be found.
    pub fn child() -> io::Result<Self> {
        Ok(Self::of(&std::env::current_exe()?))
    }

    /// In a child, which is `program`, the path of `hpl-tune`.
    pub fn of(program: &Path) -> Self {
        Self::Child { program: program.to_path_buf(), memory_bytes: MEMORY_BYTES }
    }

    /// The rows of the file at `path`.
    ///
    /// # Errors
    /// As [`parquet::read`]; a file that ends the child is damaged.
    pub fn rows<T: ParquetRow>(&self, path: &Path) -> Result<Vec<T>, RecordError> {
        match self {
            Self::Here => parquet::read(path),
            Self::Child { program, memory_bytes } => lines(program, *memory_bytes, T::KIND, path),
        }
    }

    /// Names and cells of any table, as [`parquet::cells`].
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn cells(&self, path: &Path) -> Result<(Vec<String>, Vec<Vec<String>>), RecordError> {
        let mut rows: Vec<Vec<String>> = match self {
            Self::Here => {
                let bytes = std::fs::read(path).map_err(RecordError::read(path))?;
                return parquet::cells(bytes).map_err(|reason| RecordError::damaged(path, reason));
            }
            Self::Child { program, memory_bytes } => lines(program, *memory_bytes, CELLS, path)?,
        };
        if rows.is_empty() {
            return Err(RecordError::damaged(path, "it has no columns"));
        }
        Ok((rows.remove(0), rows))
    }
}

/// What a child prints of the file at `path`.
fn lines<T: DeserializeOwned>(
    program: &Path,
    memory_bytes: u64,
    kind: &str,
    path: &Path,
) -> Result<Vec<T>, RecordError> {
    let file = File::open(path).map_err(RecordError::read(path))?;
    let failed = |error: io::Error| RecordError::damaged(path, format_args!("it cannot be decoded: {error}"));
    let mut child = Command::new(program)
        .args([VERB, kind, &memory_bytes.to_string()])
        .env_clear()
        .stdin(file)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed)?;
    let mut printed = Vec::new();
    let stdout = child.stdout.take().expect("stdout is piped");
    let read = BufReader::new(stdout.take(OUTPUT_BYTES)).read_to_end(&mut printed);
    // Who prints more meets a closed pipe.
    let status = child.wait().map_err(failed)?;
    read.map_err(failed)?;
    match Exit::from(status) {
        Exit::Code(0) => printed
            .lines()
            .map(|line| Ok(serde_json::from_slice(line?.as_bytes())?))
            .collect::<io::Result<_>>()
            .map_err(failed),
        Exit::Code(code) if code == i32::from(FAULTY) => {
            let fault: Fault = serde_json::from_slice(&printed).map_err(|error| failed(error.into()))?;
            Err(fault.at(path))
        }
        exit => {
            let mib = memory_bytes >> 20;
            Err(RecordError::damaged(
                path,
                format_args!("the process that decodes it {exit}; it may take {mib} MiB and {CPU_S} s"),
            ))
        }
    }
}

/// Runs the verb: `KIND MEMORY_BYTES`, the file on standard input. Ends with 0 after the rows, with 2 after a [`Fault`], and
/// with 1 where nothing could be decoded.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let words: Option<Vec<&str>> = arguments.iter().map(|word| word.to_str()).collect();
    let done = match words.as_deref() {
        Some([kind, bytes]) => bytes.parse().ok().and_then(|bytes| limited(bytes).ok()).and_then(|()| decoded(kind)),
        _ => None,
    };
    done.map_or(ExitCode::FAILURE, ExitCode::from)
}

/// Takes from this process what a decoder does not need.
fn limited(memory_bytes: u64) -> nix::Result<()> {
    let limits = [
        (Resource::RLIMIT_AS, memory_bytes),
        (Resource::RLIMIT_CPU, CPU_S),
        (Resource::RLIMIT_FSIZE, 0),
        (Resource::RLIMIT_CORE, 0),
    ];
    limits.into_iter().try_for_each(|(resource, most)| {
        let (_, hard) = getrlimit(resource)?;
        setrlimit(resource, most.min(hard), most.min(hard))
    })
}

/// Prints what standard input holds; the exit code.
fn decoded(kind: &str) -> Option<u8> {
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes).ok()?;
    match kind {
        Row::KIND => print(parquet::rows::<Row>(bytes)),
        PhaseTime::KIND => print(parquet::rows::<PhaseTime>(bytes)),
        CELLS => {
            let table = parquet::cells(bytes).map_err(Fault::Damaged);
            print(table.map(|(names, rows)| [names].into_iter().chain(rows).collect()))
        }
        _ => None,
    }
}

fn print<T: Serialize>(found: Result<Vec<T>, Fault>) -> Option<u8> {
    let mut out = BufWriter::new(io::stdout().lock());
    let code = match found {
        Ok(rows) => {
            for row in rows {
                serde_json::to_writer(&mut out, &row).ok()?;
                out.write_all(b"\n").ok()?;
            }
            0
        }
        Err(fault) => {
            serde_json::to_writer(&mut out, &fault).ok()?;
            FAULTY
        }
    };
    out.flush().ok()?;
    Some(code)
}
