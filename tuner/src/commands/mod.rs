//! One file per verb.

pub mod calibrate;
pub mod report;
pub mod run;
pub mod tune;
