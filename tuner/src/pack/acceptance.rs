//! A score against what was promised, and the spread between the nodes.

use serde::{Deserialize, Serialize};

use super::nodes::{NodeFacts, spread};

/// Share of the target that a machine has to reach later on: the value after the installation, less a tenth
/// (\[EuroHPC\], acceptance of systems).
pub const LEAST: f64 = 0.9;
/// Spread between nodes that is accepted (\[Intel\], acceptance of clusters).
pub const SPREAD: f64 = 0.1;

/// What is said of a score.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Accepted {
    /// What was promised, in GFLOP/s; `None` where no --target was given.
    pub target_gflops: Option<f64>,
    /// The score over it.
    pub of_target: Option<f64>,
    /// (fastest − slowest) / fastest of the nodes' own runs; `None` of one node, and where these were not measured.
    pub node_spread: Option<f64>,
    /// Whether it is accepted; `None` without a target.
    pub accepted: Option<bool>,
}

impl Accepted {
    /// That of a score of `rate_gflops`.
    pub fn new(rate_gflops: f64, target_gflops: Option<f64>, nodes: &[NodeFacts]) -> Self {
        let node_spread = spread(nodes);
        let of_target = target_gflops.map(|target| rate_gflops / target);
        let alike = node_spread.is_none_or(is_alike);
        Self { target_gflops, of_target, node_spread, accepted: of_target.map(|share| is_reached(share) && alike) }
    }

    /// The verdict, in one line.
    pub fn words(&self) -> String {
        let Some((share, accepted)) = self.of_target.zip(self.accepted) else {
            return "no verdict: give what was promised with --target GFLOPS".to_owned();
        };
        let of_target = percent(share, is_reached);
        let target = format!("{of_target} % of the target, at least {:.0} % are wanted", 100.0 * LEAST);
        let spread = self.node_spread.map_or("spread between nodes not measured".to_owned(), |spread| {
            let found = percent(spread, is_alike);
            format!("spread between nodes {found} %, at most {:.0} % are accepted", 100.0 * SPREAD)
        });
        format!("{}: {target}; {spread}", if accepted { "accepted" } else { "not accepted" })
    }
}

fn is_reached(of_target: f64) -> bool {
    of_target >= LEAST
}

fn is_alike(spread: f64) -> bool {
    spread <= SPREAD
}

/// A share in per cent with one decimal, or as many as show what `is_good` says of it.
fn percent(share: f64, is_good: fn(f64) -> bool) -> String {
    let shown = |decimals: usize| format!("{:.decimals$}", 100.0 * share);
    let is_true = |text: &String| text.parse::<f64>().is_ok_and(|percent| is_good(percent / 100.0) == is_good(share));
    (1..9).map(shown).find(is_true).unwrap_or_else(|| shown(9))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(rates: &[f64]) -> Vec<NodeFacts> {
        rates.iter().map(|&rate| NodeFacts { hpl_gflops: Some(rate), ..NodeFacts::default() }).collect()
    }

    #[test]
    fn target_and_spread_decide() {
        let accepted = |rate: f64, rates: &[f64]| Accepted::new(rate, Some(100.0), &nodes(rates)).accepted;
        assert_eq!(accepted(90.0, &[]), Some(true));
        assert_eq!(accepted(89.9, &[]), Some(false));
        assert_eq!(accepted(95.0, &[50.0, 45.0]), Some(true));
        assert_eq!(accepted(95.0, &[50.0, 44.9]), Some(false));
        let open = Accepted::new(95.0, None, &[]);
        assert_eq!(open.accepted, None);
        assert!(open.words().contains("--target"));
        assert!(Accepted::new(95.0, Some(100.0), &[]).words().starts_with("accepted: 95.0 % of the target"));
    }

    /// 90.0 % were not accepted where 90 % are wanted.
    #[test]
    fn the_verdict_shows_on_which_side_of_its_limits_it_is() {
        let words = |rate: f64, rates: &[f64]| Accepted::new(rate, Some(100.0), &nodes(rates)).words();
        let below = words(89.97, &[]);
        assert!(below.starts_with("not accepted: 89.97 % of the target"), "{below}");
        assert!(words(89.999, &[]).starts_with("not accepted: 89.999 % of the target"));
        assert!(words(90.0, &[]).starts_with("accepted: 90.0 % of the target"));
        let apart = words(95.0, &[100.0, 89.98]);
        assert!(apart.starts_with("not accepted: 95.0 %") && apart.contains("nodes 10.02 %, at most 10 %"), "{apart}");
        let alike = words(95.0, &[50.0, 45.0]);
        assert!(alike.starts_with("accepted") && alike.contains("spread between nodes 10.0 %"), "{alike}");
    }
}
