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
        let alike = node_spread.is_none_or(|spread| spread <= SPREAD);
        Self { target_gflops, of_target, node_spread, accepted: of_target.map(|share| share >= LEAST && alike) }
    }

    /// The verdict, in one line.
    pub fn words(&self) -> String {
        let Some((share, accepted)) = self.of_target.zip(self.accepted) else {
            return "no verdict: give what was promised with --target GFLOPS".to_owned();
        };
        let target = format!("{:.1} % of the target, at least {:.0} % are wanted", 100.0 * share, 100.0 * LEAST);
        let spread = self.node_spread.map_or("spread between nodes not measured".to_owned(), |spread| {
            format!("spread between nodes {:.1} %, at most {:.0} % are accepted", 100.0 * spread, 100.0 * SPREAD)
        });
        format!("{}: {target}; {spread}", if accepted { "accepted" } else { "not accepted" })
    }
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
}
