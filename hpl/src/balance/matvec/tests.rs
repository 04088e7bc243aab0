use proptest::prelude::*;

use super::*;
use crate::balance::FixedPoint;

fn entry(i: usize, j: usize) -> f64 {
    ((i * 31 + j * 17) % 23) as f64 / 8.0 - 1.0
}

fn dense(rows: usize, cols: usize) -> Matrix {
    Matrix::Dense(Dense::new(rows, cols, entry))
}

/// Row i has i mod `most` entries.
fn sparse(rows: usize, cols: usize, most: usize) -> Matrix {
    let row = |i: usize| (0..(i % most).min(cols)).map(|k| (((i + k * 5) % cols) as u32, entry(i, k))).collect();
    Matrix::Csr(Csr::new(cols, (0..rows).map(row)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// For any division of the rows, each row is multiplied once, and both paths agree.
    #[test]
    fn any_division_multiplies_each_row_once(
        rows in 0usize..60, cols in 1usize..90, most in 1usize..80, parts in 1usize..9, is_dense in any::<bool>(),
    ) {
        let matrix = if is_dense { dense(rows, cols) } else { sparse(rows, cols, most) };
        let x: Vec<f64> = (0..cols).map(|j| entry(j, 3)).collect();
        let mut whole = vec![1.0; rows];
        matrix.multiply(0..rows, &x, &mut whole, Path::Slow);
        let cut = matrix.divide(0..rows, parts);
        prop_assert_eq!((cut.len(), cut[0].start, cut[parts - 1].end), (parts, 0, rows));
        prop_assert!(cut.windows(2).all(|pair| pair[0].end == pair[1].start));
        let mut y = vec![1.0; rows];
        for range in cut {
            matrix.multiply(range.clone(), &x, &mut y[range], Path::Fast);
        }
        prop_assert!(whole.iter().zip(&y).all(|(a, b)| (a - b).abs() <= 1e-12 * (1.0 + a.abs())));
    }
}

#[test]
fn two_workers_compute_the_same_as_one() {
    for matrix in [dense(300, 200), sparse(2000, 500, 40)] {
        let worker = |threads, path| Worker { threads, path };
        for (slow, fast) in [(1, 1), (2, 1), (1, 3)] {
            let balance = Balance::FixedPoint(FixedPoint::new(0.5));
            let (slow, fast) = (worker(slow, Path::Slow), worker(fast, Path::Fast));
            let shared = share(&matrix, &slow, &fast, balance, 3, &[]).unwrap();
            assert!(shared.error < 1e-12, "{}", shared.error);
            assert!((1..=4).contains(&shared.iterations.len()) && (0.0..=1.0).contains(&shared.share));
            assert_eq!(shared.rounds.len(), 3);
            for Rates { alone, at_once, shared } in shared.rounds {
                assert!([alone, at_once].concat().into_iter().all(|rate| rate > 0.0) && shared > 0.0);
            }
        }
    }
}
