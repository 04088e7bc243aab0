//! The steps of the recursion, one after the other.

use super::run::{RunState, Sizes, ring};
use crate::timeline::StepTimes;
use crate::timeline::rows::long;
use crate::timeline::shape::WORD;

impl RunState<'_> {
    /// All steps, each given to `record`.
    pub(super) fn walk(&mut self, mut record: impl FnMut(StepTimes)) {
        if self.depth == 0 {
            (0..self.panels).for_each(|k| record(self.step(k)));
            return;
        }
        record(self.first_panel());
        (1..self.panels).for_each(|k| record(self.step_ahead(k)));
        // The last panel updates b only.
        self.finish();
    }

    /// Step without look-ahead: panel, broadcast, row exchange, update.
    fn step(&mut self, k: usize) -> StepTimes {
        let before = self.sum();
        let (owner, rows) = (self.owner(k), self.most_rows(k));
        let fact_s = self.fact_s(owner, k, rows);
        let bytes = self.costs.message_bytes(rows);
        self.clock[owner] += fact_s;
        if ring(self.hpl.bcast, self.hpl.q).is_some() {
            self.ring_waited_for(owner, bytes);
        } else {
            self.long_broadcast(owner, bytes);
        }
        let arrived: f64 = self.ready.iter().sum();
        let sizes = self.sizes(k, k + 1);
        self.exchange_rows(&sizes);
        let swapped: f64 = self.swapped.iter().sum();
        for c in 0..self.hpl.q {
            self.clock[c] = self.swapped[c] + self.update_s(c, &sizes);
        }
        self.phases(before, fact_s, arrived, swapped)
    }

    /// Panel 0 of a run with look-ahead, with no update to overlap.
    fn first_panel(&mut self) -> StepTimes {
        let (owner, rows) = (self.owner(0), self.most_rows(0));
        let fact_s = self.fact_s(owner, 0, rows);
        self.clock[owner] += fact_s;
        let bytes = self.costs.message_bytes(rows);
        if ring(self.hpl.bcast, self.hpl.q).is_some() {
            self.ring_waited_for(owner, bytes);
        } else {
            self.long_broadcast(owner, bytes);
        }
        self.clock.copy_from_slice(&self.ready);
        let q = self.hpl.q as f64;
        let lbcast_s = (self.sum() - fact_s) / q;
        StepTimes { fact_s: fact_s / q, lbcast_s, end_s: self.now_s(), ..StepTimes::default() }
    }

    /// Step with look-ahead: panel k is factored and sent while panel k − 1 updates.
    fn step_ahead(&mut self, k: usize) -> StepTimes {
        let before = self.sum();
        let (owner, q) = (self.owner(k), self.hpl.q);
        let rows = self.most_rows(k);
        let sizes = self.sizes(k - 1, k + 1);
        // The owner exchanges and updates the panel's columns first, without other traffic on the link.
        let (nb, exchange) = (self.cols.len(k) as f64, self.exchange(self.cols.len(k) as f64));
        let u = WORD * sizes.k * nb;
        let alone = exchange.link_s(&self.costs, u) + exchange.solo_s(&self.costs, u);
        let early = sizes.pack_s + self.columns_s(owner, &sizes, nb);
        let fact_s = self.fact_s(owner, k, rows);
        self.clock[owner] += alone + early + fact_s;
        let bytes = self.costs.message_bytes(rows);
        if ring(self.hpl.bcast, self.hpl.q).is_some() {
            return self.ring_beside(owner, bytes, &sizes, [before, fact_s, alone]);
        }
        self.long_broadcast(owner, bytes);
        let arrived: f64 = self.ready.iter().sum();
        self.exchange_rows(&sizes);
        let swapped: f64 = self.swapped.iter().sum();
        for c in 0..q {
            self.clock[c] = self.swapped[c] + self.update_s(c, &sizes);
        }
        // The owner's early exchange and update are counted as row exchange and update.
        self.phases(before, fact_s, arrived - alone - early, swapped - early)
    }

    /// The last update of a run with look-ahead, of b alone.
    fn finish(&mut self) {
        let sizes = self.sizes(self.panels - 1, self.panels);
        self.ready.copy_from_slice(&self.clock);
        self.exchange_rows(&sizes);
        for c in 0..self.hpl.q {
            self.clock[c] = self.swapped[c] + self.update_s(c, &sizes);
        }
    }

    /// Panel `k` of a process column with at most `rows` rows.
    fn fact_s(&self, column: usize, k: usize, rows: f64) -> f64 {
        let class = self.speeds.class(column);
        let equal = || self.speeds.product_s(class, &self.rows.trailing(k));
        let dealt = self.unequal.rows.as_ref();
        let product_s = dealt.map_or_else(equal, |dealt| self.speeds.products_with(class, |row| dealt.left(row, k))[0]);
        self.costs.fact_s(rows, product_s)
    }

    /// Broadcast of a panel along rings without overlap: sets `ready`.
    fn ring_waited_for(&mut self, owner: usize, bytes: f64) {
        let q = self.hpl.q;
        let ring = ring(self.hpl.bcast, q).expect("a ring");
        self.ready.copy_from_slice(&self.clock);
        for position in 1..q {
            let parent = at(owner, ring.parent(position, q).expect("all but the root have a parent"), q);
            let child = at(owner, position, q);
            let arrival = self.ready[parent].max(self.clock[child]) + self.costs.hop_s(parent, child, bytes);
            self.ready[child] = arrival;
            self.ready[parent] = arrival;
        }
    }

    /// Broadcast of a panel by spread and roll, in which all members wait for each other. Sets `ready`.
    fn long_broadcast(&mut self, owner: usize, bytes: f64) {
        let q = self.hpl.q;
        let next = at(owner, 1, q);
        let mut start = self.clock[owner];
        let relieved = self.hpl.bcast == space::Bcast::LongM;
        if relieved {
            start = start.max(self.clock[next]) + self.costs.hop_s(owner, next, bytes);
        }
        let members = if relieved { q - 1 } else { q };
        let others = (0..q).filter(|&c| !(relieved && c == next));
        let met = others.fold(start, |met, c| met.max(self.clock[c])) + self.costs.long_s(members, bytes);
        self.ready.fill(met);
        if relieved {
            self.ready[next] = start;
        }
    }

    /// The row exchange of all columns from `ready` on: sets `swapped`.
    fn exchange_rows(&mut self, sizes: &Sizes) {
        let q = self.hpl.q;
        if self.hpl.p == 1 {
            // Rows are swapped within the rank.
            for c in 0..q {
                let u = WORD * sizes.k * self.columns(c, sizes);
                self.swapped[c] = self.ready[c] + self.costs.rows_copied_s(u);
            }
            return;
        }
        for start in (0..q).step_by(self.shared) {
            let end = (start + self.shared).min(q);
            sort_nearly_sorted(&mut self.order[start..end], &self.ready);
            let mut free = 0.0f64;
            for at in start..end {
                let c = self.order[at];
                let n = self.columns(c, sizes);
                let (exchange, u) = (self.exchange(n), WORD * sizes.k * n);
                free = free.max(self.ready[c]) + self.load * exchange.link_s(&self.costs, u);
                self.swapped[c] = free + if n > 0.0 { exchange.solo_s(&self.costs, u) } else { 0.0 };
            }
        }
    }

    /// Broadcast of a panel along rings while the columns exchange rows and update.
    ///
    /// `ready` becomes the moment at which a column can send: it has the panel, and its earlier sends have ended.
    fn ring_beside(&mut self, owner: usize, bytes: f64, sizes: &Sizes, [before, fact_s, alone]: [f64; 3]) -> StepTimes {
        let q = self.hpl.q;
        let ring = ring(self.hpl.bcast, q).expect("a ring");
        self.ready.copy_from_slice(&self.clock);
        self.exchange_rows(sizes);
        let (mut rs_s, mut update_s) = (alone, 0.0);
        for position in 0..q {
            let c = at(owner, position, q);
            let (start, work) = (self.clock[c], Work::of(self, c, sizes));
            let (mut seen, mut calls) = (start, work.calls(0.0));
            if position > 0 {
                let parent = at(owner, ring.parent(position, q).expect("all but the root have a parent"), q);
                (seen, calls) = work.polled(start, self.ready[parent]);
                let hop_s = self.costs.hop_s(parent, c, bytes);
                self.ready[c] = seen + hop_s;
                if self.blocking {
                    self.ready[parent] = seen + hop_s;
                } else {
                    self.ready[parent] += hop_s;
                }
            }
            rs_s += work.exchange_s;
            update_s += work.update_s(calls);
            // The end of the step without the time to receive and forward the panel.
            self.clock[c] = start + work.exchange_s + work.update_s(calls);
            self.swapped[c] = seen;
        }
        for c in 0..q {
            let away = if self.blocking || c == owner { self.ready[c] - self.swapped[c] } else { 0.0 };
            self.clock[c] = (self.clock[c] + away).max(self.ready[c]) + self.imbalance_s(c, sizes);
        }
        let q = q as f64;
        let lbcast_s = (self.sum() - before - fact_s - rs_s - update_s) / q;
        StepTimes { fact_s: fact_s / q, lbcast_s, rs_s: rs_s / q, update_s: update_s / q, end_s: self.now_s() }
    }

    /// Time lost by a column when a blocking forward of the panel coincides with the roll of its row exchange: rows of unequal
    /// speed then wait for each other twice, in the panel's ring and in the roll.
    fn imbalance_s(&self, column: usize, sizes: &Sizes) -> f64 {
        let n = self.columns(column, sizes);
        if !self.blocking || self.hpl.p == 1 || !long(self.hpl.swap, n) {
            return 0.0;
        }
        self.behind_s[self.speeds.class(column)] * n * sizes.k
    }

    /// Update of a whole column by one call.
    fn update_s(&self, column: usize, sizes: &Sizes) -> f64 {
        let n = self.columns(column, sizes);
        if n > 0.0 { sizes.pack_s + self.columns_s(column, sizes, n) } else { 0.0 }
    }

    /// Update of `n` columns without the cost per call.
    fn columns_s(&self, column: usize, sizes: &Sizes, n: f64) -> f64 {
        let class = self.speeds.class(column);
        self.costs.update_s(self.speeds.slowest(class), self.product_s[class], sizes.rows, n)
    }

    fn sum(&self) -> f64 {
        self.clock.iter().sum()
    }

    /// The phases of the ended step, from sums of moments over the columns.
    fn phases(&self, before: f64, fact_s: f64, arrived: f64, swapped: f64) -> StepTimes {
        let q = self.hpl.q as f64;
        StepTimes {
            fact_s: fact_s / q,
            lbcast_s: (arrived - before - fact_s) / q,
            rs_s: (swapped - arrived) / q,
            update_s: (self.sum() - swapped) / q,
            end_s: self.now_s(),
        }
    }
}

