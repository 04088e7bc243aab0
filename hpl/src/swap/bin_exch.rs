//! SWAP bin-exch: ⌈log2 P⌉ rounds of pairwise exchange.
//!
//! Positions count from the owner of the diagonal block. In each round a position and its partner exchange
//! all rows of U that they know; the displaced rows travel along, from position 0 down a binomial tree. Positions
//! beyond the largest power of two hand their rows in first and get the result at the end [HPL,
//! `src/pgesv/HPL_pdlaswp00N.c`].

use std::sync::Arc;

use super::{Exchange, Moves};
use crate::comm::{Comm, PeerGone, Request};
use crate::grid::{position, rank_at, tag};
use crate::mat::MatMut;
use crate::panel::Pool;
use crate::reduce::power_of_two;

/// The rows of one message: indices into U, then indices of displaced rows.
#[derive(Debug, Default, PartialEq, Eq)]
struct Load {
    gathered: Vec<usize>,
    displaced: Vec<usize>,
}

impl Load {
    fn rows(&self) -> usize {
        self.gathered.len() + self.displaced.len()
    }
}

/// Who knows and needs what, for one process column of `size` positions.
struct Rounds<'a> {
    moves: &'a Moves,
    size: usize,
}

impl Rounds<'_> {
    fn owner_at(&self, position: usize) -> usize {
        rank_at(position, self.moves.owner, self.size)
    }

    fn collect(lists: &[Vec<usize>], owners: impl Iterator<Item = usize>) -> Vec<usize> {
        let mut rows: Vec<usize> = owners.flat_map(|owner| lists[owner].iter().copied()).collect();
        rows.sort_unstable();
        rows
    }

    /// Rows of U that `at` knows before the round of distance `mask`: those of its group of `mask`
    /// positions, and of the positions folded into them.
    fn known(&self, at: usize, mask: usize) -> Vec<usize> {
        let half = power_of_two(self.size);
        let first = at & !(mask - 1);
        let group = (0..self.size).filter(|&other| (other % half) & !(mask - 1) == first);
        Self::collect(&self.moves.gathered, group.map(|other| self.owner_at(other)))
    }

    /// Displaced rows that reach their places through `at`, which gets them in the round of distance `mask`.
    fn through(&self, at: usize, mask: usize) -> Vec<usize> {
        let half = power_of_two(self.size);
        let below = (0..self.size).filter(|&other| (other % half) % (2 * mask) == at);
        Self::collect(&self.moves.scattered, below.map(|other| self.owner_at(other)))
    }

    /// What `from` sends to its partner in the round of distance `mask`.
    fn load(&self, from: usize, mask: usize) -> Load {
        let displaced = if from < mask { self.through(from + mask, mask) } else { Vec::new() };
        Load { gathered: self.known(from, mask), displaced }
    }

    /// What a folded position hands in.
    fn fold(&self, at: usize) -> Load {
        Load { gathered: self.moves.gathered[self.owner_at(at)].clone(), displaced: Vec::new() }
    }

    /// What a folded position gets.
    fn unfold(&self, at: usize) -> Load {
        let gathered = (0..self.moves.sources.len()).collect();
        Load { gathered, displaced: self.moves.scattered[self.owner_at(at)].clone() }
    }
}

/// The rows on one rank while they are exchanged.
struct Rows<'a> {
    a: MatMut<'a>,
    u: MatMut<'a>,
    /// Displaced rows on their way through this rank, one per entry of `Moves::displaced`.
    passing: MatMut<'a>,
}

