//! Malformed HPL.dat: good ones, damaged. Each case is a number, so that a failure can be repeated.

use std::ops::Range;

/// Twenty values.
const TWENTY: &str = "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20";

/// The values of the sample that comes with Netlib's HPL, of one small run, and of lists that are nearly and by far
/// too long, by line from the third; `*` are the twenty.
const SEEDS: [&str; 4] = [
    "HPL.out|6|4|29 30 34 35|4|1 2 3 4|0|3|2 1 4|2 4 1|16.0|3|0 1 2|2|2 4|1|2|3|0 1 2|1|0|1|0|2|64|0|0|1|8",
    "out|6|1|40|1|8|1|1|1|2|16.0|1|2|1|4|1|2|1|1|1|1|1|1|0|64|1|1|0|4",
    "out|7|20|*|20|*|0|1|1|1|0.0|1|2|20|*|1|2|1|1|2|5 4|6|*|1|0|1|1|0|4",
    "out|7|20|*|20|*|0|3|1 2 3|1 2 3|0.0|3|0 1 2|20|*|1|2|3|0 1 2|6|0 1 2 3 4 5|20|*|1|0|1|1|0|4",
];

/// What may stand in the place of a number.
const EXTREMES: &str = "0 1 -1 2 3 19 20 21 255 65536 2147483647 2147483648 -2147483648 9223372036854775807 \
                        18446744073709551616 170141183460469231731687303715884105728 1e9 1.5 0x10 nan inf - +7 --1 １ \
                        0000000000000000000000000000000000000000000000005";

/// Bytes that mean something.
const BYTES: &[u8] = b"0123456789-+.eE \t\n\r\x0b\x0c\0#x\xff\xc3\xa9";

/// A small generator of choices (splitmix64).
pub(crate) struct Draw(u64);

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0xD134_2543_DE82_EF95))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `n`, 0 when there is none.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    fn of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }

    /// A range of at most `longest` of `len` bytes.
    fn range(&mut self, len: usize, longest: usize) -> Range<usize> {
        let start = self.below(len + 1);
        start..(start + self.below(longest + 1)).min(len)
    }
}

/// A good HPL.dat, or one of too many runs, in one of the dresses that users' files have.
fn seed(draw: &mut Draw) -> Vec<u8> {
    let values = SEEDS[draw.of(&[0, 0, 0, 1, 1, 1, 2, 3])];
    let comment = draw.of(&["", " comment", "\tNs (1 or 2)", "  # 3 of them", " Universität"]);
    let end = draw.of(&["\n", "\n", "\r\n"]);
    let mut lines = vec!["HPLinpack benchmark input file".to_owned(), "Innovative Computing Laboratory".to_owned()];
    lines.extend(values.split('|').map(|value| format!("{}{comment}", value.replace('*', TWENTY))));
    if draw.below(3) == 0 {
        // As HPCC's input goes on.
        lines.extend(["##### This line (no. 32) is ignored #####", "0  PTRANS", "0", "0.1"].map(str::to_owned));
    }
    lines.join(end).into_bytes()
}

/// Case number `case`: a good file with one to six damages.
pub(crate) fn malformed(case: u64) -> Vec<u8> {
    let draw = &mut Draw::new(case);
    let mut text = seed(draw);
    for _ in 0..=draw.below(6) {
        damage(draw, &mut text);
    }
    text
}

fn damage(draw: &mut Draw, text: &mut Vec<u8>) {
    let at = draw.below(text.len());
    match draw.below(14) {
        0 if !text.is_empty() => text[at] ^= 1 << draw.below(8),
        1 if !text.is_empty() => text[at] = draw.of(BYTES),
        2 => text.insert(at, draw.of(BYTES)),
        3 => drop(text.drain(draw.range(text.len(), 40))),
        4 => {
            let copy = text[draw.range(text.len(), 40)].to_vec();
            text.splice(at..at, copy);
        }
        5 => {
            let other = seed(draw);
            let piece = other[draw.range(other.len(), 200)].to_vec();
            text.splice(draw.range(text.len(), 200), piece);
        }
        6..=8 => number(draw, text),
        9 => lines(draw, text, |draw, lines| {
            let (a, b) = (draw.below(lines.len()), draw.below(lines.len()));
            lines.swap(a, b);
        }),
        10 => lines(draw, text, |draw, lines| {
            lines.remove(draw.below(lines.len()));
        }),
        11 => lines(draw, text, |draw, lines| {
            let copy = draw.of(lines);
            lines.insert(draw.below(lines.len()), copy);
        }),
        12 => text.truncate(at),
        _ => {
            let (length, byte) = (draw.of(&[200, 253, 254, 255, 256, 10_000]), draw.of(BYTES));
            text.splice(at..at, vec![byte; length]);
        }
    }
}

/// Replaces one number by another, or by a list of many.
fn number(draw: &mut Draw, text: &mut Vec<u8>) {
    let starts = |at: &usize| text[*at].is_ascii_digit() && (*at == 0 || !text[at - 1].is_ascii_digit());
    let numbers: Vec<usize> = (0..text.len()).filter(starts).collect();
    if let Some(&start) = numbers.get(draw.below(numbers.len())) {
        let digits = text[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let count = draw.of(&[1, 1, 1, 2, 20, 21]);
        let value = draw.of(&EXTREMES.split(' ').collect::<Vec<_>>());
        text.splice(start..start + digits, vec![value; count].join(" ").into_bytes());
    }
}

/// Changes the order of the lines.
fn lines(draw: &mut Draw, text: &mut Vec<u8>, change: impl FnOnce(&mut Draw, &mut Vec<&[u8]>)) {
    let mut lines: Vec<&[u8]> = text.split(|&byte| byte == b'\n').collect();
    change(draw, &mut lines);
    *text = lines.join(&b'\n');
}
