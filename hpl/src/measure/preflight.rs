//! A test of each core before a long session: whether it computes as fast as the others, and whether a thread can be bound to it.
//!
//! All cores work at the same time, as in a run, each on its own small matrices: differences come from the core, its clock
//! and other processes on it.

use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use space::stats::{MedianSpread, summary};

use crate::backend::host::kernels::Kernels;
use crate::backend::host::team::{Barrier, BarrierBroken};
use crate::machine::affinity::pin_current_thread;
use crate::machine::host;
use crate::mat::{Mat, MatMut};

/// Order of the product: three such matrices nearly fit a second-level cache, so that memory has little influence.
const ORDER: usize = 256;

/// Most words of the copy on each core; larger than the core's own caches.
const COPY_WORDS: usize = 1 << 21;

/// Fewest words of it, where many cores have little memory.
const LEAST_COPY_WORDS: usize = 1 << 12;

/// The copies of all cores take at most one in so many bytes of the free memory.
const MEMORY_PART: u64 = 4;

/// Copies on each core, of which the fastest is used.
const COPIES: usize = 3;

/// Measurements of one core.
#[derive(Debug, Clone, PartialEq)]
pub struct CoreRate {
    /// The core, by the system's number.
    pub core: usize,
    /// Whether a thread could be bound to exactly this core.
    pub bound: bool,
    /// Median rate of DGEMM in GFLOP/s.
    pub rate_gflops: f64,
    /// Relative spread of its times: (third − first quartile) / median.
    pub spread: f64,
    /// Bytes read and written per second by a copy in memory.
    pub copy_bytes_per_s: f64,
}

/// Measures products on all cores for `time`, then copies; without the cores for which the system refuses a thread, and all after the
/// first of these.
///
/// # Panics
/// When the kernels panic on a core.
pub fn preflight(kernels: &dyn Kernels, cores: &[usize], time: Duration) -> Vec<CoreRate> {
    preflight_by(kernels, cores, time, |_| thread::Builder::new())
}

/// Measures as [`preflight`] does; `builder` makes the thread of the core with this index.
fn preflight_by(
    kernels: &dyn Kernels,
    cores: &[usize],
    time: Duration,
    builder: impl Fn(usize) -> thread::Builder,
) -> Vec<CoreRate> {
    let words = copy_words(host::facts().memory_available_bytes, cores.len());
    // A barrier for the threads that there are, known once the last one is started.
    let barrier = &OnceLock::new();
    thread::scope(|scope| {
        let start = |(index, &core): (usize, &usize)| {
            let work = move || {
                let barrier: &Barrier = barrier.wait();
                let mut rate = None;
                // The panic of another one breaks the barrier, and is passed on below.
                let _ = barrier.guard(|| {
                    rate = Some(measure(kernels, core, time, words, || barrier.wait(index))?);
                    Ok::<_, BarrierBroken>(())
                });
                rate
            };
            builder(index).spawn_scoped(scope, work).ok()
        };
        let running: Vec<_> = cores.iter().enumerate().map_while(start).collect();
        barrier.get_or_init(|| Barrier::new(running.len().max(1), false));
        let joined = running.into_iter().map(|core| core.join());
        joined.filter_map(|rate| rate.unwrap_or_else(|panicked| std::panic::resume_unwind(panicked))).collect()
    })
}

/// Words of the copy on each of `cores` cores: source and target of all fit into a part of the free memory.
fn copy_words(free_bytes: u64, cores: usize) -> usize {
    let each = free_bytes / MEMORY_PART / 16 / cores.max(1) as u64;
    usize::try_from(each).unwrap_or(usize::MAX).clamp(LEAST_COPY_WORDS, COPY_WORDS)
}

