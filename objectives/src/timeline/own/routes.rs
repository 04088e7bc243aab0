//! When a panel is where: the engine's own broadcasts over a link with latency and bandwidth.

use hpl::bcast::{Steps, steps};
use space::Bcast;

/// Latency and time per word between ranks.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Link {
    /// Seconds of a message.
    pub(super) alpha_s: f64,
    /// Seconds per word; 0 where a message is handed over in memory.
    pub(super) beta_s: f64,
}

/// Seconds after the root's start at which each position among `q` has a panel of `words` words. A rank's sends leave
/// one after the other, each as soon as its pieces are there.
pub(super) fn arrivals(variant: Bcast, q: usize, words: f64, link: Link) -> Vec<f64> {
    let all: Vec<Steps> = (0..q).map(|at| steps(variant, at, q)).collect();
    let pieces = all[0].pieces;
    let mut has = vec![vec![f64::INFINITY; pieces]; q];
    has[0].fill(0.0);
    let mut free = vec![0.0_f64; q];
    let mut sent = vec![0; q];
    // Each pass sends what has come; a message moves at least one piece, so the passes end.
    while (0..q).fold(false, |moved, at| {
        let mut any = moved;
        while let Some(transfer) = all[at].sends.get(sent[at]) {
            let ready = transfer.pieces.clone().map(|piece| has[at][piece]).fold(0.0, f64::max);
            if !ready.is_finite() {
                break;
            }
            let share = transfer.pieces.len() as f64 / pieces as f64;
            let left = free[at].max(ready) + link.beta_s * words * share;
            free[at] = left;
            for piece in transfer.pieces.clone() {
                let arrival = &mut has[transfer.peer][piece];
                *arrival = arrival.min(left + link.alpha_s);
            }
            sent[at] += 1;
            any = true;
        }
        any
    }) {}
    has.into_iter().map(|pieces| pieces.into_iter().fold(0.0, f64::max)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: Link = Link { alpha_s: 1.0, beta_s: 0.01 };

    #[test]
    fn a_ring_takes_a_hop_per_position() {
        let times = arrivals(Bcast::OneRing, 4, 100.0, LINK);
        assert_eq!(times, [0.0, 2.0, 4.0, 6.0]);
        // The root serves two: its second message waits for the first.
        assert_eq!(arrivals(Bcast::OneRingM, 4, 100.0, LINK), [0.0, 2.0, 3.0, 5.0]);
    }

    #[test]
    fn every_variant_reaches_everybody() {
        for bcast in [Bcast::OneRing, Bcast::OneRingM, Bcast::TwoRing, Bcast::TwoRingM, Bcast::Long, Bcast::LongM] {
            for q in 1..=17 {
                let times = arrivals(bcast, q, 1000.0, LINK);
                assert!(times[0] == 0.0 && times[1..].iter().all(|&s| s.is_finite() && s >= LINK.alpha_s), "{bcast:?}");
            }
        }
    }

    #[test]
    fn long_moves_large_panels_sooner_than_a_ring() {
        let last = |bcast| arrivals(bcast, 16, 1e6, LINK).into_iter().fold(0.0, f64::max);
        assert!(last(Bcast::Long) < last(Bcast::OneRing) / 4.0);
    }
}
