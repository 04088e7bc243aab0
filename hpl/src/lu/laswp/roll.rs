//! The roll of SWAP long: pieces of U are sent around the process column, in both directions at once.
//!
//! There are P − 1 steps. In each, neighbours in alternating pairs exchange pieces: first their own, then those received
//! two steps before [HPL, `src/pgesv/HPL_rollN.c`]. Here a piece is forwarded as soon as it has arrived.

use std::collections::VecDeque;

use super::order::ProcessOrder;
use super::row_buffer::RowBuffer;
use super::state::LaswpState;
use crate::Error;
use crate::comm::grid::rank_at;
use crate::comm::{Comm, Completion};
use crate::lu::spread_roll::roll;

/// Messages to and from one neighbour.
struct Neighbour<C: Comm> {
    rank: usize,
    /// Positions whose pieces this rank sends to the neighbour, in order.
    sends: VecDeque<usize>,
    /// Pieces that this rank receives from the neighbour: step, position, receive.
    awaited: VecDeque<(usize, usize, Option<C::Recv>)>,
}

/// The roll on one rank.
pub(super) struct Roll<C: Comm> {
    /// Position of this rank.
    at: usize,
    /// Length of each piece.
    rows: Vec<usize>,
    /// The pieces by position; `None` until a piece has arrived.
    pieces: Vec<Option<RowBuffer>>,
    /// The neighbours: previous and next position.
    neighbours: [Neighbour<C>; 2],
}

impl<C: Comm> Roll<C> {
    /// Posts the receives of the pieces of the other positions; `bounds`: bounds of the pieces.
    pub(super) fn start(state: &LaswpState<'_, C>, order: &ProcessOrder, bounds: &[usize]) -> Self {
        let (at, size) = (order.at, order.size());
        let rows: Vec<usize> = bounds.windows(2).map(|ends| ends[1] - ends[0]).collect();
        let neighbour = |distance| Neighbour {
            rank: order.rank(rank_at(distance, at, size)),
            sends: VecDeque::new(),
            awaited: VecDeque::new(),
        };
        let mut neighbours = [neighbour(size - 1), neighbour(1)];
        for (k, step) in roll(at, size).enumerate() {
            let neighbour = &mut neighbours[usize::from(step.with_next)];
            if rows[step.sends] * state.cols() > 0 {
                neighbour.sends.push_back(step.sends);
            }
            if let Some(recv) = state.receive(neighbour.rank, state.tags.rows, rows[step.receives]) {
                neighbour.awaited.push_back((k, step.receives, Some(recv)));
            }
        }
        Self { at, pieces: vec![None; size], rows, neighbours }
    }

    /// Sets this rank's own piece, which is complete.
    pub(super) fn set_own(&mut self, piece: RowBuffer) {
        self.pieces[self.at] = Some(piece);
    }

    /// Tests the receives and forwards the pieces that have arrived.
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

    /// Waits for the piece of the next step; `false` when all have arrived.
    pub(super) fn wait(&mut self, state: &LaswpState<'_, C>) -> Result<bool, Error> {
        let step = |side: usize| self.neighbours[side].awaited.front().map_or(usize::MAX, |awaited| awaited.0);
        let side = usize::from(step(1) < step(0));
        self.receive(state, side, Completion::Wait)
    }

    /// Completes the next receive from one side; `false` if the piece has not arrived or all have.
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

    /// Whether all messages have arrived and are forwarded.
    #[cfg(test)]
    pub(super) fn complete(&self) -> bool {
        self.neighbours.iter().all(|neighbour| neighbour.awaited.is_empty() && neighbour.sends.is_empty())
    }
}
