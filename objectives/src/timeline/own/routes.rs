//! Arrival times of a panel: the engine's own broadcasts over links with latency and bandwidth.

use hpl::lu::bcast::{Steps, steps};
use space::Bcast;

use super::network::MessageCost;

/// Most positions of a row whose pieces of a panel are walked, as many for each of them: a row of thousands would take gigabytes.
const MOST_PIECES: usize = 256;

/// Arrival time of a panel at each position of a process row, in seconds after its root has started to send.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Routes {
    /// Seconds of latency, and seconds per word of the panel.
    parts: [Vec<f64>; 2],
}

impl Routes {
    /// The routes of `variant` over `q` process columns, for `columns` positions: all, or that many spread over the row.
    /// `links`: by the number of columns between two ranks.
    pub(super) fn new(variant: Bcast, q: usize, columns: usize, links: &[MessageCost]) -> Self {
        let link = |hop: usize| links[hop.min(links.len() - 1)];
        let long = matches!(variant, Bcast::Long | Bcast::LongM);
        let walked = if long { columns.min(MOST_PIECES) } else { columns };
        let by =
            |words: f64, only: fn(MessageCost) -> MessageCost| arrivals(variant, walked, words, |hop| only(link(hop)));
        let mut parts =
            [by(0.0, |link| MessageCost { beta_s: 0.0, ..link }), by(1.0, |link| MessageCost { alpha_s: 0.0, ..link })];
        if q > walked && walked > 2 {
            // A ring has as many hops as positions. The long variants send as many pieces, of a panel of the same size; by the plain one the
            // next column has all of them no earlier than the others.
            let stretch = (q - 1) as f64 / (walked - 1) as f64;
            for part in &mut parts[..if long { 1 } else { 2 }] {
                let first = if variant == Bcast::Long { 0.0 } else { part[1] };
                part[1..].iter_mut().for_each(|s| *s = first + (*s - first) * stretch);
            }
        }
        Self { parts: parts.map(|part| spread(part, columns)) }
    }

    /// Seconds until a panel of `words` words, which represents `weight` panels, arrives at `position`. The first hop is
    /// counted for each of the panels; the further hops overlap with the next panels and are counted once.
    pub(super) fn arrival_s(&self, position: usize, words: f64, weight: f64) -> f64 {
        let at = |position: usize| self.parts[0][position] + words * self.parts[1][position];
        if position == 0 { 0.0 } else { weight * at(1) + (at(position) - at(1)) }
    }
}

/// The times of `columns` positions by those of `times`, which has as many or [`MOST_PIECES`]: the root and the next column, which M variants
/// serve first, are themselves.
fn spread(times: Vec<f64>, columns: usize) -> Vec<f64> {
    if times.len() == columns {
        return times;
    }
    let (walked, all) = (times.len() - 2, columns - 2);
    (0..columns).map(|at| times[if at < 2 { at } else { 2 + (at - 2) * walked / all }]).collect()
}

