//! A run whose accelerators update while the host does all other work: each step takes the longer of the two times.
//!
//! For machines like those of \[rocHPL\]: the accelerators do the trailing update; the host does the chain of panel
//! factorization, panel broadcast, row exchange and transfers, which is hidden by the update while the matrix is large. The
//! chain is a + b·NB·(rows of the panel) seconds per column for the host's own work, fitted to one measured run, and messages
//! over the machine's layers. [`Overlap::assumptions`] lists the assumptions.

use space::machine::{Machine, Measured};

use crate::netlib::Problem;
use crate::scenario::{Choices, Placement, Run, ScenarioError, Ways};
use crate::timeline::{StepTimes, Timeline};

/// Name of the model in messages.
const MODEL: &str = "overlap";

/// The model, fitted to a run of its machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Overlap<'a> {
    machine: &'a Machine,
    choices: Choices,
    /// Seconds per flop of the update of one rank while it hides the chain.
    steady_s_per_flop: f64,
    /// Fitted: the host's seconds per column of a panel.
    pub column_s: f64,
    /// Fitted: the host's seconds per column of a panel, local row of it and column of NB.
    pub entry_s: f64,
}

/// The host's work in a step, in seconds.
#[derive(Debug, Clone, Copy)]
struct Chain {
    fact_s: f64,
    lbcast_s: f64,
    rs_s: f64,
}

impl Chain {
    fn total_s(&self) -> f64 {
        self.fact_s + self.lbcast_s + self.rs_s
    }
}

impl<'a> Overlap<'a> {
    /// Fits the chain to the first measured run of one node whose N, NB, P and Q are known, so that the model gives its time
    /// and its chain is as long as the update after the share of the steps that `[offload]` says.
    ///
    /// # Errors
    /// [`ScenarioError`] when the description has no `[offload]`, no such run, or lacks a figure.
    pub fn new(machine: &'a Machine, choices: &Choices) -> Result<Self, ScenarioError> {
        let missing = |what: &str, way_out| ScenarioError::Missing { model: MODEL, what: what.to_owned(), way_out };
        let copy = "state it in a copy of the file";
        let offload = machine.offload.as_ref().ok_or_else(|| missing("[offload]", copy))?;
        let known = machine.measured.iter().find_map(fitted_run);
        let (run, rate_gflops) =
            known.ok_or_else(|| missing("a [[measured]] run of one node with n, nb, p and q", copy))?;
        let placement = Placement::new(machine, &run)?;
        let steady_s_per_flop = 1e-9 * placement.ranks_per_node as f64 / offload.steady_gflops;
        let unfitted = Self { machine, choices: *choices, steady_s_per_flop, column_s: 0.0, entry_s: 0.0 };
        let ways = Ways::new(MODEL, machine, &run, &placement, choices)?;
        let measured_s = space::flops::hpl_flops(run.n) * 1e-9 / rate_gflops;
        unfitted.fit(&run.problem(), &ways, offload.hidden_steps, measured_s).ok_or_else(|| {
            missing("a measured run that is slower than its steady rate and not slower than without overlap", copy)
        })
    }

    /// The chain that equals the update after `hidden` of the steps and gives `measured_s`; `None` where there is none.
    ///
    /// Under the first condition, a larger b makes the chain shorter in all later steps, so that the time falls as b rises.
    fn fit(self, g: &Problem, ways: &Ways, hidden: f64, measured_s: f64) -> Option<Self> {
        let rows = g.n * (1.0 - hidden);
        let host_s = self.update_s(g, rows) - self.chain(g, ways, rows).total_s();
        let with = |share: f64| Self {
            column_s: (1.0 - share) * host_s / g.nb,
            entry_s: share * host_s / (g.nb * g.nb * rows / g.p),
            ..self.clone()
        };
        let time_s =
            |share: f64| with(share).steps(g, ways).map(|(update_s, chain)| update_s.max(chain.total_s())).sum::<f64>();
        let (mut low, mut high) = (0.0, 1.0);
        if host_s <= 0.0 || measured_s > time_s(low) || measured_s < time_s(high) {
            return None;
        }
        for _ in 0..50 {
            let middle = (low + high) / 2.0;
            if time_s(middle) > measured_s { low = middle } else { high = middle }
        }
        Some(with(low))
    }

