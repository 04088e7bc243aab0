use space::dims::Point;

use super::*;
use crate::search::strategy::gp::data::Observed;
use crate::search::strategy::gp::kernel::KernelDim;

fn beliefs() -> Beliefs {
    let prior = |median| LogNormal { median, spread: 1.5 };
    Beliefs {
        signal: prior(1.0),
        effects: vec![prior(0.5); 3],
        noise: prior(0.1),
        categorical: prior(1.0),
        ordered: prior(1.0),
        offset_sd: 1.0,
        slope_mean: 1.0,
        slope_sd: 0.5,
        change_sd: 0.0,
        wander: prior(0.1),
        memory: prior(5.0),
        apart: prior(0.5),
    }
}

/// Two relevant dimensions, one of each kind, and one that does nothing; some points are repeated.
fn example() -> (KernelDims, Data) {
    let axes = KernelDims::of(vec![
        KernelDim::Ordered((0..9).map(|i| f64::from(i) / 8.0).collect()),
        KernelDim::Categorical(3),
        KernelDim::Categorical(4),
    ]);
    let mut observations = Vec::new();
    for i in 0..60_u16 {
        let point = Point(vec![(i * 5) % 9, (i / 3) % 3, (i * 7) % 4]);
        let noise = 0.05 * f64::from((i * 37) % 13) / 13.0;
        observations.push((point.clone(), (f64::from(point.0[0]) * 0.6).sin() + f64::from(point.0[1] / 2) + noise));
    }
    let runs = observations.iter().zip(0..).map(|((point, y), i)| Observed {
        point,
        y: *y,
        changes: 0,
        time: f64::from(i),
        pair: None,
    });
    let data = Data::gathered(runs, |point| f64::from(point.0[0]) * 0.1);
    (axes, data)
}

/// The same runs, each by itself, two in three of them as pairs.
fn in_pairs(data: &Data) -> Data {
    let pair = |i: usize| (!(i / 2).is_multiple_of(3)).then_some(i / 2);
    let run = |i: usize| {
        let (point, y, pair) = (&data.points[i], data.y[i], pair(i));
        Observed { point, y, changes: 0, time: (i / 2) as f64, pair }
    };
    Data::single((0..data.len()).map(run), |point| f64::from(point.0[0]) * 0.1)
}

#[test]
fn gradient_is_the_derivative() {
    let (axes, data) = example();
    let paired = in_pairs(&data);
    [data, paired].iter().for_each(|data| gradient_is_the_derivative_of(&axes, data));
}

fn gradient_is_the_derivative_of(axes: &KernelDims, data: &Data) {
    let beliefs = beliefs();
    let priors = beliefs.priors(axes);
    let parts = CovarianceParts::new(axes, &beliefs, data);
    let climb = Climb { axes, beliefs: &beliefs, data, priors: &priors, parts: &parts };
    let u = vec![0.2, -0.5, 0.3, -0.2, 0.5, 0.25, -0.3, -1.0, 0.4, -0.6, 0.1];
    let analytic = evaluate(climb, &u).gradient;
    for i in 0..u.len() {
        let shifted = |step: f64| {
            let mut u = u.clone();
            u[i] += step;
            evaluate(climb, &u).value
        };
        let numeric = (shifted(1e-5) - shifted(-1e-5)) / 2e-5;
        assert!((numeric - analytic[i]).abs() < 1e-4 * (1.0 + numeric.abs()), "{i}: {numeric} {}", analytic[i]);
    }
}

#[test]
fn draws_lie_about_the_most_probable_ones_and_without_data_about_the_medians() {
    let (axes, data) = example();
    let beliefs = beliefs();
    let draw = |data: &Data, count| {
        let start = fit(&axes, &beliefs, data);
        let mut number = 0;
        let mut normal = || {
            number += 1;
            crate::search::hashed::normal(1, 2, number)
        };
        let priors = beliefs.priors(&axes);
        let drawn = draws(&axes, &beliefs, data, &start, count, &mut normal);
        (start.place(&priors), drawn.iter().map(|hyper| hyper.place(&priors)).collect::<Vec<_>>())
    };
    let moments = |drawn: &[Vec<f64>], dim: usize| {
        let values: Vec<f64> = drawn.iter().map(|u| u[dim]).collect();
        (space::stats::mean(&values), space::stats::sample_sd(&values))
    };
    assert!(draw(&data, 0).1.is_empty(), "a hypothesis of little weight has no draws");
    let (_, free) = draw(&Data::default(), 300);
    for dim in 0..11 {
        let (mean, sd) = moments(&free, dim);
        assert!(mean.abs() < 0.2 && (sd - 1.0).abs() < 0.15, "{dim}: {mean} {sd}");
    }
    // The noise is known well from 60 runs.
    let (best, drawn) = draw(&data, 40);
    let (mean, sd) = moments(&drawn, 1);
    assert!((mean - best[1]).abs() < 0.3 && sd > 0.01 && sd < 0.3, "{mean} {sd}, {}", best[1]);
    assert_eq!(drawn, draw(&data, 40).1);
}

