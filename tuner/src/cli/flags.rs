//! Every flag of a session: accepted or refused with our engine, with another one, on a resume and in a report.
//!
//! `docs/flags.md` is made here: the cells come from the parser and from [`Engine::check_flags`], not from a hand. Where the
//! two differ, `HPL_TUNE_WRITE_DOCS=1 cargo test --release --workspace --lib -- cli::flags` writes the file again.

use std::collections::BTreeSet;
use std::path::Path;

use clap::{CommandFactory, Parser};

use super::{Cli, Command, TuneArgs};
use crate::session::engine::Engine;

/// A flag with a value to try, and what it changes.
const FLAGS: [(&str, &[&str], &str); 34] = [
    ("--budget", &["2m"], "when the session ends"),
    ("--out", &["DIR"], "the run folder"),
    ("--shared-folder", &[], "who may read the run folder"),
    ("--resume", &["DIR"], "which session is continued"),
    ("--n", &["1000"], "N"),
    ("--ranks", &["2"], "P × Q"),
    ("--threads", &["2"], "threads of each rank"),
    ("--blas", &["builtin"], "the kernels of our engine"),
    ("--engine", &["netlib"], "which HPL runs"),
    ("--program", &["xhpl"], "the program that MPI jobs run"),
    ("--launcher", &["srun"], "how MPI jobs start their ranks"),
    ("--spares", &["1"], "nodes that are kept to replace one that is lost"),
    ("--groups", &["1,4"], "sizes of the groups of nodes that run trials before all of them"),
    ("--local", &[], "whether all nodes of a job are used"),
    ("--simulate", &["FILE"], "the cluster that is simulated"),
    ("--dry-run", &[], "whether anything runs"),
    ("--sbatch", &["FILE"], "whether anything runs; writes a script for Slurm"),
    ("--nodes", &["4", "--sbatch", "FILE"], "nodes that a script asks for, or that the launcher reaches"),
    ("--machine", &["FILE"], "rates and nodes, in place of measured ones"),
    ("--space", &["FILE"], "what is searched"),
    ("--weights", &["FILE"], "shares of unequal ranks"),
    ("--engine-params", &["FILE"], "kernels and shares of unequal ranks"),
    ("--warm-start", &["RUN"], "what is tried first"),
    ("--power-limit", &["10kW"], "the power that the best may take at most"),
    ("--vary", &["clock"], "which settings of the node are searched as well"),
    ("--objective", &["gflops-per-watt"], "what is made as large as possible"),
    ("--strategy", &["random"], "how the next point is chosen"),
    ("--until-gain", &["0.5%"], "when the search ends"),
    ("--seed", &["7"], "random choices"),
    ("--power-log", &["FILE.csv"], "whose readings the power of runs is"),
    ("--power-offset", &["7.5", "--power-log", "FILE.csv"], "the clock of the meter"),
    ("--json", &[], "the summary is JSON"),
    ("--quiet", &[], "no progress"),
    ("--verbose", &[], "why each trial was chosen"),
];

/// Whether the session in `words` starts: its flags are parsed, and its engine obeys them.
fn accepted(words: &[&str]) -> bool {
    let Ok(cli) = Cli::try_parse_from([&["hpl-tune"], words].concat()) else { return false };
    let Some(Command::Report(_)) = cli.command else { return obeyed(&cli.tune) };
    true
}

fn obeyed(args: &TuneArgs) -> bool {
    let program = args.program.as_deref().map(Path::new);
    let engine = Engine::chosen(args.engine.as_deref(), args.launcher.as_deref(), program);
    engine.and_then(|engine| engine.check_flags(args.threads, &args.blas)).is_ok()
}

/// `start` with the flag, unless it has it already.
fn with<'a>(start: &[&'a str], flag: &'a str, value: &[&'a str]) -> Vec<&'a str> {
    if start.contains(&flag) { start.to_vec() } else { [start, &[flag], value].concat() }
}

fn word(accepted: bool) -> &'static str {
    if accepted { "obeyed" } else { "refused" }
}

fn table() -> String {
    let mut text = String::from(
        "# Flags of a session\n\nWhich flags of `hpl-tune` are accepted with our engine, with another one, on a resume and in a report. Obeyed: the\nparser and \
         the engine accept the flag. Refused: the program ends with exit code 2. A resumed session keeps the flags that it was started with.\n\n\
         `--engine cuda` and `--engine hip` are other engines here, and refuse `--launcher` and a `--threads` above 1. `--engine hpl` is our engine, but any\n\
         `--engine` excludes `--spares`, `--groups`, `--local`, `--simulate`, `--weights` and `--engine-params`.\n\n\
         | flag | changes | our engine | another engine | `--resume DIR` | `report DIR` |\n|---|---|---|---|---|---|\n",
    );
    for (flag, value, changes) in FLAGS {
        let resumes = flag == "--resume";
        let start = |more: &[&'static str]| -> Vec<&'static str> {
            if resumes { more.to_vec() } else { [&["--budget", "2m"], more].concat() }
        };
        let ours = match flag {
            "--engine" => "–",
            _ => word(accepted(&with(&start(&[]), flag, value))),
        };
        let others = ["netlib", "rochpl"].map(|engine| accepted(&with(&start(&["--engine", engine]), flag, value)));
        let other = match others {
            _ if resumes => "the session's",
            [true, false] => "as its profile says",
            [both, _] => word(both),
        };
        let resume = word(accepted(&with(&["--resume", "DIR"], flag, value)));
        let report = if accepted(&with(&["report", "DIR"], flag, value)) { "obeyed" } else { "–" };
        text += &format!("| `{flag}` | {changes} | {ours} | {other} | {resume} | {report} |\n");
    }
    text
}

#[test]
fn the_table_has_every_flag() {
    let command = Cli::command();
    let known: BTreeSet<String> = command
        .get_arguments()
        .filter(|arg| !arg.is_hide_set())
        .filter_map(|arg| arg.get_long())
        .map(|name| format!("--{name}"))
        .collect();
    let listed: BTreeSet<String> = FLAGS.iter().map(|(flag, ..)| (*flag).to_owned()).collect();
    let hidden = ["--help", "--version"].map(str::to_owned);
    assert_eq!(known.difference(&hidden.into()).cloned().collect::<BTreeSet<_>>(), listed);
}

#[test]
fn the_documented_table_is_what_the_flags_do() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/flags.md");
    if std::env::var_os("HPL_TUNE_WRITE_DOCS").is_some() {
        std::fs::write(&path, table()).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap_or_default(), table());
}
