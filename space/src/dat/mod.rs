//! HPL.dat: the 31 lines of HPL's input.
//!
//! Read strictly: what Netlib's reader silently turns into something else (PFACT 7 into right, BCAST 9 into
//! 1ringM, a missing value into a repeated one, the end of a value into the next where blanks repeat, the end of a
//! long line into the next line) is an error that names its line. Lines may end in CRLF, text after the values and
//! after line 31 is comment, as in HPCC's input.
//!
//! Written so that Netlib's reader agrees: it advances by the length of a value plus one, so values are
//! separated by exactly one blank with none in front, and it cuts lines after 252 characters.
//!
//! Source: \[HPL\] `testing/ptest/HPL_pdinfo.c`.

mod read;
mod write;

use crate::{Bcast, Form, HplParams, Looking, Pmap, Swap};

/// Values that one list of HPL.dat may hold (\[HPL\] `HPL_MAX_PARAM`).
pub const MAX_VALUES: usize = 20;

/// The device of `file`, as HPL's users write it in numbers.
const TO_FILE: i64 = 8;

/// Runs that one HPL.dat may ask for; twenty values in every list would be 5·10¹¹.
pub const MAX_RUNS: usize = 100_000;

/// The contents of an HPL.dat; list fields hold 1 to [`MAX_VALUES`] values.
#[derive(Debug, Clone, PartialEq)]
pub struct HplDat {
    /// Lines 1 and 2, free text.
    pub comments: [String; 2],
    /// Name of the output file, one word.
    pub output_file: String,
    /// Where output goes: 6 stdout, 7 stderr, anything else, the word `file` too, [`output_file`](Self::output_file).
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

/// Why an HPL.dat is invalid. Lines count from 1.
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
    /// A line of which Netlib's reader would take the end for the next line.
    #[error(
        "HPL.dat line {line}: {name} has a line of {bytes} bytes, HPL cuts lines after {most} and takes the rest for \
         the next line; shorten its comment"
    )]
    TooLong {
        /// Where.
        line: usize,
        /// What the line holds.
        name: &'static str,
        /// Its length.
        bytes: usize,
        /// The longest that is read as one line.
        most: usize,
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
        /// The word found in place of the next value, shortened.
        next: String,
    },
    /// Blanks repeat so that Netlib's reader takes another value.
    #[error(
        "HPL.dat line {line}: HPL would take {taken} for the {name} {word}, because blanks repeat; write one blank \
         between values and none in front"
    )]
    Blanks {
        /// Line of the list.
        line: usize,
        /// HPL's name of the values.
        name: &'static str,
        /// The value as it stands there, shortened.
        word: String,
        /// What Netlib's reader takes, shortened.
        taken: String,
    },
    /// The product of the lists is too many runs.
    #[error("HPL.dat asks for {runs:e} runs, at most {MAX_RUNS} are accepted; shorten its lists")]
    TooManyRuns {
        /// Product of the lengths of all lists.
        runs: f64,
    },
}

impl HplDat {
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
}

/// A word from a file, fit for an error message.
fn shorten(word: &str) -> String {
    match word.char_indices().nth(40) {
        None if word.is_empty() => "nothing".to_owned(),
        None => word.escape_debug().to_string(),
        Some((end, _)) => format!("{}…", word[..end].escape_debug()),
    }
}
