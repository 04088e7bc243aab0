//! Times of single operations of one rank, in seconds.

use hpl::plan::PanelShape;
use space::machine::DeviceRates;

use crate::scenario::{Choices, FactPlace, Run, ScenarioError, Ways};

/// Name of the model in messages.
pub(super) const MODEL: &str = "device";

/// Bytes of a word.
const WORD: f64 = 8.0;
/// Bytes that an element costs the memory where its neighbours in the column are not wanted: a sector.
const SECTOR: f64 = 32.0;
/// Operations of the device for one block of the back substitution: x and y copied there and back, DTRSV, DGEMV.
const TRSV_OPERATIONS: f64 = 6.0;

/// What operations of a run cost on one rank.
#[derive(Debug, Clone)]
pub(super) struct OperationCosts<'a> {
    rates: &'a DeviceRates,
    ways: Ways,
    p: f64,
    q: f64,
    update_coefficient: f64,
    panel: PanelCosts,
}

/// FACT without messages.
#[derive(Debug, Clone, Copy)]
enum PanelCosts {
    Host {
        gflops: f64,
        column_s: f64,
    },
    /// Seconds per column, and per column and row.
    Device {
        column_s: f64,
        element_s: f64,
    },
}

impl<'a> OperationCosts<'a> {
    /// Costs of a run.
    ///
    /// # Errors
    /// [`ScenarioError::Missing`] when FACT is to be where the description does not say what it costs.
    pub(super) fn new(
        rates: &'a DeviceRates,
        run: &Run,
        ways: Ways,
        fact: FactPlace,
        choices: &Choices,
    ) -> Result<Self, ScenarioError> {
        let missing = |what: &str, way_out| ScenarioError::Missing { model: MODEL, what: what.to_owned(), way_out };
        let panel = match fact {
            FactPlace::Host => {
                let gflops = choices.host_panel_gflops.or(rates.host_panel_gflops).ok_or_else(|| {
                    missing(
                        "host_panel_gflops of [device]",
                        "give --host-panel-gflops, or state it in a copy of the file",
                    )
                })?;
                PanelCosts::Host { gflops, column_s: rates.host_panel_column_s }
            }
            FactPlace::Device => {
                let stated = rates.panel_s.zip(rates.panel_row_s).zip(rates.panel_nb);
                let ((panel_s, row_s), nb) = stated.ok_or_else(|| {
                    missing(
                        "panel_s of [device] for FACT on the device",
                        "give --fact host, or state it in a copy of the file",
                    )
                })?;
                PanelCosts::Device { column_s: panel_s / nb as f64, element_s: row_s / nb as f64 }
            }
        };
        let (p, q) = (run.p as f64, run.q as f64);
        Ok(Self { rates, ways, p, q, update_coefficient: choices.update_coefficient, panel })
    }

    /// Start of an operation.
    pub(super) fn launch_s(&self) -> f64 {
        self.rates.launch_s
    }

    /// Share of the device that FACT takes there.
    pub(super) fn panel_share(&self) -> f64 {
        self.rates.panel_share
    }

    /// Whether rows travel.
    pub(super) fn exchanges_rows(&self) -> bool {
        self.p > 1.0
    }

    /// Whether panels travel.
    pub(super) fn sends_panels(&self) -> bool {
        self.q > 1.0
    }

    /// DGEMM of large m and n: 1/rate is linear in 1/k between the stated ones, the rate is in proportion to k below them and
    /// that of the last one above.
    pub(super) fn dgemm_gflops(&self, k: f64) -> f64 {
        let pairs = &self.rates.dgemm_gflops;
        let above = pairs.partition_point(|pair| pair[0] < k);
        match (above.checked_sub(1).map(|below| pairs[below]), pairs.get(above)) {
            (None, Some(&[first, rate])) => rate * k / first,
            (Some([_, rate]), None) => rate,
            (Some([k0, rate0]), Some(&[k1, rate1])) => {
                let share = (1.0 / k0 - 1.0 / k) / (1.0 / k0 - 1.0 / k1);
                1.0 / ((1.0 - share) / rate0 + share / rate1)
            }
            (None, None) => f64::NAN,
        }
    }

