//! SWAP bin-exch: ⌈log2 P⌉ rounds of pairwise exchange.
//!
//! Positions count from the owner of the diagonal block. In each round a position and its partner exchange all rows
//! of U that they have, in one message; the same messages contain the displaced rows, from position 0 down a binomial
//! tree. Positions beyond the largest power of two send their rows before the rounds and receive the result at the end
//! [HPL, `src/pgesv/HPL_pdlaswp00N.c`].

use std::vec;

use super::permutation::RowPermutation;
use super::result::{LaswpResult, PlacedRows};
use super::row_buffer::{RowBuffer, RowSource};
use super::state::LaswpState;
use crate::Error;
use crate::backend::Columns;
use crate::comm::grid::{position, rank_at};
use crate::comm::reduce::power_of_two;
use crate::comm::{Comm, Completion};

/// Rows of a message, ascending: row i of U is `i`, entry i of the displaced rows is `jb + i`.
type RowList = Vec<usize>;

/// Messages exchanged with one other rank; for an empty list there is no message.
struct ExchangeRound {
    /// The other rank.
    peer: usize,
    sends: RowList,
    receives: RowList,
}

/// The rows that each position has and needs, for one process column of `size` positions.
struct Rounds<'a> {
    permutation: &'a RowPermutation,
    size: usize,
}

impl Rounds<'_> {
    /// The rounds of the rank at position `me`, in order.
    fn of(&self, me: usize) -> Vec<ExchangeRound> {
        let half = power_of_two(self.size);
        let round = |peer: usize, sends, receives| ExchangeRound {
            peer: rank_at(peer, self.permutation.owner, self.size),
            sends,
            receives,
        };
        if me >= half {
            return vec![round(me - half, self.fold(me), self.unfold(me))];
        }
        let mut rounds = Vec::new();
        let folded = (me + half < self.size).then_some(me + half);
        rounds.extend(folded.map(|peer| round(peer, RowList::new(), self.fold(peer))));
        let mut mask = 1;
        while mask < half {
            let partner = me ^ mask;
            rounds.push(round(partner, self.sent(me, mask), self.sent(partner, mask)));
            mask *= 2;
        }
        rounds.extend(folded.map(|peer| round(peer, self.unfold(peer), RowList::new())));
        rounds
    }

    fn jb(&self) -> usize {
        self.permutation.sources.len()
    }

    fn owner_at(&self, position: usize) -> usize {
        rank_at(position, self.permutation.owner, self.size)
    }

    /// Entries of `lists`, by process row, at some positions.
    fn collect(&self, lists: &[Vec<usize>], positions: impl Iterator<Item = usize>) -> RowList {
        let mut rows: RowList = positions.flat_map(|at| lists[self.owner_at(at)].iter().copied()).collect();
        rows.sort_unstable();
        rows
    }

    /// Rows of U that `at` has before the round of distance `mask`: those of its group of `mask`
    /// positions, and of the positions folded into them.
    fn known(&self, at: usize, mask: usize) -> RowList {
        let half = power_of_two(self.size);
        let first = at & !(mask - 1);
        let group = (0..self.size).filter(|&other| (other % half) & !(mask - 1) == first);
        self.collect(&self.permutation.gathered, group)
    }

    /// Displaced rows that `at` receives in the round of distance `mask`, its own and those that it forwards.
    fn displaced(&self, at: usize, mask: usize) -> impl Iterator<Item = usize> {
        let (half, jb) = (power_of_two(self.size), self.jb());
        let below = (0..self.size).filter(|&other| (other % half) % (2 * mask) == at);
        self.collect(&self.permutation.scattered, below).into_iter().map(move |i| jb + i)
    }

    /// Rows that `from` sends to its partner in the round of distance `mask`.
    fn sent(&self, from: usize, mask: usize) -> RowList {
        let mut rows = self.known(from, mask);
        if from < mask {
            rows.extend(self.displaced(from + mask, mask));
        }
        rows
    }

    /// Rows that a folded position sends before the rounds.
    fn fold(&self, at: usize) -> RowList {
        self.permutation.gathered[self.owner_at(at)].clone()
    }

    /// Rows that a folded position receives after the rounds.
    fn unfold(&self, at: usize) -> RowList {
        let mine = self.permutation.scattered[self.owner_at(at)].iter().map(|i| self.jb() + i);
        (0..self.jb()).chain(mine).collect()
    }
}

