//! Memory that the ranks of a process share: for messages, used again once nobody holds them any more, and for their
//! matrices, kept from run to run.
//!
//! The ranks of a process share it: who needs a buffer takes any that has come free, whoever filled it before. So
//! there are never more of them than messages at once, even if a rank needs two in one step and none in the next.

use std::sync::Arc;

use parking_lot::Mutex;

use super::Msg;
use crate::mat::MatrixPool;

/// Messages of fewer doubles get memory of their own, which costs little.
const KEEP_FROM: usize = 1 << 12;

/// A new buffer has room for this part more than asked for: lengths of row exchanges vary.
const ROOM: usize = 16;

/// The buffers of the ranks of one process. Panels and rows differ in length, so each kind has its own.
#[derive(Default)]
pub struct Buffers {
    /// Of panels.
    pub(crate) panels: MessagePool,
    /// Of rows of U and displaced rows.
    pub(crate) rows: MessagePool,
    /// Matrices of runs that have ended.
    pub(crate) matrices: MatrixPool,
}

impl Buffers {
    /// After a run: the next one's messages have other lengths.
    pub(crate) fn forget_messages(&self) {
        self.panels.clear();
        self.rows.clear();
    }
}

/// Buffers of one kind.
#[derive(Default)]
pub(crate) struct MessagePool(Mutex<Vec<Arc<[f64]>>>);

impl MessagePool {
    /// A buffer of at least `len` doubles that nobody else holds; its content is arbitrary. The smallest of those that
    /// are free; if there is none, a new one takes the place of the largest that is free.
    pub(crate) fn take(&self, len: usize) -> Arc<[f64]> {
        self.take_or(len, usize::MAX, len + len / ROOM)
    }

    /// As [`MessagePool::take`], but not much longer than asked for: where lengths differ, long buffers are not spent on short
    /// messages, and a new one may take the place of a longer one.
    pub(crate) fn take_close(&self, len: usize) -> Arc<[f64]> {
        self.take_or(len, len + len / 4, len)
    }

    /// A free buffer of `len` to `most` doubles, or one of `new`.
    fn take_or(&self, len: usize, most: usize, new: usize) -> Arc<[f64]> {
        if len < KEEP_FROM {
            return zeros(len);
        }
        let replaced = {
            let mut buffers = self.0.lock();
            let mut free: Vec<(usize, usize)> = Vec::new();
            for (at, buffer) in buffers.iter_mut().enumerate() {
                if Arc::get_mut(buffer).is_some() {
                    free.push((buffer.len(), at));
                }
            }
            if let Some(&(_, at)) = free.iter().filter(|(size, _)| (len..=most).contains(size)).min() {
                return buffers.swap_remove(at);
            }
            free.iter().max().map(|&(_, at)| buffers.swap_remove(at))
        };
        // Before the new one is there.
        drop(replaced);
        zeros(new)
    }

    /// Gives a buffer back; whoever still holds it goes on reading.
    pub(crate) fn give(&self, buffer: Arc<[f64]>) {
        if buffer.len() >= KEEP_FROM {
            self.0.lock().push(buffer);
        }
    }

    /// Takes memory for a message of `len` doubles before it is needed.
    pub(crate) fn reserve(&self, len: usize) {
        self.give(zeros(len));
    }

    /// Lets go of everything.
    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }

    /// The message that `fill` makes of `len` doubles.
    pub(crate) fn message<E>(&self, len: usize, fill: impl FnOnce(&mut [f64]) -> Result<(), E>) -> Result<Msg, E> {
        let mut buffer = self.take(len);
        let outcome = fill(&mut Arc::get_mut(&mut buffer).expect("taken buffers have one holder")[..len]);
        self.give(Arc::clone(&buffer));
        outcome.map(|()| Msg::new(buffer, 0..len))
    }
}

fn zeros(len: usize) -> Arc<[f64]> {
    std::iter::repeat_n(0.0, len).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_in_use_are_not_handed_out() {
        let pool = MessagePool::default();
        pool.reserve(2 * KEEP_FROM);
        let fill = |len, value| {
            let msg = pool.message(len, |data| {
                data.fill(value);
                Ok::<_, ()>(())
            });
            msg.unwrap()
        };
        let count = || pool.0.lock().len();

        let (first, second) = (fill(2 * KEEP_FROM, 1.0), fill(KEEP_FROM, 2.0));
        assert_eq!((first[0], second[0], count()), (1.0, 2.0, 2));
        drop(first);
        let third = fill(KEEP_FROM, 3.0);
        assert_eq!((second[0], third[0], count()), (2.0, 3.0, 2), "what is free is used again");
        drop(third);
        drop(fill(20 * KEEP_FROM, 4.0));
        assert_eq!((second[0], count()), (2.0, 2), "or replaced");
        drop(pool.take_close(KEEP_FROM));
        assert_eq!((second[0], count()), (2.0, 1), "or not spent on a short message");
        let small = fill(KEEP_FROM - 1, 5.0);
        assert_eq!((second[0], small[0], count()), (2.0, 5.0, 1), "small ones are not kept");
        drop(second);
        pool.clear();
        assert_eq!(count(), 0);
    }
}
