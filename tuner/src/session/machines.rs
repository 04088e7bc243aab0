//! Machine descriptions by name or by file.

use std::path::Path;

use space::machine::{Machine, published};

use crate::exit::bad_input;

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
        bad_input(format!("cannot read {name}: {error}; give a machine.toml, or one of {}", known.join(", ")))
    })?;
    Machine::parse(&text).map_err(|error| bad_input(format!("{name}: {error}")))
}

/// A machine.toml, checked, and its text.
///
/// # Errors
/// A file that cannot be read, or is no description.
pub(crate) fn read_machine(path: &Path) -> anyhow::Result<(Machine, String)> {
    let text =
        std::fs::read_to_string(path).map_err(|error| bad_input(format!("cannot read {}: {error}", path.display())))?;
    let machine = Machine::parse(&text).map_err(|error| bad_input(format!("{}: {error}", path.display())))?;
    Ok((machine, text))
}
