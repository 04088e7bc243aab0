//! What trials on single nodes say of runs on all of them: the phases that they correct, and what they show beyond the model.
//!
//! A rate on one node is of another task and compares with none on all nodes. What carries over is by how much a run of one node
//! differs from what the model expects of it: of each phase, and of the points of all nodes that it stands for.

use std::collections::BTreeMap;

use objectives::predict::Predictor;
use objectives::timeline::own::{Observed, refined};
use space::dims::Point;
use space::machine::Machine;
use space::result::PhaseTime;
use space::{Candidates, Unequal};

use super::place::place;
use crate::record::Row;

/// The phases of `rows`, each on a node of this log speed (by name) relative to the typical one, as the typical node has them.
fn observed(
    rows: &[Row],
    speeds: &BTreeMap<&str, f64>,
    phases: impl Fn(u64) -> Option<Vec<PhaseTime>>,
) -> Vec<Observed> {
    let of = |row: &Row| {
        let speed = speeds.get(row.nodes.as_deref()?)?.exp();
        let typical = |time: PhaseTime| PhaseTime {
            fact_s: speed * time.fact_s,
            lbcast_s: speed * time.lbcast_s,
            rs_s: speed * time.rs_s,
            update_s: speed * time.update_s,
            trsv_s: speed * time.trsv_s,
            end_s: speed * time.end_s,
            ..time
        };
        Some(Observed { candidate: row.candidate(), phases: phases(row.trial)?.into_iter().map(typical).collect() })
    };
    rows.iter().filter(|row| row.passed).filter_map(of).collect()
}

/// `one_node` with its phases corrected by the passed ones of `rows`.
pub fn corrected(
    one_node: &Machine,
    rows: &[Row],
    speeds: &BTreeMap<&str, f64>,
    phases: impl Fn(u64) -> Option<Vec<PhaseTime>>,
) -> Machine {
    refined(one_node, &observed(rows, speeds, phases), &Unequal::default())
}

/// Logarithm of what each of `rows`, on nodes of `cores` cores at the rates of the typical one, reached over what `one_node`
/// expects of it, at the point of `space` that it stands for.
pub fn beyond(space: &dyn Candidates, rows: &[Row], one_node: &Predictor, cores: usize) -> Vec<(Point, f64)> {
    let of = |row: &Row| {
        let candidate = row.candidate();
        let log = row.comparable_rate_gflops()?.ln() - one_node.rate_gflops(&candidate).ln();
        Some((place(space, &candidate, Some(cores))?, log)).filter(|_| log.is_finite())
    };
    rows.iter().filter_map(of).collect()
}
