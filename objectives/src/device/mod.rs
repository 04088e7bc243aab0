//! A run of our engine whose matrix is in the memory of devices, predicted from published rates.
//!
//! It walks the tasks of [`hpl::plan`] and advances the clocks of the host and of a device's three streams as the backend for
//! devices does: `Main` permutes rows and updates the look-ahead columns, then the sections; `Fact` copies the panel to the host and L to the
//! device; `Copy` moves exchanged rows. The host factors the next panel, starts its broadcast and exchanges rows. One rank is
//! walked: in each step the one that owns the next panel and its diagonal block, which has the most rows and columns and factors.
//!
//! `costs` has the times of operations, `clocks` who waits for whom, `walk` the tasks. FACT is on the device where P = 1, as in the engine,
//! unless the user says otherwise ([`FactPlace`]).

mod clocks;
mod costs;
#[cfg(test)]
mod tests;
mod walk;

use hpl::plan::layout::Layout;
use hpl::plan::{ColumnStrips, Plan};
use space::machine::{DeviceRates, Machine};

pub use self::clocks::DeviceSums;
use self::costs::{MODEL, OperationCosts};
use self::walk::Walk;
use crate::scenario::{Choices, FactPlace, Placement, Run, ScenarioError, Ways};
use crate::timeline::Timeline;

/// The model of a machine with `[device]`.
#[derive(Debug, Clone, Copy)]
pub struct DeviceModel<'a> {
    machine: &'a Machine,
    rates: &'a DeviceRates,
    choices: Choices,
}

/// A predicted run on devices.
#[derive(Debug, Clone, PartialEq)]
pub struct DevicePrediction {
    /// The run step by step: what `Main` did and what it waited for.
    pub timeline: Timeline,
    /// Where the time goes.
    pub sums: DeviceSums,
    /// Where panels are factored.
    pub fact: FactPlace,
    /// What DGEMM sustains on all devices at this NB, in GFLOP/s.
    pub dgemm_gflops: f64,
    /// Share of FACT, with the copies of panels, that costs the run no time.
    pub fact_hidden: f64,
    /// Order of the trailing matrix from which on the device waits for FACT; `None` where it never does.
    pub exposed_order: Option<usize>,
}

impl<'a> DeviceModel<'a> {
    /// The model of a machine.
    ///
    /// # Errors
    /// [`ScenarioError::Missing`] without `[device]`.
    pub fn new(machine: &'a Machine, choices: &Choices) -> Result<Self, ScenarioError> {
        let missing = || ScenarioError::Missing {
            model: MODEL,
            what: "[device]".to_owned(),
            way_out: "state it in a copy of the file",
        };
        Ok(Self { machine, rates: machine.device.as_ref().ok_or_else(missing)?, choices: *choices })
    }

    /// Predicts a run with look-ahead `depth`.
    ///
    /// # Errors
    /// [`ScenarioError`] when the run does not fit the machine, or the description lacks a figure.
    pub fn predict(&self, run: &Run, depth: usize) -> Result<DevicePrediction, ScenarioError> {
        let placement = Placement::new(self.machine, run)?;
        let ways = Ways::new(MODEL, self.machine, run, &placement, &self.choices)?;
        let fact = self.fact(run);
        let costs = OperationCosts::new(self.rates, run, ways, fact, &self.choices)?;
        let layout = Layout::block_cyclic(run.n, run.nb, run.p, run.q);
        let depth = depth.min(layout.rows.blocks());
        let plan = Plan { layout, depth, split: self.choices.split, strips: ColumnStrips::Whole };
        let walked = Walk::new(&plan, &costs, fact).run();
        let dgemm_gflops = run.ranks() as f64 * costs.dgemm_gflops(run.nb.min(run.n) as f64);
        let trsv_s = costs.trsv_s(run);
        let total_s = walked.sums.total_s() + trsv_s;
        Ok(DevicePrediction {
            timeline: Timeline { total_s, steps: walked.steps, trsv_s },
            sums: walked.sums,
            fact,
            dgemm_gflops,
            fact_hidden: walked.fact_hidden,
            exposed_order: walked.exposed_order,
        })
    }

    fn fact(&self, run: &Run) -> FactPlace {
        let is_timed = self.rates.panel_s.is_some() && self.choices.host_panel_gflops.is_none();
        let usual = if run.p == 1 && is_timed { FactPlace::Device } else { FactPlace::Host };
        self.choices.fact.unwrap_or(usual)
    }

    /// The assumptions of a prediction with such panels, one sentence each.
    pub fn assumptions(&self, fact: FactPlace) -> Vec<String> {
        let fact = match fact {
            FactPlace::Host => "FACT by the threads of the host, at one rate for panels of all heights".to_owned(),
            FactPlace::Device => {
                "FACT on the device, which our engine does for P = 1; its time grows in proportion to NB, and pivot exchanges at P > 1 \
                 cost their messages alone"
                    .to_owned()
            }
        };
        vec![
            "predicted from rates of [device] and [[layer]], nothing fitted to a run".to_owned(),
            fact,
            "one rank is walked, in each step the owner of the next panel and of its diagonal block; all ranks are equal".to_owned(),
            "messages go from host to host and progress by themselves; a panel reaches the next column in one hop; a row exchange takes \
             log2 P + P - 1 messages and the update coefficient times the words of U that other process rows have"
                .to_owned(),
            "copies to and from the host, and within its memory, slow nothing else".to_owned(),
        ]
    }
}