/// A buffer and the rows still to be read from it: pairs (row of the buffer, row of a list), ascending in the latter.
struct HeldRows {
    buffer: RowBuffer,
    rows: Vec<(usize, usize)>,
}

/// One row exchange on one rank.
pub(super) struct BinExch<C: Comm> {
    held: Vec<HeldRows>,
    /// The receive of the current round.
    awaited: Option<C::Recv>,
    /// The rows of this receive.
    awaited_rows: RowList,
    /// Rounds not started yet.
    rounds: vec::IntoIter<ExchangeRound>,
}

impl<C: Comm> BinExch<C> {
    /// Copies the rows that this rank sends, those of the first round directly into its message.
    pub(super) fn start(state: &mut LaswpState<'_, C>, columns: &mut impl Columns) -> Result<Self, Error> {
        let (permutation, size, jb) = (&state.permutation, state.column.size(), state.permutation.sources.len());
        let rounds = Rounds { permutation, size }.of(position(state.me(), permutation.owner, size));
        let mut first = permutation.gathered[state.me()].clone();
        if let Some(round) = rounds.first().filter(|round| !round.sends.is_empty()) {
            first.clone_from(&round.sends);
        }
        // On the owner of the diagonal block, the displaced rows of later rounds.
        let later: RowList = if state.owns_diagonal() {
            // Ascending, as `first` is.
            let own = &permutation.scattered[state.me()];
            let sent = (0..permutation.displaced.len()).filter(|i| own.binary_search(i).is_err());
            sent.map(|i| jb + i).filter(|row| first.binary_search(row).is_err()).collect()
        } else {
            RowList::new()
        };
        let mut laswp =
            Self { held: Vec::new(), awaited: None, awaited_rows: RowList::new(), rounds: rounds.into_iter() };
        for list in [first, later] {
            let local = |&row: &usize| if row < jb { state.source(row) } else { state.displaced_source(row - jb) };
            let buffer = state.gather(list.iter().map(local), columns)?;
            laswp.held.extend(buffer.map(|buffer| HeldRows { buffer, rows: (0..).zip(list).collect() }));
        }
        laswp.advance(state, Completion::Test, columns)?;
        Ok(laswp)
    }

    /// Completes rounds and starts the next ones.
    pub(super) fn advance(
        &mut self,
        state: &mut LaswpState<'_, C>,
        completion: Completion,
        columns: &mut impl Columns,
    ) -> Result<(), Error> {
        loop {
            if self.awaited.is_some() {
                let Some(buffer) = state.take(&mut self.awaited, self.awaited_rows.len(), completion)? else {
                    return Ok(());
                };
                let rows = (0..).zip(std::mem::take(&mut self.awaited_rows)).collect();
                self.hold(HeldRows { buffer, rows });
            }
            let Some(round) = self.rounds.next() else { return Ok(()) };
            self.awaited = state.receive(round.peer, state.tags.rows, round.receives.len());
            self.awaited_rows = round.receives;
            if !round.sends.is_empty() && state.cols() > 0 {
                let buffer = self.assemble(state, round.sends, columns)?;
                state.send(round.peer, state.tags.rows, &buffer);
            }
        }
    }

