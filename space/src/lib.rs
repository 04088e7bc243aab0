//! The words of the project: what an HPL run *is*.
//!
//! Parameters, their named dimensions, the formats that carry them (HPL.dat, HPL.out, `machine.toml`),
//! the domain that a search explores and the rules that keep it valid. Pure: no clock, no I/O.
//!
//! Start at [`HplParams`], then [`Candidate`], then [`dims`].

pub mod candidate;
pub mod dims;
pub mod engine;
pub mod flops;
pub mod machine;
pub mod params;
pub mod result;

pub use candidate::Candidate;
pub use engine::{EngineParams, KernelChoice};
pub use params::{Bcast, Form, HplParams, Looking, Pmap, Swap};
pub use result::RunResult;
