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
    let begun = Instant::now();
    let mut largest = 0.0_f64;
    while largest == 0.0 || begun.elapsed() < time {
        let begun = Instant::now();
        let flops = ROUNDS * multiply_adds(isa, ROUNDS);
        largest = largest.max(flops as f64 / begun.elapsed().as_nanos().max(1) as f64);
    }
    largest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clock of this core in GHz, by additions of which each takes one cycle and needs the one before.
    #[cfg(target_arch = "x86_64")]
    fn clock_ghz(time: Duration) -> f64 {
        let (begun, mut largest) = (Instant::now(), 0.0_f64);
        while begun.elapsed() < time {
            let begun = Instant::now();
            let mut sum = 1_u64;
            for _ in 0..4000 {
                // SAFETY: adds registers.
                unsafe {
                    std::arch::asm!(
                        "add {0}, {1}", "add {0}, {1}", "add {0}, {1}", "add {0}, {1}", "add {0}, {1}",
                        "add {0}, {1}", "add {0}, {1}", "add {0}, {1}", "add {0}, {1}", "add {0}, {1}",
                        inout(reg) sum, in(reg) 3_u64, options(nomem, nostack)
                    );
                }
            }
            black_box(sum);
            largest = largest.max(40_000.0 / begun.elapsed().as_nanos() as f64);
        }
        largest
    }

    /// Two units of 512 bits, or one of 512 or two of 256, each with one multiply–add per cycle.
    #[test]
    #[cfg(target_arch = "x86_64")]
    fn the_rate_is_a_whole_number_of_units_times_the_clock() {
        for isa in Isa::available() {
            let lanes = match isa {
                Isa::Avx512 => 8.0,
                Isa::Avx2 => 4.0,
                Isa::Portable => continue,
            };
            // Others may take the core, or change its clock, between the two.
            let units = (0..20).map(|_| {
                let time = Duration::from_millis(10);
                multiply_add_gflops(isa, time) / clock_ghz(time) / lanes / 2.0
            });
            let nearest = units.map(|units| (units, (units - units.round()).abs())).min_by(|a, b| a.1.total_cmp(&b.1));
            let (units, off) = nearest.unwrap();
            println!("{isa:?}: {units:.3} multiply–adds per cycle");
            assert!(off < 0.02 && (1.0..2.5).contains(&units.round()), "{isa:?}: {units}");
        }
    }
}
