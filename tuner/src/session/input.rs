//! Files that users give: machine descriptions, HPL.dat, engine parameters, weights.

use std::path::Path;

use hpl::program::Ranks;
use space::dat::HplDat;
use space::machine::{Machine, published};
use space::nearest::hint;
use space::weights_file::WeightsFile;
use space::{EngineFile, EngineParams, KernelChoice, Weights};

use crate::exit::bad_input;
use crate::session::engine::programs::from_any_folder;

/// The description in the file at this path, checked, or the published one of this name where there is no such file.
///
/// # Errors
/// Neither a readable file nor a known name, or a file that is no description.
pub fn load(name: &str) -> anyhow::Result<Machine> {
    let path = Path::new(name);
    if let (false, Some(published)) = (path.exists(), published::find(name)) {
        return Ok(published.machine()?);
    }
    let text = std::fs::read_to_string(path).map_err(|error| {
        let known: Vec<&str> = published::ALL.iter().map(|published| published.name).collect();
        let hint = hint(name, known.iter().copied());
        bad_input(format!("cannot read {name}: {error}; give a machine.toml, or one of {}{hint}", known.join(", ")))
    })?;
    Machine::parse(&text).map_err(|error| bad_input(format!("{name}: {error}")))
}

/// A machine.toml, checked, and its text.
///
/// # Errors
/// A file that cannot be read, or is no description.
pub(crate) fn read_machine(path: &Path) -> anyhow::Result<(Machine, String)> {
    let text = text(path, "hpl-tune calibrate writes a machine.toml")?;
    let machine = Machine::parse(&text).map_err(|error| bad_input(format!("{}: {error}", path.display())))?;
    Ok((machine, text))
}

/// The one run that a HPL.dat names.
///
/// # Errors
/// A file that cannot be read, is no HPL.dat, or names several runs.
pub(crate) fn single_run(path: &Path) -> anyhow::Result<space::HplParams> {
    single(&read_dat(path)?, path)
}

/// A HPL.dat.
///
/// # Errors
/// A file that cannot be read, or is none.
pub(crate) fn read_dat(path: &Path) -> anyhow::Result<HplDat> {
    let bytes = std::fs::read(path).map_err(|error| bad_input(format!("cannot read {}: {error}", path.display())))?;
    let text = String::from_utf8_lossy(&bytes);
    HplDat::parse(&text).map_err(|error| bad_input(format!("{}: {error}", path.display())))
}

/// The one run of `dat`, the file at `path`.
///
/// # Errors
/// Several runs.
pub(crate) fn single(dat: &HplDat, path: &Path) -> anyhow::Result<space::HplParams> {
    match dat.runs().as_slice() {
        [one] => Ok(*one),
        runs => Err(bad_input(format!(
            "{} describes {} runs where one is wanted; use one value in each list, or run all of them with xhpl",
            path.display(),
            runs.len()
        ))),
    }
}

/// The weights of a file that `hpl-tune weights --out` wrote.
///
/// # Errors
/// A file that cannot be read, or holds no weights.
pub(crate) fn read_weights(path: &Path) -> anyhow::Result<Weights> {
    let text = text(path, "hpl-tune weights --out FILE writes one")?;
    let file = WeightsFile::parse(&text).map_err(|error| bad_input(format!("{}: {error}", path.display())))?;
    Ok(file.weights())
}

/// Engine parameters; the defaults without a file.
///
/// # Errors
/// A file that cannot be read, or holds none.
pub(crate) fn read_params(path: Option<&Path>) -> anyhow::Result<EngineParams> {
    Ok(read_file(path)?.params)
}

/// Engine parameters for a run of `ranks` ranks: as in xhpl the cores are spread over them where the file does not give the threads.
pub(crate) fn read_params_of(path: Option<&Path>, ranks: usize) -> anyhow::Result<EngineParams> {
    let EngineFile { mut params, divide_cores } = read_file(path)?;
    if divide_cores {
        params.threads = Ranks::threads().threads_each(ranks);
    }
    Ok(params)
}

/// What a file of engine parameters says.
fn read_file(path: Option<&Path>) -> anyhow::Result<EngineFile> {
    let Some(path) = path else { return Ok(EngineFile::default()) };
    let text = text(path, "a run folder has an engine-params.toml")?;
    let mut file = EngineFile::parse(&text).map_err(|error| bad_input(format!("{}: {error}", path.display())))?;
    let engine = &mut file.params;
    if engine.kernels == KernelChoice::Auto {
        return Err(bad_input(format!(
            "{}: kernels must be builtin, builtin-avx2, builtin-portable or the path of a library; auto is possible for xhpl",
            path.display()
        )));
    }
    hold(&mut engine.kernels)?;
    engine.rank_kernels.iter_mut().try_for_each(hold)?;
    Ok(file)
}

/// Makes the path of a library one for runs in any folder, as those of `--blas` are.
fn hold(kernels: &mut KernelChoice) -> anyhow::Result<()> {
    if let KernelChoice::Blas(path) = kernels {
        *path = from_any_folder(path)?;
    }
    Ok(())
}

/// The text of the file at `path`; an error says `source`, where such files come from.
fn text(path: &Path, source: &str) -> anyhow::Result<String> {
    std::fs::read_to_string(path)
        .map_err(|error| bad_input(format!("cannot read {}: {error}; {source}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The processes of `survey --program` and `nodes` have a folder of their own, and found no library there.
    #[test]
    fn a_library_is_found_from_any_folder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("engine-params.toml");
        std::fs::write(&path, "kernels = \"lib/libblas.so.3\"\n").unwrap();
        let here = std::path::absolute("lib/libblas.so.3").unwrap();
        assert_eq!(read_params(Some(&path)).unwrap().kernels, KernelChoice::Blas(here));
    }
}
