//! The generator's inner loops: linear congruential sequences, several elements at a time.
//!
//! A sequence is computed as [`LANES`] interleaved sequences, so that a step is one vector operation; several independent
//! vectors hide the latency of the 64-bit multiplication. The arithmetic is exact except for two roundings, which
//! are the same in every version: the values do not depend on the processor.

use super::isa::{PORTABLE_FMA, for_each_isa};
use super::vector::fma;

/// Elements of one vector step.
const LANES: usize = 8;

/// X ↦ mul·X + add mod 2⁶⁴: some number of generator steps in one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Jump {
    mul: u64,
    add: u64,
}

impl Jump {
    /// One step of HPL's generator.
    const ONE: Self = Self { mul: 6_364_136_223_846_793_005, add: 1 };

    /// `steps` generator steps.
    pub(crate) const fn by(mut steps: u64) -> Self {
        let (mut done, mut power) = (Self { mul: 1, add: 0 }, Self::ONE);
        while steps > 0 {
            if steps & 1 == 1 {
                done = done.then(power);
            }
            power = power.then(power);
            steps >>= 1;
        }
        done
    }

    /// This jump, then `next`.
    pub(crate) const fn then(self, next: Self) -> Self {
        Self { mul: next.mul.wrapping_mul(self.mul), add: next.apply(self.add) }
    }

    /// Factor and summand.
    pub(crate) const fn parts(self) -> [u64; 2] {
        [self.mul, self.add]
    }

    #[inline(always)]
    pub(crate) const fn apply(self, x: u64) -> u64 {
        self.mul.wrapping_mul(x).wrapping_add(self.add)
    }
}

/// The value of generator state `x`. X·2⁻⁶⁴ is rounded before the subtraction, as in HPL.
#[inline(always)]
pub(crate) fn value(x: u64) -> f64 {
    const SCALE: f64 = 1.0 / 18_446_744_073_709_551_616.0;
    0.5 - x as f64 * SCALE
}

/// Consecutive states of one sequence.
#[derive(Clone, Copy)]
struct States([u64; LANES]);

impl States {
    /// `x` and its successors.
    #[inline(always)]
    fn from(x: u64) -> Self {
        const SUCCESSORS: [Jump; LANES] = {
            let mut jumps = [Jump::by(0); LANES];
            let mut lane = 0;
            while lane < LANES {
                jumps[lane] = Jump::by(lane as u64);
                lane += 1;
            }
            jumps
        };
        Self(SUCCESSORS.map(|jump| jump.apply(x)))
    }

    #[inline(always)]
    fn advance(&mut self, jump: Jump) {
        for x in &mut self.0 {
            *x = jump.apply(*x);
        }
    }

    #[inline(always)]
    fn values(&self) -> [f64; LANES] {
        self.0.map(value)
    }
}

for_each_isa! {
    /// Writes the values of state `x` and its successors.
    pub(crate) fn fill(x: u64, out: &mut [f64]) = fill_body
        avx512 (true) avx2 (true) portable ({ PORTABLE_FMA })
}

#[inline(always)]
fn fill_body<const F: bool>(x: u64, out: &mut [f64]) {
    const VECTORS: usize = 4;
    const CHUNK: Jump = Jump::by((VECTORS * LANES) as u64);
    let mut states = [States::from(x); VECTORS];
    for k in 1..VECTORS {
        states[k] = states[k - 1];
        states[k].advance(const { Jump::by(LANES as u64) });
    }
    let mut chunks = out.chunks_exact_mut(VECTORS * LANES);
    for chunk in &mut chunks {
        for (part, states) in chunk.chunks_exact_mut(LANES).zip(&mut states) {
            part.copy_from_slice(&states.values());
            states.advance(CHUNK);
        }
    }
    for (part, states) in chunks.into_remainder().chunks_mut(LANES).zip(&states) {
        part.copy_from_slice(&states.values()[..part.len()]);
    }
}

/// Columns per call of [`check_columns`]: their sums along the rows are loaded and stored once for all of them.
pub(crate) const COLUMNS: usize = 4;

for_each_isa! {
    /// For columns j whose elements are the values of state `tops[j]` and its successors: r ← r − Σ aⱼ·x[j]
    /// and s ← s + Σ |aⱼ|, elementwise; returns Σᵢ |aᵢⱼ| of each. The elements are never stored.
    pub(crate) fn check_columns(tops: [u64; COLUMNS], x: [f64; COLUMNS], r: &mut [f64], s: &mut [f64]) -> [f64; COLUMNS] = check_columns_body
        avx512 (true) avx2 (true) portable ({ PORTABLE_FMA })
}

