//! The program of a run and the libraries that it loads, with their hashes when the pack was made.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use objectives::launcher::words;
use serde::{Deserialize, Serialize};
use space::KernelChoice;

use super::programs::{one_line, rust_compiler, said};
use crate::record::Row;
use crate::record::sha256;
use crate::session::engine::Engine;
use crate::session::engine::programs::found;

/// A file that took part in the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Library {
    /// `program`, `kernels` or `library`.
    pub role: String,
    /// Where it is, links resolved.
    pub path: String,
    /// Its SHA-256 when the pack was made; `None` where it could not be read any more.
    pub sha256: Option<String>,
}

/// The program that ran `row`: of our engine in one process the first word of its command.
pub fn program(engine: &Engine, row: &Row) -> Option<PathBuf> {
    match engine {
        Engine::Ours => shlex::split(&row.command)?.into_iter().next().map(PathBuf::from),
        Engine::Launched(job) => found(&job.program),
        Engine::Foreign(foreign) => found(Path::new(&foreign.profile().program)),
    }
}

/// The program, the libraries that the dynamic linker finds for it, and the BLAS that it loads by name.
pub fn libraries(engine: &Engine, row: &Row) -> Vec<Library> {
    let Some(program) = program(engine, row) else { return Vec::new() };
    let kernels = match &row.kernels {
        Some(KernelChoice::Blas(path)) => vec![path.clone()],
        _ => Vec::new(),
    };
    let ranks = row.rank_kernels.iter().filter_map(|kernels| match kernels {
        KernelChoice::Blas(path) => Some(path.clone()),
        _ => None,
    });
    let mut all = vec![library("program", &program)];
    all.extend(kernels.into_iter().chain(ranks).map(|path| library("kernels", &path)));
    all.extend(linked(&program).iter().map(|path| library("library", path)));
    let mut known = std::collections::BTreeSet::new();
    all.retain(|library| known.insert(library.path.clone()));
    all
}

/// The compiler that made the program of the run, where it is one of ours.
pub fn compiler(engine: &Engine, row: &Row) -> Option<String> {
    if engine.is_ours() { rust_compiler(&program(engine, row)?) } else { None }
}

/// The MPI library of the run, as its launcher says it; `None` where that says nothing of one, as a resource manager's does.
pub fn mpi(engine: &Engine) -> Option<String> {
    let launcher = match engine {
        Engine::Ours => return Some("none: the ranks are threads of one process".to_owned()),
        Engine::Launched(job) => job.launcher.clone(),
        Engine::Foreign(foreign) => foreign.profile().launcher.clone(),
    };
    of_launcher(&said(Path::new(words(&launcher).first()?))?)
}

/// The MPI library that a launcher names in what it says of its version: Open MPI, Intel MPI, MVAPICH, or by the version of Hydra, which
/// is that of MPICH.
fn of_launcher(text: &str) -> Option<String> {
    let lines = || text.lines().map(str::trim);
    if let Some(line) =
        lines().find(|line| ["Open MPI", "Intel(R) MPI", "MVAPICH"].iter().any(|name| line.contains(name)))
    {
        return Some(one_line(line));
    }
    let is_hydra = lines().any(|line| line.starts_with("HYDRA build details"));
    let version = lines().find_map(|line| line.strip_prefix("Version:")).filter(|_| is_hydra)?;
    Some(one_line(&format!("MPICH, or a library with its launcher: Hydra {}", version.trim())))
}

fn library(role: &str, path: &Path) -> Library {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    Library { role: role.to_owned(), path: path.display().to_string(), sha256: sha256::of_file(&path).ok() }
}

/// Libraries that `ldd` finds for a program.
fn linked(program: &Path) -> Vec<PathBuf> {
    let output = Command::new("ldd").arg(program).stdin(Stdio::null()).stderr(Stdio::null()).output();
    output.map_or_else(|_| Vec::new(), |output| of_ldd(&String::from_utf8_lossy(&output.stdout)))
}

/// Paths of lines such as `libm.so.6 => /lib/libm.so.6 (0x00007f5a)` and `/lib64/ld-linux-x86-64.so.2 (0x00007f5a)`.
fn of_ldd(text: &str) -> Vec<PathBuf> {
    let path = |line: &str| {
        let place = line.split_once(" => ").map_or(line, |(_, place)| place).trim();
        let path = place.rsplit_once(" (").map_or(place, |(path, _)| path);
        path.starts_with('/').then(|| PathBuf::from(path))
    };
    text.lines().filter_map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the launchers print for `--version`.
    #[test]
    fn a_launcher_is_an_mpi_library_only_where_it_names_one() {
        let open_mpi = "mpirun (Open MPI) 4.1.6\n\nReport bugs to http://www.open-mpi.org/community/help/\n";
        assert_eq!(of_launcher(open_mpi).as_deref(), Some("mpirun (Open MPI) 4.1.6"));
        let intel =
            "Intel(R) MPI Library for Linux* OS, Version 2021.9 Build 20230307 (id: d82b3071db)\nCopyright 2003\n";
        assert!(of_launcher(intel).unwrap().starts_with("Intel(R) MPI Library for Linux* OS, Version 2021.9"));
        let hydra = "HYDRA build details:\n    Version:                                 4.0\n    Release Date: 2022\n";
        assert_eq!(of_launcher(hydra).as_deref(), Some("MPICH, or a library with its launcher: Hydra 4.0"));
        for other in ["slurm 22.05.8\n", "commands:    \t\t0.49.0\nVersion: 3\n", "mpiexec (PALS) 1.2\n", ""] {
            assert_eq!(of_launcher(other), None, "{other}");
        }
    }

    #[test]
    fn the_lines_of_ldd_are_paths() {
        let text = "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibm.so.6 => /lib/libm.so.6 (0x00007f1)\n\tlibx.so => not found\n\
                    \tlibb.so => /opt/my libs/libb.so (0x0)\n\t/lib64/ld.so (0x1)\n\tstatically linked\n";
        assert_eq!(of_ldd(text), ["/lib/libm.so.6", "/opt/my libs/libb.so", "/lib64/ld.so"].map(PathBuf::from));
    }
}