/// Measures one core; `meet` waits for the others.
fn measure(
    kernels: &dyn Kernels,
    core: usize,
    time: Duration,
    copy_words: usize,
    meet: impl Fn() -> Result<(), BarrierBroken>,
) -> Result<CoreRate, BarrierBroken> {
    let bound = pin_current_thread(core).is_ok() && host::facts().cores_allowed == [core];
    let a = vec![0.5; ORDER * ORDER];
    let b = vec![0.25; ORDER * ORDER];
    let mut c = vec![1.0; ORDER * ORDER];
    let mut product = || {
        let begun = Instant::now();
        let [a, b] = [&a, &b].map(|words| Mat::new(words, ORDER, ORDER, ORDER));
        kernels.gemm(a, b, MatMut::new(&mut c, ORDER, ORDER, ORDER));
        begun.elapsed().as_secs_f64()
    };
    product();
    meet()?;
    let begun = Instant::now();
    let mut times = vec![product()];
    while begun.elapsed() < time {
        times.push(product());
    }
    let MedianSpread { median, spread } = summary(&times);
    let source = vec![1.0; copy_words];
    let mut target = vec![0.0; copy_words];
    meet()?;
    let copies = (0..COPIES).map(|_| {
        let begun = Instant::now();
        target.copy_from_slice(std::hint::black_box(&source));
        std::hint::black_box(&target);
        begun.elapsed().as_secs_f64()
    });
    let copy_s = copies.fold(f64::INFINITY, f64::min);
    Ok(CoreRate {
        core,
        bound,
        rate_gflops: 2e-9 * (ORDER as f64).powi(3) / median,
        spread,
        copy_bytes_per_s: 16.0 * copy_words as f64 / copy_s,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::host::kernels::{Builtin, load};
    use space::KernelChoice;

    /// Kernels that fail on one thread.
    struct Failing;

    impl Kernels for Failing {
        fn name(&self) -> String {
            "failing".to_owned()
        }

        fn gemm(&self, a: Mat<'_>, b: Mat<'_>, c: MatMut<'_>) {
            assert!(thread::current().name() != Some("fails"), "on purpose");
            Builtin::best().gemm(a, b, c);
        }

        fn trsm(&self, l: Mat<'_>, b: MatMut<'_>) {
            Builtin::best().trsm(l, b);
        }
    }

    #[test]
    fn every_core_is_measured() {
        let cores = host::facts().cores_allowed;
        let kernels = load(&KernelChoice::Builtin).unwrap();
        let rates = preflight(&*kernels, &cores, Duration::from_millis(5));
        assert_eq!(rates.iter().map(|rate| rate.core).collect::<Vec<_>>(), cores);
        assert!(rates.iter().all(|rate| rate.bound && rate.rate_gflops > 0.0 && rate.copy_bytes_per_s > 0.0));
    }

    /// In a group with 2 GiB on a node of 128 cores the look took 4 GiB, and the session was killed before it had begun.
    #[test]
    fn copies_of_all_cores_fit_into_the_memory() {
        assert_eq!(copy_words(64 << 30, 128), COPY_WORDS);
        assert_eq!(copy_words(2 << 30, 8), COPY_WORDS);
        let words = copy_words(2 << 30, 128);
        assert!(words >= LEAST_COPY_WORDS && (2 << 30) / MEMORY_PART >= 128 * 16 * words as u64, "{words}");
        assert_eq!((copy_words(0, 4), copy_words(u64::MAX, 0)), (LEAST_COPY_WORDS, COPY_WORDS));
    }

    /// As it does where a group has as many processes as it may have.
    #[test]
    fn cores_without_a_thread_are_left_out() {
        let cores = [host::facts().cores_allowed[0]; 3];
        let kernels = load(&KernelChoice::Builtin).unwrap();
        for started in [2, 0] {
            // No system has room for this stack.
            let builder = |index| {
                let builder = thread::Builder::new();
                if index < started { builder } else { builder.stack_size(1 << 60) }
            };
            assert_eq!(preflight_by(&*kernels, &cores, Duration::ZERO, builder).len(), started);
        }
    }

    /// The other cores waited for it without end.
    #[test]
    fn a_panic_on_one_core_reaches_the_caller() {
        let cores = [host::facts().cores_allowed[0]; 3];
        let builder = |index| {
            let builder = thread::Builder::new();
            if index == 1 { builder.name("fails".to_owned()) } else { builder }
        };
        let looked = std::panic::catch_unwind(|| preflight_by(&Failing, &cores, Duration::ZERO, builder));
        assert_eq!(looked.unwrap_err().downcast_ref::<&str>(), Some(&"on purpose"));
    }
}
