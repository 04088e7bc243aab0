//! The picture of who owns which block, and of how busy each rank is: with equal weights and with others.

use hpl::observe::picture::{Anchor, Paint, Svg};
use hpl::plan::layout::Distribution;

/// One set of weights in the picture.
pub struct Owned<'a> {
    /// Whose weights.
    pub title: String,
    /// What comes of them.
    pub outcome: String,
    /// Order and blocking factor.
    pub size: (usize, usize),
    /// Share of each process row.
    pub rows: &'a [f64],
    /// Share of each process column.
    pub columns: &'a [f64],
    /// Kind of the rank at row i and column j, entry i + j·P: ranks of a kind have one hue.
    pub kinds: &'a [usize],
    /// A line for each rank or kind of ranks.
    pub bars: Vec<Bar>,
}

/// How busy a rank is.
pub struct Bar {
    /// Its entry in [`Owned::kinds`].
    pub place: usize,
    /// Part of the time, from 0 to 1.
    pub busy: f64,
    /// Its name.
    pub name: String,
}

/// Between these is the most of blocks that are drawn along one side of the matrix, two for each process row or column; more are dealt in
/// larger blocks.
const MOST_BLOCKS: [usize; 2] = [48, 256];
/// Side of a drawn matrix.
const SIDE: f64 = 320.0;
/// Left of the drawings, and between them.
const GAP: f64 = 40.0;
/// The bar of a rank that is always busy.
const BAR: f64 = 90.0;
/// Characters of a name that fit next to a bar.
const MOST_NAME: usize = 20;
/// Height of a bar with its gap.
const ROW: f64 = 20.0;
/// Above a matrix.
const TOP: f64 = 110.0;
/// From the end of a matrix to the first bar.
const UNDER: f64 = 58.0;

/// An SVG document: two sets of weights next to each other, with what `busy` means.
pub fn picture(sets: [Owned<'_>; 2], busy: &str) -> String {
    let bars = sets.iter().map(|set| set.bars.len()).max().unwrap_or(0) as f64;
    let size = (2.0 * SIDE + 3.0 * GAP, TOP + SIDE + UNDER + bars * ROW + 20.0);
    let style = ".share{fill:none;stroke:#8a929c;stroke-width:.6}.head{font-weight:600}";
    let subtitle = format!("matrix by owner, one hue per kind of node; below: {busy}");
    let mut svg = Svg::document(size, GAP, style, "Equal weights and others", &subtitle);
    for (at, set) in sets.iter().enumerate() {
        draw(&mut svg, set, GAP + at as f64 * (SIDE + GAP));
    }
    svg.end()
}

fn draw(svg: &mut Svg, set: &Owned<'_>, left: f64) {
    let ((n, nb), p) = (set.size, set.rows.len());
    svg.text("head", (left, TOP - 26.0), Anchor::Start, &set.title);
    svg.text("dim", (left, TOP - 9.0), Anchor::Start, &set.outcome);
    let [fewest, finest] = MOST_BLOCKS;
    let most_blocks = (2 * p.max(set.columns.len())).clamp(fewest, finest);
    let drawn_nb = n.div_ceil(most_blocks).max(nb);
    let [rows, columns] = [set.rows, set.columns].map(|weights| Distribution::weighted(n, drawn_nb, weights));
    let scale = SIDE / n as f64;
    // One process row owns whole block columns, one process column whole block rows.
    let pieces = |dealt: &Distribution| -> Vec<(std::ops::Range<usize>, usize)> {
        if dealt.procs() == 1 {
            return vec![(0..n, 0)];
        }
        (0..dealt.blocks()).map(|block| (dealt.block(block), dealt.block_owner(block))).collect()
    };
    for (column, j) in pieces(&columns) {
        for (row, i) in pieces(&rows) {
            let corner = (left + column.start as f64 * scale, TOP + row.start as f64 * scale);
            // The last block may be thinner than the gap.
            let [width, height] = [column.len(), row.len()].map(|length| (length as f64 * scale - 0.5).max(0.0));
            svg.rect(Paint::Fill(&color(i + j * p, set.kinds)), corner, (width, height));
        }
    }
    let lacks_some = |dealt: &Distribution| (0..dealt.procs()).any(|proc| dealt.local_len(proc) == 0);
    let drawn = if drawn_nb == nb {
        format!("blocks of NB = {nb}")
    } else if [&rows, &columns].into_iter().any(lacks_some) {
        format!("in blocks of {drawn_nb}, too few for all nodes")
    } else {
        format!("drawn in blocks of {drawn_nb}")
    };
    let under = TOP + SIDE;
    svg.text("dim", (left, under + 18.0), Anchor::Start, &format!("N = {n}, {drawn}"));
    for (row, bar) in set.bars.iter().enumerate() {
        let y = under + UNDER - 22.0 + row as f64 * ROW;
        let share = set.rows[bar.place % p] * set.columns[bar.place / p];
        let length = (bar.busy.clamp(0.0, 1.0) * BAR).max(0.5);
        svg.rect(Paint::Fill(&color(bar.place, set.kinds)), (left, y), (length, 14.0));
        svg.rect(Paint::Class("share"), (left, y), (BAR, 14.0));
        let name: String = bar.name.chars().take(MOST_NAME).collect();
        let text = format!("{:.0} %, share {share:.3}, {name}", 100.0 * bar.busy);
        svg.text("num", (left + BAR + 7.0, y + 11.5), Anchor::Start, &text);
    }
}

/// The hue of its kind; ranks of one kind differ a little in lightness.
fn color(place: usize, kinds: &[usize]) -> String {
    let (kind, count) = (kinds[place], kinds.iter().max().map_or(1, |most| most + 1));
    let before = kinds[..place].iter().filter(|other| **other == kind).count();
    let lightness = 50.0 + 6.0 * (before % 3) as f64;
    // From blue on, all around.
    format!("hsl({:.0} 52% {lightness}%)", (212.0 + 360.0 * kind as f64 / count as f64) % 360.0)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// A picture of so many process columns with equal weights.
    fn drawn(count: usize) -> String {
        let (columns, kinds): (Vec<f64>, Vec<usize>) = (0..count).map(|at| (1.0 / count as f64, at)).unzip();
        let set = || Owned {
            title: "equal weights".to_owned(),
            outcome: String::new(),
            size: (100_000, 192),
            rows: &[1.0],
            columns: &columns,
            kinds: &kinds,
            bars: Vec::new(),
        };
        picture([set(), set()], "busy")
    }

    /// Of one hundred process columns 48 were drawn.
    #[test]
    fn each_process_column_has_a_part_of_the_picture() {
        let picture = drawn(100);
        let parts = picture.split("fill=\"hsl(").skip(1);
        let colours: HashSet<&str> = parts.filter_map(|rest| rest.split(')').next()).collect();
        assert_eq!(colours.len(), 100);
        assert!(picture.contains("drawn in blocks of 500<") && !picture.contains("too few"));
        assert!(drawn(1000).contains("in blocks of 391, too few for all nodes"));
    }
}
