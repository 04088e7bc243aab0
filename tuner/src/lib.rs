//! The search over HPL: strategies, the driver, records and reports.
//!
//! Reading order: [`strategy`] (what is asked), [`history`] (what is known), `drive` (the loop).

pub mod history;
pub mod strategy;
