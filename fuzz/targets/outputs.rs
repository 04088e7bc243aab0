//! What other programs print: HPL and its relatives, power meters.

use std::sync::LazyLock;

use objectives::foreign::{Foreign, Profile, SHIPPED};
use space::out;
use tuner::power::log;

use super::utf8;

/// HPL.out.
pub(super) fn hpl_out(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for record in out::parse(&text) {
        assert!(record.time_s.is_finite() && record.rate_gflops.is_finite());
        assert!(record.residual.is_none_or(f64::is_finite));
        assert!(record.passed != Some(true) || record.residual.is_some(), "no residual passed");
        let banner = format!("SWAP   : {}\n", "Binary-exchange");
        let line = banner + &out::result(&record.params, record.time_s, record.rate_gflops, "now", "then");
        let again = out::parse(&line);
        let [again] = &again[..] else { panic!("a result that was written cannot be read: {line}") };
        assert_eq!(out::tv_code(&again.params), out::tv_code(&record.params));
        let sizes = |record: &out::OutRecord| (record.params.n, record.params.nb, record.params.p, record.params.q);
        assert_eq!(sizes(again), sizes(&record));
    }
}

/// The engines whose profiles come with the program.
static ENGINES: LazyLock<Vec<Foreign>> = LazyLock::new(|| {
    let engine = |(_, text): &(&str, &str)| Foreign::new(Profile::parse(text).unwrap()).unwrap();
    SHIPPED.iter().map(engine).collect()
});

/// The output of every engine of which a profile comes with the program, by the patterns of each.
pub(super) fn engine_output(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for engine in &*ENGINES {
        engine.read(&text);
        let trace = engine.progress(&text);
        let _ = objectives::progress::ratio(&trace, &trace);
    }
}

/// A meter's file.
pub(super) fn power_log(data: &[u8]) {
    let Some(text) = utf8(data) else { return };
    match log::parse(text, 0.0) {
        Ok(readings) => {
            assert!(!readings.is_empty());
            assert!(readings.iter().all(|reading| reading.start_s < reading.end_s && reading.watts >= 0.0));
            assert!(readings.windows(2).all(|pair| pair[0].end_s <= pair[1].start_s));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
