//! Panels: factored on the host, L on the device.

use std::time::Instant;

use space::Form;

use super::memory::DeviceL;
use super::{Block, Device, HostBlock, OnDevice, Stream, Wait};
use crate::Error;
use crate::backend::host::fact;
use crate::comm::{Comm, Msg};
use crate::lu::fact::Fact;
use crate::lu::panel::Panel;
use crate::mat::{Buffer, MatMut};
use crate::observe::phases::Phase;
use crate::plan::PanelShape;
use crate::sync::Arc;

impl<D: Device> OnDevice<'_, '_, D> {
    /// Copies a panel to the host and factors it there by all threads. Of its columns on the device, only U is read again, by the
    /// back substitution.
    pub(super) fn factor_on_host<C: Comm>(&mut self, fact: Fact<'_, C>) -> Result<usize, Error> {
        let PanelShape { k, ii, mp, jb, diag_rows, .. } = fact.shape;
        let (cols, rows) = (fact.col..fact.col + jb, self.rows);
        self.stream_waits_for(Stream::Fact, &cols, Wait::PanelUpdated);
        let from = self.block(ii, cols.start, mp, jb);
        self.device.download(Stream::Fact, from, &self.panel, ii, rows);
        self.device.host_wait(&self.device.record(Stream::Fact), Wait::PanelOnHost)?;
        // FACT is no wait for the update.
        let start = Instant::now();
        let mut staged = self.device.staged(&mut self.panel);
        let mut a = MatMut::new(&mut staged, rows, jb, rows.max(1));
        let fact = Fact { col: 0, ..fact };
        let threads = fact::factor(fact, self.kernels, a.reborrow(), self.team.borrowed_team(), &self.scratch)?;
        self.spans.done_by_host((Stream::Fact, Phase::Fact, k, None), start);
        if diag_rows > 0 {
            let mut u = Buffer::of(jb * jb);
            (0..jb).for_each(|j| u[j * jb..(j + 1) * jb].copy_from_slice(&a.col(j)[ii..ii + jb]));
            drop(staged);
            let u = HostBlock { msg: Msg::new(Arc::new(u), 0..jb * jb), at: 0, ld: jb };
            self.device.upload(Stream::Fact, u, self.block(ii, cols.start, jb, jb));
            self.wrote(Stream::Fact, cols);
        }
        Ok(threads)
    }

    /// L of a panel on the device, where it is copied unless the device has factored the panel.
    pub(super) fn upload_l(&mut self, panel: &Panel) -> DeviceL<D> {
        let shape = *panel.shape();
        if self.inverses().is_some() {
            return DeviceL { memory: None, shape };
        }
        let memory = self.free_l.pop_front().expect("a step uses one L for its sections and one for other updates");
        let (device, PanelShape { mp, jb, .. }) = (&self.device, shape);
        if let Some(used) = &memory.used {
            device.stream_wait(Stream::Fact, used, Wait::LFree);
        }
        let words = (mp + jb) * jb;
        let from = HostBlock { msg: panel.msg().clone(), at: 0, ld: words };
        device.upload(Stream::Fact, from, Block::dense(&memory.message, 0, words, 1));
        let stored = Block::dense(&memory.message, mp * jb, jb, jb);
        match panel.l1().form() {
            Form::NotTransposed => device.copy(Stream::Fact, stored, memory.l1(&shape)),
            Form::Transposed => device.transpose(Stream::Fact, stored, memory.l1(&shape)),
        }
        let uploaded = device.record(Stream::Fact);
        [Stream::Main, Stream::Copy]
            .into_iter()
            .for_each(|stream| device.stream_wait(stream, &uploaded, Wait::LUploaded));
        DeviceL { memory: Some(memory), shape }
    }
}
