use proptest::prelude::*;

use super::*;

fn flatten(tasks: &[Task]) -> Vec<&Task> {
    let mut all = Vec::new();
    for task in tasks {
        all.push(task);
        if let Task::Update { overlapped, .. } = task {
            all.extend(flatten(overlapped));
        }
    }
    all
}

/// The tasks done so far on one rank's part of the matrix.
struct Rank<'a> {
    plan: &'a Plan,
    col: usize,
    /// Number of updates of each local column so far, by the panels of the window in order.
    updates: Vec<usize>,
    factored: Vec<usize>,
    /// Panels whose broadcast has started.
    broadcast: Vec<usize>,
    /// Row swaps in flight or complete: panel, part, columns, whether complete.
    swaps: Vec<(usize, Part, Range<usize>, bool)>,
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
                    assert!(self.updates[at..at + panel.jb].iter().all(|&count| count == all), "panel {}", panel.k);
                    self.factored.push(panel.k);
                }
                Task::Lbcast(panel) => self.broadcast.push(panel.k),
                Task::RsStart { panel, section, .. } => {
                    assert!(self.broadcast.contains(panel) && !section.cols.is_empty());
                    // The columns have all updates by the panels before this one: the exchanged rows are final.
                    assert!(self.updates[section.cols.clone()].iter().all(|&count| count == panel - self.first));
                    let in_flight = self.swaps.iter().any(|(_, part, _, complete)| *part == section.part && !complete);
                    assert!(!in_flight, "one row swap of a part at a time");
                    self.swaps.retain(|(_, part, ..)| *part != section.part);
                    self.swaps.push((*panel, section.part, section.cols.clone(), false));
                }
                Task::RsWait { panel, part } => {
                    let swap = self.swaps.iter_mut().find(|(k, of, ..)| k == panel && of == part);
                    swap.expect("started before").3 = true;
                }
                Task::Update { panel, section, rows, .. } => {
                    assert!(self.broadcast.contains(panel) && !section.cols.is_empty());
                    if self.plan.layout.rows.procs() > 1 {
                        let swap = self.swaps.iter().find(|(k, of, ..)| k == panel && of == rows);
                        let (.., cols, complete) = swap.expect("started before");
                        assert!(*complete && cols.start <= section.cols.start && section.cols.end <= cols.end);
                    }
                    for count in &mut self.updates[section.cols.clone()] {
                        assert_eq!(*count, panel - self.first, "each panel once, in order");
                        *count += 1;
                    }
                }
            }
        }
    }
}

fn check(plan: &Plan, window: Range<usize>, row: usize, col: usize) {
    let cols = &plan.layout.cols;
    let (first, len) = (window.start, cols.local_len(col));
    let mut rank = Rank {
        plan,
        col,
        updates: vec![0; len],
        factored: Vec::new(),
        broadcast: Vec::new(),
        swaps: Vec::new(),
        first,
    };
    rank.run(&plan.prologue(first, row, col));
    for k in window.clone() {
        rank.run(&plan.step(k, row, col).tasks);
        assert!(
            rank.updates[cols.local_from(col, ((k + 1) * cols.nb()).min(plan.layout.n()))..]
                .iter()
                .all(|&count| count >= k + 1 - first)
        );
    }
    let last = plan.steps().min(window.end + plan.depth);
    if plan.depth > 1 && window.end < plan.steps() {
        rank.run(&plan.drain(window.end, col, false));
        let beyond = cols.local_from(col, (last * cols.nb()).min(plan.layout.n()));
        let expected = plan.steps().min(window.end + plan.depth - 1) - first;
        assert!(rank.updates[beyond..].iter().all(|&count| count == expected), "all columns have the same updates");
        rank.updates[beyond..].fill(window.end - first);
    }
    assert!(rank.broadcast.iter().copied().eq(first..last), "each panel is broadcast once, in order");
    assert!(rank.factored.into_iter().eq((first..last).filter(|&k| cols.block_owner(k) == rank.col)));
    for (c, &count) in rank.updates.iter().enumerate() {
        // Column N is b, which every panel updates.
        let global = cols.global(col, c);
        let block = if global < plan.layout.n() { global / cols.nb() } else { plan.steps() };
        // The columns of panels in flight have more updates than the others.
        let expected = if block < last { block } else { window.end };
        assert_eq!(count, expected.max(first) - first, "column {c} of {window:?}");
    }
}

