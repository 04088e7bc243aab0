//! The slowest rank of a process column in an update, from speeds and local rows.

use std::collections::HashMap;

use space::stats::summary;

use super::shape::Trailing;

/// Seconds per multiply–add of the rows of each process column; equal columns are stored once.
#[derive(Debug, Clone)]
pub(super) struct Speeds {
    rows: usize,
    /// Index in `classes` of each column.
    class: Vec<usize>,
    classes: Vec<EqualColumns>,
}

/// Columns with the same speeds.
#[derive(Debug, Clone)]
struct EqualColumns {
    slowest: f64,
    median: f64,
    /// `table[j][i]`: the largest of the 2ʲ values from row i on, cyclically; empty when all are equal.
    table: Vec<Vec<f64>>,
}

impl Speeds {
    /// Speeds `of(row, column)` of a grid.
    pub(super) fn new(rows: usize, columns: usize, of: impl Fn(usize, usize) -> f64) -> Self {
        let (mut classes, mut known) = (Vec::new(), HashMap::new());
        let class = (0..columns).map(|column| {
            let speeds: Vec<f64> = (0..rows).map(|row| of(row, column)).collect();
            let key: Vec<u64> = speeds.iter().map(|speed| speed.to_bits()).collect();
            *known.entry(key).or_insert_with(|| {
                classes.push(EqualColumns::new(speeds));
                classes.len() - 1
            })
        });
        let class = class.collect();
        Self { rows, class, classes }
    }

    /// A grid of equal ranks.
    pub(super) fn alike(rows: usize, columns: usize, speed: f64) -> Self {
        Self { rows, class: vec![0; columns], classes: vec![EqualColumns::new(vec![speed; rows])] }
    }

    /// Number of classes of columns.
    pub(super) fn classes(&self) -> usize {
        self.classes.len()
    }

    /// Class of a column.
    pub(super) fn class(&self, column: usize) -> usize {
        self.class[column]
    }

    /// Seconds per multiply–add of the slowest rank of a class.
    pub(super) fn slowest(&self, class: usize) -> f64 {
        self.classes[class].slowest
    }

    /// The same of its median rank.
    pub(super) fn median(&self, class: usize) -> f64 {
        self.classes[class].median
    }

    /// Largest product of seconds per multiply–add and local rows in a class: seconds for one column and one k.
    pub(super) fn product_s(&self, class: usize, rows: &Trailing) -> f64 {
        let class = &self.classes[class];
        let ahead = class.largest(rows.first, rows.ahead) * rows.more;
        let others = class.largest((rows.first + rows.ahead) % self.rows, self.rows - rows.ahead) * rows.less;
        ahead.max(others)
    }
}

impl Speeds {
    /// Largest and median product of seconds per multiply–add and local rows in a class, with `rows` rows of each process row.
    pub(super) fn products_with(&self, class: usize, rows: impl Fn(usize) -> f64) -> [f64; 2] {
        let class = &self.classes[class];
        let speed = |row: usize| class.table.first().map_or(class.slowest, |values| values[row]);
        let mut products: Vec<f64> = (0..self.rows).map(|row| speed(row) * rows(row)).collect();
        products.sort_by(f64::total_cmp);
        [products[self.rows - 1], products[self.rows / 2]]
    }
}

impl EqualColumns {
    fn new(speeds: Vec<f64>) -> Self {
        let slowest = speeds.iter().copied().fold(0.0, f64::max);
        let median = summary(&speeds).median;
        let mut table = Vec::new();
        if speeds.iter().any(|&speed| speed < slowest) {
            let rows = speeds.len();
            table.push(speeds);
            for level in 0..rows.ilog2() as usize {
                let (last, width) = (&table[level], 1 << level);
                let next = (0..rows).map(|i| f64::max(last[i], last[(i + width) % rows])).collect();
                table.push(next);
            }
        }
        Self { slowest, median, table }
    }

    /// Largest of `len` values from row `from` on, cyclically; 0 for none.
    fn largest(&self, from: usize, len: usize) -> f64 {
        if len == 0 {
            return 0.0;
        }
        if self.table.is_empty() {
            return self.slowest;
        }
        let level = &self.table[len.ilog2() as usize];
        level[from].max(level[(from + len - (1 << len.ilog2())) % level.len()])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_slowest_of_any_rows_is_found(
            speeds in proptest::collection::vec(1.0..2.0f64, 1..20),
            first in 0..20usize, ahead in 0..20usize, more in 1.0..9.0f64, less in 0.0..9.0f64,
        ) {
            let rows = speeds.len();
            let (first, ahead) = (first % rows, ahead % rows);
            let trailing = Trailing { first, ahead, more, less };
            let found = Speeds::new(rows, 1, |row, _| speeds[row]).product_s(0, &trailing);
            let expected = (0..rows).map(|row| speeds[row] * trailing.of(row, rows)).fold(0.0, f64::max);
            prop_assert_eq!(found, expected);
        }
    }
}
