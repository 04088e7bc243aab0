//! Readings of several nodes as those of all of them together.

use space::stats::median;

use super::super::log::Reading;

/// Readings that touch within this time, in seconds, leave no gap.
const TOUCH_S: f64 = 1e-6;

/// The power of all `nodes` together, over the times that readings of each of them cover; each reading is about as long as those of the nodes.
pub(super) fn total(nodes: &[Vec<Reading>]) -> Vec<Reading> {
    if let [alone] = nodes {
        return alone.clone();
    }
    // Where readings begin and end: how many more there are from then on, and watts more.
    let mut steps: Vec<(f64, i64, f64)> = Vec::new();
    for reading in nodes.iter().flatten() {
        steps.push((reading.start_s, 1, reading.watts));
        steps.push((reading.end_s, -1, -reading.watts));
    }
    steps.sort_by(|a, b| a.0.total_cmp(&b.0));
    let lengths: Vec<f64> = nodes.iter().flatten().map(|reading| reading.end_s - reading.start_s).collect();
    let usual_s = median(&lengths).unwrap_or(0.0);
    let all = i64::try_from(nodes.len()).unwrap_or(i64::MAX);
    let (mut read, mut watts) = (0, 0.0);
    let mut readings: Vec<Reading> = Vec::new();
    for pair in steps.windows(2) {
        let [(start_s, more, added), (end_s, ..)] = pair else { continue };
        read += more;
        watts += added;
        if read == all && end_s > start_s {
            add(&mut readings, Reading { start_s: *start_s, end_s: *end_s, watts }, usual_s);
        }
    }
    readings
}

/// Puts a stretch to the last reading as long as that is short.
fn add(readings: &mut Vec<Reading>, next: Reading, usual_s: f64) {
    let length_s = |reading: &Reading| reading.end_s - reading.start_s;
    let fits =
        |last: &&mut Reading| next.start_s - last.end_s < TOUCH_S && length_s(last) + length_s(&next) / 2.0 < usual_s;
    match readings.last_mut().filter(fits) {
        Some(last) => {
            let joules = last.watts * length_s(last) + next.watts * length_s(&next);
            last.end_s = next.end_s;
            last.watts = joules / length_s(last);
        }
        None => readings.push(next),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Readings of one second from `start_s` on.
    fn node(start_s: f64, watts: &[f64]) -> Vec<Reading> {
        let reading = |(second, &watts): (usize, &f64)| {
            let start_s = start_s + second as f64;
            Reading { start_s, end_s: start_s + 1.0, watts }
        };
        watts.iter().enumerate().map(reading).collect()
    }

    fn joules(readings: &[Reading]) -> f64 {
        readings.iter().map(|reading| reading.watts * (reading.end_s - reading.start_s)).sum()
    }

    #[test]
    fn nodes_are_added_where_all_are_read() {
        let first = node(0.0, &[100.0; 10]);
        let second = node(0.5, &[200.0; 10]);
        let both = total(&[first.clone(), second]);
        assert_eq!((both[0].start_s, both.last().unwrap().end_s), (0.5, 10.0));
        assert!(both.iter().all(|reading| (reading.watts - 300.0).abs() < 1e-9), "{both:?}");
        assert!((joules(&both) - 300.0 * 9.5).abs() < 1e-6);
        assert!((9..=11).contains(&both.len()), "{both:?}");
        assert!(both.windows(2).all(|pair| pair[0].end_s == pair[1].start_s));
        assert_eq!(total(std::slice::from_ref(&first)), first);
        assert!(total(&[first, Vec::new()]).is_empty());
    }

    #[test]
    fn a_gap_of_one_node_is_one_of_all() {
        let mut third = node(0.25, &[50.0; 10]);
        third.drain(3..6);
        let all = total(&[node(0.0, &[100.0; 10]), node(0.75, &[200.0; 9]), third]);
        let gap: Vec<(f64, f64)> =
            all.windows(2).filter(|pair| pair[1].start_s > pair[0].end_s).map(|p| (p[0].end_s, p[1].start_s)).collect();
        assert_eq!(gap, [(3.25, 6.25)]);
        assert!(all.iter().all(|reading| (reading.watts - 350.0).abs() < 1e-9));
    }

    /// Powers that change: the energy is that of the sum, wherever the readings of the nodes begin.
    #[test]
    fn the_energy_is_that_of_all_nodes() {
        let watts =
            |node: usize| (0..60).map(|second| 100.0 + (second * (node + 1) % 7) as f64 * 20.0).collect::<Vec<_>>();
        let nodes: Vec<Vec<Reading>> = (0..64).map(|index| node(index as f64 * 0.013, &watts(index))).collect();
        let all = total(&nodes);
        let (start_s, end_s) = (all[0].start_s, all.last().unwrap().end_s);
        let inside =
            |reading: &Reading| (reading.end_s.min(end_s) - reading.start_s.max(start_s)).max(0.0) * reading.watts;
        let expected: f64 = nodes.iter().flatten().map(inside).sum();
        assert!((joules(&all) / expected - 1.0).abs() < 1e-9);
        assert!((50..=70).contains(&all.len()), "{}", all.len());
    }
}