#[test]
fn relevance_and_noise_are_found() {
    let (axes, data) = example();
    let hyper = fit(&axes, &beliefs(), &data);
    assert!(hyper.effects[2] < 0.1 * hyper.effects[1], "{hyper:?}");
    assert!(hyper.noise > 0.005 && hyper.noise < 0.05, "{hyper:?}");
    assert_eq!(hyper, fit(&axes, &beliefs(), &data));
}

/// 80 runs of eight points in turn with noise of 0.3 %, while the speed wanders by `wander` and forgets itself within ten runs.
fn while_speed_wanders(wander: f64) -> (KernelDims, Beliefs, Data) {
    let axes = KernelDims::of(vec![KernelDim::Ordered((0..8).map(|i| f64::from(i) / 7.0).collect())]);
    let prior = |median| LogNormal { median, spread: 1.0 };
    let beliefs = Beliefs {
        signal: prior(0.1),
        effects: vec![prior(0.1)],
        noise: prior(0.01),
        slope_mean: 0.0,
        slope_sd: 0.0,
        wander: prior(0.003),
        memory: prior(10.0),
        ..beliefs()
    };
    let points: Vec<Point> = (0..8).map(|level| Point(vec![level])).collect();
    let luck = |what, run| crate::search::hashed::normal(3, what, run);
    let (kept, mut speed) = ((-0.1_f64).exp(), luck(0, 0));
    let runs = (0..80).map(|run: u64| {
        speed = kept * speed + (1.0 - kept * kept).sqrt() * luck(0, run + 1);
        let point = &points[run as usize * 3 % 8];
        let y = -0.02 * (f64::from(point.0[0]) - 4.0).powi(2) + wander * speed + 0.003 * luck(1, run);
        Observed { point, y, changes: 0, time: run as f64, pair: None }
    });
    let data = Data::single(runs, |_| 0.0);
    (axes, beliefs, data)
}

#[test]
fn a_speed_that_wanders_is_told_from_noise_and_from_a_steady_one() {
    let fitted = |wander| {
        let (axes, beliefs, data) = while_speed_wanders(wander);
        fit(&axes, &beliefs, &data)
    };
    let (wandering, steady) = (fitted(0.04), fitted(0.0));
    assert!((0.02..0.08).contains(&wandering.wander) && wandering.noise < 0.006, "{wandering:?}");
    assert!((3.0..30.0).contains(&wandering.memory), "{wandering:?}");
    assert!(steady.wander < 0.003 && (0.002..0.0045).contains(&steady.noise), "{steady:?}");
}

/// 40 pairs of eight points in turn with the fourth: what both have in common varies by 1 %, what each has of its own by `apart` of that.
#[test]
fn what_pairs_have_in_common_is_told_from_what_each_has_of_its_own() {
    let fitted = |apart: f64| {
        let (axes, beliefs, _) = while_speed_wanders(0.0);
        let points: Vec<Point> = (0..8).map(|level| Point(vec![level])).collect();
        let luck = |what, run| crate::search::hashed::normal(5, what, run);
        let runs = (0..40).flat_map(|pair: u64| {
            let both = [&points[pair as usize * 3 % 8], &points[4]];
            both.into_iter().enumerate().map(move |(side, point)| {
                let y = -0.02 * (f64::from(point.0[0]) - 4.0).powi(2) + 0.01 * luck(0, pair);
                let y = y + 0.01 * apart * luck(1 + side as u64, pair);
                Observed { point, y, changes: 0, time: pair as f64, pair: Some(pair as usize) }
            })
        });
        let data = Data::single(runs, |_| 0.0);
        let hyper = fit(&axes, &beliefs, &data);
        (hyper.apart, hyper.noise_of_pair().sqrt() / (2.0_f64.sqrt() * 0.01 * apart))
    };
    let ((little, right), (much, too)) = (fitted(0.2), fitted(1.5));
    assert!(little < 0.4 && much > 0.8, "{little} {much}");
    assert!((0.7..1.4).contains(&right) && (0.7..1.4).contains(&too), "{right} {too}");
}