/// Seconds after the root's start until a panel of `words` words arrives at each of `q` positions. A rank sends one message
/// at a time, each as soon as its pieces have arrived. `link`: by the number of columns between two ranks.
fn arrivals(variant: Bcast, q: usize, words: f64, link: impl Fn(usize) -> MessageCost) -> Vec<f64> {
    let all: Vec<Steps> = (0..q).map(|at| steps(variant, at, q)).collect();
    let pieces = all[0].pieces;
    let mut has = vec![vec![f64::INFINITY; pieces]; q];
    has[0].fill(0.0);
    let mut free = vec![0.0_f64; q];
    let mut sent = vec![0; q];
    // Each pass sends all pieces that have arrived; a message has at least one piece, so the passes end.
    while (0..q).fold(false, |moved, at| {
        let mut any = moved;
        while let Some(transfer) = all[at].sends.get(sent[at]) {
            let ready = transfer.pieces.clone().map(|piece| has[at][piece]).fold(0.0, f64::max);
            if !ready.is_finite() {
                break;
            }
            let share = transfer.pieces.len() as f64 / pieces as f64;
            let MessageCost { alpha_s, beta_s } = link(at.abs_diff(transfer.peer));
            let left = free[at].max(ready) + beta_s * words * share;
            free[at] = left;
            for piece in transfer.pieces.clone() {
                let arrival = &mut has[transfer.peer][piece];
                *arrival = arrival.min(left + alpha_s);
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

    const LINK: MessageCost = MessageCost { alpha_s: 1.0, beta_s: 0.01 };

    #[test]
    fn a_ring_takes_a_hop_per_position() {
        let times = arrivals(Bcast::OneRing, 4, 100.0, |_| LINK);
        assert_eq!(times, [0.0, 2.0, 4.0, 6.0]);
        // The root has two children: its second message waits for the first.
        assert_eq!(arrivals(Bcast::OneRingM, 4, 100.0, |_| LINK), [0.0, 2.0, 3.0, 5.0]);
    }

    #[test]
    fn every_variant_reaches_all_ranks() {
        for bcast in [Bcast::OneRing, Bcast::OneRingM, Bcast::TwoRing, Bcast::TwoRingM, Bcast::Long, Bcast::LongM] {
            for q in 1..=17 {
                let times = arrivals(bcast, q, 1000.0, |_| LINK);
                assert!(times[0] == 0.0 && times[1..].iter().all(|&s| s.is_finite() && s >= LINK.alpha_s), "{bcast:?}");
            }
        }
    }

    #[test]
    fn some_positions_of_a_long_row_represent_all() {
        let links = [LINK; 64];
        for bcast in [Bcast::OneRing, Bcast::OneRingM, Bcast::TwoRing, Bcast::Long] {
            let [some, all] = [20, 60].map(|columns| Routes::new(bcast, 60, columns, &links));
            for ([some_at, all_at], words) in [([1, 1], 0.0), ([1, 1], 1e4), ([19, 59], 1e4)] {
                let [some_s, all_s] = [some.arrival_s(some_at, words, 1.0), all.arrival_s(all_at, words, 1.0)];
                assert!((some_s / all_s - 1.0).abs() < 0.12, "{bcast:?} {all_at}: {some_s} {all_s}");
            }
        }
    }

    #[test]
    fn a_part_of_a_long_row_represents_its_pieces() {
        let q = 600;
        for bcast in [Bcast::Long, Bcast::LongM] {
            let some = Routes::new(bcast, q, q, &[LINK; 64]);
            let all_s = arrivals(bcast, q, 0.0, |_| LINK);
            let all_words_s = arrivals(bcast, q, 1e6, |_| MessageCost { alpha_s: 0.0, ..LINK });
            for at in [1, 2, 50, 300, 599] {
                let (start_s, words_s) = (some.arrival_s(at, 0.0, 1.0), some.parts[1][at] * 1e6);
                println!("{bcast:?} {at}: {start_s} {} {words_s} {}", all_s[at], all_words_s[at]);
                assert!((start_s / all_s[at] - 1.0).abs() < 0.12, "{bcast:?} {at}: {start_s} {}", all_s[at]);
                assert!(
                    (words_s / all_words_s[at] - 1.0).abs() < 0.12,
                    "{bcast:?} {at}: {words_s} {}",
                    all_words_s[at]
                );
            }
            assert_eq!(Routes::new(bcast, 20_000, 20_000, &[LINK; 64]).parts[1].len(), 20_000);
        }
    }

    /// Panels are pipelined around the ring: the next one is sent one hop later, before all ranks have the first.
    #[test]
    fn a_step_that_stands_for_several_repeats_the_first_hop_alone() {
        let ring = Routes::new(Bcast::OneRing, 8, 8, &[LINK; 8]);
        let [one, five] = [1.0, 5.0].map(|weight| ring.arrival_s(7, 100.0, weight));
        assert_eq!((one, five), (14.0, 14.0 + 4.0 * 2.0));
    }

    #[test]
    fn long_moves_large_panels_sooner_than_a_ring() {
        let last = |bcast| arrivals(bcast, 16, 1e6, |_| LINK).into_iter().fold(0.0, f64::max);
        assert!(last(Bcast::Long) < last(Bcast::OneRing) / 4.0);
    }
}
