//! HPL.dat: the 31 lines that tell HPL what to run.
//!
//! Read strictly: what Netlib's reader silently turns into something else (PFACT 7 into right, BCAST 9 into
//! 1ringM, a missing value into a repeated one) is an error that names its line. Blanks between values may
//! repeat, lines may end in CRLF, text after the values and after line 31 is comment, as in HPCC's input.
//!
//! Written so that Netlib's reader agrees: it advances by the length of a value plus one, so values are
//! separated by exactly one blank with none in front, and it cuts lines at 254 characters.
//!
//! Source: [HPL] `testing/ptest/HPL_pdinfo.c`.

use std::fmt::Write as _;

use crate::params::Coded;
use crate::{Bcast, Form, HplParams, Looking, Pmap, Swap};

/// Values that one list of HPL.dat may hold ([HPL] `HPL_MAX_PARAM`).
pub const MAX_VALUES: usize = 20;

/// Runs that one HPL.dat may ask for; twenty values in every list would be 5·10¹¹.
pub const MAX_RUNS: usize = 100_000;

/// Largest number that Netlib's reader holds (a C `int`).
const MAX_INT: i128 = i32::MAX as i128;

/// Longest comment that survives Netlib's 254 characters a line.
const MAX_COMMENT: usize = 250;

/// The contents of an HPL.dat; list fields hold 1 to [`MAX_VALUES`] values.
#[derive(Debug, Clone, PartialEq)]
pub struct HplDat {
    /// Lines 1 and 2, free text.
    pub comments: [String; 2],
    /// Name of the output file, one word.
    pub output_file: String,
    /// Where output goes: 6 stdout, 7 stderr, anything else [`output_file`](Self::output_file).
    pub device: i64,
    /// Orders N, each at least 0.
    pub ns: Vec<usize>,
    /// Blocking factors NB, each at least 1.
    pub nbs: Vec<usize>,
    /// PMAP.
    pub pmap: Pmap,
    /// Process grids (P, Q), each at least 1.
    pub grids: Vec<(usize, usize)>,
    /// A scaled residual below this passes; at or below 0 nothing is checked.
    pub threshold: f64,
    /// PFACT.
    pub pfacts: Vec<Looking>,
    /// NBMIN, each at least 1.
    pub nbmins: Vec<usize>,
    /// NDIV, each at least 2.
    pub ndivs: Vec<usize>,
    /// RFACT.
    pub rfacts: Vec<Looking>,
    /// BCAST.
    pub bcasts: Vec<Bcast>,
    /// DEPTH, each at least 0.
    pub depths: Vec<usize>,
    /// SWAP with its threshold.
    pub swap: Swap,
    /// L1.
    pub l1: Form,
    /// U.
    pub u: Form,
    /// EQUIL (balances U pieces between process rows, no numerical scaling).
    pub equil: bool,
    /// ALIGN in doubles, at least 1.
    pub align: usize,
}

/// Why a text is no HPL.dat, or a value fits none. Lines count from 1.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DatError {
    /// The file is too short.
    #[error("HPL.dat line {line}: {name} expected, but the file ends after line {last}; HPL.dat has 31 lines")]
    Truncated {
        /// The first missing line.
        line: usize,
        /// What belongs there.
        name: &'static str,
        /// The last line of the file, 0 when it is empty.
        last: usize,
    },
    /// A value is missing or out of range.
    #[error("HPL.dat line {line}: {name} must be {wanted}, found {found}")]
    Value {
        /// Where.
        line: usize,
        /// HPL's name of the value.
        name: &'static str,
        /// What is accepted.
        wanted: String,
        /// What is there, shortened.
        found: String,
    },
    /// A list is shorter than the line above it says.
    #[error("HPL.dat line {line}: {announced} values of {name} expected, found {found} before {next}")]
    TooFew {
        /// Line of the list.
        line: usize,
        /// HPL's name of the values.
        name: &'static str,
        /// Values that the count asks for.
        announced: usize,
        /// Values that are there.
        found: usize,
        /// What stands in the place of the next value, shortened.
        next: String,
    },
    /// The lists multiply to more runs than anyone waits for.
    #[error("HPL.dat asks for {runs:e} runs, at most {MAX_RUNS} are accepted; shorten its lists")]
    TooManyRuns {
        /// Product of the lengths of all lists.
        runs: f64,
    },
}

