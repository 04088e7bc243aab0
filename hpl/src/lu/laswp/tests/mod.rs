mod patterns;

use crate::mat::Buffer;
use std::thread;

use super::*;
use crate::backend::host::kernels::Builtin;
use crate::backend::host::team::{TeamParams, with_team};
use crate::backend::host::{HostBackend, Workspace};
use crate::comm::Tag;
use crate::comm::threads::{self, ThreadComm};
use crate::mat::MatMut;
use crate::plan::Part;

const FORMS: [Form; 2] = [Form::Transposed, Form::NotTransposed];
const SWAPS: [Swap; 3] = [Swap::BinExch, Swap::Long, Swap::Mix { threshold: 2 }];

/// How a row exchange is completed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Drive {
    /// Only by waiting.
    Finish,
    /// Only by polling, until all messages have arrived.
    Poll,
}

/// One row exchange to be tested.
struct Case {
    rows: Distribution,
    ia: usize,
    pivots: Vec<usize>,
    cols: usize,
    swap: Swap,
    equil: bool,
    u: Form,
    drive: Drive,
    threads: usize,
}

/// Rows of the whole matrix after the row swaps, by global source row.
fn swapped(m: usize, ia: usize, pivots: &[usize]) -> Vec<usize> {
    let mut content: Vec<usize> = (0..m).collect();
    for (j, &pivot) in pivots.iter().enumerate() {
        content.swap(ia + j, pivot);
    }
    content
}

/// Element (source row, column) of the test matrix.
fn value(row: usize, col: usize) -> f64 {
    (row * 1000 + col) as f64
}

fn pivots(m: usize, ia: usize, jb: usize, seed: usize) -> Vec<usize> {
    (0..jb).map(|j| ia + j + (j * 7 + seed * 13) * 31 % (m - ia - j)).collect()
}

/// Owners of blocks, dealt unevenly: some processes may have none.
fn uneven(m: usize, nb: usize, p: usize, seed: usize) -> Distribution {
    let owner = |block: usize| (block * block + seed * block + block / 3) % p;
    Distribution::new(m, nb, p, (0..m.div_ceil(nb)).map(owner).collect())
}

impl Case {
    fn laswp<'a, C: Comm>(&'a self, column: &'a C) -> Laswp<'a, C> {
        Laswp { column, rows: &self.rows, swap: self.swap, equil: self.equil, u: self.u }
    }

    fn permutation(&self) -> Arc<RowPermutation> {
        Arc::new(RowPermutation::new(&self.rows, self.ia, &self.pivots))
    }

    /// The local matrix of a rank; `first` is the number of its first column.
    fn local(&self, me: usize, first: usize) -> Vec<f64> {
        let mp = self.rows.local_len(me);
        let column = |col| (0..mp).map(move |i| value(self.rows.global(me, i), first + col));
        (0..self.cols).flat_map(column).collect()
    }

    /// Calls `work` with the local matrix `data` of rank `me`.
    fn with_columns<R>(&self, data: &mut [f64], me: usize, work: impl FnOnce(&mut HostBackend<'_, '_>) -> R) -> R {
        let mp = self.rows.local_len(me);
        let team = TeamParams { threads: self.threads, cores: &[], spin: false };
        let mut workspace = Workspace::default();
        let a = MatMut::new(data, mp, self.cols, mp.max(1));
        with_team(team, |team| work(&mut HostBackend::new(&Builtin::best(), team, a, &mut workspace))).unwrap()
    }

