//! Messages between ranks of this process, timed as a ping-pong of pairs of cores.

use std::sync::Arc;

use super::clock::{Round, timed};
use super::stage::Stage;
use crate::backend::host::team::{HelperPanicked, Team};
use crate::comm::{Comm, PeerGone, Request};

/// Words of the messages that are measured.
pub(super) const SIZES: [usize; 4] = [1 << 10, 1 << 13, 1 << 16, 1 << 19];

/// Words that one measurement moves at least, so that the clock's own cost does not show.
const WORDS_PER_RUN: usize = 1 << 15;

/// Most round trips of one measurement.
const MOST_TRIPS: usize = 200;

/// Seconds of one message of `words`: core i of the first half and its partner in the second half send it to
/// and fro, all pairs at once. A message is packed into a new buffer by its sender and copied out by its
/// receiver, as panels and rows are.
pub(super) fn ping_pong(stage: &Stage, team: &mut Team<'_>, words: usize) -> Result<Round, HelperPanicked> {
    let half = team.threads() / 2;
    let trips = (WORDS_PER_RUN / words).clamp(1, MOST_TRIPS);
    let run = timed(team, |core, clock| {
        let place = stage.place(core);
        let comm = &*place.comm.lock();
        let mut memory = place.trailing.lock();
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
            // Only the panic of a partner can end a pair early; it is reported by the fork.
            outcome.expect("partners stay until both are done");
        })
    })?;
    // Waiting for a partner is part of a message, not a disturbance.
    Ok(Round { time_s: run.wall_s / (2 * trips) as f64, disturbed: false })
}

fn send<C: Comm>(comm: &C, to: usize, memory: &[f64]) -> Result<(), PeerGone> {
    comm.isend(to, 0, Arc::from(memory), 0..memory.len()).wait()
}

fn receive<C: Comm>(comm: &C, from: usize, memory: &mut [f64]) -> Result<(), PeerGone> {
    let message = comm.irecv(from, 0, memory.len()).wait()?;
    memory.copy_from_slice(&message);
    Ok(())
}