impl HplDat {
    /// Reads the text of an HPL.dat.
    ///
    /// # Errors
    /// [`DatError`] for the first line that is not as it must be.
    pub fn parse(text: &str) -> Result<Self, DatError> {
        let mut lines = Lines { lines: text.lines(), number: 0 };
        let comments = [lines.next("comment")?.text.to_owned(), lines.next("comment")?.text.to_owned()];
        // HPL calls the name optional; stdout and stderr do not need it.
        let output_file = lines.next("output file name")?.word().unwrap_or("HPL.out").to_owned();
        let device = lines.next("output device")?.int("output device", i64::from(i32::MIN))?;
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

    /// The text that Netlib's reader, and [`parse`](Self::parse), take for these contents. Comments are cut
    /// to what fits a line.
    ///
    /// # Errors
    /// [`DatError`] naming the line where a value would not be read back as it is.
    pub fn write(&self) -> Result<String, DatError> {
        let text = self.text();
        let back = Self::parse(&text)?;
        if back.output_file == self.output_file {
            Ok(text)
        } else {
            let (wanted, found) = ("one word".to_owned(), shorten(&self.output_file));
            Err(DatError::Value { line: 3, name: "output file name", wanted, found })
        }
    }

    /// The HPL.dat of one run: stdout, threshold 16.
    pub fn single(params: &HplParams) -> Self {
        Self {
            comments: [
                "HPLinpack benchmark input file".to_owned(),
                "Innovative Computing Laboratory, University of Tennessee".to_owned(),
            ],
            output_file: "HPL.out".to_owned(),
            device: 6,
            ns: vec![params.n],
            nbs: vec![params.nb],
            pmap: params.pmap,
            grids: vec![(params.p, params.q)],
            threshold: 16.0,
            pfacts: vec![params.pfact],
            nbmins: vec![params.nbmin],
            ndivs: vec![params.ndiv],
            rfacts: vec![params.rfact],
            bcasts: vec![params.bcast],
            depths: vec![params.depth],
            swap: params.swap,
            l1: params.l1,
            u: params.u,
            equil: params.equil,
            align: params.align,
        }
    }

    /// All runs in Netlib's order: grid > N > NB > DEPTH > BCAST > RFACT > PFACT > NBMIN > NDIV, the last
    /// the fastest. At most [`MAX_RUNS`] when the contents come from [`parse`](Self::parse).
    pub fn runs(&self) -> Vec<HplParams> {
        let lengths = self.lengths();
        (0..lengths.iter().product::<usize>())
            .map(|run| {
                // The digits of `run` in the mixed radix of the list lengths.
                let mut rest = run;
                let mut at = [0; 9];
                for (digit, &len) in at.iter_mut().zip(&lengths).rev() {
                    *digit = rest % len;
                    rest /= len;
                }
                let [grid, n, nb, depth, bcast, rfact, pfact, nbmin, ndiv] = at;
                HplParams {
                    n: self.ns[n],
                    nb: self.nbs[nb],
                    p: self.grids[grid].0,
                    q: self.grids[grid].1,
                    nbmin: self.nbmins[nbmin],
                    ndiv: self.ndivs[ndiv],
                    depth: self.depths[depth],
                    align: self.align,
                    pmap: self.pmap,
                    pfact: self.pfacts[pfact],
                    rfact: self.rfacts[rfact],
                    bcast: self.bcasts[bcast],
                    swap: self.swap,
                    l1: self.l1,
                    u: self.u,
                    equil: self.equil,
                }
            })
            .collect()
    }

    /// Lengths of the lists in loop order, the slowest first.
    fn lengths(&self) -> [usize; 9] {
        [
            self.grids.len(),
            self.ns.len(),
            self.nbs.len(),
            self.depths.len(),
            self.bcasts.len(),
            self.rfacts.len(),
            self.pfacts.len(),
            self.nbmins.len(),
            self.ndivs.len(),
        ]
    }

    /// The 31 lines, unchecked.
    fn text(&self) -> String {
        let mut out = Text::default();
        for comment in &self.comments {
            out.comment(comment);
        }
        out.line(&self.output_file, "output file name (if any)");
        out.line(self.device, "device out (6=stdout,7=stderr,file)");
        out.list(&self.ns, "# of problems sizes (N)", "Ns");
        out.list(&self.nbs, "# of NBs", "NBs");
        out.line(self.pmap.code(), "PMAP process mapping (0=Row-,1=Column-major)");
        let (ps, qs): (Vec<_>, Vec<_>) = self.grids.iter().copied().unzip();
        out.list(&ps, "# of process grids (P x Q)", "Ps");
        out.line(join(&qs), "Qs");
        out.line(format_args!("{:?}", self.threshold), "threshold");
        out.list(&codes(&self.pfacts), "# of panel fact", "PFACTs (0=left, 1=Crout, 2=Right)");
        out.list(&self.nbmins, "# of recursive stopping criterium", "NBMINs (>= 1)");
        out.list(&self.ndivs, "# of panels in recursion", "NDIVs");
        out.list(&codes(&self.rfacts), "# of recursive panel fact.", "RFACTs (0=left, 1=Crout, 2=Right)");
        out.list(&codes(&self.bcasts), "# of broadcast", "BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)");
        out.list(&self.depths, "# of lookahead depth", "DEPTHs (>=0)");
        out.line(self.swap.code(), "SWAP (0=bin-exch,1=long,2=mix)");
        out.line(self.swap.threshold(), "swapping threshold");
        out.line(self.l1.code(), "L1 in (0=transposed,1=no-transposed) form");
        out.line(self.u.code(), "U  in (0=transposed,1=no-transposed) form");
        out.line(usize::from(self.equil), "Equilibration (0=no,1=yes)");
        out.line(self.align, "memory alignment in double (> 0)");
        out.0
    }
}

/// The lines of a file with their numbers.
struct Lines<'a> {
    lines: std::str::Lines<'a>,
    number: usize,
}

