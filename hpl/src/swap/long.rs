//! SWAP long: spread the displaced rows, then roll the pieces of U around the process column.
//!
//! The spread is a binary tree over the process rows that get rows, those with most of them first; the roll
//! takes P − 1 steps, in each of which everyone passes on the piece it got last [HPL,
//! `src/pgesv/HPL_spreadN.c`, `HPL_rollN.c`]. Unlike there, a rank rolls before it waits for displaced rows:
//! neither needs the other.

use std::ops::Range;

use super::{Exchange, Moves, send};
use crate::Error;
use crate::comm::{Comm, Msg, Request};
use crate::grid::{rank_at, tag};
use crate::kernels::rows;
use crate::mat::{Mat, MatMut};
use crate::panel::Pool;
use crate::team::{HelperPanicked, Team};

/// Process rows in the order of the spread: the owner of the diagonal block, then those that get rows, most
/// rows first, ties as they follow the owner.
fn spread_order(moves: &Moves) -> Vec<usize> {
    let size = moves.scattered.len();
    let mut order: Vec<usize> = (1..size).map(|at| rank_at(at, moves.owner, size)).collect();
    order.retain(|&row| !moves.scattered[row].is_empty());
    order.sort_by_key(|&row| std::cmp::Reverse(moves.scattered[row].len()));
    order.insert(0, moves.owner);
    order
}

/// Halves of the spread that position `at` of `len` takes part in, outermost first: the first position of
/// `group` holds the rows of all, and sends those of `upper` to the first of `upper`.
fn halves(at: usize, len: usize) -> Vec<(Range<usize>, Range<usize>)> {
    let (mut group, mut list) = (0..len, Vec::new());
    while group.len() > 1 {
        let upper = group.start + group.len().div_ceil(2)..group.end;
        list.push((group.clone(), upper.clone()));
        group = if at >= upper.start { upper } else { group.start..upper.start };
    }
    list.retain(|(group, upper)| at == group.start || at == upper.start);
    list
}

/// Columns that are copied twice stay in the cache in between.
const CACHED_COLS: usize = 16;

