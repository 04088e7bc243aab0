//! What model and runs together say about the rate of any point.
//!
//! level(log rate) = offset + slope · (level(log expected) − its mean) + g + balance + drift + speed + noise, see [`super::gp`],
//! [`super::warp`] and [`super::drift`].
//! The drift is a few steps; the speed wanders about them all the time, by a process of the runs' times.
//! The balance is what the model says of other distributions of the blocks than by the measured speeds of the nodes; it is taken off what is
//! expected, and is not doubted.
//! The scale of what is expected is uncertain, which the offset takes up, and so is its worth, which the slope does. A
//! second hypothesis holds the slope of a model to be about 0: it says nothing, or the contrary. Both count as far as
//! they predict the runs, each from all the others; of guesses only the better one. A change of the machine's speed is
//! accepted when it explains the runs much better than none, and a point that was run before it was run again after it.
//! Runs of earlier sessions are part of what is expected as long as the runs of this one are not predicted better
//! without them.
//!
//! After more than 500 runs the process is conditioned on the means of 500 points at most: half of them the best ones, of those that keep the
//! power limit where there is one, the others spread from the next best to the worst. No other point is taken for a leader, or run again. Where runs are short, such that a suggestion would take
//! more than a tenth of one, these are fewer, down to 80.

mod balance;
mod fitted;
mod predicted;
#[cfg(test)]
mod tests;

pub use fitted::Surrogate;
pub(crate) use fitted::{LEFT_BY_A_MODEL, NOISE, OFFSET_SD, RUNS, TOGETHER, log_rate, most_runs};
pub(crate) use predicted::{Contrast, first_runs};