    /// The message with the rows of `list`. It replaces the buffers that its rows were copied from, so that this rank
    /// later reads the same memory as its partner.
    fn assemble(
        &mut self,
        state: &LaswpState<'_, C>,
        list: RowList,
        columns: &mut impl Columns,
    ) -> Result<RowBuffer, Error> {
        let same =
            |held: &&HeldRows| held.rows.len() == held.buffer.rows() && held.rows.iter().map(|row| &row.1).eq(&list);
        if let Some(held) = self.held.iter().find(same) {
            return Ok(held.buffer.clone());
        }
        let mut buffer = state.buffer(list.len());
        for held in &self.held {
            let at = |&(from, row): &(usize, usize)| list.binary_search(&row).ok().map(|to| (from, to));
            let pairs: Vec<(usize, usize)> = held.rows.iter().filter_map(at).collect();
            columns.copy_rows(RowSource::Buffer(&held.buffer), &pairs, &mut buffer)?;
        }
        let buffer = buffer.done(state.pool());
        self.hold(HeldRows { buffer: buffer.clone(), rows: (0..).zip(list).collect() });
        Ok(buffer)
    }

    /// Adds `new`, from which its rows are read from now on.
    fn hold(&mut self, new: HeldRows) {
        for held in &mut self.held {
            held.rows.retain(|(_, row)| new.rows.binary_search_by_key(row, |new| new.1).is_err());
        }
        self.held.retain(|held| !held.rows.is_empty());
        self.held.push(new);
    }

    /// The exchanged rows of this rank.
    pub(super) fn into_result(self, state: &LaswpState<'_, C>) -> LaswpResult {
        let jb = state.permutation.sources.len();
        let mine = &state.permutation.scattered[state.me()];
        let (mut upper, mut displaced): (Vec<PlacedRows>, Vec<PlacedRows>) = (Vec::new(), Vec::new());
        for HeldRows { buffer, rows } in self.held {
            let (in_u, below): (Vec<_>, Vec<_>) = rows.into_iter().partition(|&(_, row)| row < jb);
            let of_mine = |(_, i): &(usize, usize)| mine.binary_search(i).is_ok();
            let local = below.into_iter().map(|(from, row)| (from, row - jb)).filter(of_mine);
            let local: Vec<(usize, usize)> = local.map(|(from, i)| (from, state.destination(i))).collect();
            if !local.is_empty() {
                displaced.push((buffer.clone(), local));
            }
            if !in_u.is_empty() {
                upper.push((buffer, in_u));
            }
        }
        LaswpResult { upper, displaced, local: state.local_rows() }
    }

    /// Whether all messages have arrived.
    #[cfg(test)]
    pub(super) fn complete(&self) -> bool {
        self.awaited.is_none() && self.rounds.as_slice().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::layout::Distribution;

    /// Every rank sends the rows that its partner expects, and has all of U in the end.
    #[test]
    fn rounds_match() {
        for p in 2..=9 {
            let rows = Distribution::block_cyclic(200, 8, p);
            let pivots: Vec<usize> = (0..8).map(|j| 16 + j + j * 22).collect();
            let permutation = RowPermutation::new(&rows, 16, &pivots);
            let rounds = Rounds { permutation: &permutation, size: p };
            let all: Vec<Vec<ExchangeRound>> = (0..p).map(|me| rounds.of(me)).collect();
            for (me, mine) in all.iter().enumerate() {
                let mut known = rounds.fold(me);
                for (other, theirs) in all.iter().enumerate() {
                    let with = |list: &[ExchangeRound], at: usize| -> Vec<(RowList, RowList)> {
                        let rounds = list.iter().filter(|round| round.peer == rounds.owner_at(at));
                        rounds.map(|round| (round.sends.clone(), round.receives.clone())).collect()
                    };
                    let sent: Vec<RowList> = with(mine, other).into_iter().map(|round| round.0).collect();
                    let received: Vec<RowList> = with(theirs, me).into_iter().map(|round| round.1).collect();
                    let filled = |lists: Vec<RowList>| lists.into_iter().filter(|list| !list.is_empty());
                    assert!(filled(sent).eq(filled(received)), "{me} to {other} of {p}");
                }
                mine.iter().for_each(|round| known.extend(&round.receives));
                known.sort_unstable();
                known.dedup();
                assert_eq!(known.iter().filter(|&&row| row < 8).count(), 8);
            }
        }
    }
}
