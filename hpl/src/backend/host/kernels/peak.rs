//! The rate of independent multiply–adds in registers: what a core reaches at most, without memory and without dependences.

use std::hint::black_box;
use std::time::{Duration, Instant};

use super::isa::{Isa, for_each_isa};
use super::simd::{self, Vector};

/// Rounds between two readings of the clock: some 40 µs.
const ROUNDS: usize = 10_000;

for_each_isa! {
    /// Rounds of one multiply–add each in independent chains, as many as hide the latency of all units; returns the flops of a round.
    fn multiply_adds(rounds: usize) -> usize = multiply_adds_body
        avx512 (simd::x86::__m512d, 16) avx2 (simd::x86::__m256d, 12) portable (simd::Two, 8)
}

#[inline(always)]
fn multiply_adds_body<V: Vector, const CHAINS: usize>(rounds: usize) -> usize {
    let (term, factor) = (V::splat(black_box(0.5)), V::splat(black_box(0.5)));
    // Different values, so that the compiler keeps all chains. They tend to 1.
    let mut chains: [V; CHAINS] = std::array::from_fn(|chain| V::splat(black_box(chain as f64)));
    for _ in 0..rounds {
        for chain in &mut chains {
            *chain = term.plus(*chain, factor);
        }
    }
    let mut lanes = [0.0; 8];
    for chain in chains {
        // SAFETY: no vector has more than 8 lanes.
        unsafe { chain.store(lanes.as_mut_ptr()) };
        black_box(&mut lanes);
    }
    2 * CHAINS * V::LANES
}

/// Rate of independent multiply–adds on this core in GFLOP/s: the largest within `time`.
pub(crate) fn multiply_add_gflops(isa: Isa, time: Duration) -> f64 {
    largest_gflops(time, |rounds| multiply_adds(isa, rounds))
}

/// The largest rate within `time` of what makes some rounds and returns the flops of one.
fn largest_gflops(time: Duration, run: impl Fn(usize) -> usize) -> f64 {
    let begun = Instant::now();
    let mut largest = 0.0_f64;
    while largest == 0.0 || begun.elapsed() < time {
        let begun = Instant::now();
        let flops = ROUNDS * run(ROUNDS);
        largest = largest.max(flops as f64 / begun.elapsed().as_nanos().max(1) as f64);
    }
    largest
}

#[cfg(test)]
mod tests {
    use super::*;

    for_each_isa! {
        /// As [`multiply_adds`], in one chain: each needs the one before.
        fn one_chain(rounds: usize) -> usize = multiply_adds_body
            avx512 (simd::x86::__m512d, 1) avx2 (simd::x86::__m256d, 1) portable (simd::Two, 1)
    }

    /// One or two units, each with a multiply–add per cycle, and a latency of 4 or 5 cycles, at the same clock: some processors lower it
    /// for wide vectors, so that a clock measured without them says nothing.
    #[test]
    #[cfg(target_arch = "x86_64")]
    fn the_rate_is_a_whole_number_of_units_times_the_latency() {
        for isa in Isa::available().filter(|isa| *isa != Isa::Portable) {
            // Others may take the core, or change its clock, between the two.
            let in_flight = (0..20).map(|_| {
                let time = Duration::from_millis(10);
                multiply_add_gflops(isa, time) / largest_gflops(time, |rounds| one_chain(isa, rounds))
            });
            let nearest =
                in_flight.map(|count| (count, (count - count.round()).abs())).min_by(|a, b| a.1.total_cmp(&b.1));
            let (count, off) = nearest.unwrap();
            println!("{isa:?}: {count:.3} multiply–adds in flight");
            assert!(off < 0.05 && [4.0, 5.0, 8.0, 10.0].contains(&count.round()), "{isa:?}: {count}");
        }
    }
}
