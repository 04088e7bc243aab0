//! The state machine with which \[Roadrunner\] balances a host and an accelerator.

use super::Times;

/// State of the machine. `Stop1` and `Stop2` are final.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BalanceState {
    /// The first iteration, with the ratio of the peak rates.
    Init,
    /// The second iteration, with the ratio of the measured rates.
    Perf,
    /// Decreases the ratio by 1 as long as the time falls.
    Dec,
    /// Increases the ratio by 1 as long as the time falls.
    Inc,
    /// The host is too slow for any part.
    Stop1,
    /// The best ratio is found.
    Stop2,
}

/// Balance with whole ratios: the host's share is 1/ratio, and 0 for ratio 0.
#[derive(Debug, Clone)]
pub struct SixState {
    state: BalanceState,
    ratio: u32,
    last_whole_s: f64,
    /// The ratio before the current one.
    last_ratio: u32,
}

impl SixState {
    /// Starts with the ratio of the peak rates, accelerator to host, rounded down; at least 1.
    pub fn new(peak_ratio: f64) -> Self {
        Self {
            state: BalanceState::Init,
            ratio: (peak_ratio as u32).max(1),
            last_whole_s: f64::INFINITY,
            last_ratio: 0,
        }
    }

    /// The state.
    pub fn state(&self) -> BalanceState {
        self.state
    }

    /// The ratio of the next iteration; at the end the final one.
    pub fn ratio(&self) -> u32 {
        self.ratio
    }

    pub(super) fn share(&self) -> f64 {
        if self.ratio == 0 { 0.0 } else { 1.0 / f64::from(self.ratio) }
    }

    pub(super) fn is_final(&self) -> bool {
        matches!(self.state, BalanceState::Stop1 | BalanceState::Stop2)
    }

    pub(super) fn observe(&mut self, times: &Times) {
        let Times { slow_s, fast_s, whole_s } = *times;
        match self.state {
            BalanceState::Init if slow_s >= fast_s => (self.state, self.ratio) = (BalanceState::Stop1, 0),
            BalanceState::Init => {
                let share = self.share();
                let ratio = (1.0 - share) / fast_s / (share / slow_s);
                self.state = BalanceState::Perf;
                self.go_to((ratio as u32).max(1), f64::INFINITY);
            }
            BalanceState::Perf => {
                self.state = if slow_s < fast_s { BalanceState::Dec } else { BalanceState::Inc };
                self.step(whole_s);
            }
            BalanceState::Dec | BalanceState::Inc if whole_s > self.last_whole_s => self.stop(),
            BalanceState::Dec | BalanceState::Inc => self.step(whole_s),
            BalanceState::Stop1 | BalanceState::Stop2 => (),
        }
    }

    /// One ratio further in the direction of the state.
    fn step(&mut self, whole_s: f64) {
        match self.state {
            // The host already has all the work.
            BalanceState::Dec if self.ratio == 1 => self.state = BalanceState::Stop2,
            BalanceState::Dec => self.go_to(self.ratio - 1, whole_s),
            _ => self.go_to(self.ratio + 1, whole_s),
        }
    }

    fn go_to(&mut self, ratio: u32, whole_s: f64) {
        (self.last_ratio, self.last_whole_s, self.ratio) = (self.ratio, whole_s, ratio);
    }

    fn stop(&mut self) {
        (self.state, self.ratio) = (BalanceState::Stop2, self.last_ratio);
    }
}
