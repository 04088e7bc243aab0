//! Rates of the panel factorization: `cargo test --release -p hpl --lib -- --ignored --nocapture fact::tests::rates`.

use std::time::Instant;

use libloading::os::unix::Library;

use super::*;

type Dgetrf = unsafe extern "C" fn(*const i32, *const i32, *mut f64, *const i32, *mut i32, *mut i32);

/// LAPACK's dgetrf of OpenBLAS, by a number of threads.
struct Lapack(Library);

impl Lapack {
    fn open() -> Option<Self> {
        // SAFETY: OpenBLAS's initialisers have no preconditions.
        unsafe { Library::new("libopenblas.so.0") }.ok().map(Self)
    }

    fn factor(&self, threads: usize, a: &mut [f64], m: usize, n: usize) {
        let (rows, cols) = (i32::try_from(m).unwrap(), i32::try_from(n).unwrap());
        let (mut pivots, mut info) = (vec![0; n.min(m)], 0);
        // SAFETY: these are OpenBLAS's functions of these names; a has m×n elements, pivots min(m, n).
        unsafe {
            let set = self.0.get::<unsafe extern "C" fn(i32)>(b"openblas_set_num_threads\0").unwrap();
            set(i32::try_from(threads).unwrap());
            let dgetrf = self.0.get::<Dgetrf>(b"dgetrf_\0").unwrap();
            dgetrf(&rows, &cols, a.as_mut_ptr(), &rows, pivots.as_mut_ptr(), &mut info);
        }
        assert_eq!(info, 0);
    }
}

fn median(times: Vec<f64>) -> f64 {
    space::stats::summary(&times).median
}

/// An M×NB panel by one and two threads, and by dgetrf, on the same panel: medians of 15 times each.
#[test]
#[ignore = "a measurement"]
fn panels_beside_dgetrf() {
    // OpenBLAS needs more stack than a test's thread has.
    let measure = thread::Builder::new().stack_size(1 << 28).spawn(measure_panels);
    measure.unwrap().join().unwrap();
}

fn measure_panels() {
    let lapack = Lapack::open();
    let cores = crate::machine::host::facts().cores_allowed;
    for (m, jb) in [128, 256].into_iter().flat_map(|jb| [500, 1000, 2000, 4000, 8000, 16000].map(|m| (m, jb))) {
        let (a, recipe) = (random(m, jb), Recipe { pfact: Looking::Right, rfact: Looking::Right, nbmin: 8, ndiv: 2 });
        let shape = PanelShape { k: 0, ia: 0, jb, row: 0, col: 0, ii: 0, mp: m, diag_rows: jb };
        let (rows, comm) = (Distribution::block_cyclic(m, jb, 1), threads::world(1, false).pop().unwrap());
        let (scratch, mut data) = (ScratchPool::default(), vec![0.0; shape.words()]);
        let team = TeamParams { threads: 2, cores: &cores, spin: true };
        let (ours, lapack_s) = with_team(team, |team| {
            let mut ours = |count| {
                let mut copy = a.clone();
                let clock = Instant::now();
                let panel = parts_mut(&shape, Form::Transposed, &mut data);
                let fact = Fact { recipe, column: &comm, rows: &rows, shape, col: 0, panel };
                fact::factor_by(count, fact, &Builtin::best(), MatMut::new(&mut copy, m, jb, m), team, &scratch)
                    .unwrap();
                clock.elapsed().as_secs_f64()
            };
            let lapack_s = |count| {
                let mut copy = a.clone();
                let clock = Instant::now();
                if let Some(lapack) = &lapack {
                    lapack.factor(count, &mut copy, m, jb);
                }
                clock.elapsed().as_secs_f64()
            };
            // Not alternating: OpenBLAS's threads keep spinning for a while and would take the cores of ours.
            let ours = [1, 2].map(|count| median((0..15).map(|_| ours(count)).collect()));
            (ours, [1, 2].map(|count| median((0..15).map(|_| lapack_s(count)).collect())))
        })
        .unwrap();
        let flops = (m * jb * jb) as f64 - (jb * jb * jb) as f64 / 3.0;
        let [one, two] = ours.map(|time_s| flops / time_s * 1e-9);
        print!("{m}×{jb} by 1 and 2 threads, GFLOP/s: ours {one:.1} {two:.1}");
        if lapack.is_some() {
            let [one, two] = lapack_s.map(|time_s| flops / time_s * 1e-9);
            print!(", dgetrf {one:.1} {two:.1}");
        }
        println!();
    }
}

/// Rate of one core in both forms of L1: `cargo test --release -p hpl --lib -- --ignored --nocapture rate_of_panels`.
/// The forms alternate; the ratio is the median over the pairs.
#[test]
#[ignore = "a measurement"]
fn rate_of_panels() {
    for (m, jb) in [(8000, 128), (8000, 256), (2000, 128), (500, 128)] {
        let a = random(m, jb);
        let shape = PanelShape { k: 0, ia: 0, jb, row: 0, col: 0, ii: 0, mp: m, diag_rows: jb };
        let (rows, comm) = (Distribution::block_cyclic(m, jb, 1), threads::world(1, false).pop().unwrap());
        let mut data = vec![0.0; shape.words()];
        for (pfact, rfact, nbmin, ndiv) in [
            (Looking::Right, Looking::Crout, 4, 2),
            (Looking::Right, Looking::Right, 8, 2),
            (Looking::Left, Looking::Left, 8, 2),
            (Looking::Crout, Looking::Crout, 8, 2),
            (Looking::Left, Looking::Right, 16, 2),
            (Looking::Right, Looking::Right, 16, 2),
            (Looking::Left, Looking::Left, 64, 2),
        ] {
            let recipe = Recipe { pfact, rfact, nbmin, ndiv };
            let mut time_s = |form| {
                let clock = Instant::now();
                let panel = parts_mut(&shape, form, &mut data);
                let from = Mat::new(&a, m, jb, m);
                let mut fact = Fact { recipe, column: &comm, rows: &rows, shape, col: 0, panel };
                factor_alone(&mut fact, &Builtin::best(), from).unwrap();
                clock.elapsed().as_secs_f64()
            };
            let mut pairs: Vec<[f64; 2]> = (0..21).map(|_| FORMS.map(&mut time_s)).collect();
            let mut median = |of: fn(&[f64; 2]) -> f64| {
                pairs.sort_by(|a, b| of(a).total_cmp(&of(b)));
                of(&pairs[10])
            };
            let (transposed_s, plain_s, ratio) = (median(|t| t[0]), median(|t| t[1]), median(|t| t[1] / t[0]));
            let rate = |time_s: f64| ((m * jb * jb) as f64 - (jb * jb * jb) as f64 / 3.0) / time_s * 1e-9;
            println!(
                "{m}×{jb} {pfact:?} {rfact:?} NBMIN {nbmin}: {:.1} GFLOP/s transposed, {:.1} not, ratio {ratio:.3}",
                rate(transposed_s),
                rate(plain_s)
            );
        }
    }
}
