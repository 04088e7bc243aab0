//! `hpl-tune completions`: what a shell completes.

use std::io::Write;

use clap::CommandFactory;
use clap_complete::{Shell, generate};

use crate::cli::Cli;
use crate::cli::completions::CompletionsArgs;
use crate::exit;

/// Prints the completions of `hpl-tune` for a shell.
///
/// # Errors
/// A standard output that is closed.
pub fn completions(args: &CompletionsArgs) -> anyhow::Result<u8> {
    let mut text = Vec::new();
    generate(args.shell, &mut Cli::command(), "hpl-tune", &mut text);
    let text = String::from_utf8(text)?;
    let text = if args.shell == Shell::Bash { with_one_name(&text) } else { text };
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(exit::DONE)
}

/// The completions for bash with one name for the program. clap_complete 4.6 has two where the program has a hyphen, `hpl__tune` where it finds the command
/// of a line and `hpl__subcmd__tune` where it says what that command takes; so no flag of a command was completed.
fn with_one_name(text: &str) -> String {
    text.replace("hpl__subcmd__tune", "hpl__tune")
}
