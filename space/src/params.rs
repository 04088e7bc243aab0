//! The parameters of one HPL run, named and coded as in HPL.dat.
//!
//! Source of names and codes: \[HPL\] `testing/ptest/HPL_pdinfo.c`; see REFERENCES.md.

use serde::{Deserialize, Serialize};

/// One HPL run: one point of the lists that an HPL.dat holds.
///
/// Sizes are counts of matrix rows, columns or ranks; nothing here has a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HplParams {
    /// Order N of the dense system.
    pub n: usize,
    /// Blocking factor NB of distribution and panels, at least 1.
    pub nb: usize,
    /// Process rows P, at least 1.
    pub p: usize,
    /// Process columns Q, at least 1.
    pub q: usize,
    /// NBMIN: columns at which the panel recursion stops, at least 1.
    pub nbmin: usize,
    /// NDIV: sub-panels per recursion level, at least 2.
    pub ndiv: usize,
    /// DEPTH of the look-ahead: panels in flight beyond the current one.
    pub depth: usize,
    /// ALIGN: the leading dimension is a multiple of this many doubles, at least 1.
    pub align: usize,
    /// PMAP: order in which ranks fill the grid.
    pub pmap: Pmap,
    /// PFACT: variant of the unblocked panel factorization.
    pub pfact: Looking,
    /// RFACT: variant of the recursive panel factorization.
    pub rfact: Looking,
    /// BCAST: panel broadcast along process rows.
    pub bcast: Bcast,
    /// SWAP: row exchange along process columns.
    pub swap: Swap,
    /// Storage of L1, the upper block of the panel.
    pub l1: Form,
    /// Storage of U, the exchanged block rows.
    pub u: Form,
    /// EQUIL: balance the lengths of the U pieces between process rows (no numerical scaling).
    pub equil: bool,
}

impl HplParams {
    /// The configuration that users start from (`Default` would hide that N is a choice): P×Q as given,
    /// NB 128, PFACT right, RFACT Crout, NBMIN 4, NDIV 2, BCAST 1ringM, DEPTH 1, SWAP mix 64,
    /// L1 and U transposed, EQUIL, ALIGN 8. The baseline of every claim of gain.
    pub fn baseline(n: usize, p: usize, q: usize) -> Self {
        Self {
            n,
            nb: 128,
            p,
            q,
            nbmin: 4,
            ndiv: 2,
            depth: 1,
            align: 8,
            pmap: Pmap::Row,
            pfact: Looking::Right,
            rfact: Looking::Crout,
            bcast: Bcast::OneRingM,
            swap: Swap::Mix { threshold: 64 },
            l1: Form::Transposed,
            u: Form::Transposed,
            equil: true,
        }
    }

    /// Number of ranks, P·Q.
    pub fn ranks(&self) -> usize {
        self.p * self.q
    }
}

/// PMAP: how rank numbers fill the P×Q grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pmap {
    /// Rank r sits at process row r / Q (code 0).
    Row,
    /// Rank r sits at process row r mod P (code 1).
    Column,
}

/// PFACT and RFACT: which part of the panel a factorization step reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Looking {
    /// Left-looking (code 0).
    Left,
    /// Crout (code 1).
    Crout,
    /// Right-looking (code 2).
    Right,
}

/// BCAST: the broadcast of the panel along a process row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Bcast {
    /// Increasing ring (code 0).
    #[serde(rename = "1ring")]
    OneRing,
    /// Increasing ring, modified: the root's neighbour does not forward (code 1).
    #[serde(rename = "1ringM")]
    OneRingM,
    /// Two increasing rings (code 2).
    #[serde(rename = "2ring")]
    TwoRing,
    /// Two increasing rings, modified: the root's neighbour does not forward (code 3).
    #[serde(rename = "2ringM")]
    TwoRingM,
    /// Long: spread, then roll (code 4).
    #[serde(rename = "long")]
    Long,
    /// Long, the root's neighbour served first (code 5).
    #[serde(rename = "longM")]
    LongM,
}

/// SWAP: the exchange of pivot rows and U along a process column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Swap {
    /// Binary exchange (code 0).
    BinExch,
    /// Spread and roll (code 1).
    Long,
    /// Binary exchange up to `threshold` local columns, spread and roll above (code 2).
    Mix {
        /// Local columns of U above which the long variant is taken.
        threshold: usize,
    },
}

/// L1 and U: storage form of a small block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// Transposed (code 0).
    Transposed,
    /// Not transposed (code 1).
    NotTransposed,
}

/// An enum of HPL.dat with its code there and its name in tables.
pub trait Coded: Sized + Copy + 'static {
    /// All values, in the order of their codes 0, 1, ….
    const ALL: &'static [(Self, &'static str)];
    /// The code of this value in HPL.dat.
    fn code(self) -> usize;
    /// The value with this code, `None` when HPL.dat has no such code.
    fn from_code(code: usize) -> Option<Self> {
        Self::ALL.get(code).map(|(value, _)| *value)
    }
    /// The name used in tables, TOML and Parquet.
    fn name(self) -> &'static str {
        Self::ALL[self.code()].1
    }
    /// The value of this name.
    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(value, _)| *value)
    }
}

macro_rules! coded {
    ($kind:ty: $($value:ident $name:literal),+ $(,)?) => {
        impl Coded for $kind {
            const ALL: &'static [(Self, &'static str)] = &[$((Self::$value, $name)),+];
            fn code(self) -> usize {
                self as usize
            }
        }
    };
}

coded!(Pmap: Row "row", Column "column");
coded!(Looking: Left "left", Crout "crout", Right "right");
coded!(Bcast: OneRing "1ring", OneRingM "1ringM", TwoRing "2ring", TwoRingM "2ringM", Long "long", LongM "longM");
coded!(Form: Transposed "transposed", NotTransposed "not-transposed");

impl Swap {
    /// The code of this variant in HPL.dat.
    pub fn code(self) -> usize {
        match self {
            Self::BinExch => 0,
            Self::Long => 1,
            Self::Mix { .. } => 2,
        }
    }

    /// The threshold written to HPL.dat: that of mix, HPL's customary 64 otherwise.
    pub fn threshold(self) -> usize {
        match self {
            Self::Mix { threshold } => threshold,
            Self::BinExch | Self::Long => 64,
        }
    }

    /// The name used in tables and Parquet; the threshold has its own column.
    pub fn name(self) -> &'static str {
        match self {
            Self::BinExch => "bin-exch",
            Self::Long => "long",
            Self::Mix { .. } => "mix",
        }
    }
}
