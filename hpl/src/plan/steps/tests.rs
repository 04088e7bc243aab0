use proptest::prelude::*;

use super::*;

fn flatten(tasks: &[Task]) -> Vec<&Task> {
    let mut all = Vec::new();
    for task in tasks {
        all.push(task);
        if let Task::Update { beside, .. } = task {
            all.extend(flatten(beside));
        }
    }
    all
}

/// What has happened to one rank's part of the matrix.
struct Rank<'a> {
    plan: &'a Plan,
    col: usize,
    /// Updates that each local column has seen: those by the first so many panels of the window.
    updates: Vec<usize>,
    factored: Vec<usize>,
    sent: Vec<usize>,
    /// Exchanges under way or complete: panel, part, columns, whether waited for.
    exchanges: Vec<(usize, Part, Range<usize>, bool)>,
    first: usize,
}

impl Rank<'_> {
    fn run(&mut self, tasks: &[Task]) {
        let cols = &self.plan.layout.cols;
        for task in flatten(tasks) {
            match task {
                Task::Fact(panel) => {
                    let at = cols.local(panel.ia);
                    let all = panel.k - self.first;
                    assert!(self.updates[at..at + panel.jb].iter().all(|&seen| seen == all), "panel {}", panel.k);
                    self.factored.push(panel.k);
                }
                Task::Lbcast(panel) => self.sent.push(panel.k),
                Task::RsStart { panel, section, .. } => {
                    assert!(self.sent.contains(panel) && !section.cols.is_empty());
                    // The columns have seen every panel before this one: what sets out is final.
                    assert!(self.updates[section.cols.clone()].iter().all(|&seen| seen == panel - self.first));
                    let under_way = self.exchanges.iter().any(|(_, part, _, here)| *part == section.part && !here);
                    assert!(!under_way, "one exchange of a part at a time");
                    self.exchanges.retain(|(_, part, ..)| *part != section.part);
                    self.exchanges.push((*panel, section.part, section.cols.clone(), false));
                }
                Task::RsWait { panel, part } => {
                    let exchange = self.exchanges.iter_mut().find(|(k, of, ..)| k == panel && of == part);
                    exchange.expect("started before").3 = true;
                }
                Task::Update { panel, section, rows, .. } => {
                    assert!(self.sent.contains(panel) && !section.cols.is_empty());
                    if self.plan.layout.rows.procs() > 1 {
                        let exchange = self.exchanges.iter().find(|(k, of, ..)| k == panel && of == rows);
                        let (.., span, here) = exchange.expect("exchanged before");
                        assert!(*here && span.start <= section.cols.start && section.cols.end <= span.end);
                    }
                    for seen in &mut self.updates[section.cols.clone()] {
                        assert_eq!(*seen, panel - self.first, "each panel once, in order");
                        *seen += 1;
                    }
                }
            }
        }
    }
}

fn check(plan: &Plan, window: Range<usize>, row: usize, col: usize) {
    let cols = &plan.layout.cols;
    let (first, len) = (window.start, cols.local_len(col));
    let mut rank =
        Rank { plan, col, updates: vec![0; len], factored: Vec::new(), sent: Vec::new(), exchanges: Vec::new(), first };
    rank.run(&plan.prologue(first, row, col));
    for k in window.clone() {
        rank.run(&plan.step(k, row, col).tasks);
        assert!(
            rank.updates[cols.local_from(col, ((k + 1) * cols.nb()).min(plan.layout.n()))..]
                .iter()
                .all(|&seen| seen >= k + 1 - first)
        );
    }
    let last = plan.steps().min(window.end + plan.depth);
    if plan.depth > 1 && window.end < plan.steps() {
        rank.run(&plan.drain(window.end, col));
        let beyond = cols.local_from(col, (last * cols.nb()).min(plan.layout.n()));
        let seen = plan.steps().min(window.end + plan.depth - 1) - first;
        assert!(rank.updates[beyond..].iter().all(|&updates| updates == seen), "one matrix is left");
        rank.updates[beyond..].fill(window.end - first);
    }
    assert!(rank.sent.iter().copied().eq(first..last), "each panel sets out once, in order");
    assert!(rank.factored.into_iter().eq((first..last).filter(|&k| cols.block_owner(k) == rank.col)));
    for (c, &seen) in rank.updates.iter().enumerate() {
        // Column N is b, which every panel updates.
        let global = cols.global(col, c);
        let block = if global < plan.layout.n() { global / cols.nb() } else { plan.steps() };
        // The columns of panels in flight have seen more than the others.
        let expected = if block < last { block } else { window.end };
        assert_eq!(seen, expected.max(first) - first, "column {c} of {window:?}");
    }
}

/// Each panel is factored once by each rank of its process column and broadcast once to everybody; each trailing
/// column is exchanged and then updated once per step, and a panel is factored after the updates before it.
#[test]
fn steps_cover_the_matrix_once() {
    for (n, nb, p, q) in [(1, 1, 1, 1), (7, 3, 2, 2), (9, 3, 1, 3), (64, 8, 3, 2), (5, 8, 2, 2), (40, 7, 1, 5)] {
        let sections = [(0.0, None), (0.0, Some(3)), (0.3, Some(5)), (0.7, None)];
        for (depth, (split, strip)) in [0, 1, 2, 3, 9].into_iter().flat_map(|depth| sections.map(|cut| (depth, cut))) {
            let plan = Plan { layout: Layout::block_cyclic(n, nb, p, q), depth, split, strip };
            for (row, col) in (0..p).flat_map(|row| (0..q).map(move |col| (row, col))) {
                check(&plan, 0..plan.steps(), row, col);
            }
        }
    }
}

