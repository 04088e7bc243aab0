//! The reference device: a device on the host that makes missing waits visible.
//!
//! Its memory is separate from that of the program, and poisoned until it is written and once it is freed. Operations are queued
//! ([`queue`]) and executed late: when the host waits, or earlier at random; of the streams whose next operation may start, a
//! random one goes on. Only streams and waits restrict the order, and the same seed gives the same order. The
//! operations ([`operations`]) use the kernels of the host. The host reads poison from a copy that it has not waited for.

mod memory;
mod operations;
mod queue;
#[cfg(test)]
mod tests;

use std::cell::RefCell;

use self::memory::QueuedBlock;
use self::queue::{Queues, StreamOp};
use super::{DeviceError, Stream, Wait};
use crate::backend::host::kernels::Kernels;
use crate::mat::{Mat, MatMut};

/// In which order operations are executed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExecutionOrder {
    /// Seed of the order.
    pub(crate) seed: u64,
    /// A wait that is left out.
    pub(crate) without: Option<Wait>,
}

/// The reference device of one rank.
pub(crate) struct Reference<'k> {
    kernels: &'k dyn Kernels,
    queues: RefCell<Queues<'k>>,
    without: Option<Wait>,
    /// The wait of the host at which it lacks memory.
    lacking: Option<Wait>,
}

impl<'k> Reference<'k> {
    /// A device with the kernels of the host.
    pub(crate) fn new(kernels: &'k dyn Kernels, order: ExecutionOrder) -> Self {
        Self { kernels, queues: RefCell::new(Queues::new(order.seed)), without: order.without, lacking: None }
    }

    /// The same device, which lacks memory where the host waits for this.
    #[cfg(test)]
    pub(crate) fn lacking_memory_at(self, wait: Wait) -> Self {
        Self { lacking: Some(wait), ..self }
    }

    /// Queues `work`.
    fn queue(&self, stream: Stream, work: impl FnOnce() + 'k) {
        self.queues.borrow_mut().push(stream, StreamOp::Work(Box::new(work)));
    }

    /// Queues `work` on two blocks in different memory.
    fn queue_on(
        &self,
        stream: Stream,
        from: QueuedBlock,
        to: QueuedBlock,
        work: impl FnOnce(Mat<'_>, MatMut<'_>) + 'k,
    ) {
        self.queue(stream, move || from.read(|from| to.write(|to| work(from, to))));
    }

    /// Executes operations until `done`.
    fn execute_until(&self, done: impl Fn(&Queues<'k>) -> bool, wait: Wait) -> Result<(), DeviceError> {
        if self.lacking == Some(wait) {
            let reason = format!("no memory for {wait}");
            return Err(DeviceError { device: "reference".to_owned(), reason, lacks_memory: true });
        }
        let mut queues = self.queues.borrow_mut();
        while self.without != Some(wait) && !done(&queues) {
            if !queues.step() {
                let reason = format!("the host waits for {wait}, but no operation can start");
                return Err(DeviceError { device: "reference".to_owned(), reason, lacks_memory: false });
            }
        }
        Ok(())
    }
}