impl<'a> Lines<'a> {
    /// The next line, which holds `name`.
    fn next(&mut self, name: &'static str) -> Result<Line<'a>, DatError> {
        let text = self.lines.next().ok_or(DatError::Truncated { line: self.number + 1, name, last: self.number })?;
        self.number += 1;
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
        let qs = self.next("Q")?.sizes("Q", count, 1)?;
        Ok(ps.into_iter().zip(qs).collect())
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
        if found == count || (found == 0 && !words.is_empty()) {
            return Ok(words);
        }
        let next = words.get(found).map_or_else(|| "the end of the line".to_owned(), |word| shorten(word));
        Err(DatError::TooFew { line: self.number, name, announced: count, found, next })
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

/// A word from a file, fit for an error message.
fn shorten(word: &str) -> String {
    match word.char_indices().nth(40) {
        None if word.is_empty() => "nothing".to_owned(),
        None => word.escape_debug().to_string(),
        Some((end, _)) => format!("{}…", word[..end].escape_debug()),
    }
}

fn codes<T: Coded>(values: &[T]) -> Vec<usize> {
    values.iter().map(|value| value.code()).collect()
}

fn join(values: &[usize]) -> String {
    values.iter().map(usize::to_string).collect::<Vec<_>>().join(" ")
}

/// The text of an HPL.dat as it grows.
#[derive(Default)]
struct Text(String);

impl Text {
    fn line(&mut self, values: impl std::fmt::Display, comment: &str) {
        let values = values.to_string();
        writeln!(self.0, "{values:<12} {comment}").expect("writing to a String");
    }

    fn list(&mut self, values: &[usize], count_comment: &str, comment: &str) {
        self.line(values.len(), count_comment);
        self.line(join(values), comment);
    }

    fn comment(&mut self, comment: &str) {
        let printable = comment.chars().map(|c| if c.is_control() { ' ' } else { c });
        let fits = printable.scan(0, |bytes, c| {
            *bytes += c.len_utf8();
            (*bytes <= MAX_COMMENT).then_some(c)
        });
        self.0.extend(fits);
        self.0.push('\n');
    }
}