impl<C: Comm> Exchange<'_, C> {
    pub(super) fn bin_exch(
        &self,
        moves: &Moves,
        a: &mut MatMut<'_>,
        u: &mut MatMut<'_>,
        pool: &mut Pool,
    ) -> Result<(), PeerGone> {
        let (size, n) = (self.column.size(), a.cols());
        let (me, half) = (position(self.column.rank(), moves.owner, size), power_of_two(size));
        let rounds = Rounds { moves, size };
        let mut store = pool.take(moves.displaced.len() * n);
        let data = Arc::get_mut(&mut store).expect("taken buffers have one holder");
        let mut passing = MatMut::new(data, moves.displaced.len(), n, moves.displaced.len().max(1));
        if me == 0 {
            self.copy_displaced(moves, a, &mut passing);
        }
        let mut rows = Rows { a: a.reborrow(), u: u.reborrow(), passing };
        let send = |to: usize, load: &Load, rows: &Rows<'_>, pool: &mut Pool| {
            (load.rows() * n > 0).then(|| {
                let (buf, range) = pool.message(load.rows() * n, |out| pack(load, rows, out));
                self.column.isend(rank_at(to, moves.owner, size), tag::ROWS, buf, range)
            })
        };
        let receive = |from: usize, load: &Load, rows: &mut Rows<'_>| {
            if load.rows() * n == 0 {
                return Ok(());
            }
            let msg = self.column.irecv(rank_at(from, moves.owner, size), tag::ROWS, load.rows() * n).wait()?;
            unpack(load, &msg, rows);
            Ok(())
        };
        let mut sends = Vec::new();
        if me >= half {
            sends.extend(send(me - half, &rounds.fold(me), &rows, pool));
            receive(me - half, &rounds.unfold(me), &mut rows)?;
        } else {
            if me + half < size {
                receive(me + half, &rounds.fold(me + half), &mut rows)?;
            }
            let mut mask = 1;
            while mask < half {
                let partner = me ^ mask;
                sends.extend(send(partner, &rounds.load(me, mask), &rows, pool));
                receive(partner, &rounds.load(partner, mask), &mut rows)?;
                mask *= 2;
            }
            if me + half < size {
                sends.extend(send(me + half, &rounds.unfold(me + half), &rows, pool));
            }
        }
        self.place_displaced(moves, &mut rows);
        pool.give(store);
        sends.into_iter().try_for_each(Request::wait)
    }

    /// passing ← the rows of the diagonal block that leave it; on its owner.
    fn copy_displaced(&self, moves: &Moves, a: &MatMut<'_>, passing: &mut MatMut<'_>) {
        let from: Vec<usize> = moves.displaced.iter().map(|&(_, source)| self.rows.local(source)).collect();
        for col in 0..a.cols() {
            let (rows, out) = (a.col(col), passing.col_mut(col));
            for (value, &local) in out.iter_mut().zip(&from) {
                *value = rows[local];
            }
        }
    }

    /// A(place) ← displaced row, for the places that are here.
    fn place_displaced(&self, moves: &Moves, rows: &mut Rows<'_>) {
        let mine = moves.scattered[self.column.rank()].iter();
        let mine: Vec<(usize, usize)> = mine.map(|&i| (i, self.rows.local(moves.displaced[i].0))).collect();
        for col in 0..rows.a.cols() {
            let (to, from) = (rows.a.col_mut(col), rows.passing.col(col));
            for &(i, local) in &mine {
                to[local] = from[i];
            }
        }
    }
}

/// Column by column: rows of U, then displaced rows.
fn pack(load: &Load, rows: &Rows<'_>, out: &mut [f64]) {
    for (col, out) in out.chunks_exact_mut(load.rows()).enumerate() {
        let (u, passing) = (rows.u.col(col), rows.passing.col(col));
        let (gathered, displaced) = out.split_at_mut(load.gathered.len());
        gathered.iter_mut().zip(&load.gathered).for_each(|(value, &i)| *value = u[i]);
        displaced.iter_mut().zip(&load.displaced).for_each(|(value, &i)| *value = passing[i]);
    }
}

fn unpack(load: &Load, msg: &[f64], rows: &mut Rows<'_>) {
    for (col, values) in msg.chunks_exact(load.rows()).enumerate() {
        let (gathered, displaced) = values.split_at(load.gathered.len());
        let u = rows.u.col_mut(col);
        gathered.iter().zip(&load.gathered).for_each(|(&value, &i)| u[i] = value);
        let passing = rows.passing.col_mut(col);
        displaced.iter().zip(&load.displaced).for_each(|(&value, &i)| passing[i] = value);
    }
}
