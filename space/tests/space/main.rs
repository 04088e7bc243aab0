//! The promises of `space`, checked from outside.

mod candidate;
mod dat;
mod domain;
mod machine;
mod out;
mod result;
mod strategies;
