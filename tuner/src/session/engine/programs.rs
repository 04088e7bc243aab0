//! Where programs are.

use std::path::{Path, PathBuf};

/// Folder in that of this program with the `xhpl` of `hpl-tune mpi-setup`.
pub(crate) const MPI_FOLDER: &str = "mpi";

/// A program, or a library, that runs in the folders of trials find: absolute, unless it is looked for by its name.
pub(crate) fn from_any_folder(program: &Path) -> anyhow::Result<PathBuf> {
    Ok(if program.components().count() > 1 { std::path::absolute(program)? } else { program.to_path_buf() })
}

/// Where a program is, by its path or on the search path.
pub(crate) fn found(program: &Path) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return program.is_file().then(|| program.to_path_buf());
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// Our `xhpl` that `mpi-setup` has put into the folder of this program, or one that lies there, else the one on the search path.
pub(crate) fn xhpl_beside(program: &Path) -> PathBuf {
    let set_up = program.with_file_name(MPI_FOLDER).join("xhpl");
    let mut known = [set_up, program.with_file_name("xhpl")].into_iter();
    known.find(|path| path.is_file()).unwrap_or_else(|| PathBuf::from("xhpl"))
}
