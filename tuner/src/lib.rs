//! The search over HPL: strategies, the driver, records and reports.
//!
//! Reading order: [`strategy`] (what is asked), [`history`] (what is known), `drive` (the loop), [`record`]
//! (what is kept).
#![forbid(unsafe_code)]

pub mod error;
pub mod folder;
pub mod history;
pub mod journal;
pub mod parquet;
pub mod record;
pub mod report;
pub mod session;
pub mod strategy;
