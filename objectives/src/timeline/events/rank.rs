//! Where a rank is in its step.

/// What a rank does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// The step begins.
    Start,
    /// Look-ahead: row exchange for the columns of the next panel, message by message.
    EarlyRows(u32),
    /// Their update.
    EarlyUpdate,
    /// The panel, together with the other rows of the column.
    Fact,
    /// The panel is sent or waited for; message by message in the long variants.
    Lbcast(u32),
    /// Row exchange, message by message.
    Rows(u32),
    /// Rows are put in place.
    Place,
    /// Update, from this slab on.
    Update(u32),
    /// Nothing is left to do but to receive the panel and pass it on.
    End,
}

/// One rank.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rank {
    pub row: u32,
    pub column: u32,
    pub node: u32,
    /// Seconds per multiply–add.
    pub speed: f64,
    pub step: u32,
    pub stage: Stage,
    /// Whether the panel of this step is here.
    pub has_panel: bool,
    /// Copies of it that have left, or been offered.
    pub forwarded: u8,
    /// Panels that it has been offered and not taken, one bit per step modulo 32.
    pub offered: u32,
    /// Whether it can do nothing until it is offered one.
    pub idle: bool,
    /// Whom it waits to meet.
    pub meets: Option<u32>,
    /// Whether it waits for its child to take the panel.
    pub stuck: bool,
}

impl Rank {
    /// A rank at the start.
    pub(super) fn new(row: usize, column: usize, node: usize, speed: f64) -> Self {
        Self {
            row: row as u32,
            column: column as u32,
            node: node as u32,
            speed,
            step: 0,
            stage: Stage::Start,
            has_panel: false,
            forwarded: 0,
            offered: 0,
            idle: false,
            meets: None,
            stuck: false,
        }
    }
}