    /// C(m×n) −= L2(m×k)·U(k×n).
    pub(super) fn gemm_s(&self, m: usize, n: usize, k: usize) -> f64 {
        if m * n == 0 {
            return 0.0;
        }
        2.0 * k as f64 * self.elements(m, n) / self.flops(k)
    }

    /// U(k×n) ← L1⁻¹ U.
    pub(super) fn trsm_s(&self, k: usize, n: usize) -> f64 {
        k as f64 * self.elements(k, n) / (self.flops(k) * self.rates.trsm_share)
    }

    /// Elements of C, with those that fill the time in which a small C keeps only a part of the device busy.
    fn elements(&self, m: usize, n: usize) -> f64 {
        m as f64 * n as f64 + self.rates.dgemm_half.powi(2)
    }

    fn flops(&self, k: usize) -> f64 {
        1e9 * self.dgemm_gflops(k as f64)
    }

    /// Row swaps in place, at P = 1: the upper rows are neighbours, the lower ones are not; all go through a buffer.
    pub(super) fn swap_s(&self, rows: usize, cols: usize) -> f64 {
        self.memory_s(rows, cols, 2.0 * (SECTOR + WORD) + 4.0 * WORD)
    }

    /// Rows of an exchange gathered into a buffer.
    pub(super) fn gather_s(&self, rows: usize, cols: usize) -> f64 {
        self.memory_s(rows, cols, SECTOR + WORD)
    }

    /// Exchanged rows put into U and below the diagonal block, and U into the matrix.
    pub(super) fn place_s(&self, rows: usize, cols: usize) -> f64 {
        self.memory_s(rows, cols, SECTOR + 5.0 * WORD)
    }

    /// L copied within the device.
    pub(super) fn keep_l_s(&self, panel: &PanelShape) -> f64 {
        self.memory_s(panel.mp, panel.jb, 2.0 * WORD)
    }

    fn memory_s(&self, rows: usize, cols: usize, bytes: f64) -> f64 {
        rows as f64 * cols as f64 * bytes / (1e9 * self.rates.memory_gbytes_per_s)
    }

    /// A copy between host and device.
    pub(super) fn link_s(&self, words: usize) -> f64 {
        words as f64 * WORD / (1e9 * self.rates.link_gbytes_per_s)
    }

    /// FACT of a panel with its pivot exchanges.
    pub(super) fn fact_s(&self, panel: &PanelShape) -> f64 {
        let (m, k) = (panel.mp as f64, panel.jb as f64);
        let computed_s = match self.panel {
            PanelCosts::Host { gflops, column_s } => k * k * (m - k / 3.0).max(0.0) / (1e9 * gflops) + k * column_s,
            PanelCosts::Device { column_s, element_s } => k * (column_s + m * element_s),
        };
        let [alpha_s, beta_s] = self.ways.column;
        computed_s + k * self.p.log2() * (alpha_s + beta_s * (2.0 * k + 4.0))
    }

    /// A panel from one process column to the next.
    pub(super) fn hop_s(&self, panel: &PanelShape) -> f64 {
        let [alpha_s, beta_s] = self.ways.row;
        alpha_s + beta_s * panel.words() as f64
    }

    /// Rows of `cols` columns exchanged over the process column.
    pub(super) fn exchange_s(&self, rows: usize, cols: usize) -> f64 {
        let [alpha_s, beta_s] = self.ways.column;
        let words = rows as f64 * cols as f64 * (self.p - 1.0) / self.p;
        alpha_s * (self.p.log2() + self.p - 1.0) + self.update_coefficient * beta_s * words
    }

    /// The back substitution: U is read once, and block by block x and y go between the ranks and to and from the host.
    pub(super) fn trsv_s(&self, run: &Run) -> f64 {
        let blocks = run.n.div_ceil(run.nb) as f64;
        let read_s = self.memory_s(run.n, run.n, WORD / 2.0) / (self.p * self.q);
        let messages_s = self.ways.row[0] + self.ways.column[0];
        read_s + blocks * (TRSV_OPERATIONS * self.rates.launch_s + messages_s)
    }
}
