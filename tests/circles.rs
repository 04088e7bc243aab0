//! No two files of a crate use each other in a circle, so that each can be read after those that it uses; nor do the folders at
//! the top of a crate, but for [`ALLOWED`].
//!
//! A file uses another when a path in it (`use`, `crate::`, `self::`, `super::`) leads to an item of the other, also by a
//! re-export. `pub use` makes no use: a folder's `mod.rs` shows its files' items to others. Tests are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{Attribute, ImplItemFn, Item, ItemFn, ItemImpl, ItemMod, ItemUse, Macro, UseTree, Visibility};

use crate::docs::pages::root;

/// Uses of one folder by another that close a circle: crate, user, used, and the reason.
const ALLOWED: [(&str, &str, &str, &str); 2] = [
    (
        "hpl",
        "backend",
        "lu",
        "the solver calls its backend by traits, and the backend carries out parts of the algorithm",
    ),
    (
        "hpl",
        "error",
        "backend",
        "the one error of a run names the failures of each folder, also of those that return it",
    ),
];

#[test]
fn no_files_use_each_other_in_a_circle() {
    for name in ["space", "hpl", "objectives", "tuner"] {
        let library = root().join(name).join("src/lib.rs");
        let modules = Modules::read(&library);
        let circles = modules.circles();
        assert!(circles.is_empty(), "{name}: files that use each other in a circle: {circles:#?}");
    }
}

#[test]
fn no_folders_use_each_other_in_a_circle() {
    let mut unneeded: Vec<_> = ALLOWED.iter().map(|(name, user, used, _)| (*name, *user, *used)).collect();
    for name in ["space", "hpl", "objectives", "tuner"] {
        let modules = Modules::read(&root().join(name).join("src/lib.rs"));
        let mut uses = modules.uses_by_folder();
        unneeded
            .retain(|(of, user, used)| *of != name || !uses.get_mut(*user).is_some_and(|others| others.remove(*used)));
        let circles = circles(uses);
        assert!(circles.is_empty(), "{name}: folders that use each other in a circle: {circles:#?}");
    }
    assert!(unneeded.is_empty(), "not used, take them out: {unneeded:?}");
}

/// By a re-export, by a path in a macro, and past a test.
#[test]
fn a_circle_is_found() {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join("b")).unwrap();
    let files = [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "use crate::b::Inner; pub fn f(_: Inner) {}"),
        ("b/mod.rs", "mod inner; pub use inner::Inner; #[cfg(test)] mod tests { use crate::a::f; }"),
        ("b/inner.rs", "pub struct Inner; #[cfg(test)] fn t() { crate::a::f(Inner) }"),
    ];
    let write = |(name, text): (&str, &str)| fs::write(home.path().join(name), text).unwrap();
    files.into_iter().for_each(write);
    let library = home.path().join("lib.rs");
    assert!(Modules::read(&library).circles().is_empty());
    write(("b/inner.rs", "pub struct Inner; fn g() { assert!(crate::a::f(Inner)) }"));
    let modules = Modules::read(&library);
    let names = ["a.rs", "b/inner.rs"].map(|name| home.path().join(name));
    assert!(modules.circles().into_keys().eq(&names));
    assert!(circles(modules.uses_by_folder()).into_keys().eq(["a", "b"]));
}

/// Two folders whose files make no circle.
#[test]
fn a_circle_of_folders_is_found() {
    let home = tempfile::tempdir().unwrap();
    let files = [
        ("lib.rs", "mod a; mod b;"),
        ("a/mod.rs", "mod high; pub mod low;"),
        ("a/high.rs", "use crate::b::f;"),
        ("a/low.rs", "pub fn g() {}"),
        ("b.rs", "pub fn f() { crate::a::low::g() }"),
    ];
    fs::create_dir(home.path().join("a")).unwrap();
    files.into_iter().for_each(|(name, text)| fs::write(home.path().join(name), text).unwrap());
    let modules = Modules::read(&home.path().join("lib.rs"));
    assert!(modules.circles().is_empty());
    assert!(circles(modules.uses_by_folder()).into_keys().eq(["a", "b"]));
}

