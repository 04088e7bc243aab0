//! What each model says of a run.

use objectives::mcl::{InnerGrid, LayerExtent, MemoryBandwidth};
use objectives::overlap::Overlap;
use objectives::predict::Predictor;
use objectives::scenario::{self, Choices, Gamma, Layering};
use objectives::timeline::Timeline;
use objectives::timeline::own::OwnModel;
use serde::Serialize;
use space::machine::{Layer, Machine};
use space::params::Coded;
use space::{Candidate, EngineParams, HplParams, counted};

use super::{Question, columns, device, steps};
use crate::exit::bad_input;
use crate::report::words;

/// A model of a run's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Model {
    /// The multi-communication-layer model, a closed form per layer.
    Mcl,
    /// The original model, summed over the panels.
    Netlib,
    /// The update of accelerators against the chain of the host.
    Overlap,
    /// Step by step: the engine's own plan where the matrix is on devices, by rates of the device.
    Device,
    /// MCL's steps with the fitted rates of a calibrated machine.
    Calibrated,
    /// Step by step: the engine's own plan, costed by what its phases were measured to take; without phases Netlib's
    /// schedule on a described cluster.
    Timeline,
}

/// The models by the names that `--model` takes.
pub(crate) const MODELS: [(&str, Model); 6] = [
    ("mcl", Model::Mcl),
    ("netlib", Model::Netlib),
    ("overlap", Model::Overlap),
    ("device", Model::Device),
    ("calibrated", Model::Calibrated),
    ("timeline", Model::Timeline),
];

/// One term of a predicted time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Term {
    /// Layer of the machine, or who computes.
    pub layer: String,
    /// Name of the term.
    pub term: &'static str,
    /// Its time in seconds; negative for what overlaps.
    pub time_s: f64,
}

/// What a model says of a run.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Time of the run in seconds.
    pub time_s: f64,
    /// Where it goes, by layer and term.
    pub terms: Vec<Term>,
    /// The run step by step, from models that see steps.
    pub timeline: Option<Timeline>,
    /// Parameters and choices that the figure depends on, with their origin.
    pub parameters: Vec<(&'static str, String)>,
    /// What the model does not see or takes for granted, and where it leaves its ground.
    pub notes: Vec<String>,
}

impl Answer {
    /// Predicted score in GFLOP/s of a run of order `n`.
    pub fn rate_gflops(&self, n: usize) -> f64 {
        space::flops::rate_gflops(n, self.time_s)
    }
}

impl Model {
    /// Name, as `--model` takes it.
    pub fn name(self) -> &'static str {
        MODELS[self as usize].0
    }

    /// The one that uses most of what the description states.
    pub fn best_for(machine: &Machine) -> Self {
        if OwnModel::new(machine).is_some() || columns::described(machine) {
            Self::Timeline
        } else if Predictor::new(machine).is_ok() {
            Self::Calibrated
        } else if machine.offload.is_some() {
            Self::Overlap
        } else if machine.device.is_some() {
            Self::Device
        } else {
            Self::Mcl
        }
    }

    /// All models.
    pub fn all() -> impl Iterator<Item = Self> {
        MODELS.into_iter().map(|(_, model)| model)
    }

    /// Parameters of HPL.dat besides N, NB, P and Q that it includes on this machine.
    pub fn sees(self, machine: &Machine) -> &'static [&'static str] {
        match self {
            Self::Device | Self::Calibrated => &["DEPTH"],
            // What a message costs between nodes depends on which ranks these have.
            Self::Timeline if machine.phases.is_empty() || machine.layers.iter().any(Layer::joins_processes) => {
                &["DEPTH", "BCAST", "SWAP", "PMAP"]
            }
            Self::Timeline => &["DEPTH", "BCAST", "SWAP"],
            Self::Mcl | Self::Netlib | Self::Overlap => &[],
        }
    }

    /// Predicts a run.
    ///
    /// # Errors
    /// Bad input: a run that does not fit the machine, or a figure that its description lacks, named with the way out.
    pub fn answer(self, machine: &Machine, question: &Question, choices: &Choices) -> anyhow::Result<Answer> {
        let answer = match self {
            Self::Mcl => mcl(machine, question, choices),
            Self::Netlib => netlib(machine, question, choices),
            Self::Overlap => overlap(machine, question, choices),
            Self::Device => on_devices(machine, question, choices),
            Self::Calibrated => calibrated(machine, question),
            Self::Timeline => timeline(machine, question),
        }?;
        let Question { hpl, .. } = question;
        // Published flop counts are polynomials that turn negative where panels are as wide as the matrix.
        if answer.time_s.is_finite() && answer.time_s > 0.0 {
            return Ok(answer);
        }
        Err(bad_input(format!(
            "{} gives no time for N = {}, NB = {} on {}×{} ranks: it holds for N well above NB·P and NB·Q; raise N or lower NB",
            self.name(),
            hpl.n,
            hpl.nb,
            hpl.p,
            hpl.q
        )))
    }
}

