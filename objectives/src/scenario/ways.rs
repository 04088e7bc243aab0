//! Messages along the rows and the columns of the grid, where ranks are accelerators.

use space::machine::Machine;

use super::{Choices, Placement, Run, ScenarioError, layers};

/// Seconds per message and per word, along rows and along columns of the grid; 0 where a process is alone there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Ways {
    pub(crate) row: [f64; 2],
    pub(crate) column: [f64; 2],
}

impl Ways {
    /// Costs of messages: of the innermost layer that joins the ranks. The ranks of a node lie in as many columns of the grid as
    /// possible.
    ///
    /// # Errors
    /// [`ScenarioError`] when the layers do not join the ranks, or lack a latency.
    pub(crate) fn new(
        model: &'static str,
        machine: &Machine,
        run: &Run,
        placement: &Placement,
        choices: &Choices,
    ) -> Result<Self, ScenarioError> {
        let layers = layers(model, machine, run, placement, choices)?;
        let inside = placement.ranks_per_node;
        let columns_in_node = inside.min(run.q);
        let rows_in_node = inside.div_ceil(columns_in_node);
        let way = |across: bool, flows: usize| {
            let wanted = if across { run.ranks() } else { inside };
            let Some(layer) = layers.iter().find(|layer| layer.ranks >= wanted) else { return [0.0; 2] };
            let stated = machine.layers.iter().find(|stated| stated.name == layer.name);
            // Where few of a node's ranks send, each has a larger share of its link, at most all of it.
            let is_shared = choices.link_gbytes_per_s.is_none() && placement.nodes > 1;
            let of_node = if is_shared { (layer.beta_s / inside as f64, inside) } else { (layer.beta_s, 1) };
            let (beta_s, shared_by) =
                stated.map_or(of_node, |stated| (stated.beta_s_per_word, stated.shared_by.min(inside)));
            let share = (shared_by as f64 * flows as f64 / inside as f64).max(1.0);
            [layer.alpha_s, beta_s * share]
        };
        let single = [0.0; 2];
        Ok(Self {
            row: if run.q > 1 { way(run.q > columns_in_node, rows_in_node) } else { single },
            column: if run.p > 1 { way(run.p > rows_in_node, columns_in_node) } else { single },
        })
    }
}
