//! SWAP bin-exch: ⌈log2 P⌉ rounds of pairwise exchange.
//!
//! Positions count from the owner of the diagonal block. In each round a position and its partner exchange
//! all rows of U that they know, in one message; the displaced rows travel along, from position 0 down a binomial
//! tree. Positions beyond the largest power of two hand their rows in first and get the result at the end [HPL,
//! `src/pgesv/HPL_pdlaswp00N.c`].

use std::vec;

use super::permutation::RowPermutation;
use super::result::{LaswpResult, Placed};
use super::row_buffer::RowBuffer;
use super::state::{Completion, LaswpState};
use crate::Error;
use crate::backend::Columns;
use crate::backend::host::team::HelperPanicked;
use crate::comm::Comm;
use crate::comm::grid::{position, rank_at};
use crate::comm::reduce::power_of_two;

/// Rows of a message, ascending: row i of U is `i`, entry i of the displaced rows is `jb + i`.
type RowList = Vec<usize>;

/// Messages exchanged with one other rank; an empty load is no message.
struct Round {
    /// Rank of the other.
    peer: usize,
    sends: RowList,
    receives: RowList,
}

/// Who knows and needs what, for one process column of `size` positions.
struct Rounds<'a> {
    permutation: &'a RowPermutation,
    size: usize,
}

