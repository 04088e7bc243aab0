//! Messages between ranks of this process, timed as a ping-pong between pairs of cores.

use super::clock::{Round, timed};
use super::stage::OperandsByCore;
use crate::backend::host::team::{HelperPanicked, Team};
use crate::comm::{Comm, PeerGone, Request};
use crate::mat::Buffer;
use crate::sync::Arc;

/// Words of the measured messages.
pub(super) const SIZES: [usize; 4] = [1 << 10, 1 << 13, 1 << 16, 1 << 19];

/// Minimum words of one measurement, so that the cost of reading the clock is negligible.
const WORDS_PER_RUN: usize = 1 << 15;

/// Maximum round trips of one measurement.
const MOST_TRIPS: usize = 200;

/// Time of one message of `words` in seconds: core i of the first half and its partner in the second half exchange
/// messages in turn, all pairs at the same time. A message is packed into a new buffer by its sender and copied out by
/// its receiver, as panels and rows are.
pub(super) fn ping_pong(stage: &OperandsByCore, team: &mut Team<'_>, words: usize) -> Result<Round, HelperPanicked> {
    let half = team.threads() / 2;
    let trips = (WORDS_PER_RUN / words).clamp(1, MOST_TRIPS);
    let run = timed(team, |core, clock| {
        let operands = stage.operands(core);
        let comm = &*operands.comm.lock();
        let mut memory = operands.trailing.lock();
        let memory = &mut memory[..words];
        clock.time(|| {
            let outcome = if core < half {
                (0..trips)
                    .try_for_each(|_| send(comm, core + half, memory).and_then(|()| receive(comm, core + half, memory)))
            } else if core < 2 * half {
                (0..trips)
                    .try_for_each(|_| receive(comm, core - half, memory).and_then(|()| send(comm, core - half, memory)))
            } else {
                Ok(())
            };
            // A partner ends early only by a panic, which the fork reports.
            outcome.expect("partners wait until both are done");
        })
    })?;
    // Waiting for a partner is part of a message, not a disturbance.
    Ok(Round { time_s: run.wall_s / (2 * trips) as f64, disturbed: false })
}

fn send<C: Comm>(comm: &C, to: usize, memory: &[f64]) -> Result<(), PeerGone> {
    comm.isend(to, 0, Arc::new(Buffer::from(memory)), 0..memory.len()).wait()
}

fn receive<C: Comm>(comm: &C, from: usize, memory: &mut [f64]) -> Result<(), PeerGone> {
    let message = comm.irecv(from, 0, memory.len()).wait()?;
    memory.copy_from_slice(&message);
    Ok(())
}
