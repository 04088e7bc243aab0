//! What is kept of a session, in its run folder.
//!
//! A [`PlannedTrial`] is started and ended through the [`store`]: a line of the [`journal`], which is the truth, when it starts ([`Begun`])
//! and one when it ends ([`Row`]), and now and then all rows as [`parquet`], by a child ([`table`]). In memory stays what the search needs of each ([`ShortRow`]). [`follow`] reads a journal while it grows. [`row`] is the trial as a flat row, [`session`] what the session was asked to do,
//! [`now`] what runs at this moment, [`vitals`] what the machine did meanwhile. [`folder`] says where each file lies;
//! [`decode`] reads Parquet files of others, [`plain`] other files that they may have put there.

mod begun;
pub mod decode;
mod ended;
mod finished;
pub mod folder;
pub mod follow;
mod group_sizes;
pub mod journal;
mod kept;
pub mod lead;
pub mod left;
pub mod now;
mod objective;
pub mod parquet;
pub mod plain;
mod planned;
pub mod row;
pub mod session;
pub mod sha256;
mod short_row;
pub mod store;
pub mod table;
pub mod vitals;

pub use self::begun::Begun;
pub use self::finished::{Finished, MeasuredPair, SharedCandidate};
pub use self::group_sizes::GroupSizes;
pub use self::objective::{Objective, limited_power_w, mean_power_w};
pub use self::planned::{PlannedTrial, Reference, names_in_order};
#[cfg(test)]
pub(crate) use self::row::arbitrary;
pub use self::row::{Circumstances, Identity, Outcome, Prediction, ROW_SCHEMA, Row, SwapName};
pub use self::short_row::{ShortRow, Shortener};