/// Segments of a path below its crate.
type Segments = Vec<String>;

/// A module of a crate: its items lie in `file`.
#[derive(Default)]
struct Module {
    file: PathBuf,
    uses: Vec<Segments>,
    /// Re-exports: names with where they lead.
    exports: BTreeMap<String, Segments>,
}

/// The modules of a crate by their paths.
#[derive(Default)]
struct Modules(BTreeMap<Segments, Module>);

impl Modules {
    fn read(library: &Path) -> Self {
        let mut modules = Self::default();
        modules.read_file(Segments::new(), library);
        modules
    }

    fn read_file(&mut self, at: Segments, file: &Path) {
        let parsed = syn::parse_file(&fs::read_to_string(file).unwrap()).unwrap();
        self.add(at, file, &parsed.items);
    }

    fn add(&mut self, at: Segments, file: &Path, items: &[Item]) {
        let children = items.iter().filter_map(|item| match item {
            Item::Mod(child) if !is_test(&child.attrs) => Some(child),
            _ => None,
        });
        let names = children.clone().map(|child| child.ident.to_string()).collect();
        let module = Module { file: file.to_owned(), ..Module::default() };
        let mut reader = Reader { at: at.clone(), children: names, module };
        items.iter().for_each(|item| reader.visit_item(item));
        self.0.insert(at.clone(), reader.module);
        for child in children {
            let name = child.ident.to_string();
            let below = [&at[..], std::slice::from_ref(&name)].concat();
            match &child.content {
                Some((_, items)) => self.add(below, file, items),
                None => self.read_file(below, &file_of(file, &name)),
            }
        }
    }

    /// The file that holds the item at this path.
    fn file(&self, path: &[String]) -> &Path {
        let known = (0..=path.len()).rev().find(|&count| self.0.contains_key(&path[..count])).unwrap();
        let module = &self.0[&path[..known]];
        match path.get(known).and_then(|name| module.exports.get(name)) {
            Some(leads_to) => self.file(&[leads_to, &path[known + 1..]].concat()),
            None => &module.file,
        }
    }

    /// Files on a circle, or between two, each with those of them that it uses.
    fn circles(&self) -> BTreeMap<&Path, BTreeSet<&Path>> {
        let mut uses: BTreeMap<&Path, BTreeSet<&Path>> = BTreeMap::new();
        for module in self.0.values() {
            let others = module.uses.iter().map(|path| self.file(path)).filter(|file| *file != module.file);
            uses.entry(&module.file).or_default().extend(others);
        }
        circles(uses)
    }

    /// Folders and files at the top of the crate, each with the others that its files use.
    fn uses_by_folder(&self) -> BTreeMap<String, BTreeSet<String>> {
        let source = self.0[&Segments::new()].file.parent().unwrap();
        let folder = |file: &Path| {
            let top = Path::new(file.strip_prefix(source).unwrap().components().next().unwrap().as_os_str());
            top.file_stem().unwrap().to_str().unwrap().to_owned()
        };
        let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for module in self.0.values() {
            let user = folder(&module.file);
            let others = module.uses.iter().map(|path| folder(self.file(path))).filter(|other| *other != user);
            let others: BTreeSet<String> = others.collect();
            uses.entry(user).or_default().extend(others);
        }
        uses
    }
}

/// What of `uses` lies on a circle, or between two.
fn circles<T: Ord + Clone>(mut uses: BTreeMap<T, BTreeSet<T>>) -> BTreeMap<T, BTreeSet<T>> {
    // What uses nothing that is left, and what nothing that is left uses, is on no circle.
    loop {
        let used: BTreeSet<T> = uses.values().flatten().cloned().collect();
        let is_between = |user: &T, others: &BTreeSet<T>| used.contains(user) && !others.is_empty();
        let (kept, gone): (BTreeMap<_, _>, _) = uses.into_iter().partition(|(user, others)| is_between(user, others));
        uses = kept;
        if gone.is_empty() {
            return uses;
        }
        uses.values_mut().for_each(|others| others.retain(|other| !gone.contains_key(other)));
    }
}

