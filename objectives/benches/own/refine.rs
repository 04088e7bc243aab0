//! What the phases of some real runs are worth for the prediction of others.

use objectives::timeline::own::{Observed, OwnModel, refined};
use space::Unequal;
use space::machine::Machine;

use crate::Flags;
use crate::judge::{Case, cases, score};

/// Runs that are learned from.
const COUNTS: [usize; 6] = [0, 1, 2, 4, 8, 16];

/// Corrects the machine by the first candidates and predicts all others after the largest of [`COUNTS`].
pub(crate) fn refine(flags: &Flags) {
    let text = std::fs::read_to_string(flags.path("--machine")).expect("a machine");
    let machine = Machine::parse(&text).expect("a machine");
    let cases = cases(&flags.path("--rows"));
    let (seen, held_out) = cases.split_at(COUNTS[COUNTS.len() - 1].min(cases.len()));
    let measured: Vec<f64> = held_out.iter().map(|case| case.row.time_s).collect();
    for count in COUNTS {
        let observed =
            |case: &Case| Observed { candidate: case.row.candidate.clone(), phases: case.row.phases.clone() };
        let observed: Vec<Observed> = seen.iter().take(count).map(observed).collect();
        let model = OwnModel::new(&refined(&machine, &observed, &Unequal::default())).expect("a machine with phases");
        let predicted: Vec<f64> = held_out.iter().map(|case| model.time_s(&case.row.candidate)).collect();
        score(&format!("after {count:2} runs, {} others", held_out.len()), &measured, &predicted);
    }
}
