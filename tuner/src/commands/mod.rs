//! One file per verb.

pub mod calibrate;
pub mod replay;
pub mod report;
pub mod run;
pub mod tune;
