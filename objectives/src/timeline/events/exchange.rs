//! The partners and message sizes of row exchanges and long broadcasts.

/// One message each way between two members of a group, from the view of one of them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Pair {
    /// The other member.
    pub peer: usize,
    /// Sent fraction of the data.
    pub sent: f64,
    /// Received fraction of the data.
    pub received: f64,
}

/// The messages of member `me` of `n` in a binary exchange; members count from the row that owns the panel.
///
/// A member that has exchanged with an owner of U has U, and sends all of it from then on; the others send the rows that
/// they have gathered, 1/n of U from each member in the mean. Members beyond the largest power of two first send their rows
/// to one below it, and the first of them forwards U to the others of them \[HPL, `HPL_pdlaswp00N.c`\].
pub(super) fn binary(me: usize, n: usize) -> Vec<Pair> {
    let power = 1 << n.ilog2();
    let (beyond, share) = (n - power, 1.0 / n as f64);
    let mut pairs = Vec::new();
    if me >= power {
        let received = if me == power { 1.0 } else { 0.0 };
        pairs.push(Pair { peer: me - power, sent: share, received });
        pairs.extend(tree(me - power, beyond).map(|pair| Pair { peer: pair.peer + power, ..pair }));
        return pairs;
    }
    if me < beyond {
        pairs.push(Pair { peer: me + power, sent: if me == 0 { 1.0 } else { 0.0 }, received: share });
    }
    // The rows of the members below the power of two include those of the others.
    let share = 1.0 / power as f64;
    for level in 0..n.ilog2() {
        let gathered = share * f64::from(1 << level);
        let (sent, received) = match (me >> level, me >> (level + 1)) {
            (0, _) => (1.0, gathered),
            (_, 0) => (gathered, 1.0),
            _ => (gathered, gathered),
        };
        pairs.push(Pair { peer: me ^ (1 << level), sent, received });
    }
    pairs
}

/// Broadcast of the whole data from member 0 to all of `n`, along a binary tree.
fn tree(me: usize, n: usize) -> impl Iterator<Item = Pair> {
    let levels = if n > 1 { (n - 1).ilog2() + 1 } else { 0 };
    (0..levels).rev().filter_map(move |level| {
        let distance = 1 << level;
        let (part, peer) = (me.is_multiple_of(distance), me ^ distance);
        let down = me & distance == 0;
        (part && peer < n).then_some(Pair {
            peer,
            sent: if down { 1.0 } else { 0.0 },
            received: if down { 0.0 } else { 1.0 },
        })
    })
}

/// The messages of member `me` of `n` in spread and roll: pieces of 1/n down a binary tree, then around a ring
/// \[HPL, `HPL_spreadN.c`, `HPL_rollN.c`, `HPL_blong.c`\].
pub(super) fn long(me: usize, n: usize) -> Vec<Pair> {
    let (mut pairs, share) = (Vec::new(), 1.0 / n as f64);
    if n < 2 {
        return pairs;
    }
    for level in (0..=(n - 1).ilog2()).rev() {
        let distance = 1 << level;
        let (upper, peer) = (me | distance, me ^ distance);
        if me.is_multiple_of(distance) && upper < n {
            let part = (n.min(upper + distance) - upper) as f64 * share;
            let (sent, received) = if peer == upper { (part, 0.0) } else { (0.0, part) };
            pairs.push(Pair { peer, sent, received });
        }
    }
    pairs.extend((0..n - 1).map(|k| {
        let peer = if (me + k).is_multiple_of(2) { (me + 1) % n } else { (me + n - 1) % n };
        Pair { peer, sent: share, received: share }
    }));
    pairs
}

/// [`long`] after a first message with the whole from member 0 to member 1, which takes no part in the rest.
pub(super) fn long_relieved(me: usize, n: usize) -> Vec<Pair> {
    let whole = |peer, sent: f64| Pair { peer, sent, received: 1.0 - sent };
    if me == 1 {
        return vec![whole(0, 0.0)];
    }
    let others = long(me.saturating_sub(1), n - 1).into_iter();
    let renamed = others.map(|pair| Pair { peer: if pair.peer == 0 { 0 } else { pair.peer + 1 }, ..pair });
    (me == 0).then_some(whole(1, 1.0)).into_iter().chain(renamed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Executes all exchanges pair by pair; returns the amount that each member received, in copies of the data.
    fn received(n: usize, pairs: fn(usize, usize) -> Vec<Pair>) -> Vec<f64> {
        let lists: Vec<Vec<Pair>> = (0..n).map(|me| pairs(me, n)).collect();
        let (mut done, mut received) = (vec![0; n], vec![0.0; n]);
        while (0..n).any(|me| done[me] < lists[me].len()) {
            let ready = |me: usize| lists[me].get(done[me]).copied();
            let both_ready =
                |me: &usize| ready(*me).is_some_and(|pair| ready(pair.peer).is_some_and(|back| back.peer == *me));
            let me = (0..n).find(both_ready).expect("an exchange is ready");
            let pair = lists[me][done[me]];
            let back = lists[pair.peer][done[pair.peer]];
            assert!((pair.sent - back.received).abs() < 1e-12 && (pair.received - back.sent).abs() < 1e-12);
            for (member, pair) in [(me, pair), (pair.peer, back)] {
                done[member] += 1;
                received[member] += pair.received;
            }
        }
        received
    }

    #[test]
    fn exchanges_end_and_all_have_u() {
        for n in 1..=40 {
            for (me, got) in received(n, binary).into_iter().enumerate() {
                assert!(me == 0 || got >= 1.0, "binary exchange of {n}: member {me} got {got}");
            }
            for (me, got) in received(n, long).into_iter().enumerate() {
                let expected = (n - 1) as f64 / n as f64;
                assert!(got >= expected - 1e-12, "long of {n}: member {me} got {got}");
            }
        }
        for n in 3..=40 {
            assert!(
                received(n, long_relieved)
                    .into_iter()
                    .skip(1)
                    .all(|got| got >= (n - 2) as f64 / (n - 1) as f64 - 1e-12)
            );
        }
    }
}