fn mcl(machine: &Machine, question: &Question, choices: &Choices) -> anyhow::Result<Answer> {
    let run = question.run();
    let (model, gamma) = scenario::mcl(machine, &run, choices).map_err(bad_input)?;
    let breakdown = model.breakdown(&run.problem());
    let mut terms = vec![term("ranks", "computing", breakdown.calc_s)];
    for layer in &breakdown.layers {
        terms.push(term(&layer.name, "pivot exchange", layer.pivot_s));
        terms.push(term(&layer.name, "panel broadcast", layer.broadcast_s));
        terms.push(term(&layer.name, "row exchange", layer.update_s));
    }
    let mut parameters = closed_form_parameters(&gamma, choices);
    let reading = match choices.reading {
        LayerExtent::Printed => "printed",
        LayerExtent::Cumulative => "cumulative",
    };
    let layers: Vec<String> = model
        .layers
        .iter()
        .map(|layer| {
            let ranks = counted(layer.ranks, "rank");
            format!("{} ({ranks}, {:.2e} s, {:.2e} s per word)", layer.name, layer.alpha_s, layer.beta_s)
        })
        .collect();
    if !layers.is_empty() {
        parameters.push(("layers", format!("{}, {reading}", layers.join(", "))));
    }
    if machine.accelerator.is_some() {
        let memory = match choices.memory {
            MemoryBandwidth::Equivalent => "equivalent",
            MemoryBandwidth::SimpleSum => "simple sum",
        };
        parameters.push(("memory", memory.to_owned()));
    }
    if choices.inner == InnerGrid::PrimesKeepGrid {
        parameters.push(("inner grid", "row after row where a side would be prime".to_owned()));
    }
    let mut problem = run.problem();
    if choices.round_n {
        let n = objectives::mcl::rounded_n(&problem);
        problem.n = n;
        parameters.push(("N_new", format!("{n}, in place of N: for reproducing the paper only")));
    }
    // The time is a closed form: a run of any number of steps has one.
    let timeline = steps::are_few(&problem).then(|| model.timeline(&run.problem()));
    Ok(Answer { time_s: breakdown.total_s(), terms, timeline, parameters, notes: Vec::new() })
}

fn netlib(machine: &Machine, question: &Question, choices: &Choices) -> anyhow::Result<Answer> {
    let run = question.run();
    let (costs, gamma) = scenario::netlib(machine, &run, choices).map_err(bad_input)?;
    steps::check(&question.hpl)?;
    let timeline = objectives::netlib::timeline(&costs, &run.problem());
    let mut parameters = closed_form_parameters(&gamma, choices);
    parameters.push(("messages", format!("{:.2e} s, {:.2e} s per word", costs.alpha_s, costs.beta_s)));
    parameters.push(("TRSV", format!("{:.2e} s per flop", costs.gamma2_s)));
    Ok(Answer {
        time_s: timeline.total_s,
        terms: phases(&timeline),
        timeline: Some(timeline),
        parameters,
        notes: Vec::new(),
    })
}

