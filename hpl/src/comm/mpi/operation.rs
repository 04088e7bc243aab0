//! A nonblocking MPI operation.

use crate::mat::Buffer;
use crate::sync::Arc;
use std::ffi::c_int;

use super::calls::{Calls, Raw};

/// A nonblocking MPI operation with the buffer it reads or writes.
pub(super) struct Operation {
    request: Raw,
    /// Doubles received; `None` while in flight.
    pub(super) completed: Option<c_int>,
    pub(super) buf: Arc<Buffer>,
}

impl Operation {
    /// An operation that is not started yet, with the buffer that it will use.
    pub(super) fn new(buf: Arc<Buffer>) -> Self {
        Self { request: 0, completed: None, buf }
    }

    /// The request, to be set by the MPI call that starts the operation.
    pub(super) fn request(&mut self) -> &mut Raw {
        &mut self.request
    }

    /// Tests for completion; `Err` is the MPI error code.
    pub(super) fn completed(&mut self, calls: &Calls) -> Result<bool, c_int> {
        if self.completed.is_some() {
            return Ok(true);
        }
        let (mut flag, mut count) = (0, 0);
        // SAFETY: a request that was started on this thread and is not complete.
        let code = unsafe { (calls.test)(&mut self.request, &mut flag, &mut count) };
        if code != 0 {
            return Err(code);
        }
        if flag == 0 {
            return Ok(false);
        }
        self.completed = Some(count);
        Ok(true)
    }
}
