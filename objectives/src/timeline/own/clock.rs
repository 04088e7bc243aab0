//! The clocks of all ranks, moved from task to task: who waits for whom, and what runs beside what.

use hpl::plan::Part;
use space::Bcast;

use super::forms::{PanelWork, rounds};
use super::routes::{Link, arrivals};
use super::skeleton::{Leaving, Op, Skeleton};
use crate::timeline::Step;

/// Parts of a step's columns, for tables.
const PARTS: usize = 3;

fn part_index(part: Part) -> usize {
    match part {
        Part::LookAhead => 0,
        Part::Left => 1,
        Part::Rest => 2,
    }
}

/// What decides the time of a panel factorization and of messages.
pub(super) struct Costs<'a> {
    /// Work of panels of NB columns, and of the last one.
    pub(super) panels: [&'a PanelWork; 2],
    /// NB.
    pub(super) nb: usize,
    /// Seconds of some work on a panel with so many local rows, whether they hold the diagonal block, by so many threads.
    pub(super) fact_s: &'a dyn Fn(&PanelWork, usize, bool, usize) -> f64,
    pub(super) bcast: Bcast,
    /// Between ranks of a process row, and of a process column.
    pub(super) links: [Link; 2],
}

/// Something that several ranks take part in.
#[derive(Debug, Clone, Copy, Default)]
struct Meeting {
    /// Ranks that are there.
    here: usize,
    /// When the last of them came.
    latest_s: f64,
    /// The longest of their parts.
    cost_s: f64,
}

/// One rank.
#[derive(Debug, Clone, Copy, Default)]
struct Rank {
    next: usize,
    now_s: f64,
    step: usize,
    /// Whether it waits in a meeting that it has announced itself at.
    announced: bool,
    /// When helpers began the section, and what the first thread did since.
    forked_s: f64,
    /// Rows that set out when a panel comes: its arrival, what is copied, and where they are waited for.
    early: Option<(f64, Leaving, usize)>,
}

/// All ranks at some moment.
struct Walk<'a> {
    skeleton: &'a Skeleton,
    costs: &'a Costs<'a>,
    ranks: Vec<Rank>,
    facts: Vec<Meeting>,
    rows: Vec<Meeting>,
    /// When the root of each panel began to send it, by panel and process row; and what it sends.
    roots: Vec<Option<(f64, f64, f64)>>,
    /// Seconds until a panel is at each position: latencies, and per word.
    routes: [Vec<f64>; 2],
    steps: Vec<Step>,
}

/// Steps with their phases, and the time at which the last rank is done.
pub(super) fn walk(skeleton: &Skeleton, costs: &Costs<'_>) -> (Vec<Step>, f64) {
    let panels = skeleton.owners.len();
    let mut walk = Walk {
        skeleton,
        costs,
        ranks: vec![Rank::default(); skeleton.ranks.len()],
        facts: vec![Meeting::default(); panels],
        rows: vec![Meeting::default(); panels * PARTS * skeleton.q],
        roots: vec![None; panels * skeleton.p],
        routes: [
            arrivals(costs.bcast, skeleton.q, 0.0, Link { beta_s: 0.0, ..costs.links[0] }),
            arrivals(costs.bcast, skeleton.q, 1.0, Link { alpha_s: 0.0, ..costs.links[0] }),
        ],
        steps: vec![Step::default(); skeleton.weights.len()],
    };
    let mut moved = true;
    while moved {
        moved = false;
        for rank in 0..walk.ranks.len() {
            while walk.advance(rank) {
                moved = true;
            }
        }
    }
    debug_assert!(walk.ranks.iter().zip(&skeleton.ranks).all(|(rank, ops)| rank.next == ops.len()), "all ranks end");
    let end_s = walk.ranks.iter().map(|rank| rank.now_s).fold(0.0, f64::max);
    let ranks = walk.ranks.len() as f64;
    for step in &mut walk.steps {
        for phase in [&mut step.fact_s, &mut step.lbcast_s, &mut step.rs_s, &mut step.update_s] {
            *phase /= ranks;
        }
    }
    (walk.steps, end_s)
}