fn overlap(machine: &Machine, question: &Question, choices: &Choices) -> anyhow::Result<Answer> {
    let model = Overlap::new(machine, choices).map_err(bad_input)?;
    steps::check(&question.hpl)?;
    let timeline = model.timeline(&question.run()).map_err(bad_input)?;
    let hidden = format!("{:.1} % of the time", 100.0 * Overlap::hidden(&timeline));
    let parameters =
        vec![("hidden", hidden), ("row exchange", format!("{} words per word of U", choices.update_coefficient))];
    Ok(Answer {
        time_s: timeline.total_s,
        terms: phases(&timeline),
        timeline: Some(timeline),
        parameters,
        notes: model.assumptions(),
    })
}

fn on_devices(machine: &Machine, question: &Question, choices: &Choices) -> anyhow::Result<Answer> {
    let (predicted, notes) = device::predict(machine, question, choices)?;
    let parameters = device::parameters(&predicted, question, choices);
    let (sums, timeline) = (predicted.sums, predicted.timeline);
    let terms = vec![
        term("device", "DGEMM", sums.dgemm_s),
        term("device", "DTRSM", sums.trsm_s),
        term("device", "rows moved", sums.rows_s),
        term("not hidden", "FACT and copies of panels", sums.fact_s),
        term("not hidden", "LBCAST", sums.lbcast_s),
        term("not hidden", "RS", sums.rs_s),
        term("not hidden", "starts of operations", sums.launch_s),
        term("ranks", "back substitution", timeline.trsv_s),
    ];
    Ok(Answer { time_s: timeline.total_s, terms, timeline: Some(timeline), parameters, notes })
}

fn calibrated(machine: &Machine, question: &Question) -> anyhow::Result<Answer> {
    // The calibrated model covers one node; what does not fit there is refused as by the others.
    scenario::Placement::new(machine, &question.run()).map_err(bad_input)?;
    // With measured phases a predictor is the timeline, which is a model of its own.
    let kernels = Machine { phases: Vec::new(), ..machine.clone() };
    let predictor = Predictor::new(&kernels).map_err(bad_input)?;
    let candidate = candidate(question);
    steps::check(&question.hpl)?;
    let terms = predictor.breakdown(&candidate);
    let list = [
        ("FACT", terms.fact_s),
        ("pivot exchange", terms.pivot_s),
        ("LBCAST", terms.lbcast_s),
        ("RS", terms.rs_s),
        ("triangular solves", terms.trsm_s),
        ("matrix products", terms.gemm_s),
        ("back substitution", terms.trsv_s),
        ("hidden by DEPTH", -terms.hidden_s),
    ];
    let worst = machine.rates.iter().map(|rate| rate.fit_error).fold(0.0, f64::max);
    let parameters = vec![
        ("rates", machine.host.origin.clone()),
        ("fit", format!("largest error of the fitted rates: {:.0} %", 100.0 * worst)),
        ("DEPTH", question.hpl.depth.to_string()),
    ];
    Ok(Answer {
        time_s: terms.total_s(),
        terms: list.map(|(name, time_s)| term("ranks", name, time_s)).into(),
        timeline: None,
        parameters,
        notes: predictor.warnings(&candidate),
    })
}

fn timeline(machine: &Machine, question: &Question) -> anyhow::Result<Answer> {
    let Some(model) = OwnModel::new(machine) else { return recursion(machine, question) };
    scenario::Placement::new(machine, &question.run()).map_err(bad_input)?;
    let candidate = candidate(question);
    steps::check(&question.hpl)?;
    if !model.is_short(&candidate) {
        return Err(steps::too_many(&question.hpl));
    }
    let words: Vec<String> = words(&candidate).into_iter().map(|(name, value)| format!("{name} {value}")).collect();
    let parameters = vec![("phases", machine.host.origin.clone()), ("candidate", words.join("  "))];
    Ok(stepwise(model.timeline(&candidate), parameters, model.warnings(&candidate)))
}

