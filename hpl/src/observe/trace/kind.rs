//! The kinds of spans that the timeline distinguishes.

use super::Span;
use crate::observe::phases::Phase;
use crate::plan::Part;

/// A phase; updates are distinguished by section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpanKind {
    Fact,
    Lbcast,
    Rs,
    /// L2 packed for all sections.
    Pack,
    LookAhead,
    Left,
    Rest,
    Trsv,
}

impl SpanKind {
    /// All kinds, in the order of the legend.
    pub(super) const ALL: [Self; 8] =
        [Self::Fact, Self::Lbcast, Self::Rs, Self::Pack, Self::LookAhead, Self::Left, Self::Rest, Self::Trsv];

    pub(super) fn of(span: &Span) -> Self {
        match (span.phase, span.part) {
            (Phase::Fact, _) => Self::Fact,
            (Phase::Lbcast, _) => Self::Lbcast,
            (Phase::Rs, _) => Self::Rs,
            (Phase::Update, None) => Self::Pack,
            (Phase::Update, Some(Part::LookAhead)) => Self::LookAhead,
            (Phase::Update, Some(Part::Left)) => Self::Left,
            (Phase::Update, Some(Part::Rest)) => Self::Rest,
            (Phase::Trsv, _) => Self::Trsv,
        }
    }

    /// Text of the legend.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Fact => "FACT (number: panel)",
            Self::Lbcast => "LBCAST, with waiting",
            Self::Rs => "row swap, with waiting",
            Self::Pack => "packing of L",
            Self::LookAhead => "UPDATE look-ahead",
            Self::Left => "UPDATE left",
            Self::Rest => "UPDATE rest",
            Self::Trsv => "back substitution",
        }
    }

    /// Class of the style sheet.
    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Fact => "fact",
            Self::Lbcast => "lbcast",
            Self::Rs => "rs",
            Self::Pack => "pack",
            Self::LookAhead => "ahead",
            Self::Left => "left",
            Self::Rest => "rest",
            Self::Trsv => "trsv",
        }
    }

    /// Class of a text inside.
    pub(super) fn ink(self) -> &'static str {
        match self {
            Self::LookAhead | Self::Trsv => "on-dark",
            _ => "on-light",
        }
    }

    /// Whether the work factors or broadcasts a panel, which look-ahead may do in another step than the panel's own.
    pub(super) fn is_of_one_panel(self) -> bool {
        matches!(self, Self::Fact | Self::Lbcast)
    }

    /// Whether the work belongs to the update by a panel, and so to the panel's own step.
    pub(super) fn applies_a_panel(self) -> bool {
        !self.is_of_one_panel()
    }

    /// Whether the work is arithmetic of the solution.
    pub(super) fn computes(self) -> bool {
        matches!(self, Self::Fact | Self::LookAhead | Self::Left | Self::Rest | Self::Trsv)
    }
}
