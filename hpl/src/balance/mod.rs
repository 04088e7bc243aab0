//! Two unequal workers that share some work: how much of it each should get, from the times of the last iteration.
//!
//! Pure: a [`Balance`] says what share the slower worker gets, is told what came of it, and settles. Two of them: the
//! [`FixedPoint`], which is the default, and the [`SixState`] machine of \[Roadrunner\]. [`weights`] does the same for
//! many ranks.

mod fixed_point;
pub mod matvec;
mod six_state;
pub mod weights;

pub use fixed_point::FixedPoint;
pub use six_state::{SixState, State};

/// Times of one iteration in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Times {
    /// The slower worker's part, 0 when it had none.
    pub slow_s: f64,
    /// The faster worker's part, without transfers.
    pub fast_s: f64,
    /// The whole iteration, transfers included.
    pub whole_s: f64,
}

/// A way to balance two workers.
#[derive(Debug, Clone)]
pub enum Balance {
    /// Shares in proportion to the rates seen last.
    FixedPoint(FixedPoint),
    /// The six states of \[Roadrunner\].
    SixState(SixState),
}

impl Balance {
    /// Share of the work that the slower worker gets in the next iteration, 0 ≤ share ≤ 1; once
    /// [`settled`](Self::settled) the one to keep.
    pub fn share(&self) -> f64 {
        match self {
            Self::FixedPoint(balance) => balance.share(),
            Self::SixState(balance) => balance.share(),
        }
    }

    /// What the iteration with this share took.
    pub fn observe(&mut self, times: &Times) {
        match self {
            Self::FixedPoint(balance) => balance.observe(times),
            Self::SixState(balance) => balance.observe(times),
        }
    }

    /// Whether the share will not change any more.
    pub fn settled(&self) -> bool {
        match self {
            Self::FixedPoint(balance) => balance.settled(),
            Self::SixState(balance) => balance.settled(),
        }
    }
}

#[cfg(test)]
mod tests;
