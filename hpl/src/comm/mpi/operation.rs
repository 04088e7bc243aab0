//! A nonblocking operation of MPI.

use std::ffi::c_int;
use std::sync::Arc;

use super::calls::{Calls, Raw};

/// An operation of MPI and the buffer it reads or writes.
pub(super) struct Operation {
    request: Raw,
    /// Doubles received; `None` while under way.
    pub(super) completed: Option<c_int>,
    pub(super) buf: Arc<[f64]>,
}

impl Operation {
    /// An operation not yet begun, with the buffer that it will use.
    pub(super) fn new(buf: Arc<[f64]>) -> Self {
        Self { request: 0, completed: None, buf }
    }

    /// Where MPI puts the request of the operation.
    pub(super) fn request(&mut self) -> &mut Raw {
        &mut self.request
    }

    /// Whether it has ended; `Err` is the code of its failure.
    pub(super) fn completed(&mut self, calls: &Calls) -> Result<bool, c_int> {
        if self.completed.is_some() {
            return Ok(true);
        }
        let (mut flag, mut count) = (0, 0);
        // SAFETY: a request begun on this thread and not yet ended.
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
