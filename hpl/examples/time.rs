//! local
use hpl::comm::threads;
use space::*;
use std::thread;
fn main() {
    let a: Vec<usize> = std::env::args().skip(1).take(7).map(|a| a.parse().unwrap()).collect();
    let (n, nb, p, q, t, depth, reps) = (a[0], a[1], a[2], a[3], a[4], a[5], a[6]);
    let blas = std::env::args().nth(8);
    let nbmin: usize = std::env::args().nth(9).map_or(8, |v| v.parse().unwrap());
    let mut hpl =
        HplParams { nb, depth, nbmin, pfact: Looking::Crout, rfact: Looking::Crout, ..HplParams::baseline(n, p, q) };
    if let Ok(v) = std::env::var("SWAP") {
        hpl.swap = if v == "long" { Swap::Long } else { Swap::BinExch };
    }
    let c = Candidate { hpl, engine: EngineParams { threads: t, ..EngineParams::default() } };
    let cores = hpl::host::facts().cores_allowed;
    let sets = hpl::affinity::core_sets(&cores, p * q, t);
    let kernels: Box<dyn hpl::kernels::Kernels> = match blas {
        _ => Box::new(hpl::kernels::Builtin),
    };
    for _ in 0..reps {
        let out: Vec<_> = thread::scope(|s| {
            let h: Vec<_> = threads::world(p * q, sets.is_some())
                .into_iter()
                .enumerate()
                .map(|(r, comm)| {
                    let (c, k, sets) = (&c, &kernels, &sets);
                    s.spawn(move || hpl::solve(c, &comm, sets.as_ref().map_or(&[][..], |s| &s[r]), k, &()).unwrap())
                })
                .collect();
            h.into_iter().map(|h| h.join().unwrap()).collect()
        });
        let r = &out[0];
        println!(
            "N {n} NB {nb} {p}x{q} T{t} D{depth}: {:.1} GF  {:.3} s  resid {:.2e} gen {:.3} check {:.3}",
            flops::rate_gflops(n, r.time_s),
            r.time_s,
            r.residual.unwrap().scaled,
            r.generate_s,
            r.check_s
        );
        for r in &out {
            let s = |f: fn(&result::PhaseTime) -> f64| r.phases.iter().map(f).sum::<f64>();
            println!(
                "   fact {:.3} lbcast {:.3} rs {:.3} update {:.3} trsv {:.3}",
                s(|p| p.fact_s),
                s(|p| p.lbcast_s),
                s(|p| p.rs_s),
                s(|p| p.update_s),
                s(|p| p.trsv_s)
            );
        }
    }
}
