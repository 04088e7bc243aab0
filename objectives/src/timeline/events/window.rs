//! Some steps of a run, event by event.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use hpl::lu::bcast::Ring;
use space::{Bcast, HplParams, Weights};

use super::exchange::{Pair, binary, long, long_relieved};
use super::rank::{NextOp, Rank};
use crate::timeline::costs::RunCosts;
use crate::timeline::placement::rank as rank_number;
use crate::timeline::recursion::ring;
use crate::timeline::shape::WORD;
use crate::timeline::shape::{Deal, DealtDims};
use crate::timeline::{Platform, Schedule};
use crate::timeline::{noise, rows};

/// A simulation of any window of a run.
pub(super) struct WindowSimulation<'a> {
    hpl: HplParams,
    costs: RunCosts<'a>,
    rows: Deal,
    cols: Deal,
    unequal: DealtDims,
    ahead: bool,
    blocking: bool,
    /// By position from the owner: the parent that sends the panel, and the children to which it is forwarded.
    ring: Option<(Vec<usize>, Vec<Vec<usize>>)>,
    /// Exchanges of a long broadcast, by position.
    lbcast: Vec<Vec<Pair>>,
    /// Row exchange by bin-exch and by long, by distance from the row that owns the panel.
    exchange: [Vec<Vec<Pair>>; 2],
    ranks: Vec<Rank>,
    /// Moment at which a node's link is free: to the network, from it.
    links: Vec<[f64; 2]>,
    /// Number of ranks of each column that wait for the panel factorization.
    gathered: Vec<usize>,
    events: BinaryHeap<Reverse<(u64, u32)>>,
    steps: Range<usize>,
    /// Moment at which the last rank has ended each step.
    ends: Vec<f64>,
}

impl<'a> WindowSimulation<'a> {
    pub(super) fn new(hpl: &HplParams, weights: &Weights, platform: &'a Platform, profile: Schedule) -> Self {
        assert!(hpl.n > 0 && hpl.nb > 0 && hpl.p > 0 && hpl.q > 0, "N, NB, P and Q are at least 1");
        platform.check().expect("a platform that can be computed with");
        let (p, q) = (hpl.p, hpl.q);
        let ranks = (0..q).flat_map(|column| (0..p).map(move |row| (row, column))).map(|(row, column)| {
            let number = rank_number(hpl, row, column);
            Rank::new(row, column, platform.node(number), platform.rank_s(number))
        });
        let tree = |ring: Ring| {
            let parents = (0..q).map(|at| ring.parent(at, q).unwrap_or_default()).collect();
            let children = (0..q).map(|at| ring.children(at, q).collect()).collect();
            (parents, children)
        };
        let long_bcast = if hpl.bcast == Bcast::LongM { long_relieved } else { long };
        let ring = ring(hpl.bcast, q);
        Self {
            hpl: *hpl,
            costs: RunCosts::new(hpl, platform),
            rows: Deal { n: hpl.n, nb: hpl.nb, procs: p },
            cols: Deal { n: hpl.n + 1, nb: hpl.nb, procs: q },
            unequal: DealtDims::new(hpl, weights),
            ahead: profile.depth(hpl.depth, q) > 0,
            blocking: profile.forwards_block(),
            lbcast: if ring.is_some() { Vec::new() } else { (0..q).map(|me| long_bcast(me, q)).collect() },
            ring: ring.map(tree),
            exchange: [binary, long].map(|pairs| (0..p).map(|me| pairs(me, p)).collect()),
            ranks: ranks.collect(),
            links: vec![[0.0; 2]; platform.node(p * q - 1) + 1],
            gathered: vec![0; q],
            events: BinaryHeap::new(),
            steps: 0..0,
            ends: Vec::new(),
        }
    }

    /// Runs these steps from a common start; returns the end of each in seconds.
    pub(super) fn run(&mut self, steps: Range<usize>) -> &[f64] {
        self.ends.clear();
        self.ends.resize(steps.len(), 0.0);
        self.links.fill([0.0; 2]);
        self.gathered.fill(0);
        for rank in &mut self.ranks {
            *rank = Rank::new(rank.row as usize, rank.column as usize, rank.node as usize, rank.speed);
            rank.step = steps.start as u32;
        }
        self.steps = steps;
        (0..self.ranks.len()).for_each(|r| self.at(r, 0.0));
        while let Some(Reverse((time, r))) = self.events.pop() {
            let now = f64::from_bits(time);
            while self.advance(r as usize, now) {}
        }
        &self.ends
    }

