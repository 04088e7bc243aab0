//! Our engine on devices, by the rates that a description states of them.

use objectives::device::{DeviceModel, DevicePrediction};
use objectives::scenario::{Choices, FactPlace};
use space::machine::Machine;

use super::Question;
use crate::exit::bad_input;

/// Steps that are walked at most: some seconds of a core.
const MOST_STEPS: usize = 3_000_000;

/// The run as our engine makes it, with what the prediction takes for granted.
///
/// # Errors
/// Bad input: a run that does not fit the machine, too many steps, or a figure that the description lacks.
pub(super) fn predict(
    machine: &Machine,
    question: &Question,
    choices: &Choices,
) -> anyhow::Result<(DevicePrediction, Vec<String>)> {
    let hpl = &question.hpl;
    let model = DeviceModel::new(machine, choices).map_err(bad_input)?;
    let steps = hpl.n.div_ceil(hpl.nb.max(1));
    if steps > MOST_STEPS {
        return Err(bad_input(format!(
            "N = {}, NB = {}: {steps} steps are too many to compute; raise NB, or give --model mcl",
            hpl.n, hpl.nb
        )));
    }
    let predicted = model.predict(&question.run(), hpl.depth).map_err(bad_input)?;
    let mut assumptions = model.assumptions(predicted.fact);
    let stated = machine.device.iter().flat_map(|device| &device.dgemm_gflops).map(|[k, _]| *k);
    let (least, most) = stated.fold((f64::INFINITY, 0.0_f64), |(least, most), k| (least.min(k), most.max(k)));
    if !(least..=most).contains(&(hpl.nb as f64)) {
        assumptions
            .push(format!("DGEMM is stated for k from {least} to {most}: its rate at NB = {} is a guess", hpl.nb));
    }
    Ok((predicted, assumptions))
}

/// What the prediction depends on, how near it comes to DGEMM, and what of FACT is hidden.
pub(super) fn parameters(
    predicted: &DevicePrediction,
    question: &Question,
    choices: &Choices,
) -> Vec<(&'static str, String)> {
    let reached = space::flops::rate_gflops(question.hpl.n, predicted.timeline.total_s);
    let fact = match predicted.fact {
        FactPlace::Host => "on the host",
        FactPlace::Device => "on the device",
    };
    let hidden = 100.0 * predicted.fact_hidden;
    let hidden = match predicted.exposed_order {
        Some(order) => format!("{hidden:.1} %; no longer from m = {order} on, the order of the trailing matrix"),
        None => format!("{hidden:.1} %, at all orders of the trailing matrix"),
    };
    let (dgemm, share) = (1e-3 * predicted.dgemm_gflops, 100.0 * reached / predicted.dgemm_gflops);
    vec![
        ("FACT", fact.to_owned()),
        ("FACT hidden", hidden),
        ("DGEMM", format!("{dgemm:.1} TFLOP/s sustained, of which the run reaches {share:.1} %")),
        ("DEPTH", question.hpl.depth.to_string()),
        ("split", choices.split.to_string()),
    ]
}
