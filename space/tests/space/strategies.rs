//! Values that properties are tried on.

use proptest::prelude::*;
use proptest::sample::select;
use space::params::Coded;
use space::{Candidate, EngineParams, HplParams, KernelChoice, Share, Swap, Weights};

pub(crate) fn coded<T: Coded + std::fmt::Debug>() -> impl Strategy<Value = T> {
    select(T::ALL).prop_map(|(value, _)| value)
}

pub(crate) fn swap() -> impl Strategy<Value = Swap> {
    prop_oneof![Just(Swap::BinExch), Just(Swap::Long), (0..200usize).prop_map(|threshold| Swap::Mix { threshold })]
}

/// Sizes that meet often, and their neighbours.
pub(crate) fn size(min: usize) -> impl Strategy<Value = usize> {
    prop_oneof![min..min + 9, min..600usize, Just(64), Just(128)]
}

pub(crate) fn params() -> impl Strategy<Value = HplParams> {
    let sizes = (size(0), size(1), 1..6usize, 1..6usize, size(1), 2..9usize, 0..3usize, 1..33usize);
    let codes = (coded(), coded(), coded(), coded(), swap(), coded(), coded(), any::<bool>());
    (sizes, codes).prop_map(|((n, nb, p, q, nbmin, ndiv, depth, align), codes)| {
        let (pmap, pfact, rfact, bcast, swap, l1, u, equil) = codes;
        HplParams { n, nb, p, q, nbmin, ndiv, depth, align, pmap, pfact, rfact, bcast, swap, l1, u, equil }
    })
}

pub(crate) fn candidate() -> impl Strategy<Value = Candidate> {
    (params(), 1..4usize, any::<bool>(), share(1.0), weights()).prop_map(
        |(hpl, threads, huge_pages, split, weights)| Candidate {
            hpl,
            engine: EngineParams {
                threads,
                huge_pages,
                kernels: KernelChoice::Builtin,
                split,
                weights,
                ..EngineParams::default()
            },
        },
    )
}

/// A share below `end`.
pub(crate) fn share(end: f64) -> impl Strategy<Value = Share> {
    prop_oneof![Just(0.0), Just(0.5), 0.0..end].prop_map(|value| Share::new(value).unwrap())
}

/// Speeds of any number of rows and columns.
pub(crate) fn weights() -> impl Strategy<Value = Weights> {
    let speeds = || proptest::collection::vec(share(1e9), 0..4);
    (speeds(), speeds()).prop_map(|(rows, columns)| Weights { rows, columns })
}
