//! What README, CONTRIBUTING and the book say is so: commands run, flags exist, files and links are there.
//!
//! A block ```` ```console ```` holds commands after `$ ` and what they print. Comments before a block say how it is checked:
//!
//! - none: the commands run in a folder of the page, in order, and print the lines that follow them; `…` stands for what is left out;
//! - `<!-- needs: WHAT -->`: they need hardware, other programs or time, so that only their flags and files are checked;
//! - `<!-- file: NAME -->`: no commands but a file, which is written to the folder of the page;
//! - `<!-- from: FILE -->`: a part of that file.

mod commands;
mod formats;
pub(crate) mod pages;

use std::collections::BTreeSet;
use std::path::Path;

use self::pages::{Page, pages, root};

/// The most lines that a newcomer reads.
const README_LINES: usize = 200;

#[test]
fn the_readme_is_short() {
    let lines = Page::read("README.md").text.lines().count();
    assert!(lines <= README_LINES, "README.md has {lines} lines, at most {README_LINES}");
}

#[test]
fn links_lead_to_a_file_and_a_heading() {
    let mut wrong = Vec::new();
    for page in pages() {
        let folder = Path::new(&page.name).parent().unwrap();
        for link in page.links().into_iter().filter(|link| !link.contains("://")) {
            let (file, heading) = link.split_once('#').unwrap_or((&link, ""));
            let target = if file.is_empty() { page.name.clone() } else { folder.join(file).display().to_string() };
            // The book holds its own pages only.
            let outside = page.is_of_the_book() && target.contains("..");
            let there = root().join(&target).is_file();
            let named = heading.is_empty() || (there && Page::read(&target).anchors().contains(heading));
            if outside || !there || !named {
                wrong.push(format!("{}: {link}", page.name));
            }
        }
    }
    assert!(wrong.is_empty(), "links that lead nowhere, or out of the book:\n{}", wrong.join("\n"));
}

/// What hpl-tune says of sensors that it may not read ends with "docs/power.md has a udev rule".
#[test]
fn the_page_of_power_has_a_rule_for_each_kind_of_sensors() {
    let text = Page::read("docs/power.md").text;
    for kind in ["powercap", "hwmon", "ipmi"] {
        assert!(text.contains(&format!("SUBSYSTEM==\"{kind}\"")), "{kind}");
    }
}

#[test]
fn the_book_lists_each_of_its_pages_once() {
    let mut listed = Page::read("docs/SUMMARY.md").links();
    listed.sort();
    let pages: Vec<String> = pages()
        .iter()
        .filter(|page| page.is_of_the_book())
        .map(|page| page.name["docs/".len()..].to_owned())
        .filter(|name| name != "SUMMARY.md")
        .collect();
    assert_eq!(listed, pages);
}

#[test]
fn each_section_of_the_benchmarks_names_command_and_machine() {
    let page = Page::read("docs/benchmarks.md");
    let sections: Vec<&str> = page.text.split("\n## ").skip(1).collect();
    assert!(sections.len() > 5);
    for section in sections {
        let name = section.lines().next().unwrap();
        assert!(section.contains("\n```console\n$ "), "benchmarks.md, {name}: which command measures it?");
        assert!(section.contains("\nMachine: "), "benchmarks.md, {name}: on which machine?");
        let (before, table) = section.split_once("\n| ").unwrap_or((section, ""));
        assert!(
            table.is_empty() || before.contains("\n$ "),
            "benchmarks.md, {name}: the command comes before the table"
        );
    }
}

/// Folders of the repository, as paths in texts begin.
const FOLDERS: [&str; 9] =
    ["space/", "hpl/", "objectives/", "tuner/", "datasets/", "tests/", "docs/", "fuzz/", "packaging/"];

#[test]
fn files_that_texts_name_are_there() {
    let mut missing = BTreeSet::new();
    for page in pages() {
        for code in page.codes() {
            let word = code.split_whitespace().next().unwrap_or_default();
            let is_path = FOLDERS.iter().any(|folder| word.starts_with(folder));
            // Of a pattern the folder is looked for.
            let path = word.split('*').next().unwrap().trim_end_matches(':');
            let path = if word.contains('*') { path.rsplit_once('/').map_or("", |(folder, _)| folder) } else { path };
            if is_path && !root().join(path).exists() {
                missing.insert(format!("{}: {code}", page.name));
            }
        }
    }
    assert!(missing.is_empty(), "no such file:\n{}", missing.into_iter().collect::<Vec<_>>().join("\n"));
}

/// All files of a folder as paths below it, also of the folders in it.
fn files_below(folder: &Path) -> Vec<String> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            files.extend(files_below(&path).into_iter().map(|below| format!("{name}/{below}")));
        } else {
            files.push(name);
        }
    }
    files
}

/// ARCHITECTURE.md names files and folders without `src/`, and those of one folder by their ends.
#[test]
fn files_that_the_architecture_names_are_there() {
    let page = Page::read("ARCHITECTURE.md");
    let crates = ["space", "hpl", "objectives", "tuner"];
    let mut there: Vec<String> = crates
        .into_iter()
        .flat_map(|name| {
            files_below(&root().join(name).join("src")).into_iter().map(move |file| format!("/{name}/{file}"))
        })
        .collect();
    for folder in ["tests", "datasets", "packaging"] {
        there.extend(files_below(&root().join(folder)).into_iter().map(|file| format!("/{folder}/{file}")));
    }
    let is_path = |word: &str| {
        let plain = word.chars().all(|c| c.is_ascii_alphanumeric() || "/_.-".contains(c));
        plain && (word.ends_with(".rs") || (word.ends_with('/') && !word.starts_with('/') && word != "src/"))
    };
    let words = page.text.split(|c: char| c.is_whitespace() || "`(),;|".contains(c)).filter(|word| is_path(word));
    let missing: BTreeSet<&str> = words
        .filter(|word| {
            let end = format!("/{word}");
            !there.iter().any(|file| if word.ends_with('/') { file.contains(&end) } else { file.ends_with(&end) })
        })
        .collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md names what is not there: {missing:?}");
}

#[test]
fn parts_of_files_are_as_they_are_there() {
    for page in pages() {
        for block in page.blocks() {
            let Some(name) = block.marks.get("from") else { continue };
            assert!(Page::read(name).text.contains(&block.text), "{}: {name} has other lines", block.place);
        }
    }
}
