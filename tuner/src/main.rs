//! The program `hpl-tune`.

use std::ffi::OsStr;
use std::process::ExitCode;

use objectives::real::guard;
use tuner::agents::agent;
use tuner::cli::{Cli, Command};
use tuner::cluster::{clock, placement, simulated};
use tuner::power::settings::restorer;
use tuner::record::{decode, table};
use tuner::search::progress::say;
use tuner::session::{children, environment, gpus};
use tuner::{commands, exit};

fn main() -> ExitCode {
    // The guard of a run blocks signals, so it comes before anything that could start a thread.
    if std::env::args_os().nth(1).is_some_and(|verb| verb == guard::VERB) {
        return guard::main(std::env::args_os().skip(2));
    }
    // A copy of this program that mpi-setup has made.
    if std::env::current_exe().is_ok_and(|path| path.file_name().is_some_and(|name| name == "xhpl")) {
        return hpl::program::xhpl::main();
    }
    // Other verbs that only children of this program are started with.
    match std::env::args_os().nth(1).as_deref().and_then(OsStr::to_str) {
        Some(decode::VERB) => return decode::main(std::env::args_os().skip(2)),
        Some(clock::VERB) => return clock::main(std::env::args_os().skip(2)),
        Some(placement::VERB) => return placement::main(),
        Some(objectives::simulated::VERB) => return simulated::main(std::env::args_os().skip(2)),
        Some(restorer::VERB) => return restorer::main(std::env::args_os().skip(2)),
        Some(table::VERB) => return table::main(std::env::args_os().skip(2)),
        Some(agent::VERB) => return agent::main(std::env::args_os().skip(2)),
        Some(gpus::VERB) => return gpus::main(),
        Some(environment::VERB) => return environment::main(std::env::args_os().skip(2)),
        _ => {}
    }
    children::keep_their_ends();
    let cli = Cli::of(std::env::args_os()).unwrap_or_else(|error| error.exit());
    let done = match cli.command {
        None => commands::tune::tune(&cli.tune),
        Some(Command::Tune(args)) => commands::tune::tune(&args),
        Some(Command::Run(args)) => commands::run::run(&args),
        Some(Command::Calibrate(args)) => commands::calibrate::calibrate(&args),
        Some(Command::Doctor(args)) => commands::doctor::doctor(&args),
        Some(Command::Predict(args)) => commands::predict::predict(&args),
        Some(Command::Machines(args)) => commands::machines::machines(&args),
        Some(Command::Report(args)) => commands::report::report(&args),
        Some(Command::Compare(args)) => commands::compare::compare(&args),
        Some(Command::Watch(args)) => commands::watch::watch(&args),
        Some(Command::Pack(args)) => commands::pack::pack(&args),
        Some(Command::Verify(args)) => commands::verify::verify(&args),
        Some(Command::Space(args)) => commands::space::space(&args),
        Some(Command::Replay(args)) => commands::replay::replay(&args),
        Some(Command::Survey(args)) => commands::survey::survey(&args),
        Some(Command::Nodes(args)) => commands::nodes::nodes(&args),
        Some(Command::MpiSetup(args)) => commands::mpi_setup::mpi_setup(&args),
        Some(Command::Weights(args)) => commands::weights::weights(&args),
        Some(Command::Balance(args)) => commands::balance::balance(&args),
        Some(Command::Completions(args)) => commands::completions::completions(&args),
        Some(Command::Man(args)) => commands::man::man(&args),
    };
    match done {
        Ok(code) => ExitCode::from(code),
        // Whoever closed the pipe has seen enough.
        Err(error) if exit::closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("hpl-tune: {}", exit::message(&error)));
            ExitCode::from(exit::code(&error))
        }
    }
}
