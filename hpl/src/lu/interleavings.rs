//! Broadcasts and row exchanges in random interleavings: messages arrive and ranks poll in any order, results are the same.
//!
//! An interleaving is a number. It draws the group, a list of broadcasts and two sections with row exchanges, all in one
//! group, and then, again and again, what happens next: a message arrives, or a rank starts, polls or finishes an operation.
//! Broadcasts begin in order, some at a time, as panels in flight do; a section exchanges the rows of one panel after the
//! other, so that a rank may be ahead of its peers. Blocking waits are the subject of the tests with threads.

use std::sync::Arc;

use space::{Bcast, Form, Swap};

use super::bcast::Broadcast;
use super::laswp::{Laswp, LaswpOp, LaswpResult, RowBufferMut, RowPermutation, RowSource, RowTags};
use crate::Error;
use crate::backend::Columns;
use crate::comm::shuffled::{Network, Shuffled};
use crate::comm::{Comm, Msg, Request};
use crate::lu::fact::Fact;
use crate::mat::{Buffer, Mat, MatMut};
use crate::plan::Part;
use crate::plan::layout::Distribution;

const BCASTS: [Bcast; 6] =
    [Bcast::OneRing, Bcast::OneRingM, Bcast::TwoRing, Bcast::TwoRingM, Bcast::Long, Bcast::LongM];
const PARTS: [Part; 2] = [Part::Left, Part::Rest];
/// Rows of the test matrix, and of a block.
const M: usize = 24;
const NB: usize = 3;

/// A generator of choices (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % limit as u64) as usize
    }
}

/// What all ranks do.
struct Work {
    size: usize,
    depth: usize,
    bcasts: Vec<(Bcast, usize, usize)>,
    rows: Distribution,
    cols: usize,
    swap: Swap,
    equil: bool,
    u: Form,
    /// For each section, first row and pivots of each panel in turn.
    panels: [Vec<(usize, Vec<usize>)>; 2],
}

impl Work {
    fn draw(random: &mut Random) -> Self {
        let size = 2 + random.below(5);
        // Lengths repeat, so that a mix-up would not show as a wrong length.
        let len = [1, 2, size, 7][random.below(4)];
        let bcast = |random: &mut Random| (BCASTS[random.below(6)], random.below(size), len);
        let bcasts = (0..random.below(5)).map(|_| bcast(random)).collect();
        let owners = (0..M / NB).map(|_| random.below(size)).collect();
        let panel = |random: &mut Random| {
            let ia = NB * random.below(M / NB);
            (ia, (ia..ia + NB).map(|row| row + random.below(M - row)).collect())
        };
        let panels = [(); 2].map(|()| (0..random.below(3)).map(|_| panel(random)).collect());
        let swap = [Swap::BinExch, Swap::Long][random.below(2)];
        let u = [Form::Transposed, Form::NotTransposed][random.below(2)];
        let (depth, cols, equil) = (1 + random.below(3), 1 + random.below(3), random.below(2) == 0);
        Self { size, depth, bcasts, rows: Distribution::new(M, NB, size, owners), cols, swap, equil, u, panels }
    }

    fn laswp<'a>(&'a self, column: &'a Shuffled) -> Laswp<'a, Shuffled> {
        Laswp { column, rows: &self.rows, swap: self.swap, equil: self.equil, u: self.u }
    }
}

/// Element `at` of broadcast `number`; broadcasts have no element in common.
fn sent(number: usize, at: usize) -> f64 {
    (number * 1000 + at) as f64
}

/// Element of the test matrix.
fn value(row: usize, col: usize) -> f64 {
    (row * 100 + col) as f64
}

/// The local matrix of a rank.
struct Local {
    a: Vec<f64>,
    rows: usize,
    cols: usize,
}

impl Local {
    fn mat(&self) -> Mat<'_> {
        Mat::new(&self.a, self.rows, self.cols, self.rows.max(1))
    }
}