impl Walk<'_> {
    fn place(&self, rank: usize) -> (usize, usize) {
        (rank / self.skeleton.q, rank % self.skeleton.q)
    }

    fn meeting(&self, panel: usize, part: Part, col: usize) -> usize {
        (panel * PARTS + part_index(part)) * self.skeleton.q + col
    }

    fn step(&mut self, rank: usize) -> &mut Step {
        let step = self.ranks[rank].step.min(self.steps.len() - 1);
        &mut self.steps[step]
    }

    /// Moves rank's clock to `to_s`; the time that passed.
    fn wait_until(&mut self, rank: usize, to_s: f64) -> f64 {
        let now_s = &mut self.ranks[rank].now_s;
        let passed_s = (to_s - *now_s).max(0.0);
        *now_s += passed_s;
        passed_s
    }

    /// Does the next task of a rank if all that it needs is known; whether it did.
    fn advance(&mut self, rank: usize) -> bool {
        let Some(&op) = self.skeleton.ranks[rank].get(self.ranks[rank].next) else { return false };
        let done = match op {
            Op::Fact { panel, mp, owns_diagonal, jb, threads, weight } => {
                let work = self.costs.panels[usize::from(jb != self.costs.nb)];
                self.fact(rank, panel, (self.costs.fact_s)(work, mp, owns_diagonal, threads) * weight)
            }
            Op::Lbcast { panel, words, weight } => {
                self.set_out(rank, panel, words, weight);
                true
            }
            Op::Await { panel } => match self.arrival(rank, panel) {
                Some(at_s) => {
                    let waited_s = self.wait_until(rank, at_s);
                    self.step(rank).lbcast_s += waited_s;
                    true
                }
                None => false,
            },
            Op::Pack { s } => {
                self.ranks[rank].now_s += s;
                self.step(rank).update_s += s;
                true
            }
            Op::RsStart { panel, part, rows } => {
                self.rows_now(rank, panel, part, rows);
                true
            }
            Op::EarlyRows { panel, part, rows } => self.early_rows(rank, panel, part, rows),
            Op::RsWait { panel, part } => self.wait_rows(rank, panel, part),
            Op::Fork => {
                self.ranks[rank].forked_s = self.ranks[rank].now_s;
                true
            }
            Op::Update { rows_s, update_s } => {
                self.update(rank, rows_s, update_s);
                true
            }
            Op::EndStep => {
                let now_s = self.ranks[rank].now_s;
                let end_s = &mut self.step(rank).end_s;
                *end_s = end_s.max(now_s);
                self.ranks[rank].step += 1;
                true
            }
        };
        self.ranks[rank].next += usize::from(done);
        done
    }

    /// All ranks of the process column factor together, column by column: they end together.
    fn fact(&mut self, rank: usize, panel: usize, cost_s: f64) -> bool {
        if !self.ranks[rank].announced {
            let now_s = self.ranks[rank].now_s;
            let meeting = &mut self.facts[panel];
            meeting.here += 1;
            meeting.latest_s = meeting.latest_s.max(now_s);
            meeting.cost_s = meeting.cost_s.max(cost_s);
            self.ranks[rank].announced = true;
        }
        let meeting = self.facts[panel];
        if meeting.here < self.skeleton.p {
            return false;
        }
        let passed_s = self.wait_until(rank, meeting.latest_s + meeting.cost_s);
        self.step(rank).fact_s += passed_s;
        self.ranks[rank].announced = false;
        true
    }

    fn set_out(&mut self, rank: usize, panel: usize, words: f64, weight: f64) {
        let (row, col) = self.place(rank);
        if self.skeleton.owners[panel] == col {
            let now_s = self.ranks[rank].now_s;
            self.roots[panel * self.skeleton.p + row] = Some((now_s, words, weight));
        }
    }

    /// When a panel is on a rank; `None` while that is not known.
    fn arrival(&self, rank: usize, panel: usize) -> Option<f64> {
        let ((row, col), q) = (self.place(rank), self.skeleton.q);
        let (start_s, words, weight) = self.roots[panel * self.skeleton.p + row]?;
        let position = (col + q - self.skeleton.owners[panel]) % q;
        let [hops_s, word_s] = [&self.routes[0], &self.routes[1]].map(|routes| routes[position]);
        Some(start_s + weight * (hops_s + words * word_s))
    }

    /// A rank has copied its rows, which are with the others some time later.
    fn rows_leave(&mut self, at: usize, copied_s: f64, rows: Leaving) {
        let link = self.costs.links[1];
        let way_s = rows.weight * (rounds(self.skeleton.p) * link.alpha_s + rows.words * link.beta_s);
        let meeting = &mut self.rows[at];
        meeting.here += 1;
        meeting.latest_s = meeting.latest_s.max(copied_s + way_s);
    }

    fn rows_now(&mut self, rank: usize, panel: usize, part: Part, rows: Leaving) {
        self.ranks[rank].now_s += rows.copy_s;
        self.step(rank).rs_s += rows.copy_s;
        let at = self.meeting(panel, part, self.place(rank).1);
        self.rows_leave(at, self.ranks[rank].now_s, rows);
    }

    /// The first thread copies rows when the panel is here; until then it updates with the others.
    fn early_rows(&mut self, rank: usize, panel: usize, part: Part, rows: Leaving) -> bool {
        let Some(arrival_s) = self.arrival(rank, panel) else { return false };
        if arrival_s <= self.ranks[rank].now_s {
            self.rows_now(rank, panel, part, rows);
        } else {
            let at = self.meeting(panel, part, self.place(rank).1);
            self.ranks[rank].early = Some((arrival_s, rows, at));
        }
        true
    }

    fn wait_rows(&mut self, rank: usize, panel: usize, part: Part) -> bool {
        let at = self.meeting(panel, part, self.place(rank).1);
        let meeting = self.rows[at];
        if meeting.here < self.skeleton.p {
            return false;
        }
        let waited_s = self.wait_until(rank, meeting.latest_s);
        self.step(rank).rs_s += waited_s;
        true
    }

    /// The threads share a section; the first one joins after what it had to do beside.
    fn update(&mut self, rank: usize, rows_s: f64, update_s: f64) {
        let threads = self.skeleton.threads as f64;
        let Rank { now_s, forked_s, early, .. } = self.ranks[rank];
        let work_s = rows_s + update_s;
        let end_with = |extra_s: f64| {
            // What the helpers have done while the first thread was busy.
            let left_s = work_s + extra_s - (threads - 1.0) * (now_s - forked_s);
            if left_s > 0.0 { now_s + left_s / threads } else { now_s }
        };
        let mut end_s = end_with(0.0);
        if let Some((arrival_s, rows, at)) = early {
            let copied_s = arrival_s + rows.copy_s;
            end_s = if arrival_s < end_s { end_with(rows.copy_s).max(copied_s) } else { copied_s };
            self.rows_leave(at, copied_s, rows);
            self.step(rank).rs_s += rows.copy_s;
        }
        let passed_s = (end_s - now_s).max(0.0);
        let rows_share = if work_s > 0.0 { rows_s / work_s } else { 0.0 };
        let early_s = early.map_or(0.0, |(_, rows, _)| rows.copy_s.min(passed_s));
        let step = self.step(rank);
        step.rs_s += (passed_s - early_s) * rows_share;
        step.update_s += (passed_s - early_s) * (1.0 - rows_share);
        let rank = &mut self.ranks[rank];
        (rank.now_s, rank.early) = (end_s, None);
    }
}