/// The file of the module `name` that `parent` declares.
fn file_of(parent: &Path, name: &str) -> PathBuf {
    let owns_its_folder = parent.ends_with("mod.rs") || parent.ends_with("lib.rs");
    let folder = if owns_its_folder { parent.parent().unwrap().to_owned() } else { parent.with_extension("") };
    let [file, of_folder] = [folder.join(format!("{name}.rs")), folder.join(name).join("mod.rs")];
    if file.is_file() { file } else { of_folder }
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let only_tests = |list: &syn::MetaList| list.path.is_ident("cfg") && list.tokens.to_string() == "test";
        attribute.path().is_ident("test") || attribute.meta.require_list().is_ok_and(only_tests)
    })
}

/// Collects what the items of one module use.
struct Reader {
    at: Segments,
    children: BTreeSet<String>,
    module: Module,
}

impl Reader {
    /// The path below the crate, `None` for a path to another crate or to an item in scope.
    fn below_crate(&self, path: &[String]) -> Option<Segments> {
        let (mut base, mut rest) = (self.at.clone(), path);
        match rest[0].as_str() {
            "crate" => (base, rest) = (Segments::new(), &rest[1..]),
            "self" => rest = &rest[1..],
            "super" => {
                while rest.first().is_some_and(|first| first == "super") {
                    base.pop()?;
                    rest = &rest[1..];
                }
            }
            first if self.children.contains(first) => {}
            _ => return None,
        }
        Some([&base, rest].concat())
    }

    fn uses(&mut self, path: &[String]) {
        self.module.uses.extend(self.below_crate(path));
    }

    /// Each name of a `use` with its path.
    fn names(tree: &UseTree, before: &[String], names: &mut Vec<(String, Segments)>) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            UseTree::Path(path) => Self::names(&path.tree, &with(&path.ident), names),
            UseTree::Group(group) => group.items.iter().for_each(|tree| Self::names(tree, before, names)),
            UseTree::Name(name) if name.ident == "self" => {
                names.extend(before.last().map(|last| (last.clone(), before.to_vec())));
            }
            UseTree::Name(name) => names.push((name.ident.to_string(), with(&name.ident))),
            UseTree::Rename(renamed) => names.push((renamed.rename.to_string(), with(&renamed.ident))),
            UseTree::Glob(_) => names.push(("*".to_owned(), before.to_vec())),
        }
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if is_test(&item.attrs) {
            return;
        }
        let mut names = Vec::new();
        Self::names(&item.tree, &[], &mut names);
        for (name, path) in names {
            match item.vis {
                Visibility::Inherited => self.uses(&path),
                _ => self.module.exports.extend(self.below_crate(&path).map(|path| (name, path))),
            }
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Segments = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if ["crate", "self", "super"].contains(&segments[0].as_str()) && segments.len() > 1 {
            self.uses(&segments);
        }
        visit::visit_path(self, path);
    }

    /// Arguments of a macro are tokens: paths are found in their text.
    fn visit_macro(&mut self, called: &'ast Macro) {
        let text = called.tokens.to_string().replace(" :: ", "::");
        for word in text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')) {
            if ["crate::", "self::", "super::"].iter().any(|start| word.starts_with(start)) {
                self.uses(&word.split("::").map(str::to_owned).collect::<Segments>());
            }
        }
    }

    /// A module of its own, see [`Modules::add`].
    fn visit_item_mod(&mut self, _: &'ast ItemMod) {}

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        if !is_test(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        if !is_test(&item.attrs) {
            visit::visit_item_impl(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        if !is_test(&item.attrs) {
            visit::visit_impl_item_fn(self, item);
        }
    }
}
