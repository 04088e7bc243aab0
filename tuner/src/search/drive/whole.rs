//! The time of the whole run of which a trial has measured windows.

use objectives::Observation;
use objectives::predict::Predictor;
use objectives::whole::WholeTime;
use space::Candidate;
use space::flops::rate_gflops;

/// What was `observed` of `candidate`, with the time of the whole run by windows and timeline, where windows do not say it by themselves. Pairs, whose ratio was
/// measured, stay as they are.
pub(super) fn completed(observed: Observation, candidate: &Candidate, predictor: &Predictor) -> Observation {
    let Observation::Windows(mut sample) = observed else { return observed };
    let whole = Some(&sample).filter(|sample| sample.pair.is_none());
    if let Some(WholeTime { time_s, spread_s }) =
        whole.and_then(|sample| predictor.whole_time(candidate, &sample.result))
    {
        sample.result.predicted_rate_gflops = rate_gflops(candidate.hpl.n, time_s);
        (sample.result.predicted_time_s, sample.result.predicted_spread_s) = (time_s, spread_s);
    }
    Observation::Windows(sample)
}
