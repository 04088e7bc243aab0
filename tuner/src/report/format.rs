//! Candidates, numbers and ratios as text.

use space::Candidate;
pub(crate) use space::counted;
use space::params::{Coded, Swap};

use super::stats::Ratio;

/// The words of a candidate that only our engine obeys.
pub(crate) const OURS_ALONE: [&str; 7] =
    ["split", "weights", "huge pages", "kernels", "kernels of ranks", "device", "fact blocks"];

/// A candidate in words, as HPL names them, most important first.
pub(crate) fn words(candidate: &Candidate) -> Vec<(String, String)> {
    let (hpl, engine) = (&candidate.hpl, &candidate.engine);
    let yes_no = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
    let hpl_words = [
        ("N", hpl.n.to_string()),
        ("NB", hpl.nb.to_string()),
        ("P", hpl.p.to_string()),
        ("Q", hpl.q.to_string()),
        ("threads", engine.threads.to_string()),
        ("DEPTH", hpl.depth.to_string()),
        ("BCAST", hpl.bcast.name().to_owned()),
        (
            "SWAP",
            match hpl.swap {
                Swap::Mix { threshold } => format!("mix {threshold}"),
                swap => swap.name().to_owned(),
            },
        ),
        ("PFACT", hpl.pfact.name().to_owned()),
        ("RFACT", hpl.rfact.name().to_owned()),
        ("NBMIN", hpl.nbmin.to_string()),
        ("NDIV", hpl.ndiv.to_string()),
        ("PMAP", hpl.pmap.name().to_owned()),
        ("L1", hpl.l1.name().to_owned()),
        ("U", hpl.u.name().to_owned()),
        ("EQUIL", yes_no(hpl.equil)),
        ("ALIGN", hpl.align.to_string()),
    ];
    let hpl_words = hpl_words.into_iter().map(|(name, value)| (name.to_owned(), value));
    let of_ranks: Vec<String> = engine.rank_kernels.iter().map(ToString::to_string).collect();
    // What our engine has besides HPL.dat, or the other one.
    let ours = [
        ("split", Some(engine.split.to_string())),
        ("weights", Some(engine.weights.to_string())),
        ("huge pages", Some(yes_no(engine.huge_pages))),
        ("kernels", Some(engine.kernels.to_string())),
        ("kernels of ranks", (!of_ranks.is_empty()).then(|| of_ranks.join(" "))),
        ("device", (!engine.device.is_none()).then(|| engine.device.name().to_owned())),
        ("fact blocks", engine.fact_blocks.map(|blocks| blocks.to_string())),
    ];
    let ours = ours.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let settings = engine.settings.named().map(|(name, value)| (name.to_owned(), value.to_string()));
    hpl_words.chain(ours).chain(engine.extra.clone()).chain(settings).collect()
}

/// The first `longest` characters of a text, and `…` where there are more.
pub(super) fn cut(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// `value` with four significant digits, `85.31`, `0.003412`, `1.2e-7`.
pub(crate) fn digits(value: f64) -> String {
    let magnitude = value.abs().log10().floor();
    if !(-5.0..7.0).contains(&magnitude) {
        return if value == 0.0 { "0".to_owned() } else { format!("{value:.3e}") };
    }
    format!("{value:.*}", (3.0 - magnitude).max(0.0) as usize)
}

/// `watts` above a limit so that they are above it as they are printed, too: rounded up where four digits hide it.
pub(super) fn watts_above(watts: f64, limit_w: u64) -> String {
    let usual = digits(watts);
    let is_above = usual.parse::<f64>().is_ok_and(|shown| shown > limit_w as f64);
    if is_above { usual } else { format!("{:.2}", (100.0 * watts).ceil() / 100.0) }
}

/// A ratio with its interval, the level of that and the pairs behind it: `1.013 (0.998-1.024, 96.9 %, 6 pairs)`.
pub(crate) fn ratio_in_words(ratio: &Ratio) -> String {
    format!("{:.3} ({})", ratio.median, certainty(ratio))
}

/// Interval, level and pairs of a ratio, `0.998-1.024, 96.9 %, 6 pairs`.
fn certainty(ratio: &Ratio) -> String {
    let pairs = format!("{} pair{}", ratio.pairs, if ratio.pairs == 1 { "" } else { "s" });
    match ratio.interval.zip(ratio.level) {
        Some(([low, high], level)) => format!("{low:.3}-{high:.3}, {:.1} %, {pairs}", 100.0 * level),
        None => format!("{pairs}, too few for an interval"),
    }
}

/// `1 run`, `12 runs`.
pub(super) fn runs_in_words(runs: usize) -> String {
    format!("{runs} run{}", if runs == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use space::{DeviceChoice, EngineParams, HplParams};

    use super::super::stats::paired_ratio;
    use super::*;

    #[test]
    fn one_is_no_plural() {
        assert_eq!([1, 2].map(|count| counted(count, "rank")), ["1 rank", "2 ranks"]);
    }

    /// Two runs that differ in these alone were said to be of the same configuration.
    #[test]
    fn what_our_engine_alone_has_is_told_where_it_is_not_usual() {
        let usual = Candidate { hpl: HplParams::baseline(1000, 1, 1), engine: EngineParams::default() };
        let engine = EngineParams { device: DeviceChoice::Cuda, fact_blocks: Some(8), ..EngineParams::default() };
        let more = words(&Candidate { engine, ..usual.clone() });
        let more: Vec<_> = more.into_iter().filter(|word| !words(&usual).contains(word)).collect();
        assert_eq!(more, [("device", "cuda"), ("fact blocks", "8")].map(|(a, b)| (a.to_owned(), b.to_owned())));
        assert!(more.iter().all(|(name, _)| OURS_ALONE.contains(&name.as_str())));
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!((cut("N·NB", 4), cut("N·NB", 2), cut("", 0)), ("N·NB".to_owned(), "N·…".to_owned(), String::new()));
    }

    #[test]
    fn four_digits() {
        let cases = [(85.3149, "85.31"), (0.0034123, "0.003412"), (1.2e-7, "1.200e-7"), (1234.5, "1234"), (0.0, "0")];
        for (value, text) in cases {
            assert_eq!(digits(value), text);
        }
        assert_eq!(digits(f64::INFINITY), "inf");
    }

    #[test]
    fn watts_above_a_limit_are_printed_above_it() {
        let cases = [(412.0, 400, "412.0"), (400.012, 400, "400.02"), (2000.4, 2000, "2000.40")];
        for (watts, limit_w, text) in cases {
            assert_eq!(watts_above(watts, limit_w), text);
        }
    }

    #[test]
    fn ratios_say_their_level_or_that_pairs_are_too_few() {
        let pairs = [(1.0, 1.0), (0.998, 1.0), (1.013, 1.0), (1.013, 1.0), (1.024, 1.0), (1.02, 1.0)];
        let said = |pairs: &[(f64, f64)]| ratio_in_words(&paired_ratio(pairs).unwrap());
        assert_eq!(said(&pairs), "1.013 (0.998-1.024, 96.9 %, 6 pairs)");
        assert_eq!(said(&pairs[..3]), "1.000 (3 pairs, too few for an interval)");
        assert_eq!(said(&pairs[..1]), "1.000 (1 pair, too few for an interval)");
    }
}
