//! An update during which the factorization of the next panel fails.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use super::shares::panel;
use super::*;
use crate::backend::host::kernels::Builtin;
use crate::backend::host::team::{TeamParams, with_team};
use crate::backend::{Columns, SectionSwap};
use crate::observe::trace::Trace;
use crate::plan::PanelShape;

const TEAM: TeamParams<'static> = TeamParams { threads: 4, cores: &[], spin: false };

/// Tasks of which the factorization fails, by a panic or an error.
struct FailingFact {
    panics: bool,
}

impl Meanwhile for FailingFact {
    fn fact(&mut self, _: &mut impl Columns) -> Result<(), Error> {
        assert!(!self.panics, "on purpose");
        Err(HelperPanicked.into())
    }

    fn start(&mut self, _: &mut impl Columns, _: Completion) -> Result<(), Error> {
        Ok(())
    }

    fn poll(&mut self, _: &mut impl Columns) -> Result<(), Error> {
        Ok(())
    }

    fn cols_to_poll(&self) -> usize {
        usize::MAX
    }

    fn record(&mut self, _: Phase, _: Instant) -> Instant {
        Instant::now()
    }
}

/// Updates a section while more than one of four threads would factor the next panel.
fn update_with(meanwhile: &mut FailingFact) -> Result<Instant, Error> {
    let (m, jb, cols) = (56, 8, 8);
    let mut panel = panel(m, jb);
    let shape = *panel.shape();
    let next = PanelShape { k: 1, ..shape };
    assert!(plan::fact_threads(TEAM.threads, &next, &shape, cols) > 1);
    let (kernels, scratch, trace) = (Builtin::best(), ScratchPool::default(), Trace::new(0));
    let mut a = vec![1.0; (m + jb) * (jb + cols)];
    with_team(TEAM, |team| -> Result<Instant, Error> {
        let l = HostL::new(&kernels, team, &mut panel, UpdateMemory::default())?;
        let (section_cols, rows) = (jb..jb + cols, SectionSwap::Local((0..jb).collect()));
        let update =
            Update { panel: &shape, part: Part::Rest, cols: section_cols, rows, next: Some(&next), trace: &trace };
        let a = MatMut::new(&mut a, m + jb, jb + cols, m + jb);
        section(&l, &update, meanwhile, &kernels, team, a, &scratch)
    })
    .unwrap()
}

/// In a thread of its own, so that the test fails where the rank would wait for ever.
#[test]
fn a_failing_factorization_releases_the_threads_that_factor() {
    for panics in [false, true] {
        let (sender, outcome) = mpsc::channel();
        thread::spawn(move || sender.send(update_with(&mut FailingFact { panics }).is_err()));
        let expected = if panics { Err(RecvTimeoutError::Disconnected) } else { Ok(true) };
        assert_eq!(outcome.recv_timeout(Duration::from_secs(60)), expected, "panics: {panics}");
    }
}
