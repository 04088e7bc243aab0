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
    match sample.pair.take() {
        None => {
            if let Some(time) = predictor.whole_time(candidate, &sample.result) {
                complete(&mut sample.result, time);
            }
        }
        Some(mut pair) => {
            let reference = (&pair.reference.candidate, &*pair.reference);
            match predictor.whole_times([(candidate, &sample.result), reference]) {
                PairTimes::ByWindows => sample.pair = Some(pair),
                PairTimes::NotKnown => {}
                PairTimes::ByTimeline([own, other]) => {
                    complete(&mut sample.result, own);
                    complete(&mut pair.reference, other);
                    // Its standard error is that of the windows, which the timeline does not change.
                    sample.pair = Some(PairMeasurement { log_ratio: (other.time_s / own.time_s).ln(), ..pair });
                }
            }
        }
    }
    Observation::Windows(sample)
}

fn complete(result: &mut WindowsResult, WholeTime { time_s, spread_s }: WholeTime) {
    result.predicted_rate_gflops = rate_gflops(result.candidate.hpl.n, time_s);
    (result.predicted_time_s, result.predicted_spread_s) = (time_s, spread_s);
}
