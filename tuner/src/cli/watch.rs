//! Flags of `watch`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Flags of `watch`.
#[derive(Debug, Args)]
pub struct WatchArgs {
    /// Run folder, also on a shared file system while the session runs on another machine; by default the newest one in runs/
    #[arg(value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// Print what is known now as text, and end; this is also what happens where the output is no terminal
    #[arg(long)]
    pub once: bool,
    /// Use ASCII signs only; by default where the locale is not UTF-8
    #[arg(long)]
    pub ascii: bool,
    /// Colours; auto has none where NO_COLOR is set
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = ColorChoice::Auto)]
    pub color: ColorChoice,
}

/// When there are colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    /// Where the terminal and the environment allow them.
    Auto,
    /// In any case.
    Always,
    /// Never.
    Never,
}
