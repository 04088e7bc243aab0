//! The acceptance report as text.

use std::fmt;

use space::counted;

use super::{Acceptance, Bound, WORTH};

impl fmt::Display for Acceptance {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "HPL of N={} with {} on each of {}, all at once; typical {:.2} GFLOP/s, half of the nodes within {:.1} %",
            self.n,
            counted(self.threads, "thread"),
            counted(self.nodes.len(), "node"),
            self.typical_gflops,
            100.0 * self.mad
        )?;
        writeln!(
            out,
            "\nnode              HPL GFLOP/s (spread)  of typical  without it  DGEMM GFLOP/s  memory GiB    links GB/s"
        )?;
        for node in &self.nodes {
            let without = node.without_it.map_or("–".to_owned(), |gain| format!("{:+.1} %", 100.0 * gain));
            let links = node.links();
            writeln!(
                out,
                "{:<16}  {:>11.2} ({:>4.1} %)  {:>8.1} %  {without:>10}  {:>13.2}  {:>10.1}  {links:>12}",
                node.host,
                node.hpl_gflops,
                100.0 * node.hpl_spread,
                100.0 * node.of_typical,
                node.dgemm_gflops,
                node.memory_bytes as f64 / f64::from(1 << 30)
            )?;
        }
        writeln!(out)?;
        for node in self.nodes.iter().filter(|node| !node.faults.is_empty()) {
            let causes = if node.causes.is_empty() { String::new() } else { format!(" ({})", node.causes.join("; ")) };
            writeln!(out, "{}: {}{causes}", node.host, node.faults.join("; "))?;
        }
        for line in verdict(self) {
            writeln!(out, "{line}")?;
        }
        Ok(())
    }
}

/// What to do, a sentence each.
pub(super) fn verdict(of: &Acceptance) -> Vec<String> {
    let tolerance = (1000.0 * of.tolerance).round() / 10.0;
    if of.accepted {
        let shown = format!(
            "accepted: no node is shown to be more than {tolerance} % below the typical one, or has less than the others"
        );
        let unsure = of.nodes.iter().filter(|node| node.of_typical < 1.0 - of.tolerance).map(|node| {
            format!(
                "{}: {:.1} % below, but its runs differ by {:.0} %: measure again with more --repeats, and nothing else running",
                node.host,
                100.0 * (1.0 - node.of_typical),
                100.0 * node.hpl_spread
            )
        });
        return std::iter::once(shown).chain(unsure).collect();
    }
    let mut lines = vec![format!("not accepted: {} of {} nodes have a fault", of.left_out.len(), of.nodes.len())];
    let place = |bound: Bound| format!("{:.1} GFLOP/s on {}", bound.rate_gflops, counted(bound.nodes, "node"));
    let percent = |bound: Bound| 100.0 * of.gain(bound);
    lines.push(match of.fastest {
        Some(fastest) => format!(
            "with equal shares all ranks wait for the slowest (predicted, messages not counted): at most {} without {}, in \
            place of {}: {:+.1} %; in Slurm \
             --exclude={}",
            place(fastest),
            of.too_slow.join(", "),
            place(of.all),
            percent(fastest),
            of.too_slow.join(",")
        ),
        None => format!(
            "leaving nodes out gains {:.0} % at most by equal shares (predicted, messages not counted); all nodes together \
             reach at most {}",
            100.0 * WORTH,
            place(of.all)
        ),
    });
    if let Some(rest) = of.rest {
        lines.push(format!(
            "without those with a fault at most {}: {:+.1} %, and N up to {} in place of {}; in Slurm --exclude={}",
            place(rest),
            percent(rest),
            rest.n,
            of.all.n,
            of.left_out.join(",")
        ));
    }
    lines.push(format!(
        "shares by weights (hpl-tune survey, hpl-tune weights) reach at most {:.1} GFLOP/s on all nodes",
        of.sum_gflops
    ));
    lines
}