/// Work of a column in a step with look-ahead, without the broadcast.
struct Work {
    exchange_s: f64,
    /// Update of all columns, without the cost per call.
    columns_s: f64,
    /// Update of NB columns by a call of its own.
    slab_s: f64,
    /// Number of slabs of the whole update.
    slabs: f64,
    call_s: f64,
}

impl Work {
    fn of(run: &RunState, column: usize, sizes: &Sizes) -> Self {
        let (n, width) = (run.columns(column, sizes), run.costs.nb);
        let columns_s = run.columns_s(column, sizes, n);
        let slabs = (n / width).ceil();
        let slab_s = if slabs > 0.0 { columns_s / n * width + sizes.pack_s } else { 0.0 };
        Self { exchange_s: run.swapped[column] - run.clock[column], columns_s, slab_s, slabs, call_s: sizes.pack_s }
    }

    /// Number of DGEMM calls of the update if the panel is received after `slabs` of them: the rest is one call.
    fn calls(&self, slabs: f64) -> f64 {
        (slabs + 1.0).min(self.slabs)
    }

    fn update_s(&self, calls: f64) -> f64 {
        self.columns_s + calls * self.call_s
    }

    /// Moment at which a column that starts at `start` polls a panel successfully that is sent at `offered`, and the number of
    /// DGEMM calls of its update.
    fn polled(&self, start: f64, offered: f64) -> (f64, f64) {
        let exchanged = start + self.exchange_s;
        if offered <= exchanged {
            return (offered.max(start), self.calls(0.0));
        }
        let slabs = ((offered - exchanged) / self.slab_s).ceil();
        if slabs < self.slabs {
            (exchanged + slabs * self.slab_s, self.calls(slabs))
        } else {
            (offered.max(exchanged + self.update_s(self.slabs)), self.slabs)
        }
    }
}

/// The column at `position` from `owner`.
fn at(owner: usize, position: usize, q: usize) -> usize {
    let column = owner + position;
    if column < q { column } else { column - q }
}

/// Sorts columns by a moment, starting from the order of the step before. Columns with equal moments are sorted by number:
/// if they kept the order of the step before, the next owner would always be the last.
fn sort_nearly_sorted(columns: &mut [usize], moment: &[f64]) {
    for i in 1..columns.len() {
        let mut j = i;
        while j > 0 && (moment[columns[j]], columns[j]) < (moment[columns[j - 1]], columns[j - 1]) {
            columns.swap(j, j - 1);
            j -= 1;
        }
    }
}
