//! Pages of Markdown, as far as the tests look at them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A page.
pub(crate) struct Page {
    /// Its path in the repository.
    pub(crate) name: String,
    /// Its text.
    pub(crate) text: String,
}

/// A fenced block of a page.
pub(crate) struct Block {
    /// The page, and the line of its fence from 1.
    pub(crate) place: String,
    /// The word behind the fence.
    pub(crate) language: String,
    /// What the comments right before it say.
    pub(crate) marks: BTreeMap<String, String>,
    /// What it holds.
    pub(crate) text: String,
}

/// A command with the lines that it is said to print.
pub(crate) struct Example {
    pub(crate) command: String,
    pub(crate) printed: Vec<String>,
}

/// The folder of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// README, CONTRIBUTING, and the pages of the book by name.
pub(crate) fn pages() -> Vec<Page> {
    let mut names: Vec<String> = std::fs::read_dir(root().join("docs"))
        .unwrap()
        .map(|entry| format!("docs/{}", entry.unwrap().file_name().into_string().unwrap()))
        .filter(|name| name.ends_with(".md"))
        .collect();
    names.sort();
    let names = ["README.md".to_owned(), "CONTRIBUTING.md".to_owned()].into_iter().chain(names);
    names.map(|name| Page::read(&name)).collect()
}

impl Page {
    /// The page at this path of the repository.
    pub(crate) fn read(name: &str) -> Self {
        let text = std::fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        Self { name: name.to_owned(), text }
    }

    pub(crate) fn is_of_the_book(&self) -> bool {
        self.name.starts_with("docs/")
    }

    /// Its fenced blocks.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        let (mut blocks, mut marks) = (Vec::new(), BTreeMap::new());
        let mut lines = self.text.lines().enumerate();
        while let Some((index, line)) = lines.next() {
            if let Some(language) = line.strip_prefix("```") {
                let text: Vec<&str> = lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
                let place = format!("{} line {}", self.name, index + 1);
                let marks = std::mem::take(&mut marks);
                blocks.push(Block { place, language: language.to_owned(), marks, text: text.join("\n") + "\n" });
            } else if let Some((key, value)) = mark(line) {
                marks.insert(key, value);
            } else {
                marks.clear();
            }
        }
        blocks
    }

    /// Its text without fenced blocks.
    pub(crate) fn prose(&self) -> String {
        let parts = self.text.split("\n```").enumerate().filter(|(index, _)| index % 2 == 0);
        parts.map(|(_, part)| part).collect::<Vec<_>>().join("\n")
    }

    /// What stands between backquotes outside of blocks.
    pub(crate) fn codes(&self) -> Vec<String> {
        codes(&self.prose())
    }

    /// Targets of its links and pictures.
    pub(crate) fn links(&self) -> Vec<String> {
        let prose = self.prose();
        let ends = prose.split("](").skip(1);
        ends.filter_map(|rest| rest.split_once(')')).map(|(target, _)| target.to_owned()).collect()
    }

    /// Names of its headings in links.
    pub(crate) fn anchors(&self) -> BTreeSet<String> {
        let prose = self.prose();
        let headings = prose.lines().filter(|line| line.starts_with('#'));
        headings.map(|line| anchor(line.trim_start_matches('#').trim())).collect()
    }

    /// The codes in the first cells of the tables below this heading, up to the next one of its level.
    pub(crate) fn first_cells(&self, heading: &str) -> BTreeSet<String> {
        let mut lines = self.text.lines().skip_while(|line| *line != heading);
        assert!(lines.next().is_some(), "{} has no heading '{heading}'", self.name);
        let level = |line: &str| line.chars().take_while(|c| *c == '#').count();
        let inside = lines.take_while(|line| !(1..=level(heading)).contains(&level(line)));
        let lines: Vec<&str> = inside.collect();
        // The row above a line of hyphens is the head of its table.
        let head = |index: usize| lines.get(index + 1).is_some_and(|next| next.starts_with("|--"));
        let rows = lines.iter().enumerate().filter(|(index, _)| !head(*index)).map(|(_, line)| line);
        let cells = rows.filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
        cells.flat_map(codes).collect()
    }
}

impl Block {
    /// Its commands with what they print.
    pub(crate) fn examples(&self) -> Vec<Example> {
        let mut examples: Vec<Example> = Vec::new();
        for line in self.text.lines() {
            match (line.strip_prefix("$ "), examples.last_mut()) {
                (Some(command), _) => examples.push(Example { command: command.to_owned(), printed: Vec::new() }),
                (None, Some(last)) => last.printed.push(line.to_owned()),
                (None, None) => panic!("{}: '{line}' is behind no command; commands begin with '$ '", self.place),
            }
        }
        examples
    }
}

/// Key and value of a comment `<!-- key: value -->`.
fn mark(line: &str) -> Option<(String, String)> {
    let (key, value) = line.strip_prefix("<!-- ")?.strip_suffix(" -->")?.split_once(": ")?;
    Some((key.to_owned(), value.to_owned()))
}

fn codes(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// A heading as links name it: small letters, blanks as hyphens, no other signs.
fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase().replace(' ', "-");
    kept.chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c)).collect()
}
