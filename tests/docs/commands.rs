//! Commands of the pages run, or at least their flags are those of the programs.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use tempfile::TempDir;
use tuner::cli::Cli;

use super::pages::{Block, Page, pages, root};
use crate::program::{err, out};

/// Packages of the workspace.
const PACKAGES: [&str; 4] = ["space", "hpl", "objectives", "hpl-tune"];
/// Commands of other programs, whose words are theirs.
const OTHERS: [&str; 13] =
    ["reframe", "sbatch", "apt-get", "mdbook", "git", "ls", "uvx", "pipx", "pip", "dpkg", "rpm", "tar", "cd"];
/// Flags that texts name and that belong to other programs.
const OTHER_FLAGS: [&str; 9] = [
    "--signal",
    "--exclude",
    "--cpu-freq",
    "--install",
    "--release",
    "--programs",
    "--show-output",
    "--machinefile",
    "--default-hostfile",
];
/// Seconds after which a command is ended: none takes half of it.
const LIMIT_S: &str = "120";

/// Our two programs under their names, in a folder of their own.
struct Programs(TempDir);

impl Programs {
    fn new() -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let tune = Path::new(env!("CARGO_BIN_EXE_hpl-tune"));
        for name in ["hpl-tune", "xhpl"] {
            let path = folder.path().join(name);
            // It is xhpl where it is called so, which a symbolic link does not show.
            fs::hard_link(tune, &path).or_else(|_| fs::copy(tune, &path).map(drop)).unwrap();
        }
        // A dry run looks for the launcher and must not start it.
        let launcher = folder.path().join("mpirun");
        fs::write(&launcher, "#!/bin/sh\necho 'mpirun was started' >&2\nexit 99\n").unwrap();
        fs::set_permissions(&launcher, fs::Permissions::from_mode(0o755)).unwrap();
        Self(folder)
    }

    fn bash(&self, command: &str, folder: &Path) -> Output {
        let old = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths([self.0.path().to_owned()].into_iter().chain(std::env::split_paths(&old)));
        let mut bash = Command::new("timeout");
        bash.args(["-k", "5", LIMIT_S, "bash", "-c", command]).current_dir(folder).env("PATH", path.unwrap());
        bash.output().unwrap()
    }
}

