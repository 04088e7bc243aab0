//! The HPL space: every candidate worth considering at one order N on one machine.
//!
//! Ranks and threads share the cores, `ranks · threads = cores`. The grid is two ordered dimensions: `ranks`
//! (log2) and `grid`, the aspect P:Q in lowest terms (log2 P/Q), so that 1×2 and 2×4 are alike and any number
//! of cores fits; a pair that makes no whole P and Q does not exist.

mod build;
mod error;
mod foreign;
mod grids;
mod hpl;
mod limits;
mod prepared;
mod settings;
mod spec;
mod usual;
mod values;
mod weighted;

pub use self::error::{DomainError, LimitError};
pub use self::foreign::ForeignDomain;
pub use self::grids::squarest;
pub use self::hpl::HplDomain;
pub use self::limits::Limits;
pub use self::settings::SettingsDomain;
pub use self::spec::{Candidates, DomainSpec, Extra, ForeignSpec, MAX_POINTS, ProcessRows, TOO_MANY_POINTS};
pub use self::usual::{Expert, default_candidate};
pub use self::weighted::WeightedDomain;
pub use crate::order::{largest_n, required_bytes};
pub use crate::rules::MAX_PLACES;