    /// Fills slab by slab and compares with the row swaps.
    fn check(&self, me: usize, first: usize, mut data: Vec<f64>, result: &LaswpResult) {
        let (jb, mp, n) = (self.pivots.len(), self.rows.local_len(me), self.cols);
        let expected = swapped(self.rows.len(), self.ia, &self.pivots);
        let ii = self.rows.local_from(me, self.ia);
        let top = self.rows.local_from(me, self.ia + jb) - ii;
        let before = data.clone();
        let mut col = 0;
        for width in [3, 1, 20].into_iter().cycle() {
            let width = width.min(n - col);
            let slab = MatMut::new(&mut data, mp, n, mp.max(1)).sub(ii, col, mp - ii, width);
            let (top, mut below) = slab.split_rows(top);
            let mut u_data = vec![f64::NAN; jb * width];
            let mut u = MatMut::new(&mut u_data, jb, width, jb);
            result.fill(col, &mut u, top.as_ref(), &mut below);
            for (i, j) in (0..jb).flat_map(|i| (0..width).map(move |j| (i, j))) {
                assert_eq!(u.at(i, j), value(expected[self.ia + i], first + col + j), "U on {me}: {self:?}");
            }
            col += width;
            if col == n {
                break;
            }
        }
        for (at, (now, before)) in data.into_iter().zip(before).enumerate() {
            let (global, col) = (self.rows.global(me, at % mp), at / mp);
            let below = global >= self.ia + jb;
            let wanted = if below { value(expected[global], first + col) } else { before };
            assert_eq!(now, wanted, "row {global} on {me}: {self:?}");
        }
    }

    /// The row exchange on one rank.
    fn rank(&self, column: &ThreadComm) {
        let me = column.rank();
        let mut data = self.local(me, 0);
        let result = self.with_columns(&mut data, me, |columns| {
            let laswp = self.laswp(column);
            let start = laswp.start(self.permutation(), &(0..self.cols), self.cols, RowTags::of(Part::Rest), columns);
            let mut op = start.unwrap();
            while self.drive == Drive::Poll && !op.complete() {
                op.poll(columns).unwrap();
                thread::yield_now();
            }
            op.finish(columns).unwrap().0
        });
        self.check(me, 0, data, &result);
    }

    fn run(&self) {
        thread::scope(|scope| {
            for column in threads::world(self.rows.procs(), false) {
                scope.spawn(move || self.rank(&column));
            }
        });
    }
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { rows, ia, pivots, cols, swap, equil, u, drive, threads } = self;
        let p = rows.procs();
        write!(f, "P={p} ia={ia} {pivots:?} n={cols} {swap:?} EQUIL {equil} U {u:?} {drive:?} T={threads}")
    }
}

impl<C: Comm> LaswpOp<'_, C> {
    /// Whether all messages have arrived.
    pub(crate) fn complete(&self) -> bool {
        match &self.pattern {
            Pattern::BinExch(pattern) => pattern.complete(),
            Pattern::Long(pattern) => pattern.complete(),
        }
    }
}

/// All SWAP × EQUIL × U for P = 2 to 9, by waiting only and by polling only.
#[test]
fn row_exchanges_equal_the_row_swaps() {
    let shapes =
        [(40, 5, 0, 5, 3), (40, 5, 15, 5, 2), (43, 5, 40, 3, 4), (64, 8, 8, 8, 0), (7, 7, 0, 7, 1), (90, 9, 18, 9, 37)];
    let mut turn = 0;
    for (p, swap) in (2..=9).flat_map(|p| SWAPS.map(|swap| (p, swap))) {
        for (equil, u) in [false, true].into_iter().flat_map(|equil| FORMS.map(|u| (equil, u))) {
            for (m, nb, ia, jb, cols) in shapes {
                turn += 1;
                let rows = if turn % 2 == 0 { Distribution::block_cyclic(m, nb, p) } else { uneven(m, nb, p, turn) };
                let drive = if turn % 3 == 0 { Drive::Poll } else { Drive::Finish };
                let (pivots, threads) = (pivots(m, ia, jb, turn), 1 + turn % 2);
                Case { rows, ia, pivots, cols, swap, equil, u, drive, threads }.run();
            }
        }
    }
}

/// No row is swapped, all rows of the diagonal block are displaced, or all pivots are the same row.
#[test]
fn extreme_pivots() {
    for (p, swap) in (2..=6).flat_map(|p| [Swap::BinExch, Swap::Long].map(|swap| (p, swap))) {
        for (u, equil) in FORMS.into_iter().flat_map(|u| [false, true].map(|equil| (u, equil))) {
            let none: Vec<usize> = (6..12).collect();
            let all: Vec<usize> = (12..18).collect();
            let same = vec![17; 6];
            for pivots in [none, all, same] {
                let rows = Distribution::block_cyclic(31, 6, p);
                let drive = if p % 2 == 0 { Drive::Poll } else { Drive::Finish };
                Case { rows, ia: 6, pivots, cols: 10, swap, equil, u, drive, threads: 3 }.run();
            }
        }
    }
}

