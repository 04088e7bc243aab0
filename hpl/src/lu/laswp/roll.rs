//! The roll of SWAP long: pieces of U go around the process column, in both directions at once.
//!
//! There are P − 1 steps; in each, neighbours in alternating pairs exchange the pieces that each got two steps
//! before, their own at first [HPL, `src/pgesv/HPL_rollN.c`]. Here a piece goes on as soon as it has arrived.

use std::collections::VecDeque;

use super::long::ProcessOrder;
use super::row_buffer::RowBuffer;
use super::{Completion, LaswpState};
use crate::Error;
use crate::comm::Comm;
use crate::comm::grid::rank_at;

/// One step of a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Step {
    /// Whether the partner is the next position, else it is the one before.
    with_next: bool,
    /// Position whose piece is sent.
    sends: usize,
    /// Position whose piece is received.
    receives: usize,
}

/// The steps of position `at` of `size`.
fn steps(at: usize, size: usize) -> impl Iterator<Item = Step> {
    (0..size - 1).map(move |k| {
        let (with_next, done) = ((at + k).is_multiple_of(2), k / 2);
        let (behind, ahead) = (|by: usize| rank_at(size - by, at, size), |by: usize| rank_at(by, at, size));
        if with_next {
            Step { with_next, sends: behind(done), receives: ahead(done + 1) }
        } else {
            Step { with_next, sends: ahead(done), receives: behind(done + 1) }
        }
    })
}

/// What goes to and comes from one neighbour.
struct Neighbour<C: Comm> {
    rank: usize,
    /// Positions whose pieces it gets, in order.
    sends: VecDeque<usize>,
    /// Pieces that it sends: step, position, receive.
    awaited: VecDeque<(usize, usize, Option<C::Recv>)>,
}

/// One rank's part.
pub(super) struct Roll<C: Comm> {
    /// Position of this rank.
    at: usize,
    /// Length of each piece.
    rows: Vec<usize>,
    /// The pieces by position, as they come.
    pieces: Vec<Option<RowBuffer>>,
    /// The position before and the next one.
    neighbours: [Neighbour<C>; 2],
}

impl<C: Comm> Roll<C> {
    /// Expects the pieces of the others; `bounds` says how long each is.
    pub(super) fn expect(state: &LaswpState<'_, C>, order: &ProcessOrder, bounds: &[usize]) -> Self {
        let (at, size) = (order.at, order.size());
        let rows: Vec<usize> = bounds.windows(2).map(|ends| ends[1] - ends[0]).collect();
        let neighbour = |distance| Neighbour {
            rank: order.rank(rank_at(distance, at, size)),
            sends: VecDeque::new(),
            awaited: VecDeque::new(),
        };
        let mut neighbours = [neighbour(size - 1), neighbour(1)];
        for (k, step) in steps(at, size).enumerate() {
            let neighbour = &mut neighbours[usize::from(step.with_next)];
            if rows[step.sends] * state.cols > 0 {
                neighbour.sends.push_back(step.sends);
            }
            if let Some(recv) = state.expect(neighbour.rank, state.tags.rows, rows[step.receives]) {
                neighbour.awaited.push_back((k, step.receives, Some(recv)));
            }
        }
        Self { at, pieces: vec![None; size], rows, neighbours }
    }

    /// This rank's piece is complete.
    pub(super) fn own(&mut self, piece: RowBuffer) {
        self.pieces[self.at] = Some(piece);
    }

    /// Takes the pieces that have arrived and passes them on.
    pub(super) fn advance(&mut self, state: &mut LaswpState<'_, C>) -> Result<(), Error> {
        for side in 0..2 {
            while self.receive(state, side, Completion::Test)? {}
        }
        for Neighbour { rank, sends, .. } in &mut self.neighbours {
            while let Some(piece) = sends.front().and_then(|&at| self.pieces[at].as_ref()) {
                state.send(*rank, state.tags.rows, piece);
                sends.pop_front();
            }
        }
        Ok(())
    }

    /// Waits for the piece of the next step; `false` when there is none.
    pub(super) fn wait(&mut self, state: &LaswpState<'_, C>) -> Result<bool, Error> {
        let step = |side: usize| self.neighbours[side].awaited.front().map_or(usize::MAX, |awaited| awaited.0);
        let side = usize::from(step(1) < step(0));
        self.receive(state, side, Completion::Wait)
    }

    /// Takes the next piece from one side; `false` when there is none.
    fn receive(&mut self, state: &LaswpState<'_, C>, side: usize, completion: Completion) -> Result<bool, Error> {
        let Some((_, at, recv)) = self.neighbours[side].awaited.front_mut() else { return Ok(false) };
        let (at, piece) = (*at, state.take(recv, self.rows[*at], completion)?);
        if piece.is_none() {
            return Ok(false);
        }
        self.pieces[at] = piece;
        self.neighbours[side].awaited.pop_front();
        Ok(true)
    }

    /// All pieces that are not empty, by position.
    pub(super) fn into_pieces(self) -> impl Iterator<Item = (usize, RowBuffer)> {
        self.pieces.into_iter().enumerate().filter_map(|(at, piece)| piece.map(|piece| (at, piece)))
    }

    /// Whether no message is missing.
    #[cfg(test)]
    pub(super) fn complete(&self) -> bool {
        self.neighbours.iter().all(|neighbour| neighbour.awaited.is_empty() && neighbour.sends.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everyone gets every piece once, sends only what it has, and what it sends is what the other expects.
    #[test]
    fn all_pieces_reach_all() {
        for size in 1..=9 {
            let towards = |at: usize, to: usize, with_next| -> Vec<Step> {
                assert_eq!(rank_at(if with_next { 1 } else { size - 1 }, at, size), to);
                steps(at, size).filter(|step| step.with_next == with_next).collect()
            };
            for at in 0..size {
                let mut got: Vec<usize> = steps(at, size).map(|step| step.receives).collect();
                got.push(at);
                got.sort_unstable();
                assert!(got.into_iter().eq(0..size), "{at} of {size}");
                if size > 1 {
                    let next = rank_at(1, at, size);
                    let sent = towards(at, next, true).into_iter().map(|step| step.sends);
                    let expected = towards(next, at, false).into_iter().map(|step| step.receives);
                    assert!(sent.eq(expected), "{at} to {next} of {size}");
                    let sent = towards(next, at, false).into_iter().map(|step| step.sends);
                    let expected = towards(at, next, true).into_iter().map(|step| step.receives);
                    assert!(sent.eq(expected), "{next} to {at} of {size}");
                }
            }
        }
        // Pairs of the first two steps of four.
        let partners = |k: usize| -> Vec<bool> { (0..4).map(|at| steps(at, 4).nth(k).unwrap().with_next).collect() };
        assert_eq!((partners(0), partners(1)), (vec![true, false, true, false], vec![false, true, false, true]));
    }
}