/// Each panel is factored once by each rank of its process column and broadcast once to all ranks; the rows of each trailing
/// column are exchanged and then updated once per step, and a panel is factored after all earlier updates.
#[test]
fn steps_cover_the_matrix_once() {
    for (n, nb, p, q) in [(1, 1, 1, 1), (7, 3, 2, 2), (9, 3, 1, 3), (64, 8, 3, 2), (5, 8, 2, 2), (40, 7, 1, 5)] {
        let sections = [
            (0.0, ColumnStrips::Whole),
            (0.0, ColumnStrips::Each(3)),
            (0.0, ColumnStrips::FirstAndRest(3)),
            (0.3, ColumnStrips::Each(5)),
            (0.7, ColumnStrips::Whole),
        ];
        for (depth, (split, strips)) in [0, 1, 2, 3, 9].into_iter().flat_map(|depth| sections.map(|cut| (depth, cut))) {
            let plan = Plan { layout: Layout::block_cyclic(n, nb, p, q), depth, split, strips };
            for (row, col) in (0..p).flat_map(|row| (0..q).map(move |col| (row, col))) {
                check(&plan, 0..plan.steps(), row, col);
            }
        }
    }
}

proptest! {
    /// The same holds for any window of any distribution.
    #[test]
    fn windows_cover_their_steps_once(
        n in 1_usize..120, nb in 1_usize..12, depth in 0_usize..5, split in 0.0_f64..1.0,
        strips in (0_usize..3, 1_usize..40),
        owners in prop::collection::vec((0_usize..3, 0_usize..3), 121), first in 0_usize..120, len in 1_usize..6,
    ) {
        let table = |len: usize, pick: fn(&(usize, usize)) -> usize| {
            crate::plan::layout::Distribution::new(len, nb, 3, owners.iter().take(len.div_ceil(nb)).map(pick).collect())
        };
        let layout = Layout { rows: table(n, |o| o.0), cols: table(n + 1, |o| o.1) };
        let strips = [ColumnStrips::Whole, ColumnStrips::Each(strips.1), ColumnStrips::FirstAndRest(strips.1)][strips.0];
        let plan = Plan { layout, depth, split, strips };
        let first = first % plan.steps();
        for (row, col) in (0..3).flat_map(|row| (0..3).map(move |col| (row, col))) {
            check(&plan, first..plan.steps().min(first + len), row, col);
        }
    }
}

#[test]
fn rows_of_a_panel_sum_to_the_remaining_rows() {
    let plan = Plan { layout: Layout::block_cyclic(29, 4, 3, 2), depth: 1, split: 0.0, strips: ColumnStrips::Whole };
    for k in 0..plan.steps() {
        let panels: Vec<_> = (0..3).map(|row| plan.panel(k, row)).collect();
        assert_eq!(panels.iter().map(|panel| panel.mp).sum::<usize>(), 29 - 4 * k);
        assert_eq!(panels.iter().map(|panel| panel.diag_rows).sum::<usize>(), panels[0].jb);
    }
}

/// SWAP mix compares its threshold with all columns of U, also when the rows are exchanged strip by strip.
#[test]
fn strips_keep_the_column_count_of_u() {
    let plan = |strips| Plan { layout: Layout::block_cyclic(80, 10, 2, 1), depth: 1, split: 0.0, strips };
    let of = |plan: &Plan| -> Vec<(usize, usize)> {
        let tasks = plan.step(0, 0, 0).tasks;
        let starts = tasks.iter().filter_map(|task| match task {
            Task::RsStart { section, u_cols, .. } => Some((section.cols.len(), *u_cols)),
            _ => None,
        });
        starts.collect()
    };
    assert_eq!(of(&plan(ColumnStrips::Whole)), [(10, 10), (61, 61)]);
    assert_eq!(of(&plan(ColumnStrips::Each(25))), [(10, 10), (25, 61), (25, 61), (11, 61)]);
    assert_eq!(of(&plan(ColumnStrips::FirstAndRest(25))), [(10, 10), (25, 61), (36, 61)]);
    assert_eq!(of(&plan(ColumnStrips::FirstAndRest(70))), [(10, 10), (61, 61)]);
}

/// L2 is packed where a panel updates more than the columns of the next panel.
#[test]
fn a_panel_is_packed_for_long_updates_only() {
    let plan = Plan { layout: Layout::block_cyclic(40, 10, 1, 2), depth: 2, split: 0.0, strips: ColumnStrips::Whole };
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

/// The schedule of the split update with look-ahead, written out for one example.
#[test]
fn split_update_overlaps_the_row_swap_of_one_section_with_the_update_of_the_other() {
    let plan = Plan { layout: Layout::block_cyclic(80, 10, 2, 1), depth: 1, split: 0.5, strips: ColumnStrips::Whole };
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
    // The left section is used up: one section remains, as without a split.
    let last = ["start LookAhead 4 50..60", "wait LookAhead 4", "update LookAhead 4 50..60"];
    assert_eq!(names(&plan.step(4, 0, 0).tasks)[..3], last);
}
