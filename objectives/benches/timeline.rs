//! Time of one prediction on one core: `cargo bench -p objectives --bench timeline`.

use std::hint::black_box;
use std::time::Instant;

use objectives::timeline::{Platform, Schedule, events, recursion};
use space::machine::published;
use space::{Bcast, HplParams};

fn main() {
    let machine = published::find("dahu").expect("it comes along").machine().expect("it is well formed");
    let dahu = Platform::new(&machine).expect("it describes a platform");
    let small = HplParams { nb: 192, ..HplParams::baseline(40_000, 1, 2) };
    let cluster = HplParams { bcast: Bcast::TwoRing, ..HplParams::baseline(250_000, 32, 32) };
    let exascale = HplParams { nb: 512, ..HplParams::baseline(24_000_000, 250, 300) };
    report("recursion, 2 ranks, N = 40000", || recursion::time_s(&small, &dahu, Schedule::Netlib));
    report("recursion, 1024 ranks, N = 250000", || recursion::time_s(&cluster, &dahu, Schedule::Netlib));
    report("recursion, 75000 ranks, N = 24 million, NB 512", || recursion::time_s(&exascale, &dahu, Schedule::Netlib));
    report("events, 1024 ranks, N = 250000", || events::time_s(&cluster, &dahu, Schedule::Netlib));
}

/// The median of five calls.
fn report(name: &str, predict: impl Fn() -> f64) {
    let mut seconds = [0.0; 5];
    for second in &mut seconds {
        let start = Instant::now();
        black_box(predict());
        *second = start.elapsed().as_secs_f64();
    }
    seconds.sort_by(f64::total_cmp);
    println!("{name}: {:.2} ms (median of 5, {:.2} to {:.2})", 1e3 * seconds[2], 1e3 * seconds[0], 1e3 * seconds[4]);
}
