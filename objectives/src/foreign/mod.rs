//! Other HPL programs: their description by a small TOML profile, and their output.
//!
//! A [`Profile`] contains the command, the input, the dimensions that the program obeys and the patterns of its output. A
//! [`Foreign`] is a checked profile: it makes the command, the environment and the input of a candidate, and reads the
//! program's output. Profiles of known programs are [shipped](SHIPPED).

mod dimension;
mod engine;
mod error;
mod output;
mod profile;
mod template;

pub use dimension::ExtraDim;
pub use engine::Foreign;
pub use error::ProfileError;
pub use output::PrintedResult;
pub use profile::{MatrixMemory, OBEYABLE, PROFILE_SCHEMA, Profile, SHIPPED};
