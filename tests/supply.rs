//! What the program is built from: licences of all packages, and `unsafe` in those that are linked into it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use spdx::{Expression, LicenseItem, ParseMode};
use syn::visit::{self, Visit};

use crate::docs::pages::{Page, root};

/// Licences that a package may be used under: all allow use and distribution of the program under its own.
const ALLOWED: [&str; 9] =
    ["Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "ISC", "MIT", "Unicode-3.0", "Unlicense", "Zlib"];

/// A package of the lock file that is built on this platform.
struct Package {
    name: String,
    version: String,
    licence: Option<String>,
    /// Its Cargo.toml.
    manifest: PathBuf,
    /// Whether the program links it.
    linked: bool,
    ours: bool,
}

/// What cargo says of the workspace, with all features, tests and builds.
fn packages() -> Vec<Package> {
    let arguments = "metadata --format-version 1 --locked --all-features --filter-platform x86_64-unknown-linux-gnu";
    let output = Command::new(env!("CARGO")).args(arguments.split(' ')).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let linked = linked(&found);
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let package = |value: &Value| Package {
        name: text(&value["name"]).unwrap(),
        version: text(&value["version"]).unwrap(),
        licence: text(&value["license"]),
        manifest: text(&value["manifest_path"]).unwrap().into(),
        linked: linked.contains(value["id"].as_str().unwrap()),
        ours: value["source"].is_null(),
    };
    found["packages"].as_array().unwrap().iter().map(package).collect()
}

/// The packages that `hpl-tune` links, by their ids: its dependencies and theirs, without those of tests and builds and
/// without macros.
fn linked(found: &Value) -> BTreeSet<String> {
    let macros = |package: &Value| package["targets"][0]["kind"][0] == "proc-macro";
    let all = found["packages"].as_array().unwrap();
    let macros: BTreeSet<&str> = all.iter().filter(|&p| macros(p)).filter_map(|p| p["id"].as_str()).collect();
    let nodes = found["resolve"]["nodes"].as_array().unwrap();
    let of: BTreeMap<&str, &Value> = nodes.iter().map(|node| (node["id"].as_str().unwrap(), node)).collect();
    let mut open: Vec<&str> = of.keys().copied().filter(|id| id.contains("/tuner#")).collect();
    assert_eq!(open.len(), 1, "the package in tuner/");
    let mut linked = BTreeSet::new();
    while let Some(id) = open.pop() {
        if !linked.insert(id.to_owned()) {
            continue;
        }
        for dependency in of[id]["deps"].as_array().unwrap() {
            let is_linked = dependency["dep_kinds"].as_array().unwrap().iter().any(|kind| kind["kind"].is_null());
            let (name, package) = (dependency["name"].as_str().unwrap(), dependency["pkg"].as_str().unwrap());
            if is_linked && !macros.contains(package) && name != "mpi" {
                open.push(package);
            }
        }
    }
    linked
}

/// Why a package may not be used.
fn refusal(package: &Package) -> Option<String> {
    let text = package.licence.as_deref().unwrap_or_default();
    let expression = Expression::parse_mode(text, ParseMode::LAX);
    let may = |license: &LicenseItem| matches!(license, LicenseItem::Spdx { id, .. } if ALLOWED.contains(&id.name));
    let allowed = expression.is_ok_and(|expression| expression.evaluate(|wanted| may(&wanted.license)));
    (!allowed).then(|| format!("{} {}: '{text}'", package.name, package.version))
}

#[test]
fn every_package_has_a_licence_that_may_be_used() {
    let packages = packages();
    assert!(packages.len() > 150, "{}", packages.len());
    let refused: Vec<String> = packages.iter().filter_map(refusal).collect();
    assert!(refused.is_empty(), "licences outside of {ALLOWED:?}: {refused:#?}");
}

#[test]
fn a_licence_that_may_not_be_used_is_found() {
    let of = |licence: Option<&str>| Package {
        name: "x".into(),
        version: "1".into(),
        licence: licence.map(str::to_owned),
        manifest: PathBuf::new(),
        linked: false,
        ours: false,
    };
    for refused in [None, Some(""), Some("GPL-3.0-only"), Some("MIT AND GPL-3.0-only"), Some("LicenseRef-own")] {
        assert!(refusal(&of(refused)).is_some(), "{refused:?}");
    }
    for allowed in ["MIT", "GPL-2.0-only OR MIT", "MIT/Apache-2.0", "Apache-2.0 WITH LLVM-exception"] {
        assert!(refusal(&of(Some(allowed))).is_none(), "{allowed}");
    }
}

/// Blocks, functions, traits and implementations that are `unsafe`.
#[derive(Default)]
struct Unsafe(usize);

impl<'ast> Visit<'ast> for Unsafe {
    fn visit_expr_unsafe(&mut self, block: &'ast syn::ExprUnsafe) {
        self.0 += 1;
        visit::visit_expr_unsafe(self, block);
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        self.0 += usize::from(signature.unsafety.is_some());
        visit::visit_signature(self, signature);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        self.0 += usize::from(item.unsafety.is_some());
        visit::visit_item_impl(self, item);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.0 += usize::from(item.unsafety.is_some());
        visit::visit_item_trait(self, item);
    }
}

/// Counts in all sources below a folder; what a macro writes is not seen.
fn unsafe_below(folder: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let of = |path: PathBuf| {
        if path.is_dir() {
            return unsafe_below(&path);
        }
        let source = path.extension().is_some_and(|end| end == "rs").then(|| std::fs::read_to_string(&path).ok());
        let mut found = Unsafe::default();
        if let Some(Ok(file)) = source.flatten().map(|text| syn::parse_file(&text)) {
            found.visit_file(&file);
        }
        found.0
    };
    entries.flatten().map(|entry| of(entry.path())).sum()
}

/// The rows `| package | version | licence | count |` of a table, the most first.
fn table(packages: &[Package]) -> Vec<(usize, String)> {
    let linked = packages.iter().filter(|package| package.linked);
    let row = |package: &Package| {
        let count = unsafe_below(&package.manifest.with_file_name("src"));
        let licence = package.licence.as_deref().unwrap_or("none");
        (count, format!("| {} | {} | {licence} | {count} |", package.name, package.version))
    };
    let mut rows: Vec<(usize, String)> = linked.map(row).collect();
    rows.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    rows
}

/// Prints the table of docs/supply-chain.md:
/// `cargo test --release -p hpl-tune --test tests -- --ignored --nocapture unsafe_by_package`.
#[test]
#[ignore = "prints a table"]
fn unsafe_by_package() {
    let rows = table(&packages());
    let with = rows.iter().filter(|(count, _)| *count > 0).count();
    println!("{} packages, {with} with unsafe, {} in all", rows.len(), rows.iter().map(|row| row.0).sum::<usize>());
    rows.iter().for_each(|(_, row)| println!("{row}"));
}

/// The page says how many there are in our packages at most: who adds one changes the page, and says why in the commit.
#[test]
fn unsafe_in_our_packages_is_no_more_than_the_page_says() {
    let page = Page::read("docs/supply-chain.md").text;
    let ours: Vec<Package> = packages().into_iter().filter(|package| package.ours).collect();
    assert_eq!(ours.len(), 4);
    for package in ours {
        let count = unsafe_below(&package.manifest.with_file_name("src"));
        let row = page.lines().find_map(|line| line.strip_prefix(&format!("| {} |", package.name)));
        let said = row.and_then(|row| row.trim_end_matches([' ', '|']).rsplit(' ').next()?.parse::<usize>().ok());
        let said = said.unwrap_or_else(|| panic!("docs/supply-chain.md has no row of {}", package.name));
        assert!(count <= said, "{}: {count} unsafe, docs/supply-chain.md says {said}", package.name);
    }
}