impl Rounds<'_> {
    /// The rounds of the rank at position `me`, in order.
    fn of(&self, me: usize) -> Vec<Round> {
        let half = power_of_two(self.size);
        let round = |peer: usize, sends, receives| Round {
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
            rounds.push(round(partner, self.load(me, mask), self.load(partner, mask)));
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

    /// Rows of U that `at` knows before the round of distance `mask`: those of its group of `mask`
    /// positions, and of the positions folded into them.
    fn known(&self, at: usize, mask: usize) -> RowList {
        let half = power_of_two(self.size);
        let first = at & !(mask - 1);
        let group = (0..self.size).filter(|&other| (other % half) & !(mask - 1) == first);
        self.collect(&self.permutation.gathered, group)
    }

    /// Displaced rows that reach their places through `at`, which gets them in the round of distance `mask`.
    fn through(&self, at: usize, mask: usize) -> impl Iterator<Item = usize> {
        let (half, jb) = (power_of_two(self.size), self.jb());
        let below = (0..self.size).filter(|&other| (other % half) % (2 * mask) == at);
        self.collect(&self.permutation.scattered, below).into_iter().map(move |i| jb + i)
    }

    /// What `from` sends to its partner in the round of distance `mask`.
    fn load(&self, from: usize, mask: usize) -> RowList {
        let mut load = self.known(from, mask);
        if from < mask {
            load.extend(self.through(from + mask, mask));
        }
        load
    }

    /// What a folded position hands in.
    fn fold(&self, at: usize) -> RowList {
        self.permutation.gathered[self.owner_at(at)].clone()
    }

    /// What a folded position gets.
    fn unfold(&self, at: usize) -> RowList {
        let mine = self.permutation.scattered[self.owner_at(at)].iter().map(|i| self.jb() + i);
        (0..self.jb()).chain(mine).collect()
    }
}

/// A piece and what is still read from it: pairs (row of the piece, row of a load), ascending in the latter.
struct HeldRows {
    piece: RowBuffer,
    rows: Vec<(usize, usize)>,
}

/// One exchange on one rank.
pub(super) struct BinExch<C: Comm> {
    held: Vec<HeldRows>,
    /// The message that ends the current round.
    awaited: Option<C::Recv>,
    /// Its rows.
    awaited_rows: RowList,
    /// Rounds that have not begun.
    rounds: vec::IntoIter<Round>,
}

impl<C: Comm> BinExch<C> {
    /// Copies what leaves this rank: first what the first round sends, in the message for it.
    pub(super) fn start(state: &mut LaswpState<'_, C>, columns: &mut impl Columns) -> Result<Self, Error> {
        let (permutation, size, jb) = (&state.permutation, state.column.size(), state.permutation.sources.len());
        let rounds = Rounds { permutation, size }.of(position(state.me(), permutation.owner, size));
        let mut first = permutation.gathered[state.me()].clone();
        if let Some(round) = rounds.first().filter(|round| !round.sends.is_empty()) {
            first.clone_from(&round.sends);
        }
        // On the owner of the diagonal block, what leaves in later rounds.
        let leaves = (0..permutation.displaced.len()).filter(|i| !permutation.scattered[state.me()].contains(i));
        let later: RowList = leaves.map(|i| jb + i).filter(|row| first.binary_search(row).is_err()).collect();
        let later = if state.owns_diagonal() { later } else { RowList::new() };
        let mut exchange =
            Self { held: Vec::new(), awaited: None, awaited_rows: RowList::new(), rounds: rounds.into_iter() };
        for load in [first, later] {
            let local = |&row: &usize| if row < jb { state.source(row) } else { state.leaving(row - jb) };
            let piece = state.gather(load.iter().map(local), columns)?;
            exchange.held.extend(piece.map(|piece| HeldRows { piece, rows: (0..).zip(load).collect() }));
        }
        exchange.advance(state, Completion::Test, columns)?;
        Ok(exchange)
    }

    /// Completes rounds and begins the next ones.
    pub(super) fn advance(
        &mut self,
        state: &mut LaswpState<'_, C>,
        completion: Completion,
        columns: &mut impl Columns,
    ) -> Result<(), Error> {
        loop {
            if self.awaited.is_some() {
                let Some(piece) = state.take(&mut self.awaited, self.awaited_rows.len(), completion)? else {
                    return Ok(());
                };
                let rows = (0..).zip(std::mem::take(&mut self.awaited_rows)).collect();
                self.hold(HeldRows { piece, rows });
            }
            let Some(round) = self.rounds.next() else { return Ok(()) };
            self.awaited = state.expect(round.peer, state.tags.rows, round.receives.len());
            self.awaited_rows = round.receives;
            if !round.sends.is_empty() && state.cols > 0 {
                let piece = self.assemble(state, round.sends, columns)?;
                state.send(round.peer, state.tags.rows, &piece);
            }
        }
    }

    /// The piece with the rows of `load`. It is held in place of those that it is made of, so that the rank reads
    /// what its partner reads.
    fn assemble(
        &mut self,
        state: &LaswpState<'_, C>,
        load: RowList,
        columns: &mut impl Columns,
    ) -> Result<RowBuffer, HelperPanicked> {
        let same =
            |held: &&HeldRows| held.rows.len() == held.piece.rows() && held.rows.iter().map(|row| &row.1).eq(&load);
        if let Some(held) = self.held.iter().find(same) {
            return Ok(held.piece.clone());
        }
        let mut buffer = state.buffer(load.len());
        for held in &self.held {
            let at = |&(from, row): &(usize, usize)| load.binary_search(&row).ok().map(|to| (from, to));
            let pairs: Vec<(usize, usize)> = held.rows.iter().filter_map(at).collect();
            columns.copy_rows(&held.piece, &pairs, &mut buffer)?;
        }
        let piece = buffer.done(state.pool());
        self.hold(HeldRows { piece: piece.clone(), rows: (0..).zip(load).collect() });
        Ok(piece)
    }

    /// Reads from `new` what it has.
    fn hold(&mut self, new: HeldRows) {
        for held in &mut self.held {
            held.rows.retain(|(_, row)| new.rows.binary_search_by_key(row, |new| new.1).is_err());
        }
        self.held.retain(|held| !held.rows.is_empty());
        self.held.push(new);
    }

    /// The rows that stay on this rank.
    pub(super) fn into_result(self, state: &LaswpState<'_, C>) -> LaswpResult {
        let jb = state.permutation.sources.len();
        let mine = &state.permutation.scattered[state.me()];
        let (mut upper, mut displaced): (Vec<Placed>, Vec<Placed>) = (Vec::new(), Vec::new());
        for HeldRows { piece, rows } in self.held {
            let (in_u, below): (Vec<_>, Vec<_>) = rows.into_iter().partition(|&(_, row)| row < jb);
            let here = below.into_iter().map(|(from, row)| (from, row - jb)).filter(|(_, i)| mine.contains(i));
            let here: Vec<(usize, usize)> = here.map(|(from, i)| (from, state.place(i))).collect();
            if !here.is_empty() {
                displaced.push((piece.clone(), here));
            }
            if !in_u.is_empty() {
                upper.push((piece, in_u));
            }
        }
        LaswpResult { upper, displaced, staying: state.staying() }
    }

    /// Whether no message is missing.
    #[cfg(test)]
    pub(super) fn complete(&self) -> bool {
        self.awaited.is_none() && self.rounds.as_slice().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::layout::Axis;

    /// Every rank sends what its partner expects, and in the end has all of U.
    #[test]
    fn rounds_match() {
        for p in 2..=9 {
            let rows = Axis::block_cyclic(200, 8, p);
            let pivots: Vec<usize> = (0..8).map(|j| 16 + j + j * 22).collect();
            let permutation = RowPermutation::new(&rows, 16, &pivots);
            let rounds = Rounds { permutation: &permutation, size: p };
            let all: Vec<Vec<Round>> = (0..p).map(|me| rounds.of(me)).collect();
            for (me, mine) in all.iter().enumerate() {
                let mut known = rounds.fold(me);
                for (other, theirs) in all.iter().enumerate() {
                    let with = |list: &[Round], at: usize| -> Vec<(RowList, RowList)> {
                        let rounds = list.iter().filter(|round| round.peer == rounds.owner_at(at));
                        rounds.map(|round| (round.sends.clone(), round.receives.clone())).collect()
                    };
                    let sent: Vec<RowList> = with(mine, other).into_iter().map(|round| round.0).collect();
                    let received: Vec<RowList> = with(theirs, me).into_iter().map(|round| round.1).collect();
                    let some = |loads: Vec<RowList>| loads.into_iter().filter(|load| !load.is_empty());
                    assert!(some(sent).eq(some(received)), "{me} to {other} of {p}");
                }
                mine.iter().for_each(|round| known.extend(&round.receives));
                known.sort_unstable();
                known.dedup();
                assert_eq!(known.iter().filter(|&&row| row < 8).count(), 8);
            }
        }
    }
}
