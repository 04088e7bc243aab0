//! `hpl-tune predict`: what a model says of a run on a described machine.

use std::io::Write;

use objectives::real::printable;
use objectives::scenario::Choices;
use space::machine::Machine;

use crate::cli::predict::PredictArgs;
use crate::exit;
use crate::predict::compare::MeasuredComparison;
use crate::predict::text::PredictionText;
use crate::predict::{Model, Question, WantedRun, plot};
use crate::record::folder::replace_file;
use crate::search::progress::say;
use crate::session::input;

/// Predicts one run, or all that were measured on the machine, and prints it.
///
/// # Errors
/// A machine that is none, a run that does not fit it, a figure that its description lacks, or a file that cannot be
/// written.
pub fn predict(args: &PredictArgs) -> anyhow::Result<u8> {
    let machine = input::load(&args.machine)?;
    let choices = args.choices.choices(&machine);
    let mut out = std::io::stdout().lock();
    let model = args.model.unwrap_or_else(|| Model::best_for(&machine));
    if args.measured || args.leave_one_out {
        let comparison = if args.leave_one_out {
            MeasuredComparison::leave_one_out(&machine, args.nb)?
        } else {
            let wanted = wanted(args)?;
            let of = |choices: &Choices| MeasuredComparison::of(&machine, model, choices, &wanted);
            let comparison = of(&choices)?;
            let predicted = |choices: &Choices| Some(of(choices).ok()?.predicted_gflops());
            let idle = idle(args, &machine, predicted, &comparison.predicted_gflops());
            if !idle.is_empty() {
                say(&format!("note: without {} these predictions are the same", idle.join(", ")));
            }
            say_unseen(args, model, &machine);
            comparison
        };
        if args.nb.is_some() && machine.measured.iter().all(|run| run.nb.is_some()) {
            say("note: without --nb these predictions are the same, as each measured run states its NB");
        }
        let text = if args.json { comparison.json()? } else { printable(&comparison.text()).into_owned() };
        out.write_all(text.as_bytes())?;
        return Ok(exit::DONE);
    }
    let question = Question::new(&wanted(args)?, &machine)?;
    let answer = model.answer(&machine, &question, &choices)?;
    let idle =
        idle(args, &machine, |choices| Some(model.answer(&machine, &question, choices).ok()?.time_s), &answer.time_s);
    if !idle.is_empty() {
        say(&format!("note: without {} this prediction is the same", idle.join(", ")));
    }
    say_unseen(args, model, &machine);
    if let Some(path) = &args.plot {
        let picture = plot::picture(&machine, model, &question, &choices, &answer);
        replace_file(path, picture.as_bytes())?;
    }
    let prediction = PredictionText::new(&machine, model, &question, &answer);
    // The description may be of somebody else.
    let text = if args.json { prediction.json()? } else { printable(&prediction.text()).into_owned() };
    out.write_all(text.as_bytes())?;
    if let Some(path) = args.plot.as_ref().filter(|_| !args.json) {
        writeln!(out, "picture in {}", path.display())?;
    }
    Ok(exit::DONE)
}

/// What the flags say of the run.
///
/// # Errors
/// A HPL.dat that cannot be read, or names several runs.
fn wanted(args: &PredictArgs) -> anyhow::Result<WantedRun> {
    Ok(WantedRun {
        dat: args.dat.as_deref().map(input::single_run).transpose()?,
        nodes: args.nodes,
        n: args.n,
        nb: args.nb,
        p: args.p,
        q: args.q,
        threads: args.threads,
        depth: args.depth,
        bcast: args.bcast,
        swap: args.swap,
        pmap: args.pmap,
    })
}

/// Choices with one of the second, the usual ones.
type Without = fn(Choices, Choices) -> Choices;

/// Flags of [`Choices`] that were given and without all of which `predicted` says `with_all`, too.
fn idle<T: PartialEq>(
    args: &PredictArgs,
    machine: &Machine,
    predicted: impl Fn(&Choices) -> Option<T>,
    with_all: &T,
) -> Vec<&'static str> {
    let given = args.choices.choices(machine);
    let layering = machine.choices.and_then(|published| published.layers).unwrap_or_default();
    let usual = Choices { layering, ..Choices::default() };
    let without: [(&str, Without); 12] = [
        ("--reading", |c, usual| Choices { reading: usual.reading, ..c }),
        ("--update-coefficient", |c, usual| Choices { update_coefficient: usual.update_coefficient, ..c }),
        ("--memory", |c, usual| Choices { memory: usual.memory, ..c }),
        ("--layers", |c, usual| Choices { layering: usual.layering, ..c }),
        ("--inner-grid", |c, usual| Choices { inner: usual.inner, ..c }),
        ("--round-n", |c, usual| Choices { round_n: usual.round_n, ..c }),
        ("--rank-gflops", |c, usual| Choices { rank_gflops: usual.rank_gflops, ..c }),
        ("--alpha", |c, usual| Choices { alpha_s: usual.alpha_s, ..c }),
        ("--link", |c, usual| Choices { link_gbytes_per_s: usual.link_gbytes_per_s, ..c }),
        ("--split", |c, usual| Choices { split: usual.split, ..c }),
        ("--fact", |c, usual| Choices { fact: usual.fact, ..c }),
        ("--host-panel-gflops", |c, usual| Choices { host_panel_gflops: usual.host_panel_gflops, ..c }),
    ];
    let mut kept = given;
    let mut idle = Vec::new();
    for (flag, reset) in without {
        let choices = reset(kept, usual);
        if choices != kept && predicted(&choices).as_ref() == Some(with_all) {
            kept = choices;
            idle.push(flag);
        }
    }
    idle
}

/// Says which parameters were given that the model does not depend on.
fn say_unseen(args: &PredictArgs, model: Model, machine: &Machine) {
    let unseen = unseen(args, model.sees(machine));
    if !unseen.is_empty() {
        say(&format!(
            "note: the model {} does not depend on {}; the prediction is the same without",
            model.name(),
            unseen.join(", ")
        ));
    }
}

/// Parameters that were given and do not change what the model says.
fn unseen(args: &PredictArgs, seen: &[&str]) -> Vec<&'static str> {
    let given = [
        ("DEPTH", args.depth.is_some()),
        ("BCAST", args.bcast.is_some()),
        ("SWAP", args.swap.is_some()),
        ("PMAP", args.pmap.is_some()),
    ];
    given.iter().filter(|(name, given)| *given && !seen.contains(name)).map(|(name, _)| *name).collect()
}
