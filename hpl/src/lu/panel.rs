//! The panel as a message: L, then L1 (as it is or transposed), the pivots and info, contiguous.
//!
//! L has the local rows of one process row from the diagonal block on. In the process row that owns the diagonal
//! block its first `diag_rows` rows are that block; they are never read, L1 is used instead.

use std::sync::Arc;

use space::Form;

use crate::comm::Msg;
use crate::mat::{Mat, MatMut, Stored, StoredMut};
use crate::plan::PanelShape;

/// A factored panel; clones share its message.
#[derive(Clone)]
pub(crate) struct Panel {
    shape: PanelShape,
    form: Form,
    pivots: Arc<[usize]>,
    info: usize,
    /// `None` once L is released.
    msg: Option<Msg>,
}

/// The parts of a panel being factored.
pub(crate) struct PanelMut<'a> {
    /// Local rows from the diagonal block on, mp×jb.
    pub(crate) a: MatMut<'a>,
    /// L1 with U above its diagonal, jb×jb, the same in all process rows.
    pub(crate) l1: StoredMut<'a>,
    /// Global row that was exchanged with row ia + j.
    pub(crate) pivots: &'a mut [f64],
    /// Column + 1 of the first zero pivot, else 0.
    pub(crate) info: &'a mut f64,
}

/// Offsets of the parts in the message.
struct Offsets {
    l1: usize,
    pivots: usize,
    info: usize,
}

impl Offsets {
    fn of(shape: &PanelShape) -> Self {
        let l1 = shape.mp * shape.jb;
        let pivots = l1 + shape.jb * shape.jb;
        Self { l1, pivots, info: pivots + shape.jb }
    }
}

impl Panel {
    /// The panel in a message of [`PanelShape::words`] doubles, with L1 in the form `form`.
    ///
    /// # Panics
    /// When the message has another length.
    pub(crate) fn new(shape: PanelShape, form: Form, msg: Msg) -> Self {
        assert_eq!(msg.len(), shape.words(), "the message holds this panel");
        let offsets = Offsets::of(&shape);
        let pivots = msg[offsets.pivots..offsets.info].iter().map(|&row| row as usize).collect();
        Self { shape, form, pivots, info: msg[offsets.info] as usize, msg: Some(msg) }
    }

    /// Shape of the panel.
    pub(crate) fn shape(&self) -> &PanelShape {
        &self.shape
    }

    /// L2: the rows below the diagonal block, (mp − diag_rows)×jb.
    pub(crate) fn l2(&self) -> Mat<'_> {
        let PanelShape { mp, jb, diag_rows, .. } = self.shape;
        Mat::new(&self.msg()[..mp * jb], mp, jb, mp.max(1)).sub(diag_rows, 0, mp - diag_rows, jb)
    }

    /// L1 as stored in the message: unit lower triangular below its diagonal, U on and above it, jb×jb.
    pub(crate) fn l1(&self) -> Stored<'_> {
        let (offsets, jb) = (Offsets::of(&self.shape), self.shape.jb);
        Stored::new(Mat::new(&self.msg()[offsets.l1..offsets.pivots], jb, jb, jb), self.form)
    }

    /// Row ia + j was exchanged with global row `pivots()[j]`, for j = 0, 1, … in this order.
    pub(crate) fn pivots(&self) -> &[usize] {
        &self.pivots
    }

    /// Column + 1 of the first zero pivot of this panel, else 0.
    pub(crate) fn info(&self) -> usize {
        self.info
    }

    /// Releases L, which has been copied; shape, pivots and info stay.
    pub(crate) fn release_l(&mut self) {
        self.msg = None;
    }

    /// The message: L, L1, pivots and info.
    pub(crate) fn msg(&self) -> &Msg {
        self.msg.as_ref().expect("L is released only once all its updates have a copy")
    }
}

/// The parts of the panel to be stored in `data`, with L1 in the form `form`; L1, pivots and info keep their old values.
pub(crate) fn parts_mut<'a>(shape: &PanelShape, form: Form, data: &'a mut [f64]) -> PanelMut<'a> {
    let (offsets, mp, jb) = (Offsets::of(shape), shape.mp, shape.jb);
    let (a, tail) = data[..=offsets.info].split_at_mut(offsets.l1);
    let (l1, tail) = tail.split_at_mut(jb * jb);
    let (pivots, info) = tail.split_at_mut(jb);
    let l1 = StoredMut::new(MatMut::new(l1, jb, jb, jb), form);
    PanelMut { a: MatMut::new(a, mp, jb, mp.max(1)), l1, pivots, info: &mut info[0] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mat::Buffer;

    #[test]
    fn parts_are_read_where_they_are_written() {
        let shape = PanelShape { k: 0, ia: 0, jb: 2, row: 0, col: 0, ii: 0, mp: 5, diag_rows: 2 };
        for (form, index) in [(Form::NotTransposed, 11), (Form::Transposed, 12)] {
            let mut data = vec![0.0; shape.words()];
            let mut parts = parts_mut(&shape, form, &mut data);
            parts.a.set(4, 1, 3.0);
            parts.l1.set(1, 0, 0.5);
            parts.pivots.copy_from_slice(&[4.0, 1.0]);
            *parts.info = 2.0;
            assert_eq!(data[index], 0.5);
            let mut panel = Panel::new(shape, form, Msg::new(Arc::new(Buffer::from(&data[..])), 0..shape.words()));
            assert_eq!((panel.l2().rows(), panel.l2().at(2, 1), panel.l1().at(1, 0)), (3, 3.0, 0.5));
            panel.release_l();
            assert_eq!((panel.pivots(), panel.info()), (&[4, 1][..], 2));
        }
    }
}
