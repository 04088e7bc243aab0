//! The promises of `space`, checked from outside.

mod candidate;
mod dat;
mod domain;
mod out;
mod strategies;
