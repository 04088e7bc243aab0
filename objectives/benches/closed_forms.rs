//! Candidates per second that the closed forms predict on one core: `cargo bench -p objectives --bench closed_forms`.

use std::hint::black_box;
use std::time::Instant;

use objectives::mcl::{McLayer, Mcl};
use objectives::netlib::{Costs, Problem, closed_s};

fn main() {
    let layer = |ranks, beta_s| McLayer { name: format!("{ranks} ranks"), ranks, alpha_s: 1e-6, beta_s };
    let model = Mcl::new(1e-11, vec![layer(1, 1e-10), layer(8, 1e-9), layer(512, 3e-9)]);
    let costs = Costs { gamma_s: 1e-11, gamma2_s: 1e-10, alpha_s: 1e-6, beta_s: 1e-9, update_coefficient: 2.0 };
    report("MCL, three layers", |g| model.time_s(g));
    report("MCL, per layer and term", |g| model.breakdown(g).total_s());
    report("original model, closed form", |g| closed_s(&costs, g));
}

/// The median of five rounds over candidates that differ in N, NB, P and Q.
fn report(name: &str, time_s: impl Fn(&Problem) -> f64) {
    const CANDIDATES: usize = 1_000_000;
    let mut rates = [0.0; 5];
    for rate in &mut rates {
        let start = Instant::now();
        for i in 0..CANDIDATES {
            black_box(time_s(&Problem::new(40_000 + i, 32 + i % 512, 1 + i % 16, 1 + i % 31)));
        }
        *rate = CANDIDATES as f64 / start.elapsed().as_secs_f64();
    }
    rates.sort_by(f64::total_cmp);
    println!(
        "{name}: {:.2e} candidates/s (median of 5 rounds of {CANDIDATES}, {:.2e} to {:.2e})",
        rates[2], rates[0], rates[4]
    );
}
