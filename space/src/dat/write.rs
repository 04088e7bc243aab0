//! Writes an HPL.dat that Netlib's reader reads as the same values.

use std::fmt::Write as _;

use super::{DatError, HplDat, shorten};
use crate::params::Coded;

/// Longest comment that survives Netlib's 252 characters a line.
const MAX_COMMENT: usize = 250;

/// Longest file name that leaves room for the comment behind it.
const MAX_NAME: usize = 200;

impl HplDat {
    /// The text that Netlib's reader, and [`parse`](Self::parse), take for these contents. Comments are cut
    /// to what fits a line.
    ///
    /// # Errors
    /// [`DatError`] naming the line where a value would not be read back as it is.
    pub fn write(&self) -> Result<String, DatError> {
        let name = &self.output_file;
        let is_word = name.split_ascii_whitespace().eq([name]);
        if !is_word || name.len() > MAX_NAME || name.contains(char::is_control) {
            let wanted = format!("one word of at most {MAX_NAME} bytes");
            return Err(DatError::Value { line: 3, name: "output file name", wanted, found: shorten(name) });
        }
        let text = self.text();
        Self::parse(&text).map(|_| text)
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