    /// The run step by step. A step's update hides the chain; the excess of the chain over the update is divided among
    /// the chain's parts.
    ///
    /// # Errors
    /// [`ScenarioError`] when the run does not fit the machine.
    pub fn timeline(&self, run: &Run) -> Result<Timeline, ScenarioError> {
        let placement = Placement::new(self.machine, run)?;
        let (g, ways) = (run.problem(), Ways::new(MODEL, self.machine, run, &placement, &self.choices)?);
        let mut end_s = 0.0;
        let steps = self.steps(&g, &ways).map(|(update_s, chain)| {
            let shown = (chain.total_s() - update_s).max(0.0) / chain.total_s();
            end_s += update_s.max(chain.total_s());
            let Chain { fact_s, lbcast_s, rs_s } = chain;
            StepTimes { fact_s: shown * fact_s, lbcast_s: shown * lbcast_s, rs_s: shown * rs_s, update_s, end_s }
        });
        let steps: Vec<StepTimes> = steps.collect();
        Ok(Timeline { total_s: end_s, steps, trsv_s: 0.0 })
    }

    /// Share of the time of a predicted run in which the update hides the chain.
    pub fn hidden(timeline: &Timeline) -> f64 {
        let hidden = |step: &&StepTimes| step.fact_s + step.lbcast_s + step.rs_s == 0.0;
        timeline.steps.iter().filter(hidden).map(|step| step.update_s).sum::<f64>() / timeline.total_s
    }

    /// The assumptions of the prediction, one sentence each.
    pub fn assumptions(&self) -> Vec<String> {
        let offload = self.machine.offload.as_ref();
        let (steady, hidden) = offload.map_or((0.0, 0.0), |offload| (offload.steady_gflops, offload.hidden_steps));
        vec![
            format!(
                "given: {steady} GFLOP/s of a node while the update hides all else, in the first {hidden} of the fitted run's steps"
            ),
            format!(
                "fitted to that and to the run's score: {:.3e} s of the host per column, {:.3e} s per column, local row and column of NB",
                self.column_s, self.entry_s
            ),
            "the ranks of a node lie in as many columns of the grid as possible".to_owned(),
            "a panel reaches the next column in one hop; a row exchange takes log2 P + P - 1 messages and \
             the update coefficient times the words of U, at the share of the node's links that its columns leave each"
                .to_owned(),
            "the host's own work depends on local rows and NB alone, not on P".to_owned(),
            "the back substitution is left out".to_owned(),
        ]
    }

    /// Update and chain of every step.
    fn steps(&self, g: &Problem, ways: &Ways) -> impl Iterator<Item = (f64, Chain)> {
        let (g, ways) = (*g, *ways);
        let steps = (g.n / g.nb).ceil() as usize;
        (0..steps).map(move |step| {
            let rows = g.n - step as f64 * g.nb;
            (self.update_s(&g, rows), self.chain(&g, &ways, rows))
        })
    }

    /// Seconds of the accelerators in the step whose panel has `rows` global rows.
    fn update_s(&self, g: &Problem, rows: f64) -> f64 {
        let left = (rows - g.nb).max(0.0);
        self.steady_s_per_flop * (2.0 * left * left * g.nb / (g.p * g.q) + left * g.nb * g.nb / g.q)
    }

    fn chain(&self, g: &Problem, ways: &Ways, rows: f64) -> Chain {
        let log_p = g.log_p();
        let host_s = g.nb * (self.column_s + self.entry_s * g.nb * rows / g.p);
        let pivots_s = g.nb * log_p * (ways.column[0] + ways.column[1] * (2.0 * g.nb + 4.0));
        let words = g.nb * rows / g.q;
        Chain {
            fact_s: host_s + pivots_s,
            lbcast_s: ways.row[0] + ways.row[1] * g.nb * rows / g.p,
            rs_s: ways.column[0] * (log_p + g.p - 1.0) + self.choices.update_coefficient * ways.column[1] * words,
        }
    }
}

