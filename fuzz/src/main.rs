//! Runs one target under libFuzzer, named by the variable `FUZZ_TARGET`, with bounds of memory and time for each input.
#![no_main]

mod documents;
#[path = "../targets/mod.rs"]
mod targets;

use std::alloc::System;
use std::panic;
use std::sync::OnceLock;
use std::time::Duration;

use cap::Cap;
use fastrand::Rng;
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use nix::time::{ClockId, clock_gettime};
use targets::{TARGETS, Target};

/// Counts what is held, and ends the process at the limit.
#[global_allocator]
static MEMORY: Cap<System> = Cap::new(System, usize::MAX);

/// No input takes longer, in time of the processor.
const SLOWEST: Duration = Duration::from_secs(1);

static TARGET: OnceLock<Target> = OnceLock::new();

/// The target of the variable.
fn chosen() -> Target {
    let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
    let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    let found = TARGETS.into_iter().find(|target| target.name == name);
    let target = found.unwrap_or_else(|| panic!("FUZZ_TARGET is '{name}'; use one of {}", names.join(" ")));
    // libFuzzer's own hook ends the process at every panic, also at those that a reader catches.
    drop(panic::take_hook());
    panic::set_hook(Box::new(|_| {}));
    target
}

fn processor_time() -> Duration {
    Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("Linux has this clock"))
}

fuzz_target!(|data: &[u8]| {
    let target = TARGET.get_or_init(chosen);
    MEMORY
        .set_limit(MEMORY.allocated().saturating_add(target.memory_mib << 20))
        .expect("the limit is above what is held");
    let begun = processor_time();
    let result = panic::catch_unwind(|| (target.run)(data));
    MEMORY.set_limit(usize::MAX).expect("there is no higher limit");
    let took = processor_time() - begun;
    if let Err(cause) = result {
        let text = cause.downcast_ref::<String>().cloned();
        let text = text.or_else(|| cause.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        eprintln!("panic: {}", text.unwrap_or_default());
        std::process::abort();
    }
    assert!(took < SLOWEST, "{took:?} of processor time");
});

// Text is changed by its tokens half of the time, else, and what is no text always, as libFuzzer does.
fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let mut rng = Rng::with_seed(u64::from(seed));
    let text = &data[..size];
    let new =
        if std::str::from_utf8(text).is_ok() && rng.bool() { documents::changed(text, &mut rng) } else { Vec::new() };
    if new.is_empty() {
        return fuzzer_mutate(data, size, max_size);
    }
    let new_size = new.len().min(max_size);
    data[..new_size].copy_from_slice(&new[..new_size]);
    new_size
});
