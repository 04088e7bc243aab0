//! SWAP bin-exch: ⌈log2 P⌉ rounds of pairwise exchange.
//!
//! Positions count from the owner of the diagonal block. In each round a position and its partner exchange
//! all rows of U that they know, in one message; the displaced rows travel along, from position 0 down a binomial
//! tree. Positions beyond the largest power of two hand their rows in first and get the result at the end [HPL,
//! `src/pgesv/HPL_pdlaswp00N.c`].

use std::vec;

use super::exchanged::{Exchanged, Placed};
use super::piece::{Piece, Source};
use super::{Hands, Moves, Patience, Task};
use crate::Error;
use crate::backend::host::team::HelperPanicked;
use crate::comm::Comm;
use crate::comm::grid::{position, rank_at};
use crate::comm::reduce::power_of_two;
use crate::mat::Mat;

/// Rows of a message, ascending: row i of U is `i`, entry i of the displaced rows is `jb + i`.
type Load = Vec<usize>;

/// Messages exchanged with one other rank; an empty load is no message.
struct Round {
    /// Rank of the other.
    peer: usize,
    sends: Load,
    receives: Load,
}

/// Who knows and needs what, for one process column of `size` positions.
struct Rounds<'a> {
    moves: &'a Moves,
    size: usize,
}

impl Rounds<'_> {
    /// The rounds of the rank at position `me`, in order.
    fn of(&self, me: usize) -> Vec<Round> {
        let half = power_of_two(self.size);
        let round =
            |peer: usize, sends, receives| Round { peer: rank_at(peer, self.moves.owner, self.size), sends, receives };
        if me >= half {
            return vec![round(me - half, self.fold(me), self.unfold(me))];
        }
        let mut rounds = Vec::new();
        let folded = (me + half < self.size).then_some(me + half);
        rounds.extend(folded.map(|peer| round(peer, Load::new(), self.fold(peer))));
        let mut mask = 1;
        while mask < half {
            let partner = me ^ mask;
            rounds.push(round(partner, self.load(me, mask), self.load(partner, mask)));
            mask *= 2;
        }
        rounds.extend(folded.map(|peer| round(peer, self.unfold(peer), Load::new())));
        rounds
    }

    fn jb(&self) -> usize {
        self.moves.sources.len()
    }

    fn owner_at(&self, position: usize) -> usize {
        rank_at(position, self.moves.owner, self.size)
    }

    /// Entries of `lists`, by process row, at some positions.
    fn collect(&self, lists: &[Vec<usize>], positions: impl Iterator<Item = usize>) -> Load {
        let mut rows: Load = positions.flat_map(|at| lists[self.owner_at(at)].iter().copied()).collect();
        rows.sort_unstable();
        rows
    }

    /// Rows of U that `at` knows before the round of distance `mask`: those of its group of `mask`
    /// positions, and of the positions folded into them.
    fn known(&self, at: usize, mask: usize) -> Load {
        let half = power_of_two(self.size);
        let first = at & !(mask - 1);
        let group = (0..self.size).filter(|&other| (other % half) & !(mask - 1) == first);
        self.collect(&self.moves.gathered, group)
    }

    /// Displaced rows that reach their places through `at`, which gets them in the round of distance `mask`.
    fn through(&self, at: usize, mask: usize) -> impl Iterator<Item = usize> {
        let (half, jb) = (power_of_two(self.size), self.jb());
        let below = (0..self.size).filter(|&other| (other % half) % (2 * mask) == at);
        self.collect(&self.moves.scattered, below).into_iter().map(move |i| jb + i)
    }

    /// What `from` sends to its partner in the round of distance `mask`.
    fn load(&self, from: usize, mask: usize) -> Load {
        let mut load = self.known(from, mask);
        if from < mask {
            load.extend(self.through(from + mask, mask));
        }
        load
    }

    /// What a folded position hands in.
    fn fold(&self, at: usize) -> Load {
        self.moves.gathered[self.owner_at(at)].clone()
    }

    /// What a folded position gets.
    fn unfold(&self, at: usize) -> Load {
        let mine = self.moves.scattered[self.owner_at(at)].iter().map(|i| self.jb() + i);
        (0..self.jb()).chain(mine).collect()
    }
}

/// A piece and what is still read from it: pairs (row of the piece, row of a load), ascending in the latter.
struct Held {
    piece: Piece,
    rows: Vec<(usize, usize)>,
}

/// One exchange on one rank.
pub(super) struct BinExch<C: Comm> {
    held: Vec<Held>,
    /// The message that ends the current round.
    awaited: Option<C::Recv>,
    /// Its rows.
    coming: Load,
    /// Rounds that have not begun.
    rounds: vec::IntoIter<Round>,
}

