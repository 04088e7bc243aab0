//! The search over HPL: strategies, the driver, records and reports.
//!
//! Reading order: [`strategy`] (what is asked), [`history`] (what is known), `drive` (the loop), [`record`]
//! (what is kept).
#![forbid(unsafe_code)]

mod acceptance;
pub mod allocation;
pub mod budget;
pub mod calibrate;

pub mod cli;
pub mod commands;
pub mod cost;
pub mod decode;
pub mod doubts;
pub mod drive;
pub mod earlier;
pub mod engine;
pub mod environment;
pub mod error;
pub mod exit;
pub mod folder;
pub mod forecast;
pub mod history;
pub mod interrupt;
pub mod journal;
mod launched;
pub mod machines;
pub mod now;
pub mod pack;
pub mod parquet;
pub mod predict;
pub mod preflight;
pub mod prepare;
pub mod prior;
pub mod progress;
pub mod record;
pub mod replay;
pub mod report;
pub mod room;
pub mod rounds;
pub mod sbatch;
pub mod schedule;
pub mod session;
pub mod session_model;
pub mod simulated;
pub mod store;
pub mod strategy;
pub mod unequal;
pub mod vitals;