fn recursion(machine: &Machine, question: &Question) -> anyhow::Result<Answer> {
    if machine.timeline.is_none() {
        return Err(bad_input(
            "timeline needs [[phase]], measured by hpl-tune calibrate, or [timeline] with the costs of a rank; the description \
             states neither",
        ));
    }
    let timeline = columns::timeline(machine, question)?;
    let HplParams { depth, bcast, swap, pmap, .. } = question.hpl;
    let choices = format!("DEPTH {depth}  BCAST {}  SWAP {}  PMAP {}", bcast.name(), swap.name(), pmap.name());
    let parameters =
        vec![("costs", machine.host.origin.clone()), ("program", "Netlib's".to_owned()), ("choices", choices)];
    Ok(stepwise(timeline, parameters, columns::notes(machine, question)))
}

/// The answer of a model that walks the steps.
fn stepwise(timeline: Timeline, parameters: Vec<(&'static str, String)>, notes: Vec<String>) -> Answer {
    Answer { time_s: timeline.total_s, terms: phases(&timeline), timeline: Some(timeline), parameters, notes }
}

/// The run as a candidate of our own engine.
fn candidate(question: &Question) -> Candidate {
    Candidate { hpl: question.hpl, engine: EngineParams { threads: question.threads, ..EngineParams::default() } }
}

fn closed_form_parameters(gamma: &Gamma, choices: &Choices) -> Vec<(&'static str, String)> {
    let rate = 1e-9 / gamma.s_per_flop;
    let mut parameters = vec![
        ("rank", format!("{rate:.1} GFLOP/s, from {}", gamma.origin)),
        ("row exchange", format!("{} words per word of U", choices.update_coefficient)),
    ];
    if choices.layering == Layering::Ends {
        parameters.push(("inner layers", "not charged".to_owned()));
    }
    parameters
}

/// Phases of a timeline as terms.
fn phases(timeline: &Timeline) -> Vec<Term> {
    let sums = timeline.sums();
    let list = [
        ("FACT", sums.fact_s),
        ("LBCAST", sums.lbcast_s),
        ("RS", sums.rs_s),
        ("UPDATE", sums.update_s),
        ("back substitution", timeline.trsv_s),
    ];
    list.map(|(name, time_s)| term("ranks", name, time_s)).into()
}

fn term(layer: &str, term: &'static str, time_s: f64) -> Term {
    Term { layer: layer.to_owned(), term, time_s }
}

#[cfg(test)]
mod tests {
    use space::machine::{EnginePhase, Node, PhaseRate, Rate, RateKernel};

    use super::*;

    /// A node of four cores whose kernels and phases are measured.
    fn machine() -> Machine {
        let rate = |kernel: RateKernel| Rate {
            kernel,
            threads: 1,
            coefficients: vec![1e-10; kernel.coefficient_count()],
            valid: vec![[1.0, 1e4]; kernel.size_count()],
            spread: 0.0,
            fit_error: 0.0,
            date: String::new(),
            origin: String::new(),
        };
        let phase = |phase: EnginePhase| PhaseRate {
            phase,
            threads: 1,
            coefficients: vec![1e-9; phase.coefficient_count()],
            n: [500, 1000],
            nb: [16, 256],
            runs: 9,
            spread: 0.0,
            fit_error: 0.0,
            date: String::new(),
            origin: String::new(),
        };
        let node = Node { name: "node".into(), count: 1, cores: 4, ..Node::default() };
        Machine {
            nodes: vec![node],
            rates: RateKernel::ALL.map(rate).into(),
            phases: EnginePhase::ALL.map(phase).into(),
            ..Machine::default()
        }
    }

    fn time_s(model: Model, machine: &Machine) -> f64 {
        let question = Question { hpl: HplParams::baseline(2000, 1, 1), nodes: None, threads: 1 };
        model.answer(machine, &question, &Choices::default()).unwrap().time_s
    }

    #[test]
    fn the_calibrated_model_takes_no_phases() {
        let with = machine();
        let without = Machine { phases: Vec::new(), ..with.clone() };
        let calibrated_s = time_s(Model::Calibrated, &with);
        assert_eq!(calibrated_s, time_s(Model::Calibrated, &without));
        assert!(time_s(Model::Timeline, &with) > 2.0 * calibrated_s);
    }
}
