//! The MPI libraries of the tests, and programs built for them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// An MPI library that `tests/run` builds for, by the name of its folder below `target`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Mpi {
    Open,
    Mpich,
}

impl Mpi {
    fn folder(self) -> &'static str {
        match self {
            Self::Open => "openmpi",
            Self::Mpich => "mpich",
        }
    }

    /// A program built for it.
    pub(crate) fn built(self, name: &str) -> PathBuf {
        root().join("target").join(self.folder()).join("release").join(name)
    }

    /// Its compiler wrapper.
    pub(crate) fn compiler(self) -> &'static str {
        match self {
            Self::Open => "mpicc.openmpi",
            Self::Mpich => "mpicc.mpich",
        }
    }

    /// What it calls itself.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Open => "Open MPI",
            Self::Mpich => "MPICH",
        }
    }

    /// The words that start a program, `{np}` its processes.
    pub(crate) fn launcher(self) -> &'static str {
        match self {
            Self::Open => "mpirun.openmpi --allow-run-as-root --oversubscribe -np {np}",
            Self::Mpich => "mpirun.mpich -np {np}",
        }
    }

    /// `program` on `ranks` processes.
    pub(crate) fn run(self, ranks: usize, program: &Path) -> Command {
        let words = self.launcher().replace("{np}", &ranks.to_string());
        let mut words = words.split(' ');
        let mut command = Command::new(words.next().unwrap());
        command.args(words).arg(program).stdin(Stdio::null());
        command
    }
}

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}