    /// Rank `r` continues at `time`.
    fn at(&mut self, r: usize, time: f64) {
        // Times are not negative, so the order of their bits is the order of the times.
        self.events.push(Reverse((time.to_bits(), r as u32)));
    }

    fn place(&self, row: usize, column: usize) -> usize {
        column * self.hpl.p + row
    }

    fn owner(&self, r: usize) -> usize {
        let step = self.ranks[r].step as usize;
        self.unequal.cols.as_ref().map_or(step % self.hpl.q, |dealt| dealt.owner(step))
    }

    /// Rows of process row `row` from block `block` on.
    fn rows_from(&self, row: u32, block: usize) -> f64 {
        let equal = || self.rows.trailing(block).of(row as usize, self.hpl.p);
        self.unequal.rows.as_ref().map_or_else(equal, |dealt| dealt.left(row as usize, block))
    }

    fn position(&self, r: usize) -> usize {
        let (column, owner) = (self.ranks[r].column as usize, self.owner(r));
        if column >= owner { column - owner } else { column + self.hpl.q - owner }
    }

    /// Executes the next operation of rank `r` at `now`; returns whether the rank can continue at once.
    fn advance(&mut self, r: usize, now: f64) -> bool {
        let Rank { stage, step, .. } = self.ranks[r];
        if step as usize >= self.steps.end {
            return false;
        }
        // A rank polls for the panel between any two operations.
        if self.ring.is_some() && polls_panel(stage) && self.panel(r, now) {
            return false;
        }
        match stage {
            NextOp::Start => self.start(r),
            NextOp::EarlyRows(at) => self.exchange(r, at, now),
            NextOp::EarlyUpdate => self.early_update(r, now),
            NextOp::Fact => self.fact(r, now),
            NextOp::Lbcast(at) => self.lbcast(r, at, now),
            NextOp::Rows(at) => self.exchange(r, at, now),
            NextOp::Place => self.compute(r, now, self.copy_s(r) / 2.0, NextOp::Update(0)),
            NextOp::Update(slab) => self.update(r, slab, now),
            NextOp::End => self.end(r, now),
        }
    }

    fn go(&mut self, r: usize, stage: NextOp) -> bool {
        self.ranks[r].stage = stage;
        true
    }

    fn compute(&mut self, r: usize, now: f64, time_s: f64, then: NextOp) -> bool {
        self.ranks[r].stage = then;
        self.at(r, now + time_s);
        false
    }

    fn start(&mut self, r: usize) -> bool {
        let owns = self.position(r) == 0;
        let first = self.ranks[r].step == 0;
        self.go(
            r,
            match (owns, self.ahead && !first) {
                (true, true) => NextOp::EarlyRows(0),
                (true, false) => NextOp::Fact,
                (false, _) => NextOp::Lbcast(0),
            },
        )
    }

    /// The panel with which rank `r` updates in this step.
    fn applied(&self, r: usize) -> usize {
        self.ranks[r].step as usize - usize::from(self.ahead)
    }

    /// Local columns of the current row exchange and update of rank `r`.
    fn columns(&self, r: usize) -> f64 {
        let rank = &self.ranks[r];
        match rank.stage {
            NextOp::EarlyRows(_) | NextOp::EarlyUpdate => self.cols.len(rank.step as usize) as f64,
            _ => {
                let (column, block) = (rank.column as usize, rank.step as usize + 1);
                let equal = || self.cols.trailing(block).of(column, self.hpl.q);
                self.unequal.cols.as_ref().map_or_else(equal, |dealt| dealt.left(column, block))
            }
        }
    }

    fn trailing_rows(&self, r: usize) -> f64 {
        self.rows_from(self.ranks[r].row, self.applied(r) + 1)
    }

    fn u_bytes(&self, r: usize) -> f64 {
        WORD * self.rows.len(self.applied(r)) as f64 * self.columns(r)
    }

    /// Rows gathered and put in place.
    fn copy_s(&self, r: usize) -> f64 {
        self.costs.rows_copied_s(self.u_bytes(r))
    }