impl<C: Comm> BinExch<C> {
    /// Copies what leaves this rank: first what the first round sends, in the message for it.
    pub(super) fn start(task: &mut Task<'_, C>, a: Mat<'_>, hands: &mut Hands<'_, '_>) -> Result<Self, Error> {
        let (moves, size, jb) = (&task.moves, task.column.size(), task.moves.sources.len());
        let rounds = Rounds { moves, size }.of(position(task.me(), moves.owner, size));
        let mut first = moves.gathered[task.me()].clone();
        if let Some(round) = rounds.first().filter(|round| !round.sends.is_empty()) {
            first.clone_from(&round.sends);
        }
        // On the owner of the diagonal block, what leaves in later rounds.
        let leaves = (0..moves.displaced.len()).filter(|i| !moves.scattered[task.me()].contains(i));
        let later: Load = leaves.map(|i| jb + i).filter(|row| first.binary_search(row).is_err()).collect();
        let later = if task.owns_diagonal() { later } else { Load::new() };
        let mut exchange = Self { held: Vec::new(), awaited: None, coming: Load::new(), rounds: rounds.into_iter() };
        for load in [first, later] {
            let local = |&row: &usize| if row < jb { task.source(row) } else { task.leaving(row - jb) };
            let piece = task.gather(load.iter().map(local), a, hands)?;
            exchange.held.extend(piece.map(|piece| Held { piece, rows: (0..).zip(load).collect() }));
        }
        exchange.advance(task, Patience::None, hands)?;
        Ok(exchange)
    }

    /// Completes rounds and begins the next ones.
    pub(super) fn advance(
        &mut self,
        task: &mut Task<'_, C>,
        patience: Patience,
        hands: &mut Hands<'_, '_>,
    ) -> Result<(), Error> {
        loop {
            if self.awaited.is_some() {
                let Some(piece) = task.take(&mut self.awaited, self.coming.len(), patience)? else { return Ok(()) };
                let rows = (0..).zip(std::mem::take(&mut self.coming)).collect();
                self.hold(Held { piece, rows });
            }
            let Some(round) = self.rounds.next() else { return Ok(()) };
            self.awaited = task.expect(round.peer, task.tags.rows, round.receives.len());
            self.coming = round.receives;
            if !round.sends.is_empty() && task.cols > 0 {
                let piece = self.assemble(task, round.sends, hands)?;
                task.send(round.peer, task.tags.rows, &piece);
            }
        }
    }

    /// The piece with the rows of `load`. It is held in place of those that it is made of, so that the rank reads
    /// what its partner reads.
    fn assemble(&mut self, task: &Task<'_, C>, load: Load, hands: &mut Hands<'_, '_>) -> Result<Piece, HelperPanicked> {
        let same = |held: &&Held| held.rows.len() == held.piece.rows() && held.rows.iter().map(|row| &row.1).eq(&load);
        if let Some(held) = self.held.iter().find(same) {
            return Ok(held.piece.clone());
        }
        let mut blank = task.blank(load.len());
        for held in &self.held {
            let at = |&(from, row): &(usize, usize)| load.binary_search(&row).ok().map(|to| (from, to));
            let pairs: Vec<(usize, usize)> = held.rows.iter().filter_map(at).collect();
            blank.write(Source::Piece(&held.piece), &pairs, hands)?;
        }
        let piece = blank.done(task.pool());
        self.hold(Held { piece: piece.clone(), rows: (0..).zip(load).collect() });
        Ok(piece)
    }

    /// Reads from `new` what it has.
    fn hold(&mut self, new: Held) {
        for held in &mut self.held {
            held.rows.retain(|(_, row)| new.rows.binary_search_by_key(row, |new| new.1).is_err());
        }
        self.held.retain(|held| !held.rows.is_empty());
        self.held.push(new);
    }

    /// The rows that stay on this rank.
    pub(super) fn into_exchanged(self, task: &Task<'_, C>) -> Exchanged {
        let jb = task.moves.sources.len();
        let mine = &task.moves.scattered[task.me()];
        let (mut upper, mut displaced): (Vec<Placed>, Vec<Placed>) = (Vec::new(), Vec::new());
        for Held { piece, rows } in self.held {
            let (in_u, below): (Vec<_>, Vec<_>) = rows.into_iter().partition(|&(_, row)| row < jb);
            let here = below.into_iter().map(|(from, row)| (from, row - jb)).filter(|(_, i)| mine.contains(i));
            let here: Vec<(usize, usize)> = here.map(|(from, i)| (from, task.place(i))).collect();
            if !here.is_empty() {
                displaced.push((piece.clone(), here));
            }
            if !in_u.is_empty() {
                upper.push((piece, in_u));
            }
        }
        Exchanged { upper, displaced, staying: task.staying() }
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
            let moves = Moves::new(&rows, 16, &pivots);
            let rounds = Rounds { moves: &moves, size: p };
            let all: Vec<Vec<Round>> = (0..p).map(|me| rounds.of(me)).collect();
            for (me, mine) in all.iter().enumerate() {
                let mut known = rounds.fold(me);
                for (other, theirs) in all.iter().enumerate() {
                    let with = |list: &[Round], at: usize| -> Vec<(Load, Load)> {
                        let rounds = list.iter().filter(|round| round.peer == rounds.owner_at(at));
                        rounds.map(|round| (round.sends.clone(), round.receives.clone())).collect()
                    };
                    let sent: Vec<Load> = with(mine, other).into_iter().map(|round| round.0).collect();
                    let received: Vec<Load> = with(theirs, me).into_iter().map(|round| round.1).collect();
                    let some = |loads: Vec<Load>| loads.into_iter().filter(|load| !load.is_empty());
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
