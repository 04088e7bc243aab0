//! The device backend of one rank: the device with its memory, and the threads of the rank.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Instant;

use super::fact_memory::DeviceFact;
use super::inverse::L1Inverses;
use super::memory::{DeviceL, LMemory, RowMemory};
use super::moves::moves;
use super::parts::parts;
use super::spans::StreamSpans;
use super::{Block, Device, Stream, Wait};
use space::HplParams;

use crate::Error;
use crate::backend::host::kernels::Kernels;
use crate::backend::host::rows;
use crate::backend::host::scratch::ScratchPool;
use crate::backend::host::team::Team;
use crate::backend::{Backend, Columns, Meanwhile, SectionSwap, Update};
use crate::comm::{Comm, Completion};
use crate::lu::fact::Fact;
use crate::lu::laswp::{RowBufferMut, RowSource};
use crate::lu::panel::Panel;
use crate::mat::Mat;
use crate::observe::phases::Phase;
use crate::observe::trace::StreamSpan;
use crate::plan::PanelShape;
use crate::plan::layout::Layout;
use crate::plan::recursion::Recipe;

/// Copies of L on the device: one for the updates in progress, one for the panel that arrives meanwhile.
const LS: usize = space::workspace::DEVICE_LS;

/// The local matrix in the memory of a device, with the threads of the rank.
pub(crate) struct OnDevice<'r, 't, D: Device> {
    pub(super) device: D,
    /// Kernels of the panel factorization.
    pub(super) kernels: &'r dyn Kernels,
    pub(super) team: &'r mut Team<'t>,
    pub(super) scratch: ScratchPool,
    a: D::Memory,
    pub(super) rows: usize,
    pub(super) cols: usize,
    ld: usize,
    /// The columns of a panel on the host, with all local rows.
    pub(super) panel: D::Staging,
    /// Memory for L that no update needs, the one that was used first at the front.
    pub(super) free_l: VecDeque<LMemory<D>>,
    /// L that the last look-ahead update used, for the sections of the same panel.
    ahead: Option<DeviceL<D>>,
    pub(super) exchange: RowMemory<D>,
    /// Of panels that the device factors; `None` where the threads do.
    pub(super) fact: Option<DeviceFact<D>>,
    /// Vectors and sums.
    pub(super) vectors: D::Memory,
    pub(super) staged_vectors: D::Staging,
    /// Columns that have been written, with the event that this is complete.
    written: Vec<(Range<usize>, D::Event)>,
    pub(super) spans: StreamSpans<D>,
}

/// Parameters of a matrix on a device.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeviceParams {
    /// Leading dimension of the matrix.
    pub(crate) ld: usize,
    /// DEPTH.
    pub(crate) depth: usize,
    /// Blocks of threads of the device that factor a panel if there is one process row; with 0, or more rows, the team does.
    pub(crate) fact_blocks: usize,
}

impl<'r, 't, D: Device> OnDevice<'r, 't, D> {
    /// Allocates all memory for the local matrix of process (row, column) `place`.
    ///
    /// # Errors
    /// When the device or the host has not enough memory.
    pub(crate) fn new(
        device: D,
        kernels: &'r dyn Kernels,
        team: &'r mut Team<'t>,
        layout: &Layout,
        place: (usize, usize),
        params: DeviceParams,
    ) -> Result<Self, Error> {
        let (rows, cols, ld) = (layout.rows.local_len(place.0), layout.cols.local_len(place.1), params.ld);
        let (n, nb) = (layout.n(), layout.rows.nb().min(layout.n()));
        let one_row = layout.rows.procs() == 1;
        let l_in_matrix = one_row && layout.cols.procs() == 1 && params.fact_blocks > 0;
        let inverses = l_in_matrix.then(|| L1Inverses::new(&device, nb, cols, params.depth)).transpose()?;
        let on_device = one_row && params.fact_blocks > 0;
        // A block has a row at least.
        let blocks = params.fact_blocks.min(rows.max(1));
        let fact = on_device.then(|| DeviceFact::new(&device, (rows, nb), blocks, inverses)).transpose()?;
        // L of a panel that stays where it is factored needs no other place.
        let (ls, staged) = if l_in_matrix { (0, 0) } else { (LS, rows * nb) };
        let free_l = (0..ls).map(|_| LMemory::new(&device, rows, nb)).collect::<Result<_, _>>()?;
        // x, or the sums along rows and columns; y with x of a block.
        let vectors = (2 * rows + cols + 1).max(rows + nb) + n;
        Ok(Self {
            kernels,
            team,
            scratch: ScratchPool::default(),
            a: device.allocate(ld * cols)?,
            rows,
            cols,
            ld,
            panel: device.staging(staged)?,
            free_l,
            ahead: None,
            fact,
            exchange: RowMemory::new(&device, nb, cols, one_row)?,
            vectors: device.allocate(vectors)?,
            staged_vectors: device.staging(vectors)?,
            written: Vec::new(),
            spans: StreamSpans::default(),
            device,
        })
    }

