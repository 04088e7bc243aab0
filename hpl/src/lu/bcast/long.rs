//! Broadcasts that divide the panel into pieces, so that no rank sends the whole panel: spread and roll.
//!
//! See [`spread_roll`](crate::lu::spread_roll). Netlib's steps are blocking, ours are not: a piece is sent as soon as it has
//! arrived. The root, and the positions that forwarded pieces in the spread, take part in the roll as the others do, and
//! receive pieces that they already have.

use super::{Steps, Transfer};
use crate::lu::spread_roll::{children, parent, roll, subtree};

/// Steps of position `me` among `n` ≥ 2 positions, all of which take part.
pub(super) fn long(me: usize, n: usize) -> Steps {
    let mut steps = Steps { pieces: n, receives: Vec::new(), sends: Vec::new() };
    add_spread(me, n, &mut steps);
    add_roll(me, n, &mut steps);
    steps
}

/// Steps of `position` among `q` ≥ 3 when position 1 receives the whole panel first.
pub(super) fn long_m(position: usize, q: usize) -> Steps {
    let whole = |peer| Transfer { peer, pieces: 0..q - 1 };
    if position == 1 {
        return Steps { pieces: q - 1, receives: vec![whole(0)], sends: Vec::new() };
    }
    // All positions except 1, the root first.
    let mut steps = long(position.saturating_sub(1), q - 1);
    for transfer in steps.receives.iter_mut().chain(&mut steps.sends) {
        if transfer.peer > 0 {
            transfer.peer += 1;
        }
    }
    if position == 0 {
        steps.sends.insert(0, whole(1));
    }
    steps
}

/// Adds the transfers of the spread, down the tree.
fn add_spread(me: usize, n: usize, steps: &mut Steps) {
    if me > 0 {
        steps.receives.push(Transfer { peer: parent(me), pieces: subtree(me, n) });
    }
    steps.sends.extend(children(me, n).map(|peer| Transfer { peer, pieces: subtree(peer, n) }));
}

/// Adds the transfers of the roll: single pieces to and from the next and the previous position, alternately.
fn add_roll(me: usize, n: usize, steps: &mut Steps) {
    for step in roll(me, n) {
        let peer = step.partner(me, n);
        steps.sends.push(Transfer { peer, pieces: step.sends..step.sends + 1 });
        steps.receives.push(Transfer { peer, pieces: step.receives..step.receives + 1 });
    }
}
