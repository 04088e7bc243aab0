//! Where programs are.

use std::path::{Path, PathBuf};
use std::process::Command;

use objectives::launcher::{FILES_OF_NODES, is_of_several_libraries, understood};
use objectives::real::answer;

/// Folder in that of this program with the `xhpl` of `hpl-tune mpi-setup`.
pub(crate) const MPI_FOLDER: &str = "mpi";

/// A program, or a library, that runs in the folders of trials find: absolute, unless it is looked for by its name.
pub(crate) fn from_any_folder(program: &Path) -> anyhow::Result<PathBuf> {
    Ok(if program.components().count() > 1 { std::path::absolute(program)? } else { program.to_path_buf() })
}

/// A launcher as it is used: found from the folders of trials, with words that its MPI library understands.
///
/// # Errors
/// As of [`launcher_from_any_folder`].
pub(crate) fn launcher_here(text: &str) -> Result<String, String> {
    let text = launcher_from_any_folder(text)?;
    let program = text.split_whitespace().next().filter(|_| is_of_several_libraries(&text));
    let version = program.and_then(|program| answer(Command::new(program).arg("--version")));
    Ok(version.map_or_else(|| text.clone(), |version| understood(&text, &version)))
}

/// The launcher of a profile, as it is used. One that the profile names by a path is not asked for its version: whoever looks at a profile of others
/// starts none of its programs.
///
/// # Errors
/// As of [`launcher_from_any_folder`].
pub(crate) fn launcher_of_profile(text: &str) -> Result<String, String> {
    let is_path = text.split_whitespace().next().is_some_and(|program| program.contains('/'));
    if is_path { launcher_from_any_folder(text) } else { launcher_here(text) }
}

/// A launcher that the folders of trials find: its path and that of its file of nodes become absolute.
///
/// # Errors
/// Quotes, or a folder with a space in its name, and the way out.
fn launcher_from_any_folder(text: &str) -> Result<String, String> {
    if text.contains(['\'', '"']) {
        return Err(format!(
            "'{text}': a launcher is divided into words at its spaces, and quotes hold none together; leave them out"
        ));
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut held: Vec<String> = Vec::new();
    for (at, word) in words.iter().copied().enumerate() {
        let (is_path, path) = match at.checked_sub(1) {
            None => (word.contains('/'), word),
            // The flag is in the same word, or in the one before.
            Some(before) => {
                let (flag, path) = word.split_once('=').unwrap_or((words[before], word));
                (FILES_OF_NODES.contains(&flag) && Path::new(path).is_file(), path)
            }
        };
        if !is_path || Path::new(path).is_absolute() {
            held.push(word.to_owned());
            continue;
        }
        let absolute = std::path::absolute(path).map_err(|error| format!("'{path}': {error}"))?;
        let absolute = absolute.to_str().filter(|path| !path.contains(char::is_whitespace)).ok_or_else(|| {
            format!("'{path}' is in a folder with a space in its name, at which a launcher is divided into words; take another")
        })?;
        held.push(format!("{}{absolute}", &word[..word.len() - path.len()]));
    }
    // As it was written, where nothing is changed.
    Ok(if held == words { text.to_owned() } else { held.join(" ") })
}

/// Where a program is, by its path or on the search path.
pub(crate) fn found(program: &Path) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return program.is_file().then(|| program.to_path_buf());
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// Where `mpi-setup` puts our `xhpl`.
pub(crate) fn set_up(program: &Path) -> PathBuf {
    program.with_file_name(MPI_FOLDER).join("xhpl")
}

/// Our `xhpl` that `mpi-setup` has put into the folder of this program, or one that lies there, else the one on the search path.
pub(crate) fn xhpl_beside(program: &Path) -> PathBuf {
    let mut known = [set_up(program), program.with_file_name("xhpl")].into_iter();
    known.find(|path| path.is_file()).unwrap_or_else(|| PathBuf::from("xhpl"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of nodes in the folder of the user was not found by the trials, after the probe had found it.
    #[test]
    fn a_launcher_finds_its_files_from_any_folder() {
        // Tests run in the folder of the package.
        let here = |name: &str| std::path::absolute(name).unwrap().display().to_string();
        for (text, expected) in [
            ("bin/mpirun -np {np}", format!("{} -np {{np}}", here("bin/mpirun"))),
            ("mpirun --hostfile Cargo.toml -np {np}", format!("mpirun --hostfile {} -np {{np}}", here("Cargo.toml"))),
            ("mpiexec -n {np} -f=./Cargo.toml", format!("mpiexec -n {{np}} -f={}", here("Cargo.toml"))),
        ] {
            assert_eq!(launcher_from_any_folder(text), Ok(expected));
        }
        for same in [
            "srun",
            "mpirun  -np {np}",
            "/opt/mpirun -hostfile /etc/hosts -np {np}",
            "mpirun --hostfile no-such-file -np {np}",
            "mpirun --mca Cargo.toml -np {np}",
        ] {
            assert_eq!(launcher_from_any_folder(same).as_deref(), Ok(same));
        }
    }

    /// A script that a profile named `mpirun` was started by `--dry-run`, which is to look at profiles of others.
    #[test]
    fn a_launcher_that_a_profile_names_by_a_path_is_not_asked() {
        let folder = tempfile::tempdir().unwrap();
        let launcher = folder.path().join("mpirun");
        std::fs::write(&launcher, "#!/bin/sh\ntouch \"$0.asked\"\necho HYDRA\n").unwrap();
        std::fs::set_permissions(&launcher, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let text = format!("{} -n {{np}}", launcher.display());
        assert_eq!(launcher_of_profile(&text).as_ref(), Ok(&text));
        assert!(!folder.path().join("mpirun.asked").exists());
        assert_eq!(launcher_here(&text), Ok(format!("{} -genvall -n {{np}}", launcher.display())));
        assert!(folder.path().join("mpirun.asked").exists());
    }

    /// The quotes were parts of words, and what they held together was several.
    #[test]
    fn a_launcher_with_quotes_is_refused() {
        for text in ["mpirun -x 'A=b c' -np {np}", "srun --constraint=\"a&b\" -n {np}"] {
            assert!(launcher_from_any_folder(text).unwrap_err().contains("quotes hold none together"), "{text}");
        }
    }
}
