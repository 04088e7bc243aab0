//! What a disk may hold after a power loss: a model of a file system that promises no more than POSIX does.
//!
//! On the disk is what was synced. Of what was written to a file since, any sectors may have arrived, the others hold
//! what was there before or zeros, and the file has any length up to the longest; of the names that were made or taken away in
//! a folder since it was synced, a first part of them, or any of them. Syncing a file says nothing of its name.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rand::seq::IndexedRandom;
use rand::{Rng, RngExt};

use super::trace::Call;

/// Bytes that a disk writes at once.
const SECTOR: usize = 512;

/// Number of a file or folder.
type Node = usize;

/// A file system below one folder, which is on the disk itself.
#[derive(Debug, Default)]
pub(super) struct Disk {
    files: BTreeMap<Node, File>,
    folders: BTreeMap<Node, Folder>,
    next: Node,
}

#[derive(Debug, Default)]
struct File {
    synced: Vec<u8>,
    now: Vec<u8>,
}

/// A change of the names in a folder.
#[derive(Debug, Clone)]
enum Change {
    Set(String, Node),
    Move(String, String, Node),
    Remove(String),
}

#[derive(Debug, Default)]
struct Folder {
    synced: BTreeMap<String, Node>,
    since: Vec<Change>,
}

impl Change {
    fn apply(&self, names: &mut BTreeMap<String, Node>) {
        match self {
            Self::Set(name, node) => drop(names.insert(name.clone(), *node)),
            Self::Move(from, to, node) => {
                names.remove(from);
                names.insert(to.clone(), *node);
            }
            Self::Remove(name) => drop(names.remove(name)),
        }
    }
}

impl Folder {
    fn now(&self) -> BTreeMap<String, Node> {
        self.with(|_| true)
    }

    /// The names, where of the changes since it was synced those took place for whose numbers `kept` says so.
    fn with(&self, mut kept: impl FnMut(usize) -> bool) -> BTreeMap<String, Node> {
        let mut names = self.synced.clone();
        let changes = self.since.iter().enumerate().filter(|(number, _)| kept(*number));
        changes.for_each(|(_, change)| change.apply(&mut names));
        names
    }
}

/// What became of the writes that were not synced.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Loss {
    /// None of them arrived.
    All,
    /// All arrived: what a killed program leaves.
    None,
    /// Names arrived, contents did not: files are empty, or hold zeros.
    Contents,
    /// Some arrived, each for itself.
    Some,
    /// As `Some`; what was not synced may be damaged or be there twice.
    Damaged,
}

impl Loss {
    pub(super) const ALL: [Self; 5] = [Self::All, Self::None, Self::Contents, Self::Some, Self::Damaged];
}

impl Disk {
    const ROOT: Node = 0;

    pub(super) fn new() -> Self {
        let mut disk = Self { next: 1, ..Self::default() };
        disk.folders.insert(Self::ROOT, Folder::default());
        disk
    }

    /// The node at a path below the root, as programs see it.
    fn find(&self, path: &Path) -> Option<Node> {
        let step = |node: Node, name: &std::ffi::OsStr| self.folders.get(&node)?.now().get(name.to_str()?).copied();
        path.iter().try_fold(Self::ROOT, step)
    }

    fn change(&mut self, path: &Path, change: impl FnOnce(String) -> Change) {
        let parent = self.find(path.parent().unwrap()).expect("its folder is there");
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        self.folders.get_mut(&parent).unwrap().since.push(change(name));
    }

    fn file(&mut self, path: &Path) -> &mut File {
        let node = self.find(path).unwrap_or_else(|| panic!("{} was not made", path.display()));
        self.files.get_mut(&node).unwrap()
    }

