//! Broadcasts that cut the panel in pieces, so that no rank sends it whole: spread, then roll.
//!
//! Of n members each is to have one piece after the spread, by a binary tree over ⌈log₂ n⌉ levels; then
//! n − 1 steps of exchange between neighbours bring everybody the others' pieces. In step k the pairs are those
//! of member m with m + 1 for even m + k: each rank receives from both sides in turn, first what its neighbours
//! were given, then what those received from theirs [HPL, `src/comm/HPL_blon*.c`].
//!
//! Netlib's steps block, ours do not: a piece is sent as soon as it is there. The root, and whoever passed pieces
//! on in the spread, take part in the roll as the others do and receive what they have.

use super::{Steps, Transfer};

/// Steps of position `me` among `n` ≥ 2, all of which take part.
pub(super) fn long(me: usize, n: usize) -> Steps {
    let mut steps = Steps { pieces: n, receives: Vec::new(), sends: Vec::new() };
    spread(me, n, &mut steps);
    roll(me, n, &mut steps);
    steps
}

/// Steps of `position` among `q` ≥ 3 when position 1 gets the panel whole, before the others start.
pub(super) fn long_m(position: usize, q: usize) -> Steps {
    let whole = |peer| Transfer { peer, pieces: 0..q - 1 };
    if position == 1 {
        return Steps { pieces: q - 1, receives: vec![whole(0)], sends: Vec::new() };
    }
    // The others without position 1, the root again first.
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

/// Member m hands the upper part of its pieces to m + d, for d = the powers of two from above n/2 down to 1.
fn spread(me: usize, n: usize, steps: &mut Steps) {
    let mut distance = 1 << (n - 1).ilog2();
    while distance > 0 {
        if me.is_multiple_of(distance) {
            let partner = me ^ distance;
            if partner < me {
                steps.receives.push(Transfer { peer: partner, pieces: me..n.min(me + distance) });
            } else if partner < n {
                steps.sends.push(Transfer { peer: partner, pieces: partner..n.min(partner + distance) });
            }
        }
        distance /= 2;
    }
}

/// Exchange of single pieces with the next and the previous member in turn, around the ring.
fn roll(me: usize, n: usize, steps: &mut Steps) {
    let piece = |index: usize| index % n..index % n + 1;
    for k in 0..n - 1 {
        let far = k / 2;
        let (peer, sent, received) = if (me + k).is_multiple_of(2) {
            ((me + 1) % n, me + n - far, me + far + 1)
        } else {
            ((me + n - 1) % n, me + far, me + n - far - 1)
        };
        steps.sends.push(Transfer { peer, pieces: piece(sent) });
        steps.receives.push(Transfer { peer, pieces: piece(received) });
    }
}
