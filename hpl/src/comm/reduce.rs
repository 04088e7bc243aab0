//! Reductions over a group: every rank gets the same value, bit for bit.

use crate::comm::grid::{position, rank_at, tag};
use crate::comm::{Comm, PeerGone, Request, Tag};
use crate::mat::Buffer;
use crate::sync::Arc;

/// Largest power of two that is at most `size`, `size` being at least 1.
pub(crate) fn power_of_two(size: usize) -> usize {
    1 << size.ilog2()
}

/// Allreduce: combines `data` of all ranks element by element with a commutative `op`, by recursive doubling. Ranks
/// beyond the largest power of two send their data before it and receive the result at the end.
pub(crate) fn all<C: Comm>(comm: &C, data: &mut [f64], op: impl Fn(f64, f64) -> f64) -> Result<(), PeerGone> {
    let (rank, size, len) = (comm.rank(), comm.size(), data.len());
    let half = power_of_two(size);
    let send = |to: usize, data: &[f64]| comm.isend(to, tag::REDUCE, Arc::new(Buffer::from(data)), 0..len);
    let receive = |from: usize| comm.irecv(from, tag::REDUCE, len).wait();
    if rank >= half {
        send(rank - half, data).wait()?;
        data.copy_from_slice(&receive(rank - half)?);
        return Ok(());
    }
    let combine = |data: &mut [f64], theirs: &[f64]| {
        for (mine, &theirs) in data.iter_mut().zip(theirs) {
            *mine = op(*mine, theirs);
        }
    };
    if rank + half < size {
        combine(data, &receive(rank + half)?);
    }
    let mut mask = 1;
    while mask < half {
        let partner = rank ^ mask;
        let sent = send(partner, data);
        combine(data, &receive(partner)?);
        sent.wait()?;
        mask *= 2;
    }
    if rank + half < size {
        send(rank + half, data).wait()?;
    }
    Ok(())
}

/// Copies `data` of rank `root` to all others, by a binomial tree.
pub(crate) fn broadcast<C: Comm>(comm: &C, root: usize, data: &mut [f64], tag: Tag) -> Result<(), PeerGone> {
    let (size, len) = (comm.size(), data.len());
    let me = position(comm.rank(), root, size);
    // Position ≥ 1 receives from the position without its highest bit, and sends to those with one more bit above it.
    let mut mask = 1;
    if me > 0 {
        let top = power_of_two(me);
        data.copy_from_slice(&comm.irecv(rank_at(me - top, root, size), tag, len).wait()?);
        mask = 2 * top;
    }
    let mut sends = Vec::new();
    let shared: Arc<Buffer> = Arc::new(Buffer::from(&*data));
    while me + mask < size {
        sends.push(comm.isend(rank_at(me + mask, root, size), tag, Arc::clone(&shared), 0..len));
        mask *= 2;
    }
    sends.into_iter().try_for_each(Request::wait)
}

/// The larger of two values; NaN if one of them is NaN.
pub(crate) fn max(a: f64, b: f64) -> f64 {
    if a.is_nan() || a > b { a } else { b }
}

/// Maximum over all ranks.
pub(crate) fn all_max<C: Comm>(comm: &C, value: f64) -> Result<f64, PeerGone> {
    let mut data = [value];
    all(comm, &mut data, max)?;
    Ok(data[0])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::threads;

    #[test]
    fn all_ranks_get_the_same_for_any_group_size() {
        for size in 1..=7 {
            std::thread::scope(|scope| {
                for comm in threads::world(size, false) {
                    scope.spawn(move || {
                        let mut data = [comm.rank() as f64, 1.0];
                        all(&comm, &mut data, |a, b| a + b).unwrap();
                        assert_eq!(data, [(size * (size - 1) / 2) as f64, size as f64]);
                        assert_eq!(all_max(&comm, comm.rank() as f64).unwrap(), (size - 1) as f64);
                        for root in 0..comm.size() {
                            let mut data = [(comm.rank() * 10) as f64];
                            broadcast(&comm, root, &mut data, tag::TRSV_X).unwrap();
                            assert_eq!(data, [(root * 10) as f64]);
                        }
                        let nan = if comm.rank() == size / 2 { f64::NAN } else { 1.0 };
                        assert!(all_max(&comm, nan).unwrap().is_nan());
                    });
                }
            });
        }
    }
}
