//! What is decided before the first trial of a session: engine, places for ranks, machine, target N and space.
//!
//! [`engine`] says which program is tuned and [`room`] what its runs have. [`environment`] and [`preflight`] look at
//! the machine, [`calibrate`] measures its rates, [`input`] reads the files that users give, [`unequal`] asks for ranks of
//! unequal speed, [`core_kinds`] names cores of a slower kind, [`node_count`] counts the nodes of the runs, [`power`] says whose power is read, [`settings`] which clocks and power limits are
//! varied. [`gpus`] describes the GPUs of this host, [`faster`] says whether HPL is faster on them than on its processors. [`prepare`] makes of these the target N and the space, [`forecast`] says what
//! the session will do, [`node_task`] what is searched on some nodes before all of them. [`children`] keeps how children end.

pub mod calibrate;
pub mod children;
pub mod core_kinds;
pub mod engine;
pub mod environment;
pub mod faster;
pub mod forecast;
pub mod gpus;
pub mod input;
pub mod node_count;
pub mod node_task;
pub mod power;
pub mod preflight;
pub mod prepare;
pub mod room;
pub mod settings;
pub mod unequal;