    /// The block of `rows × cols` elements of the local matrix that starts at (i, j).
    pub(super) fn block(&self, i: usize, j: usize, rows: usize, cols: usize) -> Block<'_, D::Memory> {
        let whole = Block { memory: &self.a, at: 0, rows: self.rows, cols: self.cols, ld: self.ld };
        whole.sub(i, j, rows, cols)
    }

    /// The operations queued on `stream` so far write the local columns `cols`.
    pub(super) fn wrote(&mut self, stream: Stream, cols: Range<usize>) {
        if stream == Stream::Main {
            // Operations of a stream are complete in order; updates leave the columns alone that other streams write.
            self.written.retain_mut(|(earlier, _)| {
                if earlier.start < cols.start && cols.start < earlier.end && earlier.end <= cols.end {
                    earlier.end = cols.start;
                }
                earlier.start < cols.start || earlier.end > cols.end
            });
        }
        let event = self.device.record(stream);
        self.written.push((cols, event));
    }

    /// Later operations of `stream` wait until the local columns `cols` are written.
    pub(super) fn stream_waits_for(&self, stream: Stream, cols: &Range<usize>, wait: Wait) {
        let shared = |range: &Range<usize>| range.start < cols.end && cols.start < range.end;
        for (_, event) in self.written.iter().filter(|(range, _)| shared(range)) {
            self.device.stream_wait(stream, event, wait);
        }
    }

    /// Queues the update of a section, in parts of its columns with one process row. Calls `placed` once the rows of a section from
    /// other processes are queued; with one process row that is a part of the update.
    fn update_section(&mut self, l: &DeviceL<D>, update: &Update<'_>, placed: impl FnOnce()) {
        match &update.rows {
            SectionSwap::Local(pivots) => {
                let pairs = moves(pivots);
                placed();
                self.update_in_place(l, update, &pairs);
            }
            SectionSwap::Exchanged { result, first } => {
                self.place_exchanged(update, result, *first);
                placed();
                self.update_exchanged(l, update);
            }
        }
    }

    /// [U; C] ← P·[U; C], U ← L1⁻¹ U on `Copy`, which goes ahead of C ← C − L2 U on `Main` as far as the columns are updated.
    fn update_in_place(&mut self, l: &DeviceL<D>, update: &Update<'_>, pairs: &[(usize, usize)]) {
        let shape = update.panel;
        for cols in parts(&update.cols) {
            self.stream_waits_for(Stream::Copy, &cols, Wait::SectionUpdated);
            let all = self.block(shape.ii, cols.start, shape.mp, cols.len());
            let (u, c) = (all.top(shape.jb), all.sub(shape.jb, 0, shape.mp - shape.jb, cols.len()));
            let timed = |stream, phase, work: &dyn Fn()| {
                self.spans.timed(&self.device, (stream, phase, shape.k, Some(update.part)), work);
            };
            let (l1, l2) = self.l_of(l);
            timed(Stream::Copy, Phase::Rs, &|| self.permute_rows(pairs, all));
            timed(Stream::Copy, Phase::Update, &|| self.solve(Stream::Copy, shape.k, l1, u));
            self.device.stream_wait(Stream::Main, &self.device.record(Stream::Copy), Wait::SectionSolved);
            timed(Stream::Main, Phase::Update, &|| self.device.gemm(Stream::Main, l2, u, c));
            self.wrote(Stream::Main, cols);
        }
    }

    /// U ← L1⁻¹ U, C ← C − L2 U for a section whose exchanged rows are in their places.
    fn update_exchanged(&mut self, l: &DeviceL<D>, update: &Update<'_>) {
        let (shape, cols) = (update.panel, &update.cols);
        let below = self.block(shape.ii + shape.diag_rows, cols.start, shape.mp - shape.diag_rows, cols.len());
        let u = self.exchange.u(shape.jb, cols.len());
        let (l1, l2) = self.l_of(l);
        self.spans.timed(&self.device, (Stream::Main, Phase::Update, shape.k, Some(update.part)), || {
            self.device.trsm(Stream::Main, l1, u);
            self.device.gemm(Stream::Main, l2, u, below);
        });
        if shape.diag_rows > 0 {
            self.device.copy(Stream::Main, u, self.block(shape.ii, cols.start, shape.diag_rows, cols.len()));
        }
        self.wrote(Stream::Main, cols.clone());
    }

    /// Factors the first panel and updates by it, whatever the memory contains.
    pub(super) fn first_step_untimed(&mut self, params: &HplParams) -> Result<(), Error> {
        let jb = params.nb.min(self.rows).min(self.cols);
        let below = self.rows - jb;
        if self.fact.is_some() && jb > 0 {
            self.queue_fact(self.block(0, 0, self.rows, jb), 0, &Recipe::new(params));
        }
        self.device.synchronize(Wait::Finished)?;
        for width in [jb, self.cols - jb] {
            let cols = parts(&(jb..self.cols.min(jb + width))).next();
            let Some(cols) = cols.filter(|_| below > 0 && jb > 0) else { continue };
            let stream = if self.exchange.len == 0 { Stream::Copy } else { Stream::Main };
            let all = self.block(0, cols.start, self.rows, cols.len());
            self.solve(stream, 0, self.block(0, 0, jb, jb), all.top(jb));
            self.device.synchronize(Wait::Finished)?;
            self.device.gemm(
                Stream::Main,
                self.block(jb, 0, below, jb),
                all.top(jb),
                all.sub(jb, 0, below, cols.len()),
            );
        }
        self.spans.start(&self.device)
    }

    /// Queues U ← L1⁻¹ U of panel `k`: on `stream`, or by the inverse on `Copy`.
    fn solve(&self, stream: Stream, k: usize, l1: Block<'_, D::Memory>, u: Block<'_, D::Memory>) {
        match self.inverses() {
            Some(inverses) => inverses.solve(&self.device, k, u),
            None => self.device.trsm(stream, l1, u),
        }
    }

    /// L1⁻¹ where L of a panel is in the matrix only.
    pub(super) fn inverses(&self) -> Option<&L1Inverses<D>> {
        self.fact.as_ref().and_then(DeviceFact::inverses)
    }

    /// L1 and L2.
    fn l_of<'s>(&'s self, l: &'s DeviceL<D>) -> (Block<'s, D::Memory>, Block<'s, D::Memory>) {
        let PanelShape { ii, ia, mp, jb, .. } = l.shape;
        match &l.memory {
            Some(memory) => (memory.l1(&l.shape), memory.l2(&l.shape)),
            // One process: the local column is the global one.
            None => (self.block(ii, ia, jb, jb), self.block(ii + jb, ia, mp - jb, jb)),
        }
    }
}

