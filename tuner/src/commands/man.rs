//! `hpl-tune man`: the pages of the manual, made of the flags.

use std::fs;
use std::io::Write;

use anyhow::Context;
use clap::builder::Resettable;
use clap::{Command, CommandFactory};
use clap_mangen::Man;

use crate::cli::Cli;
use crate::cli::man::ManArgs;
use crate::error::RecordError;
use crate::exit;

/// Writes a page for `hpl-tune`, one for each of its commands, and one for `xhpl`.
///
/// # Errors
/// A folder or a page that cannot be written.
pub fn man(args: &ManArgs) -> anyhow::Result<u8> {
    let folder = &args.out;
    let elsewhere = "name another folder with --out";
    fs::create_dir_all(folder).map_err(RecordError::write(folder)).context(elsewhere)?;
    let pages = pages()?;
    for (name, page) in &pages {
        let path = folder.join(name);
        fs::write(&path, page).map_err(RecordError::write(&path)).context(elsewhere)?;
    }
    writeln!(std::io::stdout(), "{} pages in {}", pages.len(), folder.display())?;
    Ok(exit::DONE)
}

/// Pages with the names of their files.
fn pages() -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    let mut program = Cli::command().disable_help_subcommand(true);
    program.build();
    let mut pages = vec![page(&program)?, page(&hpl::program::xhpl::command())?];
    for verb in program.get_subcommands() {
        pages.push(page(verb)?);
    }
    Ok(pages)
}

/// The page of a command. It has the version alone: what `--version` says beyond it holds for one processor.
fn page(command: &Command) -> anyhow::Result<(String, Vec<u8>)> {
    let command = command.clone().long_version(Resettable::Reset);
    let man = Man::new(command).source(concat!("hpl-tune ", env!("CARGO_PKG_VERSION")));
    let mut text = Vec::new();
    man.render(&mut text)?;
    Ok((man.get_filename(), text))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn each_command_has_a_page_with_its_flags() {
        let pages: BTreeMap<_, _> =
            pages().unwrap().into_iter().map(|(name, page)| (name, String::from_utf8(page).unwrap())).collect();
        let mut program = Cli::command();
        program.build();
        let verbs = program.get_subcommands().filter(|verb| verb.get_name() != "help");
        let commands = verbs.map(|verb| (format!("hpl-tune-{}.1", verb.get_name()), verb));
        let commands: Vec<_> = commands.chain([("hpl-tune.1".to_owned(), &program)]).collect();
        assert_eq!(pages.len(), commands.len() + 1, "{:?}", pages.keys());
        for (name, command) in commands {
            let shown = command.get_arguments().filter(|flag| !flag.is_hide_set()).filter_map(|flag| flag.get_long());
            for flag in shown {
                // A hyphen is escaped.
                let written = format!("\\-\\-{}", flag.replace('-', "\\-"));
                assert!(pages[&name].contains(&written), "{name} lacks --{flag}");
            }
            assert!(!pages[&name].contains("commit:"), "{name} tells the commit and the processor");
        }
        assert!(pages["xhpl.1"].contains("report\\-bindings"));
    }
}
