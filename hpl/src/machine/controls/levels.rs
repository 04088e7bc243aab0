//! The values of a setting that are tried.

/// Power limits that are tried, that which the node was found with among them.
const LIMITS: u32 = 6;
/// Least clock and least power limit that are tried, as a share of those found.
pub(super) const LEAST_SHARE: f64 = 0.5;
/// What a file may differ by from what was written to it, as a share: hardware has steps of its own.
pub(super) const ROUNDED: f64 = 0.02;

/// Clocks that are tried, that which the node was found with among them.
const CLOCKS: u32 = 9;
/// Clocks are multiples of this many MHz.
const CLOCK_STEP_MHZ: u32 = 100;

/// Clocks in MHz from `found_mhz` down to [`LEAST_SHARE`] of it, none below `least_mhz`.
pub(super) fn clocks_below(found_mhz: u32, least_mhz: u32) -> Vec<u32> {
    let least_mhz = least_mhz.max((LEAST_SHARE * f64::from(found_mhz)) as u32);
    let step = (found_mhz - least_mhz.min(found_mhz)).div_ceil(CLOCKS - 1).next_multiple_of(CLOCK_STEP_MHZ);
    let below = (1..CLOCKS).map(|index| found_mhz.saturating_sub(index * step.max(1)));
    // Round clocks below that which was found, which need not be round.
    let round = |mhz: u32| mhz.next_multiple_of(CLOCK_STEP_MHZ);
    rising(below.map(round).filter(|&mhz| mhz >= least_mhz && mhz < found_mhz), found_mhz)
}

/// Power limits in watts from `found_w` down to [`LEAST_SHARE`] of it, none below `least_w`.
pub(super) fn limits_below(found_w: u32, least_w: u32) -> Vec<u32> {
    let share = |index: u32| 1.0 - (1.0 - LEAST_SHARE) * f64::from(index) / f64::from(LIMITS - 1);
    let below = (1..LIMITS).map(|index| (share(index) * f64::from(found_w)).round() as u32);
    rising(below.filter(|&watts| watts >= least_w && watts < found_w), found_w)
}

/// `found` behind the values `below` it, each once.
pub(super) fn rising(below: impl Iterator<Item = u32>, found: u32) -> Vec<u32> {
    let mut values: Vec<u32> = below.chain([found]).collect();
    values.sort_unstable();
    values.dedup();
    values
}
