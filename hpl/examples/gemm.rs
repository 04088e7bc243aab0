//! local
use hpl::kernels::*;
use hpl::mat::*;
use std::time::Instant;
fn main() {
    let (m, k, n) = (6000, 192, 512);
    for t in [1, 2, 1, 2] {
        let rate: Vec<f64> = std::thread::scope(|s| {
            let h: Vec<_> = (0..t)
                .map(|i| {
                    s.spawn(move || {
                        hpl::affinity::pin_current_thread(i).unwrap();
                        let a = vec![0.5; m * k];
                        let b = vec![0.5; k * n];
                        let mut c = Buffer::zeroed(m * n, true).unwrap();
                        c.fill(1.0);
                        let go = Instant::now();
                        let mut count = 0;
                        while go.elapsed().as_secs_f64() < 1.0 {
                            Builtin.gemm(Mat::new(&a, m, k, m), Mat::new(&b, k, n, k), MatMut::new(&mut c, m, n, m));
                            count += 1;
                        }
                        2.0 * (m * k * n * count) as f64 / go.elapsed().as_secs_f64() * 1e-9
                    })
                })
                .collect();
            h.into_iter().map(|h| h.join().unwrap()).collect()
        });
        println!("{t} threads: {rate:.1?}");
    }
}