/// A measured run to which the chain can be fitted, with its score.
fn fitted_run(measured: &Measured) -> Option<(Run, f64)> {
    let Measured { n: Some(n), nb: Some(nb), p: Some(p), q: Some(q), nodes: Some(1), rate_gflops, .. } = *measured
    else {
        return None;
    };
    Some((Run { n, nb, p, q, nodes: Some(1), threads: 1 }, rate_gflops))
}

#[cfg(test)]
mod tests {
    use space::machine::published;

    use super::*;

    fn crusher() -> Machine {
        published::find("crusher").unwrap().machine().unwrap()
    }

    /// The run of `nodes` nodes that fills the same fraction of the memory as the fitted one.
    fn filled(nodes: usize, (p, q): (usize, usize)) -> Run {
        let n = (256_000.0 * (nodes as f64).sqrt()) as usize / 512 * 512;
        Run { n, nb: 512, p, q, nodes: Some(nodes), threads: 1 }
    }

    fn gflops(model: &Overlap, run: &Run) -> f64 {
        space::flops::rate_gflops(run.n, model.timeline(run).unwrap().total_s)
    }

    #[test]
    fn one_node_is_fitted_and_128_nodes_are_predicted() {
        let machine = crusher();
        let model = Overlap::new(&machine, &Choices::default()).unwrap();
        let one = model.timeline(&filled(1, (4, 2))).unwrap();
        let fitted = space::flops::rate_gflops(256_000, one.total_s);
        println!("{}", model.assumptions().join("\n"));
        println!(
            "1 node: {:.1} TF, update hides all else for {:.1} % of the time",
            fitted / 1e3,
            100.0 * Overlap::hidden(&one)
        );
        assert!((fitted / 153e3 - 1.0).abs() < 1e-3, "{fitted}");
        assert!((Overlap::hidden(&one) - 0.75).abs() < 0.03);
        let many = gflops(&model, &filled(128, (32, 32)));
        println!("128 nodes: {:.2} PF, measured 17.75, {:+.1} %", many / 1e6, 100.0 * (many / 17.75e6 - 1.0));
        assert!((many / 17.75e6 - 1.0).abs() < 0.05, "{many}");
    }

    #[test]
    fn the_assumed_latency_and_link_do_not_decide_the_prediction() {
        let mut machine = crusher();
        for (layer, factor) in [(0, 0.5), (0, 2.0), (1, 0.5), (1, 2.0)] {
            machine.layers[layer].alpha_s = machine.layers[layer].alpha_s.map(|alpha_s| alpha_s * factor);
            let many = gflops(&Overlap::new(&machine, &Choices::default()).unwrap(), &filled(128, (32, 32)));
            println!("latency of layer {layer} × {factor}: {:.2} PF", many / 1e6);
            assert!((many / 17.75e6 - 1.0).abs() < 0.07, "{many}");
        }
        let mut machine = crusher();
        machine.layers[0].beta_s_per_word /= 2.0;
        let many = gflops(&Overlap::new(&machine, &Choices::default()).unwrap(), &filled(128, (32, 32)));
        println!("links inside a node of 100 GB/s: {:.2} PF", many / 1e6);
        assert!((many / 17.75e6 - 1.0).abs() < 0.07, "{many}");
    }

    #[test]
    fn what_cannot_be_fitted_says_why() {
        let refused = |change: &dyn Fn(&mut Machine)| {
            let mut machine = crusher();
            change(&mut machine);
            Overlap::new(&machine, &Choices::default()).unwrap_err().to_string()
        };
        assert!(refused(&|m| m.offload = None).contains("[offload]"));
        assert!(refused(&|m| m.measured.clear()).contains("[[measured]] run of one node"));
        assert!(refused(&|m| m.measured[0].rate_gflops = 1e6).contains("slower than its steady rate"));
    }
}
