//! GFLOP/s of the kernels on one core for the shapes of a factorization.
//!
//! `cargo bench -p hpl --bench kernels -- [builtin|PATH of a BLAS]…`; each rate is the best of the repeats in 0.1 s.

use std::hint::black_box;
use std::time::Instant;

use hpl::backend::host::kernels::{self, KernelError, Kernels};
use hpl::lu::matgen;
use hpl::mat::{Buffer, Mat, MatMut};
use space::KernelChoice;

/// Repeats `run` for 0.1 s, at least twice, and returns the rate of the fastest repeat in GFLOP/s.
fn rate(flops: f64, mut run: impl FnMut()) -> f64 {
    let (clock, mut best) = (Instant::now(), f64::INFINITY);
    let mut count = 0;
    while count < 2 || clock.elapsed().as_secs_f64() < 0.1 {
        let start = Instant::now();
        run();
        best = best.min(start.elapsed().as_secs_f64());
        count += 1;
    }
    flops / best / 1e9
}

/// A random matrix with its leading dimension.
struct Matrix(Buffer, usize);

impl Matrix {
    fn new(ld: usize, cols: usize) -> Self {
        let mut data = Buffer::zeroed(ld * cols, true).expect("memory");
        matgen::generate_block(1 << 20, 0, 0, MatMut::new(&mut data, ld, cols, ld));
        Self(data, ld)
    }

    fn view(&self, rows: usize, cols: usize) -> Mat<'_> {
        Mat::new(&self.0, rows, cols, self.1)
    }

    fn view_mut(&mut self, rows: usize, cols: usize) -> MatMut<'_> {
        MatMut::new(&mut self.0, rows, cols, self.1)
    }
}

fn gemm(kernels: &dyn Kernels, m: usize, n: usize, k: usize) -> f64 {
    let (a, b, mut c) = (Matrix::new(m + 8, k), Matrix::new(k + 8, n), Matrix::new(m + 8, n));
    rate(2.0 * (m * n * k) as f64, || kernels.gemm(a.view(m, k), b.view(k, n), c.view_mut(m, n)))
}

/// The update of one slab with packed L2, as in a step of the factorization; the flops include trsm and gemm.
fn slab(kernels: &dyn Kernels, m: usize, n: usize, k: usize) -> f64 {
    let (l2, mut l1, u, mut c) = (Matrix::new(m, k), Matrix::new(k, k), Matrix::new(k + 8, n), Matrix::new(m + 8, n));
    l1.0.iter_mut().for_each(|value| *value *= 1e-6);
    let (mut strips, mut memory, mut u) = (Buffer::default(), Buffer::default(), u);
    let packed = kernels.prepare_l(l2.view(m, k), &mut strips);
    let flops = ((2 * m + k) * n * k) as f64;
    rate(flops, || kernels.update_slab(packed, l1.view(k, k), u.view_mut(k, n), c.view_mut(m, n), &mut memory))
}

/// Time to prepare L2 for the update, in nanoseconds per element.
fn pack_ns(kernels: &dyn Kernels, m: usize, k: usize) -> f64 {
    let l2 = Matrix::new(m, k);
    let (elements, mut strips) = ((m * k) as f64, Buffer::default());
    1.0 / rate(elements, || _ = black_box(kernels.prepare_l(l2.view(m, k), &mut strips)).rows())
}

fn trsm(kernels: &dyn Kernels, k: usize, n: usize) -> f64 {
    let (mut l, mut b) = (Matrix::new(k, k), Matrix::new(4008, n));
    // Small multipliers keep the repeated solution bounded.
    l.0.iter_mut().for_each(|value| *value *= 1e-6);
    rate((k * k * n) as f64, || kernels.trsm(l.view(k, k), b.view_mut(k, n)))
}

fn print(kernels: &dyn Kernels) {
    println!("{}", kernels.name());
    let line = |title: &str, sizes: &[usize], run: &dyn Fn(usize) -> f64| {
        let rates: Vec<String> = sizes.iter().map(|&size| format!("{size}: {:.1}", run(size))).collect();
        println!("  {title:34} {}", rates.join("  "));
    };
    let blocks = [32, 64, 96, 128, 192, 256, 384];
    line("update m=n=2000, k", &blocks, &|k| gemm(kernels, 2000, 2000, k));
    line("gemm m=4000 n=192, k", &blocks, &|k| gemm(kernels, 4000, 192, k));
    line("slab m=4000 n=192, k", &blocks, &|k| slab(kernels, 4000, 192, k));
    line("pack k=192 in ns/element, m", &[1000, 4000, 8000, 16000, 32000], &|m| pack_ns(kernels, m, 192));
    line("panel m=4000, n=k", &[1, 2, 4, 8, 16, 32, 64, 96], &|k| gemm(kernels, 4000, k, k));
    line("panel m=4000 n=1, k", &[2, 4, 8, 16, 32, 64, 128], &|k| gemm(kernels, 4000, 1, k));
    line("panel m=4000 k=1, n", &[2, 4, 8, 16, 32, 64, 128], &|n| gemm(kernels, 4000, n, 1));
    line("rows m=k, n=4000", &[4, 8, 16, 32, 64, 96, 128], &|k| gemm(kernels, k, 4000, k));
    line("trsm n=4000, k", &[16, 32, 64, 96, 128, 192, 256, 384], &|k| trsm(kernels, k, 4000));
    line("trsm n=192, k", &[16, 32, 64, 96, 128, 192, 256, 384], &|k| trsm(kernels, k, 192));
    line("trsm k=n", &[1, 2, 4, 8, 16, 32, 64, 96], &|k| trsm(kernels, k, k));
}

fn main() -> Result<(), KernelError> {
    // Cargo adds `--bench`.
    let mut choices: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    if choices.is_empty() {
        choices.push("builtin".to_owned());
    }
    for choice in choices {
        print(&*kernels::load(&KernelChoice::from(choice))?);
    }
    Ok(())
}
