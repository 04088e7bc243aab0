//! HPL programs that are not ours: what a small TOML profile says of them, and what their output says of a run.
//!
//! A [`Profile`] names the command, the input, the dimensions that the program obeys and the patterns of its output. A
//! [`Foreign`] is a checked profile: it makes the command, the environment and the input of a candidate, and reads what
//! the program printed. Profiles of known programs are [shipped](SHIPPED).

mod dimension;
mod error;
mod output;
mod profile;
mod progress;
mod template;

pub use dimension::ExtraDim;
pub use error::ProfileError;
pub use output::Reading;
pub use profile::{Foreign, MatrixMemory, OBEYABLE, PROFILE_SCHEMA, Profile, SHIPPED};
pub use progress::{ProgressPoint, ratio};
