//! Variables that hold a BLAS or its threads back: named before a session begins.
//!
//! Children keep them, as launchers, batch systems and libraries read many variables, and `run.sh` is run with them,
//! too. So a warning names what is set and, where one library can be measured, what that costs.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitCode};

use hpl::backend::host::kernels;
use objectives::real::answer;
use space::{Candidate, EngineParams, HplParams, KernelChoice};

use crate::session::engine::Engine;

/// The hidden verb that measures a library, as the program must dispatch it to [`main`].
pub const VERB: &str = "__dgemm";

/// Variables that a BLAS or its threads obey begin with these.
const PREFIXES: [&str; 5] = ["OPENBLAS_", "GOTO_", "MKL_", "BLIS_", "OMP_"];

/// Our engine sets one thread for its library, whatever these say.
const THREADS: &str = "_NUM_THREADS";

/// Rates that differ by less are alike.
const ALIKE: f64 = 0.05;

/// A variable with its value.
type Setting = (String, String);

/// Variables that a BLAS obeys, in words.
#[derive(Debug, Clone, PartialEq)]
pub struct Held {
    /// The variables with their values.
    pub named: String,
    /// What they cost, where that is known.
    pub cost: String,
    /// How to be rid of them.
    pub way_out: String,
    /// Rates of the library on one core with and without them, in GFLOP/s; none where these were not measured.
    pub rates: Option<(f64, f64)>,
}

impl Held {
    /// The rate without them, where that is higher by more than rates scatter.
    pub fn better_gflops(&self) -> Option<f64> {
        self.rates.filter(|rates| hold_back(*rates)).map(|(_, without)| without)
    }
}

/// Whether rates with and without variables say that these hold the library back.
fn hold_back((with, without): (f64, f64)) -> bool {
    without > with * (1.0 + ALIKE)
}

/// The note on the variables that the runs of `engine` would obey: with `kernels` where it is ours. `program` is the
/// path of `hpl-tune`, whose children measure.
pub fn warning(engine: &Engine, kernels: Option<&KernelChoice>, program: &Path) -> Option<String> {
    let Held { named, cost, way_out, .. } = held(engine, kernels, program)?;
    Some(format!("the environment sets {named} for the BLAS: {cost}; to run without it: {way_out}"))
}

/// The parts of that note.
pub fn held(engine: &Engine, kernels: Option<&KernelChoice>, program: &Path) -> Option<Held> {
    let settings = obeyed(engine, kernels, std::env::vars_os());
    if settings.is_empty() {
        return None;
    }
    let library = match kernels {
        Some(named) => named.clone(),
        None => engine.calibrated_kernels(),
    };
    let rates = match &library {
        KernelChoice::Blas(path) => {
            measured(|| rate_gflops(program, path, &[]).zip(rate_gflops(program, path, &settings)))
        }
        _ => None,
    };
    Some(words(&settings, rates))
}

/// The rates with and without variables that `measure` gives. Where these seem to hold the library back it measures once more, and the higher
/// ones count: other work lowers a rate for a moment.
fn measured(mut measure: impl FnMut() -> Option<(f64, f64)>) -> Option<(f64, f64)> {
    let first = measure()?;
    if !hold_back(first) {
        return Some(first);
    }
    let again = measure().unwrap_or(first);
    Some((first.0.max(again.0), first.1.max(again.1)))
}

/// Those of `variables` that a BLAS of these runs obeys. What a profile sets itself counts in place of what is set here.
fn obeyed(
    engine: &Engine,
    kernels: Option<&KernelChoice>,
    variables: impl Iterator<Item = (OsString, OsString)>,
) -> Vec<Setting> {
    let foreign = match (engine, kernels) {
        (Engine::Foreign(foreign), _) => Some(foreign),
        (_, Some(KernelChoice::Builtin | KernelChoice::Limited(_))) => return Vec::new(),
        _ => None,
    };
    let any = Candidate { hpl: HplParams::baseline(1, 1, 1), engine: EngineParams::default() };
    let set: Vec<Setting> = foreign.map_or_else(Vec::new, |foreign| foreign.environment(&any, Path::new("/")));
    let matters = |name: &str| {
        PREFIXES.iter().any(|prefix| name.starts_with(prefix))
            && !set.iter().any(|(known, _)| known == name)
            && (foreign.is_some() || !name.ends_with(THREADS))
    };
    let text = |word: OsString| word.to_string_lossy().into_owned();
    let mut found: Vec<Setting> =
        variables.map(|(name, value)| (text(name), text(value))).filter(|(name, _)| matters(name)).collect();
    found.sort_unstable();
    found
}

