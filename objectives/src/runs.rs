//! MCL's rates fitted to measured runs of a machine, with cross-validation.
//!
//! Three parameters: γ of a rank, β of a panel's words along a process row, and an additional β between nodes. The
//! terms are (25) and (28) of \[MCL\]; they were chosen by their error on Table 5, including the cross-validation.
//! Latencies and the row exchange do not improve the fit there.

use space::machine::Machine;

use crate::fit::non_negative;
use crate::mcl::{McLayer, broadcast_s, calc_s};
use crate::netlib::Problem;

/// A measured run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeasuredRun {
    /// Its sizes.
    pub problem: Problem,
    /// Nodes that took part.
    pub nodes: usize,
    /// Time in seconds, from its score.
    pub time_s: f64,
}

/// Rates fitted to runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FittedRates {
    /// γ: seconds per flop of a rank.
    pub gamma_s: f64,
    /// β of the panel along a row, in seconds per word.
    pub panel_s_per_word: f64,
    /// Additional β if the run has several nodes, in seconds per word.
    pub network_s_per_word: f64,
}

impl FittedRates {
    /// Least squares on relative errors, no rate negative; `None` without runs.
    pub fn of(runs: &[MeasuredRun]) -> Option<Self> {
        let rows: Vec<Vec<f64>> = runs.iter().map(|run| terms(run).map(|term| term / run.time_s).to_vec()).collect();
        let found = (!rows.is_empty()).then(|| non_negative(&rows))?;
        Some(Self { gamma_s: found[0], panel_s_per_word: found[1], network_s_per_word: found[2] })
    }

    /// Time of a run in seconds.
    pub fn time_s(&self, run: &MeasuredRun) -> f64 {
        let [calc, panel, network] = terms(run);
        self.gamma_s * calc + self.panel_s_per_word * panel + self.network_s_per_word * network
    }
}

/// Flops of (25), words of (28), and the same words again if the run has several nodes.
fn terms(run: &MeasuredRun) -> [f64; 3] {
    let word = McLayer { name: String::new(), ranks: 1, alpha_s: 0.0, beta_s: 1.0 };
    let words = broadcast_s(&word, &run.problem, run.problem.n);
    [calc_s(1.0, &run.problem), words, if run.nodes > 1 { words } else { 0.0 }]
}

/// Predicted time of each run by rates fitted to all others, in seconds.
pub fn leave_one_out(runs: &[MeasuredRun]) -> Vec<f64> {
    let of = |left: usize| {
        let others: Vec<MeasuredRun> =
            runs.iter().enumerate().filter(|(i, _)| *i != left).map(|(_, run)| *run).collect();
        FittedRates::of(&others).map_or(f64::NAN, |rates| rates.time_s(&runs[left]))
    };
    (0..runs.len()).map(of).collect()
}

/// The measured runs of a description with known N, ranks and nodes; `nb` replaces an unstated NB.
pub fn of_machine(machine: &Machine, nb: usize) -> Vec<MeasuredRun> {
    let run = |measured: &space::machine::Measured| {
        let (n, (p, q), nodes) = (measured.n?, measured.grid()?, measured.nodes?);
        let time_s = space::flops::hpl_flops(n) * 1e-9 / measured.rate_gflops;
        Some(MeasuredRun { problem: Problem::new(n, measured.nb.unwrap_or(nb), p, q), nodes, time_s })
    };
    machine.measured.iter().filter_map(run).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_5_left_out_row_by_row() {
        let machine = space::machine::published::find("p100-cluster").unwrap().machine().unwrap();
        let runs = of_machine(&machine, 1024);
        let predicted = leave_one_out(&runs);
        let errors: Vec<f64> =
            runs.iter().zip(&predicted).map(|(run, time_s)| 100.0 * (run.time_s / time_s - 1.0)).collect();
        let mean = errors.iter().map(|error| error.abs()).sum::<f64>() / errors.len() as f64;
        println!("{:?}\nleave one out: {errors:.1?} %, mean {mean:.2} %", FittedRates::of(&runs));
        assert_eq!(runs.len(), 15);
        assert!(mean < 5.4, "{mean}");
    }

    #[test]
    fn exact_times_give_their_rates_back() {
        let truth = FittedRates { gamma_s: 2e-13, panel_s_per_word: 1e-9, network_s_per_word: 3e-9 };
        let run = |n, p, q, nodes| MeasuredRun { problem: Problem::new(n, 64, p, q), nodes, time_s: 1.0 };
        let mut runs = [run(9000, 1, 1, 1), run(20_000, 1, 2, 1), run(20_000, 2, 2, 2), run(40_000, 2, 4, 4)];
        runs.iter_mut().for_each(|run| run.time_s = truth.time_s(run));
        let found = FittedRates::of(&runs).unwrap();
        assert!((found.gamma_s / truth.gamma_s - 1.0).abs() < 1e-6, "{found:?}");
        assert!((found.network_s_per_word / truth.network_s_per_word - 1.0).abs() < 1e-4, "{found:?}");
        assert!(leave_one_out(&runs).iter().zip(&runs).all(|(time_s, run)| (time_s / run.time_s - 1.0).abs() < 0.2));
        assert_eq!(FittedRates::of(&[]), None);
    }
}