for_each_isa! {
    /// [`check_columns`] of one column.
    pub(crate) fn check_column(top: u64, x: f64, r: &mut [f64], s: &mut [f64]) -> f64 = check_column_body
        avx512 (true) avx2 (true) portable ({ PORTABLE_FMA })
}

#[inline(always)]
fn check_columns_body<const F: bool>(
    tops: [u64; COLUMNS],
    x: [f64; COLUMNS],
    r: &mut [f64],
    s: &mut [f64],
) -> [f64; COLUMNS] {
    check::<F, COLUMNS>(tops, x, r, s)
}

#[inline(always)]
fn check_column_body<const F: bool>(top: u64, x: f64, r: &mut [f64], s: &mut [f64]) -> f64 {
    let [sum] = check::<F, 1>([top], [x], r, s);
    sum
}

#[inline(always)]
fn check<const F: bool, const W: usize>(tops: [u64; W], x: [f64; W], r: &mut [f64], s: &mut [f64]) -> [f64; W] {
    const STEP: Jump = Jump::by(LANES as u64);
    assert!(r.len() == s.len(), "shapes agree");
    let mut states = tops.map(States::from);
    let mut sums = [[0.0; LANES]; W];
    let (mut r, mut s) = (r.chunks_exact_mut(LANES), s.chunks_exact_mut(LANES));
    for (r, s) in (&mut r).zip(&mut s) {
        let (mut r_lanes, mut s_lanes) = ([0.0; LANES], [0.0; LANES]);
        r_lanes.copy_from_slice(r);
        s_lanes.copy_from_slice(s);
        for j in 0..W {
            let a = states[j].values();
            for lane in 0..LANES {
                r_lanes[lane] = fma::<F>(a[lane], -x[j], r_lanes[lane]);
                s_lanes[lane] += a[lane].abs();
                sums[j][lane] += a[lane].abs();
            }
            states[j].advance(STEP);
        }
        r.copy_from_slice(&r_lanes);
        s.copy_from_slice(&s_lanes);
    }
    let (r, s) = (r.into_remainder(), s.into_remainder());
    for j in 0..W {
        for (lane, a) in states[j].values().into_iter().enumerate().take(r.len()) {
            r[lane] = fma::<F>(a, -x[j], r[lane]);
            s[lane] += a.abs();
            sums[j][lane] += a.abs();
        }
    }
    sums.map(|lanes| lanes.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::host::kernels::isa::Isa;

    /// One step at a time.
    fn values(mut x: u64, len: usize) -> Vec<f64> {
        let mut next = || (value(x), x = Jump::by(1).apply(x)).0;
        (0..len).map(|_| next()).collect()
    }

    /// Equal bit for bit on every processor.
    #[test]
    fn vectors_agree_with_single_steps() {
        let lengths = [0, 1, 7, 8, 9, 31, 32, 33, 40, 100, 1000];
        for (isa, len) in Isa::available().flat_map(|isa| lengths.map(|len| (isa, len))) {
            for x in [0, 100, u64::MAX, 1 << 63, 0x1234_5678_9abc_def0] {
                let (mut out, mut portable) = (vec![f64::NAN; len], vec![f64::NAN; len]);
                fill(isa, x, &mut out);
                fill_body::<false>(x, &mut portable);
                assert_eq!(out, values(x, len));
                assert_eq!(portable, out);
            }
        }
    }

    #[test]
    fn sums_agree_with_their_definition() {
        for (isa, len) in Isa::available().flat_map(|isa| [0, 1, 8, 13, 64, 100].map(|len| (isa, len))) {
            let (tops, x) = ([3, 1 << 40, 77, u64::MAX], [0.5, -0.25, 1.0, 0.75]);
            let columns = tops.map(|top| values(top, len));
            let (mut r, mut s) = (vec![1.0; len], vec![2.0; len]);
            let sums = check_columns(isa, tops, x, &mut r, &mut s);
            let (mut r_single, mut s_single) = (vec![1.0; len], vec![2.0; len]);
            for j in 0..COLUMNS {
                let sum: f64 = columns[j].iter().map(|a| a.abs()).sum();
                assert!((sums[j] - sum).abs() < 1e-12);
                assert_eq!(check_column(isa, tops[j], x[j], &mut r_single, &mut s_single), sums[j]);
            }
            // The same operations in the same order.
            assert_eq!((&r, &s), (&r_single, &s_single));
            for i in 0..len {
                let row = columns.each_ref().map(|column| column[i]);
                let product: f64 = row.iter().zip(x).map(|(a, x)| a * x).sum();
                assert!((r[i] - (1.0 - product)).abs() < 1e-15 * 4.0);
                assert!((s[i] - (2.0 + row.iter().map(|a| a.abs()).sum::<f64>())).abs() < 1e-15 * 8.0);
            }
        }
    }
}
