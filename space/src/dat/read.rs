//! Reading HPL.dat: strict, every malformed line named.

use super::{DatError, HplDat, MAX_RUNS, MAX_VALUES, shorten};
use crate::Swap;
use crate::params::Coded;

/// Longest line in bytes without its end: \[HPL\] `HPL_LINE_MAX` is 256, `fgets` gets two less and keeps the end.
const MAX_LINE: usize = 252;

/// Largest number that Netlib's reader holds (a C `int`).
const MAX_INT: i128 = i32::MAX as i128;

impl HplDat {
    /// Reads the text of an HPL.dat.
    ///
    /// # Errors
    /// [`DatError`] for the first line that is not as it must be.
    pub fn parse(text: &str) -> Result<Self, DatError> {
        let mut lines = Lines { lines: text.split_inclusive('\n'), number: 0 };
        let comments = [lines.next("comment")?.text.to_owned(), lines.next("comment")?.text.to_owned()];
        // HPL calls the name optional; stdout and stderr do not need it.
        let output_file = lines.next("output file name")?.word().unwrap_or("HPL.out").to_owned();
        let device = lines.next("output device")?.device()?;
        let dat = Self {
            comments,
            output_file,
            device,
            ns: lines.sizes("N", "number of N values", 0)?,
            nbs: lines.sizes("NB", "number of NB values", 1)?,
            pmap: lines.next("PMAP")?.coded("PMAP")?,
            grids: lines.grids()?,
            threshold: lines.next("threshold")?.real("threshold")?,
            pfacts: lines.codes("PFACT", "number of PFACT values")?,
            nbmins: lines.sizes("NBMIN", "number of NBMIN values", 1)?,
            ndivs: lines.sizes("NDIV", "number of NDIV values", 2)?,
            rfacts: lines.codes("RFACT", "number of RFACT values")?,
            bcasts: lines.codes("BCAST", "number of BCAST values")?,
            depths: lines.sizes("DEPTH", "number of DEPTH values", 0)?,
            swap: lines.swap()?,
            l1: lines.next("L1")?.coded("L1")?,
            u: lines.next("U")?.coded("U")?,
            equil: lines.next("EQUIL")?.flag("EQUIL")?,
            align: lines.next("ALIGN")?.size("ALIGN", 1)?,
        };
        match dat.lengths().iter().try_fold(1usize, |product, &len| product.checked_mul(len)) {
            Some(runs) if runs <= MAX_RUNS => Ok(dat),
            _ => Err(DatError::TooManyRuns { runs: dat.lengths().iter().map(|&len| len as f64).product() }),
        }
    }
}

/// The lines of a file with their numbers.
struct Lines<'a> {
    lines: std::str::SplitInclusive<'a, char>,
    number: usize,
}

impl<'a> Lines<'a> {
    /// The next line, which holds `name`.
    fn next(&mut self, name: &'static str) -> Result<Line<'a>, DatError> {
        let line = self.lines.next().ok_or(DatError::Truncated { line: self.number + 1, name, last: self.number })?;
        // A carriage return before it counts: HPL reads it.
        let text = line.strip_suffix('\n').unwrap_or(line);
        self.number += 1;
        // A byte that is no UTF-8 has become a replacement character.
        let bytes = text.chars().map(|c| if c == char::REPLACEMENT_CHARACTER { 1 } else { c.len_utf8() }).sum();
        if bytes > MAX_LINE {
            return Err(DatError::TooLong { line: self.number, name, bytes, most: MAX_LINE });
        }
        Ok(Line { number: self.number, text: text.trim_end_matches('\r') })
    }

    /// The number of values that the next list has.
    fn count(&mut self, count_name: &'static str) -> Result<usize, DatError> {
        let line = self.next(count_name)?;
        match line.size(count_name, 1)? {
            count if count <= MAX_VALUES => Ok(count),
            count => Err(line.error(count_name, format!("at most {MAX_VALUES}"), &count.to_string())),
        }
    }

    /// The two lines of a list of numbers of at least `min`.
    fn sizes(&mut self, name: &'static str, count_name: &'static str, min: i64) -> Result<Vec<usize>, DatError> {
        let count = self.count(count_name)?;
        self.next(name)?.sizes(name, count, min)
    }

    /// The two lines of a list of coded values.
    fn codes<T: Coded>(&mut self, name: &'static str, count_name: &'static str) -> Result<Vec<T>, DatError> {
        let count = self.count(count_name)?;
        let line = self.next(name)?;
        line.list(name, count)?.into_iter().map(|word| line.code(name, word)).collect()
    }

    /// The three lines of the process grids.
    fn grids(&mut self) -> Result<Vec<(usize, usize)>, DatError> {
        let count = self.count("number of grids")?;
        let ps = self.next("P")?.sizes("P", count, 1)?;
        let line = self.next("Q")?;
        let qs = line.sizes("Q", count, 1)?;
        let grids: Vec<_> = ps.into_iter().zip(qs).collect();
        match grids.iter().find(|(p, q)| p.saturating_mul(*q) as i128 > MAX_INT) {
            Some((p, q)) => Err(line.error("P×Q", format!("at most {MAX_INT} ranks"), &format!("{p}×{q}"))),
            None => Ok(grids),
        }
    }

    /// The two lines of SWAP; the threshold means something to mix only, but must be a number.
    fn swap(&mut self) -> Result<Swap, DatError> {
        let line = self.next("SWAP")?;
        let code = line.word().unwrap_or_default();
        let threshold = self.next("SWAP threshold")?.size("SWAP threshold", 0)?;
        match code {
            "0" => Ok(Swap::BinExch),
            "1" => Ok(Swap::Long),
            "2" => Ok(Swap::Mix { threshold }),
            _ => Err(line.error("SWAP", "0 (bin-exch), 1 (long) or 2 (mix)".to_owned(), code)),
        }
    }
}

/// One line of HPL.dat.
#[derive(Clone, Copy)]
struct Line<'a> {
    number: usize,
    text: &'a str,
}

