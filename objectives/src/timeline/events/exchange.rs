//! Who exchanges what with whom, message by message.

/// One message each way between two members of a group, as one of them sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Pair {
    /// The other member.
    pub peer: usize,
    /// What goes there, as part of the whole.
    pub sent: f64,
    /// What comes back.
    pub received: f64,
}

/// Binary exchange as member `me` of `n` makes it; members count from the row that owns the panel.
///
/// Whoever has talked to a member with U has U, and sends it whole from then on; the others send the rows that they have
/// gathered, 1/n of U from each member in the mean. Beyond the largest power of two members hand theirs to one
/// below first, and the first of them passes U on among them \[HPL, `HPL_pdlaswp00N.c`\].
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
    // Rows of those below the power of two, the others' included.
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

/// The whole from member 0 to all of `n`, along a binary tree.
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

/// Spread and roll among `n` members as member `me` makes them: pieces of 1/n down a binary tree, then around
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

    /// Meets pair by pair until all are done; returns what each member got, by the number of copies.
    fn meet(n: usize, pairs: fn(usize, usize) -> Vec<Pair>) -> Vec<f64> {
        let lists: Vec<Vec<Pair>> = (0..n).map(|me| pairs(me, n)).collect();
        let (mut done, mut received) = (vec![0; n], vec![0.0; n]);
        while (0..n).any(|me| done[me] < lists[me].len()) {
            let ready = |me: usize| lists[me].get(done[me]).copied();
            let meets =
                |me: &usize| ready(*me).is_some_and(|pair| ready(pair.peer).is_some_and(|back| back.peer == *me));
            let me = (0..n).find(meets).expect("somebody can go on");
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
    fn exchanges_end_and_everybody_has_u() {
        for n in 1..=40 {
            for (me, got) in meet(n, binary).into_iter().enumerate() {
                assert!(me == 0 || got >= 1.0, "binary exchange of {n}: member {me} got {got}");
            }
            for (me, got) in meet(n, long).into_iter().enumerate() {
                let expected = (n - 1) as f64 / n as f64;
                assert!(got >= expected - 1e-12, "long of {n}: member {me} got {got}");
            }
        }
        for n in 3..=40 {
            assert!(
                meet(n, long_relieved).into_iter().skip(1).all(|got| got >= (n - 2) as f64 / (n - 1) as f64 - 1e-12)
            );
        }
    }
}
