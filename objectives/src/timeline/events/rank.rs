//! The state of a rank within a step.

/// The next operation of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NextOp {
    /// The step begins.
    Start,
    /// Look-ahead: row exchange for the columns of the next panel, message by message.
    EarlyRows(u32),
    /// Update of the columns of the next panel.
    EarlyUpdate,
    /// Panel factorization, together with the other rows of the column.
    Fact,
    /// Send of or wait for the panel; message by message in the long variants.
    Lbcast(u32),
    /// Row exchange, message by message.
    Rows(u32),
    /// Copying of rows to their places.
    Place,
    /// Update, from this slab on.
    Update(u32),
    /// Only the receive and the forward of the panel are left.
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
    pub stage: NextOp,
    /// Whether the rank has the panel of this step.
    pub has_panel: bool,
    /// Number of sends of the panel that have started.
    pub forwarded: u8,
    /// Panels whose send to this rank has started and whose receive has not, one bit per step modulo 32.
    pub offered: u32,
    /// Whether it is blocked until a panel is sent to it.
    pub idle: bool,
    /// The rank with which it waits to exchange a message.
    pub waits_for: Option<u32>,
    /// Whether it is blocked in a send until its child receives the panel.
    pub send_blocked: bool,
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
            stage: NextOp::Start,
            has_panel: false,
            forwarded: 0,
            offered: 0,
            idle: false,
            waits_for: None,
            send_blocked: false,
        }
    }
}