    /// Message `at` of the row exchange; rows are gathered before the first.
    fn exchange(&mut self, r: usize, at: u32, now: f64) -> bool {
        let early = matches!(self.ranks[r].stage, NextOp::EarlyRows(_));
        let stage = |at| if early { NextOp::EarlyRows(at) } else { NextOp::Rows(at) };
        let n = self.columns(r);
        if n == 0.0 {
            return self.go(r, NextOp::End);
        }
        if at == 0 {
            return self.compute(r, now, self.copy_s(r) / 2.0, stage(1));
        }
        let (p, kind) = (self.hpl.p, usize::from(rows::long(self.hpl.swap, n)));
        let applied = self.applied(r);
        let root = self.unequal.rows.as_ref().map_or(applied % p, |dealt| dealt.owner(applied));
        let distance = (self.ranks[r].row as usize + p - root) % p;
        let Some(&pair) = self.exchange[kind][distance].get(at as usize - 1) else {
            return if early {
                self.compute(r, now, self.copy_s(r) / 2.0, NextOp::EarlyUpdate)
            } else {
                self.go(r, NextOp::Place)
            };
        };
        let (u, peer) = (self.u_bytes(r), self.place((root + pair.peer) % p, self.ranks[r].column as usize));
        self.ranks[r].stage = stage(at + 1);
        self.exchange_with(r, peer, [pair.sent * u, pair.received * u], now)
    }

    /// A message each way as soon as both ranks are ready.
    fn exchange_with(&mut self, r: usize, peer: usize, bytes: [f64; 2], now: f64) -> bool {
        if self.ranks[peer].waits_for != Some(r as u32) {
            self.ranks[r].waits_for = Some(peer as u32);
            return false;
        }
        self.ranks[peer].waits_for = None;
        let end = self.transfer(r, peer, bytes, now);
        self.at(r, end);
        self.at(peer, end);
        false
    }

    /// End of a message of so many bytes each way between two ranks that begins at `now`.
    fn transfer(&mut self, from: usize, to: usize, bytes: [f64; 2], now: f64) -> f64 {
        let [a, b] = [from, to].map(|r| self.ranks[r].node as usize);
        let most = bytes[0].max(bytes[1]);
        if a == b {
            return now + self.costs.inside_s(most);
        }
        let link = self.costs.platform.between;
        let mut end = now;
        for (out, into, bytes) in [(a, b, bytes[0]), (b, a, bytes[1])] {
            let time_s = bytes * link.s_per_byte.near;
            if bytes > 0.0 {
                self.links[out][0] = self.links[out][0].max(now) + time_s;
                self.links[into][1] = self.links[into][1].max(now) + time_s;
                end = end.max(self.links[out][0]).max(self.links[into][1]);
            }
        }
        end + link.latency_s
    }

    fn early_update(&mut self, r: usize, now: f64) -> bool {
        let n = self.columns(r);
        self.compute(r, now, self.update_s(r, n), NextOp::Fact)
    }

    /// Update of `n` columns by one call.
    fn update_s(&self, r: usize, n: f64) -> f64 {
        let (rows, speed) = (self.trailing_rows(r), self.ranks[r].speed * self.slowness(r));
        self.costs.pack_s(rows) + self.costs.update_s(speed, speed * rows, rows, n)
    }

    /// Time of this DGEMM call relative to the mean of such calls.
    fn slowness(&self, r: usize) -> f64 {
        let spread = self.costs.platform.spread;
        if spread == 0.0 {
            return 1.0;
        }
        let slab = match self.ranks[r].stage {
            NextOp::Update(slab) => u64::from(slab),
            _ => 0xffff,
        };
        let call = (u64::from(self.ranks[r].step) << 16 | slab) * self.ranks.len() as u64 + r as u64;
        1.0 + spread * noise::one(call)
    }

    /// Panel factorization: all rows of the column start when the last one is ready.
    fn fact(&mut self, r: usize, now: f64) -> bool {
        let (column, p) = (self.ranks[r].column as usize, self.hpl.p);
        self.ranks[r].stage = NextOp::Lbcast(0);
        self.ranks[r].has_panel = true;
        self.gathered[column] += 1;
        if self.gathered[column] == p {
            self.gathered[column] = 0;
            let step = self.ranks[r].step as usize;
            let equal = || self.rows.trailing(step).most();
            let most = self.unequal.rows.as_ref().map_or_else(equal, |dealt| dealt.most(step));
            let product = |row| self.ranks[self.place(row, column)].speed * self.rows_from(row as u32, step);
            let product_s = (0..p).map(product).fold(0.0, f64::max);
            let end = now + self.costs.fact_s(most, product_s);
            (0..p).for_each(|row| self.at(self.place(row, column), end));
        }
        false
    }