proptest! {
    /// The same of any window of any distribution.
    #[test]
    fn windows_cover_their_steps_once(
        n in 1_usize..120, nb in 1_usize..12, depth in 0_usize..5, split in 0.0_f64..1.0,
        strip in prop::option::of(1_usize..40),
        owners in prop::collection::vec((0_usize..3, 0_usize..3), 121), first in 0_usize..120, len in 1_usize..6,
    ) {
        let table = |len: usize, pick: fn(&(usize, usize)) -> usize| {
            crate::plan::layout::Axis::new(len, nb, 3, owners.iter().take(len.div_ceil(nb)).map(pick).collect())
        };
        let layout = Layout { rows: table(n, |o| o.0), cols: table(n + 1, |o| o.1) };
        let plan = Plan { layout, depth, split, strip };
        let first = first % plan.steps();
        for (row, col) in (0..3).flat_map(|row| (0..3).map(move |col| (row, col))) {
            check(&plan, first..plan.steps().min(first + len), row, col);
        }
    }
}

#[test]
fn rows_of_a_panel_sum_to_what_is_left() {
    let plan = Plan { layout: Layout::block_cyclic(29, 4, 3, 2), depth: 1, split: 0.0, strip: None };
    for k in 0..plan.steps() {
        let panels: Vec<_> = (0..3).map(|row| plan.panel(k, row)).collect();
        assert_eq!(panels.iter().map(|panel| panel.mp).sum::<usize>(), 29 - 4 * k);
        assert_eq!(panels.iter().map(|panel| panel.diag_rows).sum::<usize>(), panels[0].jb);
    }
}

/// SWAP mix asks for the columns of U, of which a strip has few.
#[test]
fn strips_tell_the_columns_of_u() {
    let plan = |strip| Plan { layout: Layout::block_cyclic(80, 10, 2, 1), depth: 1, split: 0.0, strip };
    let of = |plan: &Plan| -> Vec<(usize, usize)> {
        let tasks = plan.step(0, 0, 0).tasks;
        let starts = tasks.iter().filter_map(|task| match task {
            Task::RsStart { section, u_cols, .. } => Some((section.cols.len(), *u_cols)),
            _ => None,
        });
        starts.collect()
    };
    assert_eq!(of(&plan(None)), [(10, 10), (61, 61)]);
    assert_eq!(of(&plan(Some(25))), [(10, 10), (25, 61), (25, 61), (11, 61)]);
}

/// L2 is packed where more is updated by a panel than the columns of the next one.
#[test]
fn a_panel_is_packed_for_long_updates_only() {
    let plan = Plan { layout: Layout::block_cyclic(40, 10, 1, 2), depth: 2, split: 0.0, strip: None };
    let packs = |tasks: &[Task]| -> Vec<(usize, usize, bool)> {
        let updates = flatten(tasks).into_iter().filter_map(|task| match task {
            Task::Update { panel, section, packs, .. } => Some((*panel, section.cols.len(), *packs)),
            _ => None,
        });
        updates.collect()
    };
    // Panel 1, of column 1, gets its missing update before the first step; panels 2 and 3 get theirs in steps 0 and 1.
    assert_eq!(packs(&plan.prologue(0, 0, 1)), [(0, 10, false)]);
    assert_eq!(packs(&plan.step(0, 0, 0).tasks), [(0, 10, true), (1, 10, false), (0, 1, true)]);
    assert_eq!(packs(&plan.step(1, 0, 1).tasks), [(1, 10, false), (2, 10, false)]);
}

/// The schedule of the split update with look-ahead, spelled out once.
#[test]
fn split_update_hides_the_rows_of_one_section_behind_the_other() {
    let plan = Plan { layout: Layout::block_cyclic(80, 10, 2, 1), depth: 1, split: 0.5, strip: None };
    let names = |tasks: &[Task]| -> Vec<String> {
        let name = |task: &Task| match task {
            Task::Fact(panel) => format!("fact {}", panel.k),
            Task::Lbcast(panel) => format!("lbcast {}", panel.k),
            Task::RsStart { panel, section, .. } => format!("start {:?} {panel} {:?}", section.part, section.cols),
            Task::RsWait { panel, part } => format!("wait {part:?} {panel}"),
            Task::Update { panel, section, .. } => format!("update {:?} {panel} {:?}", section.part, section.cols),
        };
        flatten(tasks).into_iter().map(name).collect()
    };
    assert_eq!(names(&plan.prologue(0, 0, 0)), ["fact 0", "lbcast 0", "start Left 0 10..40"]);
    assert_eq!(
        names(&plan.step(0, 0, 0).tasks),
        [
            "wait Left 0",
            "update LookAhead 0 10..20",
            "start Rest 0 40..81",
            "update Left 0 20..40",
            "wait Rest 0",
            "update Rest 0 40..81",
            "fact 1",
            "lbcast 1",
            "start Left 1 20..40",
        ]
    );
    // The left section is used up: one section, as without split.
    let last = ["start LookAhead 4 50..60", "wait LookAhead 4", "update LookAhead 4 50..60"];
    assert_eq!(names(&plan.step(4, 0, 0).tasks)[..3], last);
}
