//! The waits of the backend: the only order between streams, and between a stream and the host.

use std::fmt;

/// Who waits for what. Without any one of them, some order of execution gives a wrong result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// The host, after generation.
    Generated,
    /// `Fact`, before a panel is copied to the host or factored, for the updates of its columns on `Main`.
    PanelUpdated,
    /// The host, before it factors a panel, for the copy on `Fact`.
    PanelOnHost,
    /// The host, before it reads the pivots of a panel that the device has factored, for the copy on `Fact`.
    PivotsOnHost,
    /// `Fact`, before it overwrites an L, for the last update with it on `Main`.
    LFree,
    /// `Main` and `Copy`, before an update, for the L that `Fact` copies.
    LUploaded,
    /// `Copy`, before rows are gathered or swapped, for the updates of their columns on `Main`.
    SectionUpdated,
    /// `Main`, before a product, for the row swap and the solve on `Copy`.
    SectionSolved,
    /// The host, before it sends gathered rows, for the copy on `Copy`.
    RowsOnHost,
    /// `Copy`, before it overwrites exchanged rows, for `Main`, which copies them to their places.
    RowsFree,
    /// `Main`, before it copies exchanged rows to their places, for `Copy`, which receives them from the host.
    RowsUploaded,
    /// The host, at the end of a factorization, for all streams.
    Finished,
    /// The host, before it uses a part of a vector, for its copy.
    VectorOnHost,
    /// The host, before it uses sums, for their copy.
    SumsOnHost,
}

impl Wait {
    /// All waits.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 14] = [
        Self::Generated,
        Self::PanelUpdated,
        Self::PanelOnHost,
        Self::PivotsOnHost,
        Self::LFree,
        Self::LUploaded,
        Self::SectionUpdated,
        Self::SectionSolved,
        Self::RowsOnHost,
        Self::RowsFree,
        Self::RowsUploaded,
        Self::Finished,
        Self::VectorOnHost,
        Self::SumsOnHost,
    ];
}

impl fmt::Display for Wait {
    /// What is waited for.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Generated => "the generated matrix",
            Self::PanelUpdated => "the updates of a panel",
            Self::PanelOnHost => "a panel on the host",
            Self::PivotsOnHost => "the pivots of a panel on the host",
            Self::LFree => "the last update with an L",
            Self::LUploaded => "an L on the device",
            Self::SectionUpdated => "the updates of a section",
            Self::SectionSolved => "the row swap and the solve of a section",
            Self::RowsOnHost => "gathered rows on the host",
            Self::RowsFree => "the copies from exchanged rows",
            Self::RowsUploaded => "exchanged rows on the device",
            Self::Finished => "the end of the factorization",
            Self::VectorOnHost => "a vector on the host",
            Self::SumsOnHost => "sums on the host",
        })
    }
}