    /// Receives the panel or forwards it, if possible; returns whether the rank does so now.
    fn panel(&mut self, r: usize, now: f64) -> bool {
        let (position, Rank { row, step, has_panel, offered, forwarded, .. }) = (self.position(r), self.ranks[r]);
        let (parents, children) = self.ring.as_ref().expect("the broadcast is a ring");
        let (parent, child) = (parents[position], children[position].get(forwarded as usize).copied());
        let (owner, bit) = (self.owner(r), 1 << (step % 32));
        let at = |position| self.place(row as usize, (owner + position) % self.hpl.q);
        if !has_panel {
            if offered & bit == 0 {
                return false;
            }
            let (parent, bytes) = (at(parent), self.panel_bytes(r));
            let end = self.transfer(parent, r, [bytes, 0.0], now);
            self.ranks[r].has_panel = true;
            self.ranks[r].offered &= !bit;
            if std::mem::take(&mut self.ranks[parent].send_blocked) {
                self.at(parent, end);
            }
            self.at(r, end);
            return true;
        }
        let Some(child) = child.map(at) else {
            return false;
        };
        self.ranks[r].forwarded += 1;
        self.ranks[child].offered |= bit;
        if std::mem::take(&mut self.ranks[child].idle) {
            self.at(child, now);
        }
        self.ranks[r].send_blocked = self.blocking;
        if !self.blocking {
            self.at(r, now);
        }
        true
    }

    /// Bytes of the panel of its step that rank `r` receives.
    fn panel_bytes(&self, r: usize) -> f64 {
        let Rank { row, step, .. } = self.ranks[r];
        self.costs.message_bytes(self.rows_from(row, step as usize))
    }

    fn lbcast(&mut self, r: usize, at: u32, now: f64) -> bool {
        let Rank { row, step, has_panel, .. } = self.ranks[r];
        // There is no update during the first panel of a run.
        let beside = self.ahead && step > 0;
        let then = if self.ahead && !beside { NextOp::End } else { NextOp::Rows(0) };
        if self.ring.is_some() {
            self.ranks[r].idle = !beside && !has_panel;
            return !self.ranks[r].idle && self.go(r, then);
        }
        let Some(&pair) = self.lbcast[self.position(r)].get(at as usize) else {
            return self.go(r, then);
        };
        self.ranks[r].stage = NextOp::Lbcast(at + 1);
        let peer = self.place(row as usize, (self.owner(r) + pair.peer) % self.hpl.q);
        let bytes = self.panel_bytes(r);
        self.exchange_with(r, peer, [pair.sent * bytes, pair.received * bytes], now)
    }

    fn update(&mut self, r: usize, slab: u32, now: f64) -> bool {
        let (n, nb) = (self.columns(r), self.hpl.nb as f64);
        let left = n - f64::from(slab) * nb;
        if left <= 0.0 {
            return self.go(r, NextOp::End);
        }
        if self.ring.is_none() || self.ranks[r].has_panel || left <= nb {
            return self.compute(r, now, self.update_s(r, left), NextOp::End);
        }
        self.compute(r, now, self.update_s(r, nb), NextOp::Update(slab + 1))
    }

    fn end(&mut self, r: usize, now: f64) -> bool {
        if self.ring.is_some() && !self.ranks[r].has_panel {
            self.ranks[r].idle = true;
            return false;
        }
        let rank = &mut self.ranks[r];
        let end = &mut self.ends[rank.step as usize - self.steps.start];
        *end = end.max(now);
        rank.step += 1;
        (rank.stage, rank.has_panel, rank.forwarded) = (NextOp::Start, false, 0);
        true
    }
}

/// Whether a rank polls for the panel in this stage.
fn polls_panel(stage: NextOp) -> bool {
    matches!(stage, NextOp::Lbcast(_) | NextOp::Rows(_) | NextOp::Place | NextOp::Update(_) | NextOp::End)
}