impl<D: Device> Columns for OnDevice<'_, '_, D> {
    fn fact<C: Comm>(&mut self, fact: Fact<'_, C>) -> Result<usize, Error> {
        if self.fact.is_some() { self.factor_on_device(fact) } else { self.factor_on_host(fact) }
    }

    fn copy_rows(&mut self, from: RowSource<'_>, pairs: &[(usize, usize)], to: &mut RowBufferMut) -> Result<(), Error> {
        match from {
            RowSource::Matrix(cols) => self.gather_rows(cols, pairs, to),
            RowSource::Buffer(_) => {
                let no_matrix = Mat::new(&[], 0, 0, 0);
                Ok(rows::copy(no_matrix, from, pairs, to, Some(self.team))?)
            }
        }
    }
}

impl<D: Device> Backend for OnDevice<'_, '_, D> {
    type L = DeviceL<D>;

    fn load(&mut self, panel: &mut Panel) -> Result<DeviceL<D>, Error> {
        let l = self.ahead.take_if(|l| l.shape.k == panel.shape().k).unwrap_or_else(|| self.upload_l(panel));
        // The device keeps the message until it is copied.
        panel.release_l();
        Ok(l)
    }

    fn unload(&mut self, l: DeviceL<D>) {
        if let Some(mut memory) = l.memory {
            memory.used = Some(self.device.record(Stream::Main));
            self.free_l.push_back(memory);
        }
    }

    fn update<M: Meanwhile>(
        &mut self,
        l: &DeviceL<D>,
        update: &Update<'_>,
        meanwhile: &mut M,
    ) -> Result<Instant, Error> {
        let mut clock = Instant::now();
        self.update_section(l, update, || clock = meanwhile.record(Phase::Rs, clock));
        meanwhile.record(Phase::Update, clock);
        meanwhile.fact(self)?;
        meanwhile.start(self, Completion::Test)?;
        meanwhile.poll(self)?;
        meanwhile.start(self, Completion::Wait)?;
        Ok(Instant::now())
    }

    fn update_lookahead(&mut self, panel: &Panel, update: &Update<'_>) -> Result<Instant, Error> {
        let l = match self.ahead.take() {
            Some(l) if l.shape.k == panel.shape().k => l,
            other => {
                if let Some(l) = other {
                    self.unload(l);
                }
                self.upload_l(panel)
            }
        };
        let mut placed = Instant::now();
        self.update_section(&l, update, || placed = Instant::now());
        self.ahead = Some(l);
        Ok(placed)
    }

    fn finish(&mut self) -> Result<(), Error> {
        self.written.clear();
        if let Some(l) = self.ahead.take() {
            self.unload(l);
        }
        Ok(self.device.synchronize(Wait::Finished)?)
    }

    fn stream_spans(&mut self) -> Vec<StreamSpan> {
        self.spans.take(&self.device)
    }
}
