//! The program of a run and the libraries that it loads, with their hashes when the pack was made.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use objectives::launcher::words;
use serde::{Deserialize, Serialize};
use space::KernelChoice;

use super::programs::{rust_compiler, version};
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

/// The MPI library of the run, as its launcher says it; `None` where that says nothing.
pub fn mpi(engine: &Engine) -> Option<String> {
    let launcher = match engine {
        Engine::Ours => return Some("none: the ranks are threads of one process".to_owned()),
        Engine::Launched(job) => job.launcher.clone(),
        Engine::Foreign(foreign) => foreign.profile().launcher.clone(),
    };
    version(Path::new(words(&launcher).first()?))
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

    #[test]
    fn the_lines_of_ldd_are_paths() {
        let text = "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibm.so.6 => /lib/libm.so.6 (0x00007f1)\n\tlibx.so => not found\n\
                    \tlibb.so => /opt/my libs/libb.so (0x0)\n\t/lib64/ld.so (0x1)\n\tstatically linked\n";
        assert_eq!(of_ldd(text), ["/lib/libm.so.6", "/opt/my libs/libb.so", "/lib64/ld.so"].map(PathBuf::from));
    }
}
