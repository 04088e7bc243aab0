//! What is kept of a session, in its run folder.
//!
//! A [`PlannedTrial`] is started and ended through the [`store`]: a line of the [`journal`], which is the truth, when it starts ([`Begun`])
//! and one when it ends ([`Row`]), and now and then all rows as [`parquet`]. [`follow`] reads a journal while it grows. [`row`] is the trial as a flat row, [`session`] what the session was asked to do,
//! [`now`] what runs at this moment, [`vitals`] what the machine did meanwhile. [`folder`] says where each file lies;
//! [`decode`] reads Parquet files of others.

mod begun;
pub mod decode;
mod ended;
pub mod folder;
pub mod follow;
pub mod journal;
pub mod left;
pub mod now;
mod objective;
pub mod parquet;
mod planned;
pub mod row;
pub mod session;
pub mod sha256;
pub mod store;
pub mod vitals;

pub use self::begun::Begun;
pub use self::objective::{Objective, limited_power_w, mean_power_w};
pub use self::planned::PlannedTrial;
#[cfg(test)]
pub(crate) use self::row::arbitrary;
pub use self::row::{Circumstances, Identity, Outcome, Prediction, ROW_SCHEMA, Row, SwapName};