impl Columns for Local {
    fn fact<C: Comm>(&mut self, _: Fact<'_, C>) -> Result<usize, Error> {
        unreachable!("no panel is factored")
    }

    fn copy_rows(&mut self, from: RowSource<'_>, pairs: &[(usize, usize)], to: &mut RowBufferMut) -> Result<(), Error> {
        let form = to.form();
        from.copy_to(self.mat(), pairs, form, 0, &mut to.elements());
        Ok(())
    }
}

/// A rank with what it has in flight.
struct Rank<'a> {
    comm: &'a Shuffled,
    work: &'a Work,
    local: Local,
    /// Broadcasts begun, the oldest first, with their numbers.
    bcasts: Vec<(usize, Broadcast<Shuffled>)>,
    begun: usize,
    /// For each section, the exchange in flight and the panels begun.
    swaps: [Option<LaswpOp<'a, Shuffled>>; 2],
    panels: [usize; 2],
    sends: Vec<<Shuffled as Comm>::Send>,
}

impl<'a> Rank<'a> {
    fn new(comm: &'a Shuffled, work: &'a Work) -> Self {
        let (me, rows) = (comm.rank(), &work.rows);
        let column = |col| (0..rows.local_len(me)).map(move |i| value(rows.global(me, i), col));
        let local = Local { a: (0..work.cols).flat_map(column).collect(), rows: rows.local_len(me), cols: work.cols };
        let (bcasts, swaps, sends) = (Vec::new(), [None, None], Vec::new());
        Self { comm, work, local, bcasts, begun: 0, swaps, panels: [0; 2], sends }
    }

    fn done(&self) -> bool {
        let work = self.work;
        let swapped = |part: usize| self.swaps[part].is_none() && self.panels[part] == work.panels[part].len();
        self.bcasts.is_empty() && self.begun == work.bcasts.len() && swapped(0) && swapped(1)
    }

    /// One call of the engine; whether something was started or finished.
    fn act(&mut self, random: &mut Random) -> bool {
        match random.below(3) {
            0 => self.broadcast(random),
            part => self.exchange(part - 1),
        }
    }

    fn broadcast(&mut self, random: &mut Random) -> bool {
        if self.bcasts.len() < self.work.depth && self.begun < self.work.bcasts.len() && random.below(2) == 0 {
            let (number, (variant, root, len)) = (self.begun, self.work.bcasts[self.begun]);
            self.begun += 1;
            let broadcast = if root == self.comm.rank() {
                let data: Vec<f64> = (0..len).map(|at| sent(number, at)).collect();
                Broadcast::send(self.comm, variant, number, Msg::new(Arc::new(Buffer::from(&data[..])), 0..len))
            } else {
                Broadcast::receive(self.comm, variant, number, root, len)
            };
            self.bcasts.push((number, broadcast));
            return true;
        }
        if self.bcasts.is_empty() {
            return false;
        }
        let (number, mut broadcast) = self.bcasts.remove(random.below(self.bcasts.len()));
        if broadcast.ready() {
            let (msg, sends) = broadcast.finish(self.comm).unwrap();
            assert!(msg.iter().enumerate().all(|(at, &found)| found == sent(number, at)), "broadcast {number}");
            assert_eq!(msg.len(), self.work.bcasts[number].2);
            self.sends.extend(sends);
            return true;
        }
        let place = self.bcasts.partition_point(|(other, _)| *other < number);
        self.bcasts.insert(place, (number, broadcast.poll(self.comm).unwrap()));
        false
    }