impl<'a> Line<'a> {
    fn error(self, name: &'static str, wanted: String, found: &str) -> DatError {
        DatError::Value { line: self.number, name, wanted, found: shorten(found) }
    }

    /// The first word, `None` on a blank line.
    fn word(self) -> Option<&'a str> {
        self.text.split_ascii_whitespace().next()
    }

    /// The first `count` words, the comment after them left out.
    fn list(self, name: &'static str, count: usize) -> Result<Vec<&'a str>, DatError> {
        let words: Vec<_> = self.text.split_ascii_whitespace().take(count).collect();
        // Where a comment begins too early, the count is wrong, not the value.
        let found = words.iter().position(|word| !looks_numeric(word)).unwrap_or(words.len());
        if found == count {
            return self.as_netlib(name, &words).map(|()| words);
        }
        if found == 0 && !words.is_empty() {
            return Ok(words);
        }
        let next = words.get(found).map_or_else(|| "the end of the line".to_owned(), |word| shorten(word));
        Err(DatError::TooFew { line: self.number, name, announced: count, found, next })
    }

    /// Checks that Netlib's reader finds the same values: after each value it advances by its length plus one, so that
    /// after repeated blanks it reads the end of a value as the next one.
    fn as_netlib(self, name: &'static str, words: &[&str]) -> Result<(), DatError> {
        let mut at = 0;
        for &word in words {
            let taken = self.text.get(at..).and_then(|rest| rest.split_ascii_whitespace().next()).unwrap_or_default();
            if taken != word {
                let (word, taken) = (shorten(word), shorten(taken));
                return Err(DatError::Blanks { line: self.number, name, word, taken });
            }
            at += word.len() + 1;
        }
        Ok(())
    }

    fn sizes(self, name: &'static str, count: usize, min: i64) -> Result<Vec<usize>, DatError> {
        self.list(name, count)?.into_iter().map(|word| self.number(name, word, min).map(|n| n as usize)).collect()
    }

    /// `word` as a whole number between `min` and what a C `int` holds.
    fn number(self, name: &'static str, word: &str, min: i64) -> Result<i64, DatError> {
        let (min, value) = (i128::from(min), word.parse::<i128>());
        match value {
            Ok(value) if (min..=MAX_INT).contains(&value) => Ok(value as i64),
            Ok(value) if value < min => Err(self.error(name, format!("at least {min}"), word)),
            Ok(_) => Err(self.error(name, format!("at most {MAX_INT}"), word)),
            Err(_) => Err(self.error(name, format!("a whole number from {min} to {MAX_INT}"), word)),
        }
    }

    /// The line's only value as a whole number of at least `min`.
    fn int(self, name: &'static str, min: i64) -> Result<i64, DatError> {
        self.number(name, self.word().unwrap_or_default(), min)
    }

    /// The line's only value as a size of at least `min` ≥ 0.
    fn size(self, name: &'static str, min: i64) -> Result<usize, DatError> {
        self.int(name, min).map(|value| value as usize)
    }

    /// 6, 7, any other number, or the word that the file's own comment offers.
    fn device(self) -> Result<i64, DatError> {
        match self.word() {
            Some("file") => Ok(super::TO_FILE),
            _ => self.int("output device", i64::from(i32::MIN)),
        }
    }

    fn real(self, name: &'static str) -> Result<f64, DatError> {
        let word = self.word().unwrap_or_default();
        match word.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(value),
            _ => Err(self.error(name, "a number".to_owned(), word)),
        }
    }

    fn coded<T: Coded>(self, name: &'static str) -> Result<T, DatError> {
        self.code(name, self.word().unwrap_or_default())
    }

    fn code<T: Coded>(self, name: &'static str, word: &str) -> Result<T, DatError> {
        word.parse().ok().and_then(T::from_code).ok_or_else(|| {
            let known: Vec<_> = T::ALL.iter().map(|(value, name)| format!("{} ({name})", value.code())).collect();
            self.error(name, known.join(" or "), word)
        })
    }

    fn flag(self, name: &'static str) -> Result<bool, DatError> {
        match self.word().unwrap_or_default() {
            "0" => Ok(false),
            "1" => Ok(true),
            other => Err(self.error(name, "0 (no) or 1 (yes)".to_owned(), other)),
        }
    }
}

/// Whether a word can be meant as a number: a digit, perhaps after a sign.
fn looks_numeric(word: &str) -> bool {
    word.trim_start_matches(['+', '-']).starts_with(|c: char| c.is_ascii_digit())
}
