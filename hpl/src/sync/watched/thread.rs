//! Threads; loom has none that borrow from the thread that starts them.

use std::cell::Cell;
use std::io;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use loom::sync::atomic::{AtomicUsize, Ordering};
pub use loom::thread::yield_now;

use super::faults;

/// A thread that can be woken.
#[derive(Debug, Clone)]
pub struct Thread(loom::thread::Thread);

impl Thread {
    /// loom orders what is before it before all that the other thread does then, parked or not, and lets no thread run between it and the
    /// step before. So others run first, that orderings are seen to be needed.
    #[track_caller]
    pub(crate) fn unpark(&self) {
        yield_now();
        if faults::wakes() {
            self.0.unpark();
        }
    }
}

/// The calling thread.
pub(crate) fn current() -> Thread {
    Thread(loom::thread::current())
}

/// Waits for [`Thread::unpark`].
pub(crate) fn park() {
    loom::thread::park();
}

/// Threads that end before the call of [`scope`] returns.
pub struct Scope<'scope, 'env: 'scope> {
    started: Cell<usize>,
    ended: Arc<AtomicUsize>,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// Calls `body` and waits for the threads that it has started: parked, as loom's join takes each wake-up for the one that it waits for.
pub(crate) fn scope<'env, R>(body: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R) -> R {
    let ended = Arc::new(AtomicUsize::new(0));
    let scope = Scope { started: Cell::new(0), ended: Arc::clone(&ended), scope: PhantomData, env: PhantomData };
    let outcome = catch_unwind(AssertUnwindSafe(|| body(&scope)));
    while ended.load(Ordering::Acquire) < scope.started.get() {
        park();
    }
    outcome.unwrap_or_else(|panic| resume_unwind(panic))
}

impl<'scope> Scope<'scope, '_> {
    pub(crate) fn spawn(&'scope self, body: impl FnOnce() + Send + 'scope) {
        Builder::new().spawn_scoped(self, body).expect("loom starts it");
    }
}

/// A thread to be started.
#[derive(Debug)]
pub struct Builder(loom::thread::Builder);

/// A thread of a [`Scope`].
pub struct ScopedJoinHandle(Thread);

impl Builder {
    pub(crate) fn new() -> Self {
        Self(loom::thread::Builder::new())
    }

    pub(crate) fn name(self, name: String) -> Self {
        Self(self.0.name(name))
    }

    pub(crate) fn spawn_scoped<'scope>(
        self,
        scope: &'scope Scope<'scope, '_>,
        body: impl FnOnce() + Send + 'scope,
    ) -> io::Result<ScopedJoinHandle> {
        let body: Box<dyn FnOnce() + Send + 'scope> = Box::new(body);
        // SAFETY: only the lifetime changes; `scope` waits for the thread before 'scope ends.
        let body = unsafe {
            std::mem::transmute::<Box<dyn FnOnce() + Send + 'scope>, Box<dyn FnOnce() + Send + 'static>>(body)
        };
        let (ended, parent) = (Arc::clone(&scope.ended), loom::thread::current());
        let thread = self.0.spawn(move || {
            body();
            ended.fetch_add(1, Ordering::Release);
            parent.unpark();
        })?;
        scope.started.set(scope.started.get() + 1);
        Ok(ScopedJoinHandle(Thread(thread.thread().clone())))
    }
}

impl ScopedJoinHandle {
    pub(crate) fn thread(&self) -> &Thread {
        &self.0
    }
}
