//! The promises of `space`, checked from outside.

mod candidate;
mod dat;
mod domain;
mod foreign;
mod fuzz;
mod limits;
mod machine;
mod mutate;
mod out;
mod result;
mod strategies;
mod weighted;
mod weights_file;
