//! Memory that the ranks of a process share: message buffers, reused once no rank holds them, and the local matrices,
//! kept from run to run.
//!
//! A rank takes any free buffer, also one that another rank has filled before. So there are at most as many buffers as
//! messages at the same time, even if a rank needs two in one step and none in the next. Of the free ones it takes one of its own
//! NUMA domain first: the pages of a buffer are in the domain of the thread that filled it first.

use super::Msg;
use crate::machine::host::Domains;
use crate::mat::{Buffer, MatrixPool};
use crate::sync::Arc;
use crate::sync::Mutex;

/// Messages of fewer doubles get newly allocated memory, which costs little.
const KEEP_FROM: usize = if cfg!(loom) { 2 } else { 1 << 12 };

/// A new buffer is longer than requested by this fraction (1/16), as the lengths of row exchanges vary.
const ROOM: usize = 16;

/// The buffers of the ranks of one process. Panels and rows differ in length, so each kind has its own.
#[derive(Default)]
pub struct Buffers {
    /// Buffers of panels.
    pub(crate) panels: MessagePool,
    /// Buffers of rows of U and displaced rows.
    pub(crate) rows: MessagePool,
    /// Matrices of earlier runs.
    pub(crate) matrices: MatrixPool,
}

impl Buffers {
    /// Frees the message buffers after a run, as the messages of the next run have other lengths.
    pub(crate) fn clear_messages(&self) {
        self.panels.clear();
        self.rows.clear();
    }
}

/// Buffers of one kind.
#[derive(Default)]
pub(crate) struct MessagePool {
    buffers: Mutex<Vec<Arc<Buffer>>>,
    domains: Domains,
}

impl MessagePool {
    /// A buffer of at least `len` doubles that is not shared; its content is arbitrary. It is the smallest free buffer that is
    /// long enough, of this thread's NUMA domain if there is one; if there is none, a new one replaces the largest free buffer.
    pub(crate) fn take(&self, len: usize) -> Arc<Buffer> {
        self.take_or(len, usize::MAX, len + len / ROOM)
    }

    /// As [`MessagePool::take`], but at most a quarter longer than requested: where lengths differ, long buffers are kept for
    /// long messages.
    pub(crate) fn take_close(&self, len: usize) -> Arc<Buffer> {
        self.take_or(len, len + len / 4, len)
    }

    /// A free buffer of `len` to `most` doubles, or a new one of `new` doubles.
    fn take_or(&self, len: usize, most: usize, new: usize) -> Arc<Buffer> {
        if len < KEEP_FROM {
            return self.new_buffer(len);
        }
        let here = self.domains.here();
        let replaced = {
            let mut buffers = self.buffers.lock();
            let mut free: Vec<(bool, usize, usize)> = Vec::new();
            for (at, buffer) in buffers.iter_mut().enumerate() {
                if Arc::get_mut(buffer).is_some() {
                    free.push((buffer.domain() != here, buffer.len(), at));
                }
            }
            if let Some(&(.., at)) = free.iter().filter(|(_, size, _)| (len..=most).contains(size)).min() {
                return buffers.swap_remove(at);
            }
            free.iter().max_by_key(|&&(_, size, at)| (size, at)).map(|&(.., at)| buffers.swap_remove(at))
        };
        // Freed before the new one is allocated.
        drop(replaced);
        self.new_buffer(new)
    }

    /// Returns a buffer to the pool; ranks that still hold it can continue to read it.
    pub(crate) fn give(&self, buffer: Arc<Buffer>) {
        if buffer.len() >= KEEP_FROM {
            self.buffers.lock().push(buffer);
        }
    }

    /// Allocates memory for a message of `len` doubles in advance.
    pub(crate) fn reserve(&self, len: usize) {
        let mut buffer = self.new_buffer(len);
        // Its pages are mapped by the first touch.
        Arc::get_mut(&mut buffer).expect("new, with one holder").fill(0.0);
        self.give(buffer);
    }

    /// Frees all buffers of the pool.
    pub(crate) fn clear(&self) {
        self.buffers.lock().clear();
    }

    /// A message of `len` doubles, written by `fill`.
    pub(crate) fn message<E>(&self, len: usize, fill: impl FnOnce(&mut [f64]) -> Result<(), E>) -> Result<Msg, E> {
        let mut buffer = self.take(len);
        let outcome = fill(&mut Arc::get_mut(&mut buffer).expect("a buffer from `take` is not shared")[..len]);
        self.give(Arc::clone(&buffer));
        outcome.map(|()| Msg::new(buffer, 0..len))
    }

    /// `len` zeros, which this thread fills.
    fn new_buffer(&self, len: usize) -> Arc<Buffer> {
        Arc::new(Buffer::of(len).in_domain(self.domains.here()))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn buffers_in_use_are_not_reused() {
        let pool = MessagePool::default();
        pool.reserve(2 * KEEP_FROM);
        let fill = |len, value| {
            let msg = pool.message(len, |data| {
                data.fill(value);
                Ok::<_, ()>(())
            });
            msg.unwrap()
        };
        let count = || pool.buffers.lock().len();

        let (first, second) = (fill(2 * KEEP_FROM, 1.0), fill(KEEP_FROM, 2.0));
        assert_eq!((first[0], second[0], count()), (1.0, 2.0, 2));
        drop(first);
        let third = fill(KEEP_FROM, 3.0);
        assert_eq!((second[0], third[0], count()), (2.0, 3.0, 2), "a free buffer is reused");
        drop(third);
        drop(fill(20 * KEEP_FROM, 4.0));
        assert_eq!((second[0], count()), (2.0, 2), "or replaced");
        drop(pool.take_close(KEEP_FROM));
        assert_eq!((second[0], count()), (2.0, 1), "or not used for a short message");
        let small = fill(KEEP_FROM - 1, 5.0);
        assert_eq!((second[0], small[0], count()), (2.0, 5.0, 1), "small ones are not kept");
        drop(second);
        pool.clear();
        assert_eq!(count(), 0);
    }

    #[test]
    fn a_thread_takes_a_buffer_of_its_own_domain_first() {
        thread_local!(static CPU: Cell<usize> = const { Cell::new(0) });
        let pool = MessagePool { domains: Domains::new(&[0, 0, 1, 1], || CPU.get()), ..MessagePool::default() };
        let take_on = |cpu| {
            CPU.set(cpu);
            pool.take(KEEP_FROM)
        };
        let mut taken = vec![take_on(0), take_on(3)];
        assert_eq!([taken[0].domain(), taken[1].domain()], [0, 1]);
        for (cpu, own) in [(2, 1), (1, 0), (3, 1), (0, 0)] {
            taken.drain(..).for_each(|buffer| pool.give(buffer));
            taken.push(take_on(cpu));
            assert_eq!(taken[0].domain(), own, "CPU {cpu}");
            taken.push(take_on(cpu));
            assert_eq!(taken[1].domain(), 1 - own, "that of the other domain, in place of a third");
        }
    }
}
