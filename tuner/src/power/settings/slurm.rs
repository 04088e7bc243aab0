//! Whether the clock of a node is what Slurm was asked for.

use objectives::slurm_clock::SlurmClock;
use space::NodeSettings;

/// Hz in a MHz.
const MHZ: f64 = 1e6;
/// A clock that is above the one asked for by no more than this factor may be it.
const NEAR: f64 = 1.05;

/// A doubt where a node was seen at `clock_hz` during a run whose `settings` ask for a lower clock.
pub fn clock_doubt(clock: &SlurmClock, settings: &NodeSettings, clock_hz: Option<f64>) -> Option<String> {
    let asked = clock.word(settings)?;
    let (asked_mhz, seen_mhz) = (f64::from(settings.max_clock_mhz?), clock_hz? / MHZ);
    (seen_mhz > NEAR * asked_mhz).then(|| {
        format!(
            "clock: this node was at {seen_mhz:.0} MHz during a run by srun {asked}: Slurm, or the processor, has not obeyed; the dimension \
             max_clock_mhz says less than it seems to"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_above_the_one_asked_for_is_told() {
        let clock = SlurmClock { least_mhz: 800, found_mhz: 2600, governor: "performance".into() };
        let doubt = |asked: Option<u32>, seen_hz: Option<f64>| {
            clock_doubt(&clock, &NodeSettings { max_clock_mhz: asked, ..NodeSettings::default() }, seen_hz)
        };
        assert_eq!(doubt(Some(1300), Some(1.31e9)), None);
        assert_eq!(doubt(Some(2600), Some(3e9)), None, "as it was found");
        assert_eq!((doubt(Some(1300), None), doubt(None, Some(3e9))), (None, None));
        assert!(doubt(Some(1300), Some(2.6e9)).unwrap().contains("at 2600 MHz"));
    }
}
