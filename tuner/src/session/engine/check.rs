//! Whether the programs of an engine are there.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use objectives::foreign::Profile;
use objectives::launcher::LAUNCHERS;
use objectives::real::quoted;
use space::Candidate;

use super::Engine;
use super::programs::found;
use crate::exit::bad_input;

impl Engine {
    /// Makes sure that its programs are there.
    ///
    /// # Errors
    /// The one that is not, and the way out.
    pub fn check_programs(&self) -> anyhow::Result<()> {
        let candidate = Candidate { hpl: space::HplParams::baseline(1, 1, 1), engine: space::EngineParams::default() };
        let (whose, program, words) = match self {
            Self::Ours => return Ok(()),
            Self::Launched(job) => ("--launcher".to_owned(), job.program.clone(), job.command(&candidate)),
            Self::Foreign(foreign) => {
                let Profile { name, program, .. } = foreign.profile();
                (format!("engine {name}"), PathBuf::from(program), foreign.command(&candidate, Path::new("/")))
            }
        };
        let give = match self {
            Self::Launched(_) => {
                "make our xhpl for your MPI library by hpl-tune mpi-setup, or give its path with --program"
            }
            _ => "give its path with --program",
        };
        let first = words.into_iter().next().map(PathBuf::from);
        if let Some(first) = first.filter(|first| *first != program && found(first).is_none()) {
            let known: Vec<&str> = LAUNCHERS.iter().map(|(name, _)| *name).collect();
            return Err(bad_input(format!(
                "{whose}: no program {}; install it, or choose another with --launcher: {} or a launch command",
                first.display(),
                known.join(", ")
            )));
        }
        if found(&program).is_none() {
            return Err(bad_input(format!("{whose}: no program {}; {give}", program.display())));
        }
        let is_executable = |path: &PathBuf| path.metadata().is_ok_and(|data| data.permissions().mode() & 0o111 != 0);
        if let Some(path) = found(&program).filter(|path| !is_executable(path)) {
            let file = quoted([&path]).concat();
            return Err(bad_input(format!("{whose}: {file} is not executable; chmod +x {file}, or {give}")));
        }
        Ok(())
    }
}