impl<C: Comm> Exchange<'_, C> {
    /// The owner of the diagonal block sends displaced rows early, the others look for them last: nobody waits
    /// for what could be under way.
    pub(super) fn spread_roll(
        &self,
        team: &mut Team<'_>,
        moves: &Moves,
        mut a: MatMut<'_>,
        mut u: MatMut<'_>,
        pool: &mut Pool,
    ) -> Result<(), Error> {
        let (owner, mut sends) = (self.column.rank() == moves.owner, Vec::new());
        let own = self.own_piece(team, moves, a.reborrow(), u.reborrow(), pool)?;
        sends.extend(own.map(|own| self.pass_on(&own)));
        if owner {
            sends.extend(self.spread(team, moves, a.reborrow(), pool)?);
        }
        sends.extend(self.roll(team, moves, u)?);
        if !owner {
            sends.extend(self.spread(team, moves, a, pool)?);
        }
        Ok(sends.into_iter().try_for_each(Request::wait)?)
    }

    /// U(i) ← A(source of i) for the sources that are here; the same rows as a message, if there are any.
    fn own_piece(
        &self,
        team: &mut Team<'_>,
        moves: &Moves,
        a: MatMut<'_>,
        u: MatMut<'_>,
        pool: &mut Pool,
    ) -> Result<Option<Msg>, HelperPanicked> {
        let (sources, n) = (self.own_sources(moves), u.cols());
        if sources.len() * n == 0 {
            return Ok(None);
        }
        let piece = pool.message(sources.len() * n, |out| {
            let out = MatMut::new(out, sources.len(), n, sources.len());
            team.columns([out, u, a], |_, mats| {
                let [outs, us, pieces] = mats.map(|mat| mat.chunks_cols(CACHED_COLS));
                for ((mut out, mut u), a) in outs.into_iter().zip(us).zip(pieces) {
                    rows::copy(&mut u, a.as_ref(), sources.iter().map(|&(i, local)| (local, i)));
                    rows::copy(&mut out, u.as_ref(), sources.iter().map(|&(i, _)| i).zip(0..));
                }
            })
        });
        piece.map(Some)
    }

    /// A(place) ← displaced row, for the places that are here, and this rank's part of the tree.
    fn spread(
        &self,
        team: &mut Team<'_>,
        moves: &Moves,
        mut a: MatMut<'_>,
        pool: &mut Pool,
    ) -> Result<Vec<C::Send>, Error> {
        let (order, n, mut sends) = (spread_order(moves), a.cols(), Vec::new());
        let me = self.column.rank();
        let Some(at) = order.iter().position(|&row| row == me).filter(|_| n > 0) else { return Ok(sends) };
        // The order of rows in every message: by process row as in `order`.
        let rows_of = |range: &Range<usize>| -> Vec<usize> {
            order[range.clone()].iter().flat_map(|&row| moves.scattered[row].iter().copied()).collect()
        };
        // What this rank got: the rows of `held`, one after the other in each column.
        let mut held: Option<(Range<usize>, Msg)> = None;
        for (group, upper) in halves(at, order.len()) {
            let rows = rows_of(&upper);
            let len = rows.len() * n;
            if at == upper.start {
                held = Some((upper, self.column.irecv(order[group.start], tag::SPREAD, len).wait()?));
                continue;
            }
            let msg = pool.message(len, |out| {
                let out = MatMut::new(out, rows.len(), n, rows.len());
                match &held {
                    None => {
                        let from = rows.iter().map(|&i| self.rows.local(moves.displaced[i].1));
                        let pairs: Vec<(usize, usize)> = from.zip(0..).collect();
                        team.columns([out, a.reborrow()], |_, [mut out, a]| {
                            rows::copy(&mut out, a.as_ref(), pairs.iter().copied());
                        })
                    }
                    Some((held, msg)) => {
                        let (before, all) = (rows_of(&(held.start..upper.start)).len(), rows_of(held).len());
                        team.columns([out], |first, [mut out]| {
                            for (col, values) in msg[first * all..].chunks_exact(all).take(out.cols()).enumerate() {
                                out.col_mut(col).copy_from_slice(&values[before..before + rows.len()]);
                            }
                        })
                    }
                }
            })?;
            sends.push(send(self.column, order[upper.start], tag::SPREAD, &msg));
        }
        self.place(team, moves, a, held.map(|(held, msg)| (rows_of(&held).len(), msg)))?;
        Ok(sends)
    }

    /// Writes the displaced rows whose place is here, which come first in `held`, or from the block itself.
    fn place(
        &self,
        team: &mut Team<'_>,
        moves: &Moves,
        a: MatMut<'_>,
        held: Option<(usize, Msg)>,
    ) -> Result<(), HelperPanicked> {
        let places = self.own_places(moves);
        if let Some((all, msg)) = held {
            let view = Mat::new(&msg, all, a.cols(), all);
            return team.columns([a], |first, [mut a]| {
                let view = view.sub(0, first, all, a.cols());
                rows::copy(&mut a, view, places.iter().map(|&(_, local)| local).enumerate());
            });
        }
        if self.column.rank() != moves.owner {
            return Ok(());
        }
        let pairs: Vec<(usize, usize)> =
            places.iter().map(|&(i, local)| (self.rows.local(moves.displaced[i].1), local)).collect();
        team.columns([a], |_, [mut a]| {
            for col in 0..a.cols() {
                let column = a.col_mut(col);
                pairs.iter().for_each(|&(from, to)| column[to] = column[from]);
            }
        })
    }

    /// U ← the pieces of the other process rows; this rank's own is under way already.
    fn roll(&self, team: &mut Team<'_>, moves: &Moves, mut u: MatMut<'_>) -> Result<Vec<C::Send>, Error> {
        let (size, me, n, mut sends) = (self.column.size(), self.column.rank(), u.cols(), Vec::new());
        for step in 1..size {
            // The piece of the rank `step` behind.
            let piece = &moves.gathered[rank_at(size - step, me, size)];
            if piece.len() * n == 0 {
                continue;
            }
            let msg = self.column.irecv(rank_at(size - 1, me, size), tag::ROWS, piece.len() * n).wait()?;
            if step + 1 < size {
                sends.push(self.pass_on(&msg));
            }
            let view = Mat::new(&msg, piece.len(), n, piece.len());
            team.columns([u.reborrow()], |first, [mut u]| {
                let view = view.sub(0, first, piece.len(), u.cols());
                rows::copy(&mut u, view, piece.iter().copied().enumerate());
            })?;
        }
        Ok(sends)
    }

    /// Sends a piece of U to the next rank.
    fn pass_on(&self, msg: &Msg) -> C::Send {
        send(self.column, rank_at(1, self.column.rank(), self.column.size()), tag::ROWS, msg)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every position but the first is the first of exactly one upper half: it gets its rows once.
    #[test]
    fn the_spread_is_a_tree() {
        for len in 1..20 {
            for at in 0..len {
                let received = halves(at, len).iter().filter(|(_, upper)| upper.start == at).count();
                assert_eq!(received, usize::from(at > 0));
                let list = halves(at, len);
                assert!(list.iter().skip(1).all(|(group, _)| group.start == at), "first receive, then send");
            }
        }
        assert_eq!(halves(0, 8).len(), 3, "log2 P messages from the root");
    }
}
