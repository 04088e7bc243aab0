//! SWAP bin-exch: ⌈log2 P⌉ rounds of pairwise exchange.
//!
//! Positions count from the owner of the diagonal block. In each round a position and its partner exchange
//! all rows of U that they know; the displaced rows travel along, from position 0 down a binomial tree.
//! Positions beyond the largest power of two hand their rows in first and get the result at the end [HPL,
//! `src/pgesv/HPL_pdlaswp00N.c`].

use std::sync::Arc;

use super::{Exchange, Moves, send};
use crate::Error;
use crate::comm::{Comm, Request};
use crate::grid::{position, rank_at, tag};
use crate::kernels::rows;
use crate::mat::{Mat, MatMut};
use crate::panel::Pool;
use crate::reduce::power_of_two;
use crate::team::Team;

/// The rows of one message: indices into U, then indices of displaced rows.
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

/// Some columns of the rows on one rank while they are exchanged.
struct Rows<'a> {
    /// All local rows.
    a: MatMut<'a>,
    u: MatMut<'a>,
    /// Displaced rows on their way through this rank, one per entry of `Moves::displaced`.
    passing: MatMut<'a>,
}

/// One exchange on one rank.
struct BinExch<'a, C: Comm> {
    column: &'a C,
    rounds: Rounds<'a>,
    sends: Vec<C::Send>,
}

impl<C: Comm> Exchange<'_, C> {
    pub(super) fn bin_exch(
        &self,
        team: &mut Team<'_>,
        moves: &Moves,
        a: MatMut<'_>,
        u: MatMut<'_>,
        pool: &mut Pool,
    ) -> Result<(), Error> {
        let size = self.column.size();
        let (me, half) = (position(self.column.rank(), moves.owner, size), power_of_two(size));
        let displaced = moves.displaced.len();
        let mut store = pool.take(displaced * a.cols());
        let data = Arc::get_mut(&mut store).expect("taken buffers have one holder");
        let passing = MatMut::new(data, displaced, a.cols(), displaced.max(1));
        let mut rows = Rows { a, u, passing };
        self.set_out(team, moves, &mut rows)?;
        let rounds = Rounds { moves, size };
        let mut exchange = BinExch { column: self.column, rounds, sends: Vec::new() };
        if me >= half {
            exchange.send(team, pool, me - half, &exchange.rounds.fold(me), &mut rows)?;
            exchange.receive(team, me - half, &exchange.rounds.unfold(me), &mut rows)?;
        } else {
            if me + half < size {
                exchange.receive(team, me + half, &exchange.rounds.fold(me + half), &mut rows)?;
            }
            let mut mask = 1;
            while mask < half {
                let partner = me ^ mask;
                exchange.send(team, pool, partner, &exchange.rounds.load(me, mask), &mut rows)?;
                exchange.receive(team, partner, &exchange.rounds.load(partner, mask), &mut rows)?;
                mask *= 2;
            }
            if me + half < size {
                exchange.send(team, pool, me + half, &exchange.rounds.unfold(me + half), &mut rows)?;
            }
        }
        // A(place) ← displaced row, for the places that are here
        let places = self.own_places(moves);
        let Rows { a, passing, .. } = rows;
        team.columns([a, passing], |_, [mut a, passing]| rows::copy(&mut a, passing.as_ref(), places.iter().copied()))?;
        pool.give(store);
        Ok(exchange.sends.into_iter().try_for_each(Request::wait)?)
    }

    /// U(i) ← A(source of i) for the sources that are here; on the owner of the diagonal block, passing ← the
    /// rows that leave it.
    fn set_out(&self, team: &mut Team<'_>, moves: &Moves, rows: &mut Rows<'_>) -> Result<(), Error> {
        let sources = self.own_sources(moves);
        let leaving = moves.displaced.iter().map(|&(_, source)| source);
        let leaving: Vec<usize> = if self.column.rank() == moves.owner {
            leaving.map(|source| self.rows.local(source)).collect()
        } else {
            Vec::new()
        };
        let Rows { a, u, passing } = rows;
        let all = [a.reborrow(), u.reborrow(), passing.reborrow()];
        Ok(team.columns(all, |_, [a, mut u, mut passing]| {
            rows::copy(&mut u, a.as_ref(), sources.iter().map(|&(i, local)| (local, i)));
            rows::copy(&mut passing, a.as_ref(), leaving.iter().enumerate().map(|(i, &local)| (local, i)));
        })?)
    }
}

impl<C: Comm> BinExch<'_, C> {
    /// Sends a load: column by column, rows of U, then displaced rows.
    fn send(
        &mut self,
        team: &mut Team<'_>,
        pool: &mut Pool,
        to: usize,
        load: &Load,
        rows: &mut Rows<'_>,
    ) -> Result<(), Error> {
        let (count, n) = (load.rows(), rows.u.cols());
        if count * n == 0 {
            return Ok(());
        }
        let (u, passing) = (rows.u.reborrow(), rows.passing.reborrow());
        let first_displaced = load.gathered.len();
        let msg = pool.message(count * n, |out| {
            let out = MatMut::new(out, count, n, count);
            team.columns([out, u, passing], |_, [mut out, u, passing]| {
                rows::copy(&mut out, u.as_ref(), load.gathered.iter().enumerate().map(|(at, &i)| (i, at)));
                let displaced = load.displaced.iter().enumerate();
                rows::copy(&mut out, passing.as_ref(), displaced.map(|(at, &i)| (i, first_displaced + at)));
            })
        })?;
        let to = rank_at(to, self.rounds.moves.owner, self.rounds.size);
        self.sends.push(send(self.column, to, tag::ROWS, &msg));
        Ok(())
    }

    /// Waits for a load and puts its rows where they belong.
    fn receive(&self, team: &mut Team<'_>, from: usize, load: &Load, rows: &mut Rows<'_>) -> Result<(), Error> {
        let (count, n) = (load.rows(), rows.u.cols());
        if count * n == 0 {
            return Ok(());
        }
        let from = rank_at(from, self.rounds.moves.owner, self.rounds.size);
        let msg = self.column.irecv(from, tag::ROWS, count * n).wait()?;
        let view = Mat::new(&msg, count, n, count);
        let both = [rows.u.reborrow(), rows.passing.reborrow()];
        Ok(team.columns(both, |first, [mut u, mut passing]| {
            let view = view.sub(0, first, count, u.cols());
            rows::copy(&mut u, view, load.gathered.iter().copied().enumerate());
            let displaced = load.displaced.iter().enumerate();
            rows::copy(&mut passing, view, displaced.map(|(at, &i)| (load.gathered.len() + at, i)));
        })?)
    }
}