/// A section that is large enough for all threads of a team to copy.
#[test]
fn several_threads_copy() {
    for (swap, u) in [Swap::BinExch, Swap::Long].into_iter().flat_map(|swap| FORMS.map(|u| (swap, u))) {
        let (m, nb) = (700, 64);
        let (rows, pivots) = (Distribution::block_cyclic(m, nb, 3), pivots(m, 64, nb, 5));
        Case { rows, ia: 64, pivots, cols: 2100, swap, equil: true, u, drive: Drive::Finish, threads: 3 }.run();
    }
}

/// Two sections in flight at once, the second of which is completed first.
#[test]
fn messages_of_two_sections_are_not_mixed_up() {
    let both = [Swap::BinExch, Swap::Long];
    for (p, left) in (2..=7).flat_map(|p| both.map(|left| (p, left))) {
        for (right, u) in both.into_iter().flat_map(|right| FORMS.map(|u| (right, u))) {
            let (rows, pivots) = (uneven(66, 6, p, p), pivots(66, 12, 6, p));
            let case = |swap, cols| {
                let (rows, pivots) = (rows.clone(), pivots.clone());
                Case { rows, ia: 12, pivots, cols, swap, equil: true, u, drive: Drive::Finish, threads: 1 }
            };
            let (left, right) = (&case(left, 9), &case(right, 5));
            thread::scope(|scope| {
                for column in threads::world(p, false) {
                    scope.spawn(move || two_sections(&column, left, right));
                }
            });
        }
    }
}

fn two_sections(column: &ThreadComm, left: &Case, right: &Case) {
    let me = column.rank();
    let (mut mine, mut other) = (left.local(me, 0), right.local(me, 500));
    let (first, second) = (left.laswp(column), right.laswp(column));
    let (first, second) = left.with_columns(&mut mine, me, |a| {
        right.with_columns(&mut other, me, |b| {
            let (tags, cols) = ([RowTags::of(Part::Left), RowTags::of(Part::Rest)], [left.cols, right.cols]);
            let mut first = first.start(left.permutation(), &(0..cols[0]), cols[0], tags[0], a).unwrap();
            let mut second = second.start(right.permutation(), &(0..cols[1]), cols[1], tags[1], b).unwrap();
            for _ in 0..me {
                second.poll(b).unwrap();
                first.poll(a).unwrap();
            }
            let second = second.finish(b).unwrap().0;
            (first.finish(a).unwrap().0, second)
        })
    });
    left.check(me, 0, mine, &first);
    right.check(me, 500, other, &second);
}

/// In one process, a rank and its neighbours read the same message that the rank has sent, without a copy.
#[test]
fn buffers_are_shared() {
    for (swap, u) in [Swap::BinExch, Swap::Long].into_iter().flat_map(|swap| FORMS.map(|u| (swap, u))) {
        let (rows, pivots) = (Distribution::block_cyclic(60, 6, 2), pivots(60, 0, 6, 1));
        let case = Case { rows, ia: 0, pivots, cols: 8, swap, equil: false, u, drive: Drive::Finish, threads: 1 };
        let case = &case;
        let buffers: Vec<Vec<Arc<Buffer>>> = thread::scope(|scope| {
            let rank = |column: ThreadComm| {
                let mut data = case.local(column.rank(), 0);
                let result = case.with_columns(&mut data, column.rank(), |columns| {
                    let (laswp, cols) = (case.laswp(&column), case.cols);
                    let start = laswp.start(case.permutation(), &(0..cols), cols, RowTags::of(Part::Rest), columns);
                    start.unwrap().finish(columns).unwrap().0
                });
                result.upper.iter().map(|(buffer, _)| buffer.msg().parts().0).collect()
            };
            let ranks: Vec<_> =
                threads::world(2, false).into_iter().map(|column| scope.spawn(move || rank(column))).collect();
            ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
        });
        assert_eq!((buffers[0].len(), buffers[1].len()), (2, 2));
        assert!(buffers[0].iter().all(|mine| buffers[1].iter().any(|theirs| Arc::ptr_eq(mine, theirs))));
    }
}
