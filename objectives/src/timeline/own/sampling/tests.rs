use space::{Pmap, Share, Unequal};

use super::SampleSize;
use crate::timeline::own::tests::{candidate, machine, model};
use crate::timeline::own::{OwnModel, PredictedRun};

/// Equal ranks are walked once, many columns and steps are sampled.
#[test]
fn a_sample_represents_the_run() {
    let network = space::machine::Layer {
        name: "network".into(),
        ranks: 1024,
        alpha_s: Some(1e-5),
        beta_s_per_word: 1e-9,
        shared_by: 4,
    };
    let mut cluster = machine(None, 1.0);
    cluster.nodes[0].count = 256;
    cluster.layers = vec![network];
    let models = [model(), OwnModel::new(&cluster).unwrap()];
    let grids = [(2, 2), (4, 1), (3, 2), (2, 5), (1, 12), (8, 8), (2, 70)];
    for ((p, q), (n, nb)) in grids.into_iter().flat_map(|grid| [(4000, 48), (16_000, 64)].map(|size| (grid, size))) {
        for (depth, split) in [(0, 0.0), (1, 0.0), (2, 0.5), (1, 0.5)] {
            let c = candidate(n, nb, (p, q), 1, depth, split);
            let model = &models[usize::from(p * q > 4)];
            let exact = model.exact_time_s(&c);
            let off = |detail| (model.one_time_s(&c, detail) / exact - 1.0).abs();
            assert!(off(SampleSize::ALL_STEPS) < 0.005, "{} {c:?}", off(SampleSize::ALL_STEPS));
            assert!(off(SampleSize::FINE) < 0.01, "{} {c:?}", off(SampleSize::FINE));
            assert!(off(SampleSize::COARSE) < 0.04, "{} {c:?}", off(SampleSize::COARSE));
        }
    }
}

/// Process rows with equal shares and speeds are walked once, and the phases are means over all of them.
#[test]
fn rows_of_unequal_ranks_are_walked_by_kind() {
    let mut cluster = machine(None, 1.0);
    cluster.nodes[0].count = 32;
    let share = |speed: f64| Share::new(speed).unwrap();
    let speed = |node: usize| share(if [5, 17].contains(&node) { 0.8 } else { 1.0 });
    let model = OwnModel::new(&cluster).unwrap().slowed(Unequal::nodes((0..32).map(speed).collect(), 8));
    let weights = |procs: usize, other: f64| {
        (0..procs).map(|at| share(if at % 4 == 1 { other } else { 1.0 })).collect::<Vec<Share>>()
    };
    let mut off = Vec::new();
    for (p, q) in [(16, 16), (8, 32), (32, 8)] {
        for (depth, pmap) in [(0, Pmap::Row), (1, Pmap::Row), (1, Pmap::Column)] {
            for (rows, columns) in [(1.0, 1.0), (1.0, 0.9), (0.9, 1.0)] {
                let mut c = candidate(30_000, 64, (p, q), 1, depth, 0.0);
                c.hpl.pmap = pmap;
                c.engine.weights.rows = if rows < 1.0 { weights(p, rows) } else { Vec::new() };
                c.engine.weights.columns = if columns < 1.0 { weights(q, columns) } else { Vec::new() };
                let run = PredictedRun::new(&model, &c);
                let of = |size| {
                    let mut steps = Vec::new();
                    let time_s = run.times_s(run.layout(), &[c.hpl], size, Some(&mut steps)).0[0];
                    (time_s, steps.iter().map(|step| step.update_s).sum::<f64>())
                };
                let (all, by_kind) = (of(SampleSize::EXACT), of(SampleSize::ALL_STEPS));
                off.push(by_kind.0 / all.0 - 1.0);
                assert!((by_kind.1 / all.1 - 1.0).abs() < 0.05, "{c:?}");
            }
        }
    }
    assert!(off.iter().all(|off| off.abs() < 1e-4), "{off:?}");
}