/// The variables, what they cost where that is known, and how to be rid of them. `rates`: with and without them.
fn words(settings: &[Setting], rates: Option<(f64, f64)>) -> Held {
    let named: Vec<String> = settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let unset: Vec<String> = settings.iter().map(|(name, _)| format!("-u {name}")).collect();
    let cost = match rates {
        Some((with, without)) if (with / without - 1.0).abs() > ALIKE => {
            format!("DGEMM on one core reaches {with:.1} GFLOP/s with, {without:.1} without")
        }
        Some(_) => "DGEMM on one core is as fast without; threads were not tried".to_owned(),
        None => "what that costs was not measured".to_owned(),
    };
    Held { named: named.join(" "), cost, way_out: format!("env {} hpl-tune …", unset.join(" ")), rates }
}

/// Rate of the library at `path` on one core in GFLOP/s, measured in a child without these variables; `None` where that gives
/// none.
pub(crate) fn rate_gflops(program: &Path, path: &Path, without: &[Setting]) -> Option<f64> {
    let mut command = Command::new(program);
    command.arg(VERB).arg(path);
    without.iter().for_each(|(name, _)| {
        command.env_remove(name);
    });
    answer(&mut command)?.trim().parse().ok()
}

/// Runs the verb: prints the rate of the BLAS whose path is the only argument.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let [path] = &arguments[..] else { return ExitCode::FAILURE };
    match kernels::rate_gflops(&KernelChoice::Blas(path.into())) {
        Ok(rate) => {
            println!("{rate}");
            ExitCode::SUCCESS
        }
        Err(_) => ExitCode::FAILURE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(engine: &Engine, kernels: Option<&KernelChoice>, variables: &[&str]) -> Vec<String> {
        let variables = variables.iter().map(|name| (OsString::from(name), OsString::from("1")));
        obeyed(engine, kernels, variables).into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn variables_are_named_where_the_runs_obey_them() {
        let all = ["PATH", "OMP_NUM_THREADS", "MKLROOT", "OPENBLAS_CORETYPE", "MKL_NUM_THREADS", "BLIS_ARCH_TYPE"];
        let foreign = Engine::chosen(Some("hpcc"), None, None).unwrap();
        // Its profile sets OMP_NUM_THREADS itself.
        assert_eq!(names(&foreign, None, &all), ["BLIS_ARCH_TYPE", "MKL_NUM_THREADS", "OPENBLAS_CORETYPE"]);
        let blas = KernelChoice::Blas("/lib/libblas.so.3".into());
        for kernels in [blas, KernelChoice::Auto] {
            assert_eq!(names(&Engine::Ours, Some(&kernels), &all), ["BLIS_ARCH_TYPE", "OPENBLAS_CORETYPE"]);
        }
        assert!(names(&Engine::Ours, Some(&KernelChoice::Builtin), &all).is_empty());
    }

    #[test]
    fn the_sentence_says_value_cost_and_way_out() {
        let settings = [("OPENBLAS_CORETYPE".to_owned(), "Haswell".to_owned())];
        let Held { named, cost, way_out, .. } = words(&settings, Some((30.0, 45.0)));
        assert_eq!(named, "OPENBLAS_CORETYPE=Haswell");
        assert!(cost.contains("30.0 GFLOP/s with, 45.0 without"), "{cost}");
        assert!(way_out.contains("env -u OPENBLAS_CORETYPE hpl-tune"), "{way_out}");
        assert!(words(&settings, Some((44.0, 45.0))).cost.contains("as fast"));
        assert!(words(&settings, None).cost.contains("not measured"));
    }

    #[test]
    fn variables_hold_a_library_back_where_two_measurements_say_so() {
        let settings = [("OPENBLAS_CORETYPE".to_owned(), "Haswell".to_owned())];
        let better = |rates: &[(f64, f64)]| {
            let mut rates = rates.iter().copied();
            let found = words(&settings, measured(|| rates.next())).better_gflops();
            assert_eq!(rates.next(), None, "as often as needed");
            found
        };
        assert_eq!(better(&[(30.0, 45.0), (31.0, 44.0)]), Some(45.0));
        assert_eq!(better(&[(30.0, 45.0), (44.0, 45.5)]), None, "the first was lower for a moment");
        assert_eq!(better(&[(45.0, 30.0)]), None, "they help");
        assert_eq!(better(&[(45.0, 45.5)]), None);
        assert_eq!(better(&[]), None);
    }
}
