//! What the machine did to the trials.

use crate::record::Row;
use crate::report::Summary;
use crate::report::sentences::steadiness;

/// Clock and steal of the last trial that has them, then what the report says of all.
pub(super) fn machine(rows: &[Row], summary: &Summary) -> Option<String> {
    // What this host does says nothing of simulated nodes.
    let mut here = rows.iter().rev().filter(|row| row.engine != Row::SIMULATED);
    let last = here.find(|row| row.clock_hz.is_some() || row.steal_share.is_some());
    let last = last.map(|row| {
        let clock = row.clock_hz.map(|hz| format!("clock {:.2} GHz", hz / 1e9));
        let stolen = row.steal_share.map(|share| format!("{:.1} % taken by the hypervisor", 100.0 * share));
        let said: Vec<String> = [clock, stolen].into_iter().flatten().collect();
        format!("trial {}: {}", row.trial, said.join(", "))
    });
    let said: Vec<String> = [last, steadiness(summary)].into_iter().flatten().collect();
    (!said.is_empty()).then(|| said.join("; "))
}
