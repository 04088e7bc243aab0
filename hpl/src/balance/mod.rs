//! Balance of two unequal workers: the share of each, from the times of the last iteration.
//!
//! Pure: a [`Balance`] gives the share of the slower worker, observes the times of an iteration, and ends after some
//! iterations. There are two: the [`FixedPoint`], which is the default, and the [`SixState`] machine of \[Roadrunner\].
//! [`weights`] does the same for many ranks.

mod fixed_point;
pub mod matvec;
mod six_state;
pub mod weights;

pub use fixed_point::FixedPoint;
pub use six_state::{BalanceState, SixState};

/// Times of one iteration in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Times {
    /// The slower worker's part, 0 if it had no work.
    pub slow_s: f64,
    /// The faster worker's part, without transfers.
    pub fast_s: f64,
    /// The whole iteration, transfers included.
    pub whole_s: f64,
}

/// A way to balance two workers.
#[derive(Debug, Clone)]
pub enum Balance {
    /// Shares in proportion to the last measured rates.
    FixedPoint(FixedPoint),
    /// The six states of \[Roadrunner\].
    SixState(SixState),
}

impl Balance {
    /// Share of the slower worker in the next iteration, 0 ≤ share ≤ 1; at the end, the final share.
    pub fn share(&self) -> f64 {
        match self {
            Self::FixedPoint(balance) => balance.share(),
            Self::SixState(balance) => balance.share(),
        }
    }

    /// Adds the times of the iteration with this share.
    pub fn observe(&mut self, times: &Times) {
        match self {
            Self::FixedPoint(balance) => balance.observe(times),
            Self::SixState(balance) => balance.observe(times),
        }
    }

    /// Whether the share is final.
    pub fn is_final(&self) -> bool {
        match self {
            Self::FixedPoint(balance) => balance.is_final(),
            Self::SixState(balance) => balance.is_final(),
        }
    }
}

#[cfg(test)]
mod tests;
