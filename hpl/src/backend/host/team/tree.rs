//! A tree over the threads of a team, by which they wake each other and meet at barriers.
//!
//! Threads with neighbouring indices, which have neighbouring cores, are joined first: threads of one socket before sockets. No
//! thread has more than three children per level.

/// Threads of a subtree are joined into one of this many times as many. Two in a model, which has five threads at most.
const FAN: usize = if cfg!(loom) { 2 } else { 4 };

/// The subtree of thread `index` ends before `index` plus this; thread 0 has all threads.
fn span(index: usize) -> usize {
    let mut span = 1;
    while index.is_multiple_of(span * FAN) {
        span *= FAN;
        if index == 0 && span > usize::MAX / FAN / FAN {
            break;
        }
    }
    span
}

/// The parent of thread `index` ≥ 1.
pub(super) fn parent(index: usize) -> usize {
    index - index / span(index) % FAN * span(index)
}

/// The children of thread `index` among `threads` threads, the nearest first.
pub(super) fn children(index: usize, threads: usize) -> impl DoubleEndedIterator<Item = usize> + Clone {
    let levels = (0..).map(|level| FAN.pow(level)).take_while(|&stride| stride < span(index).min(threads)).count();
    let strides = (0..levels as u32).map(|level| FAN.pow(level));
    strides.flat_map(move |stride| (1..FAN).map(move |i| index + i * stride)).filter(move |&child| child < threads)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_is_the_child_of_its_parent_alone() {
        for threads in [1, 2, 3, 4, 5, 16, 17, 64, 65, 192, 500] {
            let mut parents = vec![None; threads];
            for index in 0..threads {
                let found: Vec<usize> = children(index, threads).collect();
                assert!(found.is_sorted(), "{found:?}");
                for child in found {
                    assert_eq!((parents[child].replace(index), parent(child)), (None, index));
                }
            }
            assert!(parents[0].is_none() && parents[1..].iter().all(Option::is_some), "{threads} threads");
        }
    }

    #[test]
    fn the_way_to_the_first_thread_grows_as_the_logarithm() {
        let depth = |mut index: usize| {
            let mut depth = 0;
            while index > 0 {
                (index, depth) = (parent(index), depth + 1);
            }
            depth
        };
        assert_eq!((0..64).map(depth).max(), Some(3));
        assert_eq!((0..192).map(depth).max(), Some(4));
    }
}
