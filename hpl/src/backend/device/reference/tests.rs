use std::sync::Arc;

use super::memory::{Memory, POISON};
use super::queue::Event;
use super::*;
use crate::backend::device::{Block, Device, FactorMemory, HostBlock};
use crate::backend::host::kernels::Builtin;
use crate::comm::Msg;
use crate::mat::Buffer;

const KERNELS: Builtin = Builtin(crate::backend::host::kernels::isa::Isa::Portable);

fn device(seed: u64) -> Reference<'static> {
    Reference::new(&KERNELS, ExecutionOrder { seed, without: None })
}

fn numbers(len: usize) -> HostBlock {
    let data: Vec<f64> = (0..len).map(|i| i as f64).collect();
    HostBlock { msg: Msg::new(Arc::new(Buffer::from(&data[..])), 0..len), at: 0, ld: len }
}

fn is_poison(values: &[f64]) -> bool {
    values.iter().all(|value| value.to_bits() == POISON.to_bits())
}

#[test]
fn memory_is_poisoned_until_it_is_written_and_once_it_is_freed() {
    let device = device(0);
    let (memory, mut staging) = (device.allocate(4).unwrap(), device.staging(4).unwrap());
    device.upload(Stream::Main, numbers(2), Block::dense(&memory, 1, 2, 1));
    device.download(Stream::Main, Block::dense(&memory, 0, 4, 1), &staging, 0, 4);
    device.synchronize(Wait::Finished).unwrap();
    {
        let staged = device.staged(&mut staging);
        assert!(staged[1..3] == [0.0, 1.0] && is_poison(&staged[..1]) && is_poison(&staged[3..]));
    }
    device.download(Stream::Main, Block::dense(&memory, 1, 2, 1), &staging, 0, 2);
    drop(memory);
    device.synchronize(Wait::Finished).unwrap();
    assert!(is_poison(&device.staged(&mut staging)[..2]));
}

/// Half of the seeds execute nothing before the host waits.
#[test]
fn copies_are_poison_until_the_host_has_waited() {
    let mut late = 0;
    for seed in 0..64 {
        let device = device(seed);
        let (memory, mut staging) = (device.allocate(3).unwrap(), device.staging(3).unwrap());
        device.upload(Stream::Copy, numbers(3), Block::dense(&memory, 0, 3, 1));
        device.download(Stream::Copy, Block::dense(&memory, 0, 3, 1), &staging, 0, 3);
        let event = device.record(Stream::Copy);
        late += usize::from(is_poison(&device.staged(&mut staging)));
        device.host_wait(&event, Wait::VectorOnHost).unwrap();
        assert_eq!(*device.staged(&mut staging), [0.0, 1.0, 2.0]);
    }
    assert!((32..64).contains(&late), "{late}");
}

/// Without a wait both orders of two streams occur, with it one; the same seed has the same order.
#[test]
fn only_waits_restrict_the_order() {
    let order = |seed: u64, waits: bool| {
        let device = device(seed);
        let (memory, mut staging) = (device.allocate(1).unwrap(), device.staging(1).unwrap());
        let one = |stream, value| {
            let from = HostBlock { at: value, ..numbers(3) };
            device.upload(stream, from, Block::dense(&memory, 0, 1, 1));
        };
        one(Stream::Main, 1);
        if waits {
            device.stream_wait(Stream::Fact, &device.record(Stream::Main), Wait::PanelUpdated);
        }
        one(Stream::Fact, 2);
        device.synchronize(Wait::Finished).unwrap();
        device.download(Stream::Main, Block::dense(&memory, 0, 1, 1), &staging, 0, 1);
        device.synchronize(Wait::Finished).unwrap();
        device.staged(&mut staging).first() == Some(&2.0)
    };
    let count = |waits| (0..64).filter(|&seed| order(seed, waits)).count();
    assert!((8..56).contains(&count(false)), "{} of 64", count(false));
    assert_eq!(count(true), 64);
    assert!((0..64).all(|seed| order(seed, false) == order(seed, false)));
}

#[test]
fn a_wait_for_what_never_happens_is_an_error() {
    let device = device(0);
    device.stream_wait(Stream::Main, &Event::default(), Wait::LUploaded);
    let error = device.host_wait(&device.record(Stream::Main), Wait::SumsOnHost).unwrap_err();
    let expected = "reference device: the host waits for sums on the host, but no operation can start";
    assert_eq!(error.to_string(), expected);
}

/// Columns 1, 2 of [0 2 4; 0 8 4; 0 4 6] after a column of zeros: pivots, L\U, and the same exchanges of another column.
#[test]
fn a_leaf_finds_its_pivots() {
    let device = device(5);
    let [a, other, found, mut staging] =
        [9, 3, 9, 18].map(|len| if len == 18 { device.staging(len) } else { device.allocate(len) }.unwrap());
    let send = |values: &[f64], to: &Memory| {
        let msg = Msg::new(Arc::new(Buffer::from(values)), 0..values.len());
        device.upload(Stream::Fact, HostBlock { msg, at: 0, ld: values.len() }, Block::dense(to, 0, values.len(), 1));
    };
    send(&[0.0, 0.0, 0.0, 2.0, 8.0, 4.0, 4.0, 4.0, 6.0], &a);
    send(&[1.0, 2.0, 3.0], &other);
    send(&[0.0; 9], &found);
    let part = |at: usize, len: usize| Block::dense(&found, at, len, 1);
    let memory = FactorMemory { pivots: part(0, 3), values: part(3, 3), work: part(6, 1), round: 1 };
    device.factor(Stream::Fact, Block::dense(&a, 0, 3, 3), 10, &memory);
    device.interchange(Stream::Fact, part(0, 3), 10, Block::dense(&other, 0, 3, 1));
    for (memory, at, len) in [(&a, 0, 9), (&other, 9, 3), (&found, 12, 6)] {
        device.download(Stream::Fact, Block::dense(memory, 0, len, 1), &staging, at, len);
    }
    device.synchronize(Wait::Finished).unwrap();
    let expected = [
        [0.0, 0.0, 0.0, 2.0, 8.0, 0.5, 4.0, 4.0, 4.0].as_slice(),
        &[1.0, 2.0, 3.0],
        &[10.0, 11.0, 12.0, 0.0, 8.0, 4.0],
    ];
    assert_eq!(*device.staged(&mut staging), expected.concat()[..]);
}
