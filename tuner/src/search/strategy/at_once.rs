//! Parts of a suggestion at the same time: while it is awaited, nothing else runs.

use std::thread;

/// `of` each of `items`, in their order, each by a thread of its own.
pub(crate) fn at_once<T: Send, R: Send>(items: impl IntoIterator<Item = T>, of: impl Fn(T) -> R + Sync) -> Vec<R> {
    let mut items: Vec<T> = items.into_iter().collect();
    let Some(last) = items.pop() else { return Vec::new() };
    let of = &of;
    thread::scope(|scope| {
        let threads: Vec<_> = items.into_iter().map(|item| scope.spawn(move || of(item))).collect();
        let last = of(last);
        let others = threads.into_iter().map(|thread| thread.join().expect("a part of a suggestion does not panic"));
        others.chain([last]).collect()
    })
}
