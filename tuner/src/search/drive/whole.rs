//! The time of the whole run of which a trial has measured windows.

use objectives::predict::{PairTimes, Predictor};
use objectives::whole::WholeTime;
use objectives::{Observation, PairMeasurement};
use space::flops::rate_gflops;
use space::{Candidate, WindowsResult};

/// What was `observed` of `candidate`, with the time of the whole run by windows and timeline, where windows do not say it by themselves; of
/// a pair with the ratio of the two. A pair of which nothing says it is the candidate's windows alone.
pub(super) fn completed(observed: Observation, candidate: &Candidate, predictor: &Predictor) -> Observation {
    let Observation::Windows(mut sample) = observed else { return observed };
    if let Some(mut pair) = sample.pair.take() {
        let sides = [(candidate, &sample.result), (&pair.reference.candidate, &*pair.reference)];
        sample.pair = match predictor.whole_times(sides) {
            PairTimes::ByWindows => Some(pair),
            PairTimes::NotKnown => None,
            PairTimes::ByTimeline([own, other]) => {
                let reference = pair.reference.candidate.clone();
                complete(&mut pair.reference, &reference, predictor);
                // Its standard error is about that of the windows.
                Some(PairMeasurement { log_ratio: (other.time_s / own.time_s).ln(), ..pair })
            }
        };
    }
    complete(&mut sample.result, candidate, predictor);
    Observation::Windows(sample)
}

/// As where `candidate` was measured alone.
fn complete(result: &mut WindowsResult, candidate: &Candidate, predictor: &Predictor) {
    if let Some(WholeTime { time_s, spread_s }) = predictor.whole_time(candidate, result) {
        result.predicted_rate_gflops = rate_gflops(candidate.hpl.n, time_s);
        (result.predicted_time_s, result.predicted_spread_s) = (time_s, spread_s);
    }
}