    fn exchange(&mut self, part: usize) -> bool {
        let Some(mut op) = self.swaps[part].take() else {
            let Some((ia, pivots)) = self.work.panels[part].get(self.panels[part]) else { return false };
            self.panels[part] += 1;
            let permutation = Arc::new(RowPermutation::new(&self.work.rows, *ia, pivots));
            let (laswp, cols) = (self.work.laswp(self.comm), self.work.cols);
            let op = laswp.start(permutation, &(0..cols), cols, RowTags::of(PARTS[part]), &mut self.local);
            self.swaps[part] = Some(op.unwrap());
            return true;
        };
        op.poll(&mut self.local).unwrap();
        if !op.complete() {
            self.swaps[part] = Some(op);
            return false;
        }
        let (result, sends) = op.finish(&mut self.local).unwrap();
        self.sends.extend(sends);
        let (ia, pivots) = &self.work.panels[part][self.panels[part] - 1];
        self.check(*ia, pivots, &result);
        true
    }

    /// U and the displaced rows are those of the row swaps, one after the other.
    fn check(&self, ia: usize, pivots: &[usize], result: &LaswpResult) {
        let (me, rows, n) = (self.comm.rank(), &self.work.rows, self.work.cols);
        let mut expected: Vec<usize> = (0..M).collect();
        pivots.iter().enumerate().for_each(|(j, &pivot)| expected.swap(ia + j, pivot));
        let (ii, mp) = (rows.local_from(me, ia), self.local.rows);
        let top = rows.local_from(me, ia + NB) - ii;
        let mut data = self.local.a.clone();
        let (top, mut below) = MatMut::new(&mut data, mp, n, mp.max(1)).sub(ii, 0, mp - ii, n).split_rows(top);
        let mut u = vec![f64::NAN; NB * n];
        result.fill(0, &mut MatMut::new(&mut u, NB, n, NB), top.as_ref(), &mut below);
        for (at, &found) in u.iter().enumerate() {
            assert_eq!(found, value(expected[ia + at % NB], at / NB), "U on rank {me}");
        }
        for (at, &found) in data.iter().enumerate() {
            let (row, col) = (rows.global(me, at % mp), at / mp);
            let source = if row >= ia + NB { expected[row] } else { row };
            assert_eq!(found, value(source, col), "row {row} on rank {me}");
        }
    }
}

/// Carries out one interleaving; the number of its events.
fn interleave(seed: u64) -> u64 {
    let random = &mut Random(seed.wrapping_mul(0xD134_2543_DE82_EF95));
    let work = Work::draw(random);
    let network = Arc::new(Network::default());
    let comms = network.ranks(work.size);
    let mut ranks: Vec<Rank<'_>> = comms.iter().map(|comm| Rank::new(comm, &work)).collect();
    // Some interleavings hold messages back, others ranks.
    let (hurry, mut events, mut idle) = (1 + random.below(8), 0, 0);
    while !ranks.iter().all(Rank::done) {
        let happened = if random.below(9) < hurry {
            network.deliver(|among| random.below(among))
        } else {
            let rank = random.below(work.size);
            ranks[rank].act(random)
        };
        events += 1;
        idle = if happened { 0 } else { idle + 1 };
        assert!(idle < 20_000, "nothing happens any more");
    }
    while network.deliver(|among| random.below(among)) {}
    ranks.into_iter().flat_map(|rank| rank.sends).for_each(|send| send.wait().unwrap());
    assert!(network.is_quiet(), "a message was not received");
    events
}

fn interleavings(seeds: std::ops::Range<u64>) -> u64 {
    let all = seeds.map(|seed| {
        let done = std::panic::catch_unwind(|| interleave(seed));
        done.unwrap_or_else(|_| panic!("interleaving {seed}"))
    });
    all.sum()
}

#[test]
fn results_do_not_depend_on_the_order_of_events() {
    let events = interleavings(0..10_000);
    assert!(events > 500_000, "{events}");
}

/// `cargo test --release -p hpl --lib -- --ignored --nocapture a_million_random_interleavings`
#[test]
#[ignore = "minutes"]
fn a_million_random_interleavings() {
    let start = std::time::Instant::now();
    let events = interleavings(0..1_000_000);
    println!("1000000 interleavings, {events} events, in {:.0} s", start.elapsed().as_secs_f64());
}
