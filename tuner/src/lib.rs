//! The search over HPL: sessions, the strategies, the record and reports.
//!
//! A newcomer's path: [`commands`] (one file per verb), [`search`] (the loop and what it tries next), [`record`] (what is
//! kept of it, with its [`power`]), [`report`] (what is said of it). [`session`] is what is settled before the first trial, [`cluster`] what
//! belongs to several nodes, and [`agents`] are processes that watch these. [`predict`], [`replay`], [`earlier`], [`compare`], [`doctor`], [`pack`] and [`watch`] are off the main path.
#![forbid(unsafe_code)]

pub mod agents;
pub mod cli;
pub mod cluster;
pub mod commands;
pub mod compare;
pub mod doctor;
pub mod earlier;
pub mod error;
pub mod exit;
pub mod pack;
pub mod power;
pub mod predict;
pub mod record;
pub mod replay;
pub mod report;
pub mod search;
pub mod session;
mod signals;
pub mod watch;
