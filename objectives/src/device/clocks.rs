//! The clocks of a rank: its host, the streams of its device and the link between them.

/// The time of `Main`: what it does, and what it waits for. In seconds; the sum is the factorization.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct DeviceSums {
    /// Products C − L2·U.
    pub dgemm_s: f64,
    /// L1⁻¹·U.
    pub trsm_s: f64,
    /// Rows moved in the memory of the device.
    pub rows_s: f64,
    /// Waiting for a panel to be factored or copied; and what a factorization on the device takes from the operations beside it.
    pub fact_s: f64,
    /// Waiting for the broadcast of a panel.
    pub lbcast_s: f64,
    /// Waiting for exchanged rows.
    pub rs_s: f64,
    /// Waiting for operations to start.
    pub launch_s: f64,
}

impl DeviceSums {
    /// Time of the factorization.
    pub fn total_s(&self) -> f64 {
        self.dgemm_s + self.trsm_s + self.rows_s + self.fact_s + self.lbcast_s + self.rs_s + self.launch_s
    }
}

/// What `Main` may wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Awaited {
    /// A panel: its factorization and its copies.
    Fact,
    /// The broadcast of a panel.
    Lbcast,
    /// Rows of an exchange.
    Rs,
}

/// What an operation of `Main` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    /// C − L2·U.
    Dgemm,
    /// L1⁻¹·U.
    Trsm,
    /// Rows moved on the device.
    Rows,
}

/// When each part of a rank is done with what it was given, in seconds since the start of the run.
#[derive(Debug, Clone, Default)]
pub(super) struct StreamClocks {
    pub(super) host: f64,
    pub(super) main: f64,
    pub(super) fact: f64,
    pub(super) copy: f64,
    /// The link to the host.
    down: f64,
    /// The link to the device.
    up: f64,
    /// Work outside of `Main`, which it may wait for: from, to, what.
    outside: Vec<(f64, f64, Awaited)>,
    /// The time of `Main`.
    pub(super) sums: DeviceSums,
    /// What factorizations on the device took from `Main`, a part of the sum for FACT.
    pub(super) slowed_s: f64,
    /// Time of all panels outside of `Main`.
    pub(super) fact_s: f64,
}

impl StreamClocks {
    /// `Main` executes an operation after the moment `after`.
    pub(super) fn run_main(&mut self, after: f64, time_s: f64, operation: Operation) {
        self.idle_until(self.host.max(after));
        self.main += time_s;
        match operation {
            Operation::Dgemm => self.sums.dgemm_s += time_s,
            Operation::Trsm => self.sums.trsm_s += time_s,
            Operation::Rows => self.sums.rows_s += time_s,
        }
    }

    /// `Main` has nothing to do until `moment`: this time is divided among what was going on.
    pub(super) fn idle_until(&mut self, moment: f64) {
        if moment <= self.main {
            return;
        }
        let (from, gap_s) = (self.main, moment - self.main);
        let shared = |what| {
            let spans = self.outside.iter().filter(|span| span.2 == what);
            spans.map(|span| (span.1.min(moment) - span.0.max(from)).max(0.0)).sum::<f64>()
        };
        let [fact_s, lbcast_s, rs_s] = [Awaited::Fact, Awaited::Lbcast, Awaited::Rs].map(shared);
        let known_s = fact_s + lbcast_s + rs_s;
        let scale = if known_s > gap_s { gap_s / known_s } else { 1.0 };
        self.sums.fact_s += scale * fact_s;
        self.sums.lbcast_s += scale * lbcast_s;
        self.sums.rs_s += scale * rs_s;
        self.sums.launch_s += gap_s - scale * known_s;
        self.main = moment;
    }

    /// The host works or waits from `from`, or from when it is free, for `time_s`.
    pub(super) fn run_host(&mut self, from: f64, time_s: f64, what: Awaited) {
        let from = self.host.max(from);
        self.host = from + time_s;
        self.note(from, self.host, what);
    }

    /// Something outside of `Main` is under way.
    pub(super) fn note(&mut self, from: f64, to: f64, what: Awaited) {
        if to > from {
            self.outside.push((from, to, what));
        }
        if what == Awaited::Fact {
            self.fact_s += to - from;
        }
    }

    /// A copy to the host that can start at `from`; returns its end.
    pub(super) fn copy_down(&mut self, from: f64, time_s: f64) -> f64 {
        self.down = self.down.max(from) + time_s;
        self.down
    }

    /// A copy to the device that can start at `from`; returns its end.
    pub(super) fn copy_up(&mut self, from: f64, time_s: f64) -> f64 {
        self.up = self.up.max(from) + time_s;
        self.up
    }

    /// What `Main` has queued goes on at 1 − `share` of its speed from `from` to `to`.
    pub(super) fn slow_main(&mut self, (from, to): (f64, f64), share: f64) {
        let left_s = self.main - from;
        if left_s <= 0.0 {
            return;
        }
        let more_s = (share * (to - from)).min(left_s * share / (1.0 - share));
        self.main += more_s;
        self.sums.fact_s += more_s;
        self.slowed_s += more_s;
    }

    /// All is done; returns the moment.
    pub(super) fn finish(&mut self) -> f64 {
        self.idle_until([self.host, self.fact, self.copy].into_iter().fold(self.main, f64::max));
        self.main
    }

    /// Forgets what no operation of `Main` can wait for any more.
    pub(super) fn forget(&mut self) {
        let main = self.main;
        self.outside.retain(|span| span.1 > main);
    }
}
