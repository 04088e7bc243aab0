//! Machine descriptions that come with the program: public systems, each with its source in the file.

use super::{Machine, MachineError};

/// A description as it lies in `datasets/machines`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Published {
    /// Its name, as `--machine` takes it.
    pub name: &'static str,
    /// Its text, which says in comments where each figure is from.
    pub text: &'static str,
}

impl Published {
    /// The description.
    ///
    /// # Errors
    /// [`MachineError`]; never for a description of [`ALL`].
    pub fn machine(&self) -> Result<Machine, MachineError> {
        Machine::parse(self.text)
    }
}

macro_rules! published {
    ($($name:literal),*) => {
        &[$(Published { name: $name, text: include_str!(concat!("../../../datasets/machines/", $name, ".toml")) }),*]
    };
}

/// All of them, by name.
pub const ALL: &[Published] = published![
    "crusher",
    "dahu",
    "h100",
    "h200",
    "ibm-x440",
    "isabella-hpc1",
    "isabella-hpc2",
    "mi250x-gcd",
    "p100-cluster",
    "roadrunner",
    "stampede",
    "theta"
];

/// The description of this name.
pub fn find(name: &str) -> Option<Published> {
    ALL.iter().copied().find(|published| published.name == name)
}
