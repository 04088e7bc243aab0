//! The device backend of one rank: the device with its memory, and the threads of the rank.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Instant;

use super::memory::{DeviceL, LMemory, RowMemory};
use super::{Block, Device, Stream, Wait};
use crate::Error;
use crate::backend::host::kernels::Kernels;
use crate::backend::host::rows;
use crate::backend::host::scratch::ScratchPool;
use crate::backend::host::team::Team;
use crate::backend::{Backend, Columns, Meanwhile, Update};
use crate::comm::Comm;
use crate::lu::fact::Fact;
use crate::lu::laswp::{RowBufferMut, RowSource};
use crate::lu::panel::Panel;
use crate::mat::Mat;
use crate::observe::phases::Phase;
use crate::plan::layout::Layout;

/// Copies of L on the device: one for the updates in progress, one for the panel that arrives meanwhile.
const LS: usize = 2;

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
    /// Vectors and sums.
    pub(super) vectors: D::Memory,
    pub(super) staged_vectors: D::Staging,
    /// Columns that have been written, with the event that this is complete.
    written: Vec<(Range<usize>, D::Event)>,
}

impl<'r, 't, D: Device> OnDevice<'r, 't, D> {
    /// Allocates all memory for the local matrix of process (row, column) `place`, with leading dimension `ld`.
    ///
    /// # Errors
    /// When the device or the host has not enough memory.
    pub(crate) fn new(
        device: D,
        kernels: &'r dyn Kernels,
        team: &'r mut Team<'t>,
        layout: &Layout,
        place: (usize, usize),
        ld: usize,
    ) -> Result<Self, Error> {
        let (rows, cols) = (layout.rows.local_len(place.0), layout.cols.local_len(place.1));
        let (n, nb) = (layout.n(), layout.rows.nb().min(layout.n()));
        let free_l = (0..LS).map(|_| LMemory::new(&device, rows, nb)).collect::<Result<_, _>>()?;
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
            panel: device.staging(rows * nb)?,
            free_l,
            ahead: None,
            exchange: RowMemory::new(&device, nb, cols, layout.rows.procs() == 1)?,
            vectors: device.allocate(vectors)?,
            staged_vectors: device.staging(vectors)?,
            written: Vec::new(),
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
            self.written.retain(|(earlier, _)| earlier.start < cols.start || earlier.end > cols.end);
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

    /// U ← L1⁻¹ U, C ← C − L2 U for a section whose rows are in their places; U in the matrix, or from exchanged rows.
    fn multiply(&mut self, l: &DeviceL<D>, update: &Update<'_>, u_in_place: bool) {
        let (shape, cols) = (update.panel, &update.cols);
        let diag = self.block(shape.ii, cols.start, shape.diag_rows, cols.len());
        let below = shape.mp - shape.diag_rows;
        let c = self.block(shape.ii + shape.diag_rows, cols.start, below, cols.len());
        let u = if u_in_place { diag } else { self.exchange.u(shape.jb, cols.len()) };
        self.device.trsm(Stream::Main, l.l1(), u);
        self.device.gemm(Stream::Main, l.l2(), u, c);
        if !u_in_place && shape.diag_rows > 0 {
            self.device.copy(Stream::Main, u, diag);
        }
        self.wrote(Stream::Main, cols.clone());
    }
}

impl<D: Device> Columns for OnDevice<'_, '_, D> {
    fn fact<C: Comm>(&mut self, fact: Fact<'_, C>) -> Result<usize, Error> {
        self.factor_on_host(fact)
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
        let used = self.device.record(Stream::Main);
        self.free_l.push_back(l.into_memory(used));
    }

    fn update<M: Meanwhile>(
        &mut self,
        l: &DeviceL<D>,
        update: &Update<'_>,
        meanwhile: &mut M,
    ) -> Result<Instant, Error> {
        let clock = Instant::now();
        let u_in_place = self.swap_rows(update);
        let clock = meanwhile.record(Phase::Rs, clock);
        self.multiply(l, update, u_in_place);
        meanwhile.record(Phase::Update, clock);
        meanwhile.fact(self)?;
        meanwhile.start(self, false)?;
        meanwhile.poll(self)?;
        meanwhile.start(self, true)?;
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
        let u_in_place = self.swap_rows(update);
        let placed = Instant::now();
        self.multiply(&l, update, u_in_place);
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
}