    /// Does what a program asked for below `home`, the root.
    pub(super) fn run(&mut self, call: &Call, home: &Path) {
        let below = |path: &Path| path.strip_prefix(home).unwrap().to_owned();
        match call {
            Call::Create(path) | Call::Empty(path) => {
                let path = below(path);
                if self.find(&path).is_none() {
                    self.files.insert(self.next, File::default());
                    let node = self.next;
                    self.change(&path, |name| Change::Set(name, node));
                    self.next += 1;
                }
                if matches!(call, Call::Empty(_)) {
                    self.file(&path).now.clear();
                }
            }
            Call::MakeFolder(path) => {
                self.folders.insert(self.next, Folder::default());
                let node = self.next;
                self.change(&below(path), |name| Change::Set(name, node));
                self.next += 1;
            }
            Call::Write(path, bytes) => self.file(&below(path)).now.extend(bytes),
            Call::Truncate(path, len) => self.file(&below(path)).now.resize(*len as usize, 0),
            Call::Sync(path) => {
                let node = self.find(&below(path)).unwrap();
                if let Some(folder) = self.folders.get_mut(&node) {
                    folder.synced = folder.now();
                    folder.since.clear();
                } else {
                    let file = self.files.get_mut(&node).unwrap();
                    file.synced.clone_from(&file.now);
                }
            }
            Call::Rename(from, to) => {
                let (from, to) = (below(from), below(to));
                assert_eq!(from.parent(), to.parent(), "a rename within one folder");
                let node = self.find(&from).unwrap();
                let name = from.file_name().unwrap().to_str().unwrap().to_owned();
                self.change(&to, |to| Change::Move(name, to, node));
            }
            Call::Remove(path) => self.change(&below(path), Change::Remove),
            Call::Say(_) => {}
        }
    }

    /// Writes to `to`, an empty folder, what the disk may hold after a power loss.
    pub(super) fn lose_power(&self, loss: Loss, to: &Path, rng: &mut impl Rng) {
        self.write(Self::ROOT, loss, to, rng);
    }

    fn write(&self, node: Node, loss: Loss, to: &Path, rng: &mut impl Rng) {
        if let Some(file) = self.files.get(&node) {
            return fs::write(to, file.after(loss, rng)).unwrap();
        }
        let folder = &self.folders[&node];
        if node != Self::ROOT {
            fs::create_dir(to).unwrap();
        }
        let first = rng.random_range(0..=folder.since.len());
        let in_order = rng.random();
        let kept = |number: usize| match loss {
            Loss::All => false,
            Loss::None | Loss::Contents => true,
            Loss::Some | Loss::Damaged if in_order => number < first,
            Loss::Some | Loss::Damaged => rng.random(),
        };
        let names = folder.with(kept);
        names.iter().for_each(|(name, node)| self.write(*node, loss, &to.join(name), rng));
    }
}

impl File {
    /// What the disk may hold of it.
    fn after(&self, loss: Loss, rng: &mut impl Rng) -> Vec<u8> {
        let (before, now) = (&self.synced, &self.now);
        if before == now || loss == Loss::All {
            return before.clone();
        }
        if loss == Loss::None {
            return now.clone();
        }
        let longest = before.len().max(now.len());
        let shortest = before.len().min(now.len());
        let len = *[before.len(), now.len(), rng.random_range(shortest..=longest)].choose(rng).unwrap();
        let zero = |bytes: &[u8], at: usize| bytes.get(at).copied().unwrap_or(0);
        let mut held: Vec<u8> = (0..len).map(|at| zero(before, at)).collect();
        if loss == Loss::Contents {
            return held;
        }
        // What was synced and is still there stays as it is.
        let kept = before.iter().zip(now).take_while(|(before, now)| before == now).count();
        for sector in 0..len.div_ceil(SECTOR) {
            if rng.random() {
                let range = sector * SECTOR..len.min((sector + 1) * SECTOR);
                range.for_each(|at| held[at] = zero(now, at));
            }
        }
        if loss == Loss::Damaged && len > kept {
            if rng.random() {
                let twice = held[rng.random_range(kept..len)..].to_vec();
                held.extend(twice);
            } else {
                let at = rng.random_range(kept..len);
                held[at] ^= 1 << rng.random_range(0..8);
            }
        }
        held
    }
}
