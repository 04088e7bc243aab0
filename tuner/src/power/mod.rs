//! The power that runs take: who reads it, over which span of time, and what the readings say.
//!
//! [`reader`] has the sources of a session: sensors of the node ([`hpl::measure::power`]), or the file of a meter, which [`log`] reads
//! as it does for packs. [`spans`] says when a run and its core phase began and ended, by its [`stamps`]; [`window`] is the mean over a
//! span, by the readings that lie wholly in it; [`record`] is what is kept of a trial. The sensors of several nodes are read by
//! [`crate::agents`]. [`settings`] makes the clocks and power limits of trials, and puts back what was found.

pub mod log;
pub mod reader;
pub mod record;
pub mod settings;
pub mod spans;
pub mod stamps;
pub mod window;

pub use reader::{MeterLog, PowerReader, RunsOn};
pub use record::{PowerRecord, RunPower};
pub use spans::RunSpans;
