//! What the four badly cooled nodes of 2019 cost, and what weights would have won back.
//!
//! With ranks numbered row by row a node is a process row of the 32×32 grid, and its two CPUs are halves of the process
//! columns. So rows are weighed by the mean rate of their node, columns by the mean rate of their CPUs.

use objectives::timeline::{Platform, Schedule, recursion};
use space::{HplParams, Share, Weights};

use crate::fit::Fit;
use crate::runs::Data;

/// Nodes, and ranks of each, as rows and columns of the grid.
const SIDE: usize = 32;

/// Predicted and real times of each N with equal CPUs, with the slow nodes, and with weights for them.
pub(crate) fn print(data: &Data, fit: &Fit, published: &Platform) {
    let [sound, slow] = [false, true].map(|slow_nodes| data.speeds(slow_nodes));
    let platforms = [&sound, &slow].map(|cpus| fit.platform(published, cpus));
    let rates = |cpus: [usize; 2]| cpus.map(|cpu| 1e-11 / slow[cpu]);
    let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len() as f64;
    let shares = |of: &dyn Fn(usize) -> f64| {
        (0..SIDE).map(|at| Share::new(of(at)).expect("a rate is a share")).collect::<Vec<_>>()
    };
    let rows = shares(&|node| mean(&rates([2 * node, 2 * node + 1])));
    let of_cpu = |cpu: usize| mean(&(0..SIDE).map(|node| 1e-11 / slow[2 * node + cpu]).collect::<Vec<_>>());
    let columns = shares(&|column| of_cpu(column / (SIDE / 2)));
    let by_rows = Weights { rows: rows.clone(), columns: Vec::new() };
    let by_both = Weights { rows, columns };

    println!("four slow nodes: predicted GFLOP/s with equal weights, then with weights of rows, of rows and columns");
    println!("       N     sound      slow      lost   real lost       rows    gain       both    gain");
    let real = |set: &str, n: &str| {
        let set = data.sets.iter().find(|known| known.name == set)?;
        set.runs.iter().find(|run| run.name == n).map(|run| run.real_s)
    };
    let set = data.sets.iter().find(|set| set.slow_nodes).expect("runs of 2019");
    for run in &set.runs {
        let time_s = |weights: &Weights, at: usize| {
            recursion::weighted_time_s(&run.hpl, weights, &platforms[at], Schedule::Netlib)
        };
        let equal = Weights::default();
        let [sound_s, slow_s] = [0, 1].map(|at| time_s(&equal, at));
        let weighted = [&by_rows, &by_both].map(|weights| time_s(weights, 1));
        let measured = real("2018-10", &run.name).map_or_else(
            || format!("{:>11}", "–"),
            |sound_s| format!("{:9.1} %", 100.0 * (1.0 - sound_s / run.real_s)),
        );
        print!("{:>8}", run.hpl.n);
        print!("{:>10.0}{:>10.0}", gflops(&run.hpl, sound_s), gflops(&run.hpl, slow_s));
        print!("{:>8.1} % {measured}", 100.0 * (1.0 - sound_s / slow_s));
        for time_s in weighted {
            print!("{:>11.0}{:>6.1} %", gflops(&run.hpl, time_s), 100.0 * (slow_s / time_s - 1.0));
        }
        println!();
    }
}

fn gflops(hpl: &HplParams, time_s: f64) -> f64 {
    space::flops::rate_gflops(hpl.n, time_s)
}
