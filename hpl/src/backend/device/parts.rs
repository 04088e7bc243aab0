//! The parts in which a section is updated.

use std::ops::Range;

/// Most columns of a part of a section.
pub(super) const PART_COLS: usize = space::workspace::DEVICE_PART_COLS;

/// Parts of the columns of a section, which begin at the same columns in most steps: wide enough for DGEMM, and enough of them that
/// little is left to do before the first product.
pub(super) fn parts(cols: &Range<usize>) -> impl Iterator<Item = Range<usize>> + use<> {
    const WIDTH: usize = PART_COLS / 2;
    let (start, end) = (cols.start, cols.end);
    let inner = (start + WIDTH / 2).next_multiple_of(WIDTH);
    let bounds = (inner..).step_by(WIDTH).take_while(move |bound| bound + WIDTH / 2 <= end);
    let starts = std::iter::once(start).filter(move |_| start < end).chain(bounds.clone());
    starts.zip(bounds.chain(std::iter::once(end))).map(|(start, end)| start..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_a_section_and_begin_at_the_same_columns() {
        for (start, end) in
            [(0, 0), (5, 6), (0, 8192), (100, 20_000), (4095, 100_353), (4096, 100_353), (90_112, 100_353)]
        {
            let found: Vec<Range<usize>> = parts(&(start..end)).collect();
            let covered = found.iter().fold(start, |at, part| if part.start == at { part.end } else { usize::MAX });
            assert_eq!(covered, end, "{found:?}");
            assert!(found.iter().all(|part| !part.is_empty() && part.len() < PART_COLS), "{found:?}");
            let inner = found.iter().skip(1).map(|part| part.start);
            assert!(inner.into_iter().all(|start| start.is_multiple_of(PART_COLS / 2)), "{found:?}");
        }
    }
}
