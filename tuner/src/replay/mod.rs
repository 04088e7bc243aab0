//! Strategies judged on recorded landscapes, where every run is looked up instead of waited for.
//!
//! A [`landscape`] is a recorded [`table`] with a description of its dimensions; a [`world`] is what one seed makes of it:
//! which run a configuration gives the k-th time, what crashes, when the machine drifts. [`play`] lets a strategy search
//! it, a [`trace`] keeps what was run, and [`score`] turns traces, ours or another tool's, into the measures; [`session`] plays
//! the whole schedule that users run, at a budget of time. Values of a
//! landscape are measurements; nothing here is predicted.

pub mod landscape;
mod places;
pub mod play;
pub mod score;
pub mod session;
mod smooth;
pub mod table;
pub mod trace;
pub mod world;