/// The words of a command, without settings of variables before and redirections behind it.
fn words(command: &str) -> Vec<String> {
    let words = shlex::split(command).unwrap_or_else(|| panic!("a quote is open: {command}"));
    let setting = |word: &String| {
        word.split_once('=').is_some_and(|(name, _)| name.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
    };
    words.into_iter().skip_while(setting).take_while(|word| word != ">").collect()
}

fn is_ours(word: &str) -> bool {
    ["hpl-tune", "xhpl"].contains(&word)
}

fn console(page: &Page) -> Vec<Block> {
    page.blocks().into_iter().filter(|block| block.language == "console").collect()
}

/// Whether the printed lines are in the output, in order; `…` stands for anything.
fn prints(output: &str, printed: &[String]) -> Result<(), String> {
    let fits = |line: &str, wanted: &str| {
        let mut parts = wanted.split('…').map(str::trim_end);
        let mut rest = line.trim_end();
        let begins = parts.next().is_some_and(|first| rest.starts_with(first));
        begins && parts.all(|part| rest.find(part).map(|at| rest = &rest[at + part.len()..]).is_some())
    };
    let mut lines = output.lines();
    for wanted in printed.iter().filter(|line| line.trim() != "…" && !line.is_empty()) {
        if !lines.by_ref().any(|line| fits(line, wanted)) {
            return Err(wanted.clone());
        }
    }
    Ok(())
}

fn run_page(page: &Page, programs: &Programs) {
    let folder = tempfile::tempdir().unwrap();
    symlink(root().join("datasets").canonicalize().unwrap(), folder.path().join("datasets")).unwrap();
    for block in page.blocks() {
        if let Some(name) = block.marks.get("file") {
            fs::write(folder.path().join(name), &block.text).unwrap();
        }
        if block.language != "console" || block.marks.contains_key("needs") {
            continue;
        }
        for example in block.examples() {
            let command = &example.command;
            let first = words(command).first().cloned().unwrap_or_default();
            let place = format!("{}: {command}", block.place);
            assert!(is_ours(&first), "{place}\nit is not run here: put <!-- needs: WHAT --> before the block");
            let output = programs.bash(command, folder.path());
            let (out, err) = (out(&output), err(&output));
            let text = format!("{out}{err}");
            assert_eq!(output.status.code(), Some(0), "{place}\n{text}");
            // A text may show what goes to one of the two, or the results before the rest.
            let printed = |output: &String| prints(output, &example.printed);
            if let Err(line) = printed(&out).or_else(|_| printed(&err)).or_else(|_| printed(&text)) {
                panic!("{place}\ndoes not print '{line}':\n{text}");
            }
        }
    }
}

#[test]
fn commands_of_the_pages_run_or_say_what_they_need() {
    let programs = Programs::new();
    let pages = pages();
    let (left, right): (Vec<_>, Vec<_>) = pages.iter().enumerate().partition(|(index, _)| index % 2 == 0);
    std::thread::scope(|scope| {
        for half in [left, right] {
            let programs = &programs;
            scope.spawn(move || half.into_iter().for_each(|(_, page)| run_page(page, programs)));
        }
    });
}

/// What is wrong with the flags of `hpl-tune`; a text may leave arguments out that a command may not.
fn refused(words: &[String], of_a_text: bool) -> Option<String> {
    let error = Cli::try_parse_from(words).err()?;
    let text = error.to_string();
    let missing = error.kind() == ErrorKind::MissingRequiredArgument || text.contains("a value is required for");
    let shows = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    let fine = shows || (missing && of_a_text);
    (!fine).then_some(text)
}

/// What is wrong with the flags of `xhpl`, which it looks at before HPL.dat.
fn refused_by_xhpl(words: &[String], programs: &Programs) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let output =
        Command::new(programs.0.path().join("xhpl")).args(&words[1..]).current_dir(folder.path()).output().unwrap();
    let good = output.status.success() || err(&output).contains("cannot read HPL.dat");
    (!good).then(|| err(&output))
}

/// What is wrong with a command of cargo: its packages and targets are there.
fn refused_by_cargo(words: &[String], of_a_text: bool) -> Option<String> {
    if let [_, run, release, dashes, flags @ ..] = words
        && (run, release, dashes) == (&"run".to_owned(), &"--release".to_owned(), &"--".to_owned())
    {
        return refused(&[&["hpl-tune".to_owned()], flags].concat(), of_a_text);
    }
    let verbs = ["run", "build", "test", "bench", "fmt", "clippy", "doc"];
    if !words.get(1).is_some_and(|verb| verbs.contains(&verb.as_str())) {
        return Some("no verb of cargo that is known here".to_owned());
    }
    let after = |flag: &str| words.iter().position(|word| word == flag).and_then(|at| words.get(at + 1));
    let package = after("-p");
    if package.is_some_and(|name| !PACKAGES.contains(&name.as_str())) {
        return Some("no such package".to_owned());
    }
    let folder = package.map_or("tuner", |name| if name == "hpl-tune" { "tuner" } else { name });
    let manifest = fs::read_to_string(root().join(folder).join("Cargo.toml")).unwrap();
    let missing = ["--bench", "--test"]
        .iter()
        .filter_map(|flag| after(flag))
        .find(|name| !manifest.contains(&format!("name = \"{name}\"")));
    missing.map(|name| format!("{folder}/Cargo.toml has no {name}"))
}

/// What is wrong with a script: it is there, and knows the long flags before the first quoted words.
fn refused_by_script(words: &[String]) -> Option<String> {
    let path = root().join(&words[0]);
    let Ok(text) = fs::read_to_string(&path) else { return Some(format!("no script {}", words[0])) };
    if fs::metadata(&path).unwrap().permissions().mode() & 0o100 == 0 {
        return Some(format!("{} cannot be executed", words[0]));
    }
    let unknown = words.iter().filter(|word| word.starts_with("--")).find(|flag| !text.contains(flag.as_str()));
    unknown.map(|flag| format!("{} does not know {flag}", words[0]))
}

