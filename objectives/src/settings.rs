//! What settings of the nodes are expected to do to the time and the power of a run, before runs have shown it.
//!
//! A guess that a search starts from, no model of any processor: the time goes by the clock, and the power by a part that is always there
//! and one by a power of the clock. A power limit is the clock that keeps it. Nothing is expected of limits of accelerators.

use space::NodeSettings;

/// Power of an idle node by that of one that solves: about that at CLAIX-2018 (RWTH, Green500).
const ALWAYS: f64 = 0.47;
/// Power of an idle processor package by that of one that computes: an assumption.
const ALWAYS_OF_PACKAGE: f64 = 0.2;
/// Voltage falls with the clock, so that the other part falls faster than it: the clock to the third at most.
const EXPONENT: f64 = 2.5;
/// Clocks below this share are not expected.
const LEAST: f64 = 0.2;

/// The time of a run at `settings` over that at those which the node was `found` with.
pub fn time_factor(settings: &NodeSettings, found: &NodeSettings) -> f64 {
    clock_share(settings, found).recip()
}

/// The power of a node at `settings` over that at those which it was `found` with.
pub fn power_factor(settings: &NodeSettings, found: &NodeSettings) -> f64 {
    ALWAYS + (1.0 - ALWAYS) * clock_share(settings, found).powf(EXPONENT)
}

/// The clock over that of the node as it was found.
fn clock_share(settings: &NodeSettings, found: &NodeSettings) -> f64 {
    let share = |asked: Option<u32>, found: Option<u32>| match (asked, found) {
        (Some(asked), Some(found)) if found > 0 => (f64::from(asked) / f64::from(found)).min(1.0),
        _ => 1.0,
    };
    let clock = share(settings.max_clock_mhz, found.max_clock_mhz);
    let limit = share(settings.package_limit_w, found.package_limit_w);
    let within = ((limit - ALWAYS_OF_PACKAGE) / (1.0 - ALWAYS_OF_PACKAGE)).max(0.0).powf(EXPONENT.recip());
    clock.min(within).max(LEAST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_is_slower_and_takes_less() {
        let found = NodeSettings { max_clock_mhz: Some(2600), package_limit_w: Some(200), gpu_limit_w: None };
        assert_eq!((time_factor(&found, &found), power_factor(&found, &found)), (1.0, 1.0));
        assert_eq!(time_factor(&NodeSettings::default(), &found), 1.0);
        let slow = NodeSettings { max_clock_mhz: Some(1300), ..found };
        assert!((time_factor(&slow, &found) - 2.0).abs() < 1e-9 && power_factor(&slow, &found) < 0.6);
        let capped = NodeSettings { package_limit_w: Some(120), ..found };
        assert!((1.1..1.5).contains(&time_factor(&capped, &found)), "{}", time_factor(&capped, &found));
        // The best is in between, as it was found on AmpereOne.
        let efficiency = |mhz: u32| {
            let settings = NodeSettings { max_clock_mhz: Some(mhz), ..found };
            (time_factor(&settings, &found) * power_factor(&settings, &found)).recip()
        };
        assert!(efficiency(2200) > efficiency(2600) && efficiency(2200) > efficiency(1300));
    }
}