fn wrong(words: &[String], of_a_text: bool, programs: &Programs) -> Option<String> {
    let script = ["hpl/", "tuner/", "objectives/", "tests/", "fuzz/", "packaging/"]
        .iter()
        .any(|folder| words[0].starts_with(folder));
    match words[0].as_str() {
        // Verbs that only the program itself starts.
        "hpl-tune" if words.get(1).is_some_and(|word| word.starts_with("__")) => None,
        "hpl-tune" => refused(words, of_a_text),
        "xhpl" => refused_by_xhpl(words, programs),
        "cargo" => refused_by_cargo(words, of_a_text),
        _ if script => refused_by_script(words),
        other if OTHERS.contains(&other) => None,
        other => Some(format!("the program '{other}' is not known here")),
    }
}

#[test]
fn flags_of_all_commands_are_those_of_the_programs() {
    let programs = Programs::new();
    let mut complaints = Vec::new();
    let mut commands = 0;
    for page in pages() {
        for (block, example) in
            console(&page).iter().flat_map(|block| block.examples().into_iter().map(move |e| (block, e)))
        {
            commands += 1;
            if let Some(why) = wrong(&words(&example.command), false, &programs) {
                complaints.push(format!("{}: {}\n{why}", block.place, example.command));
            }
        }
        let begins = ["hpl-tune ", "xhpl ", "cargo "];
        for code in page.codes().into_iter().filter(|code| begins.iter().any(|program| code.starts_with(program))) {
            if let Some(why) = wrong(&words(&code), true, &programs) {
                complaints.push(format!("{}: `{code}`\n{why}", page.name));
            }
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    assert!(commands > 50, "{commands}");
}

/// All long flags of `hpl-tune`, its verbs and `xhpl`.
fn known_flags(programs: &Programs) -> BTreeSet<String> {
    let command = Cli::command();
    let all = std::iter::once(&command).chain(command.get_subcommands());
    let ours = all
        .flat_map(|command| command.get_arguments().filter_map(|arg| arg.get_long()).map(|name| format!("--{name}")));
    let help = Command::new(programs.0.path().join("xhpl")).arg("--help").output().unwrap();
    let help = out(&help);
    let of_xhpl = help.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).filter(|word| word.starts_with("--"));
    ours.chain(of_xhpl.map(str::to_owned)).chain(OTHER_FLAGS.map(str::to_owned)).collect()
}

#[test]
fn flags_that_texts_name_exist() {
    let known = known_flags(&Programs::new());
    let mut unknown = BTreeSet::new();
    for page in pages() {
        for code in page.codes().into_iter().filter(|code| code.starts_with("--")) {
            let flag = code.split([' ', '=']).next().unwrap().to_owned();
            if !known.contains(&flag) {
                unknown.insert(format!("{}: {flag}", page.name));
            }
        }
    }
    assert!(unknown.is_empty(), "flags that no program has: {unknown:?}");
}

#[test]
fn printed_lines_are_found_in_order_around_dots() {
    let said = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    let output = "first line 12\nsecond\nthird of 3 lines\n";
    assert_eq!(prints(output, &said(&["first line …", "…", "third of … lines"])), Ok(()));
    assert_eq!(prints(output, &said(&["second", "first …"])), Err("first …".to_owned()));
    assert_eq!(prints(output, &said(&["second but more"])), Err("second but more".to_owned()));
}

/// The folder of a session that a page has played, for those who look at its files.
pub(super) fn simulated_session(into: &Path) -> PathBuf {
    let cluster = root().join("datasets/simulated/four-nodes.toml");
    let folder = into.join("night");
    let words =
        ["--budget", "5m", "--quiet", "--simulate", cluster.to_str().unwrap(), "--out", folder.to_str().unwrap()];
    let output = crate::program::tune(words);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    folder
}
