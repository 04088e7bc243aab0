//! HPL.out against itself and against HPL.dat.

use objectives::foreign::PrintedResult;
use space::dat::HplDat;
use space::flops::hpl_flops;
use space::out::{OutRecord, parse, tv_code};
use space::params::Coded;
use space::{HplParams, Swap};

use super::Checked;
use crate::power::stamps;
use crate::record::Row;
use crate::session::engine::Engine;

/// What to do about an output that cannot be right.
pub(super) const ORIGINAL: &str = "take the output as the engine wrote it, from trials/NUMBER of the run folder";
/// What to do about an HPL.dat that is not that of the run.
const OWN_DAT: &str = "take the HPL.dat that the run read, from trials/NUMBER of the run folder";

/// Half of the last digit of HPL's time, `%18.2f`.
const HALF_TIME_S: f64 = 0.005;
/// How far the stamps of a run may be from its time, in seconds: both are whole ones.
const STAMPS_S: f64 = 2.0;
/// By how much a local clock is put forward in spring and back in autumn, in seconds.
const SUMMER_S: f64 = 3600.0;

/// A result with the digits of its rate.
#[derive(Debug, Clone, Copy)]
pub(super) struct Printed {
    /// The result.
    pub(super) record: OutRecord,
    /// Half of the last digit of its rate, in GFLOP/s.
    pub(super) half_gflops: f64,
}

/// The results of an output, in order.
pub(super) fn results(text: &str) -> Vec<Printed> {
    // A line is read as the parser of all outputs reads it, by itself, so that the two agree on what a result is.
    let halves = text
        .lines()
        .filter(|line| !parse(line).is_empty())
        .map(|line| line.split_ascii_whitespace().nth(6).and_then(half_of_last_digit).unwrap_or(0.0));
    parse(text).into_iter().zip(halves).map(|(record, half_gflops)| Printed { record, half_gflops }).collect()
}

/// Half of the last digit of a number such as `9.7500e+01`.
fn half_of_last_digit(word: &str) -> Option<f64> {
    let (mantissa, exponent) = word.split_once(['e', 'E'])?;
    let decimals = mantissa.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    Some(0.5 * 10_f64.powi(exponent.parse::<i32>().ok()? - i32::try_from(decimals).ok()?))
}

/// Checks every result of `text`, which is `file`: the residual below the `threshold` of HPL.dat, the time against the operations
/// that HPL credits, its stamps against its time.
pub(super) fn arithmetic(checked: &mut Checked, file: &str, text: &str, threshold: f64) {
    let results = results(text);
    if results.is_empty() {
        checked.find(file, "no result line of HPL (W…, N, NB, P, Q, time, Gflops)", ORIGINAL);
    }
    for Printed { record, half_gflops } in &results {
        let n = record.params.n;
        match (record.passed, record.residual) {
            (Some(true), Some(residual)) if residual < threshold => {}
            (Some(true), Some(residual)) => {
                checked.find(
                    file,
                    format!("PASSED with a residual of {residual}, the threshold is {threshold}"),
                    ORIGINAL,
                );
            }
            (Some(_), _) => checked.find(file, format!("the residual of N = {n} is FAILED"), ORIGINAL),
            (None, _) => checked.find(file, format!("the result of N = {n} has no residual line"), ORIGINAL),
        }
        let [least, most] = rates(n, record.time_s);
        let rate = record.rate_gflops;
        if rate + half_gflops < least || rate - half_gflops > most {
            let time_s = record.time_s;
            let problem =
                format!("{rate} GFLOP/s, but N = {n} in {time_s} s are {:.3} GFLOP/s", hpl_flops(n) / time_s * 1e-9);
            checked.find(file, problem, ORIGINAL);
        }
    }
    let printed = stamps::printed(text);
    if printed.is_none() && stamps::has_stamps(text) {
        checked.find(file, "its start and end stamps cannot be read", ORIGINAL);
    }
    if let (Some([start, end]), Some(last)) = (printed, results.last()) {
        let between_s = start.duration_until(end).as_secs_f64();
        let off_s = between_s - last.record.time_s;
        if [0.0, SUMMER_S, -SUMMER_S].into_iter().all(|summer_s| (off_s - summer_s).abs() > STAMPS_S) {
            let problem =
                format!("a time of {} s, but {between_s} s between its start and end stamps", last.record.time_s);
            checked.find(file, problem, ORIGINAL);
        }
    }
}

/// Lowest and highest rate in GFLOP/s that a printed time allows.
fn rates(n: usize, time_s: f64) -> [f64; 2] {
    let rate = |time_s: f64| if time_s > 0.0 { hpl_flops(n) / time_s * 1e-9 } else { f64::INFINITY };
    [rate(time_s + HALF_TIME_S), rate(time_s - HALF_TIME_S)]
}

/// The values of a run that HPL.dat and HPL.out both have, by name; those that are in the banner of Netlib's HPL alone come
/// last.
fn values(params: &HplParams) -> [(&'static str, String); 16] {
    let form = |value: space::Form| value.name().to_owned();
    let swap = match params.swap {
        Swap::Mix { threshold } => format!("{} with threshold {threshold}", params.swap.name()),
        Swap::BinExch | Swap::Long => params.swap.name().to_owned(),
    };
    [
        ("N", params.n.to_string()),
        ("NB", params.nb.to_string()),
        ("P", params.p.to_string()),
        ("Q", params.q.to_string()),
        ("PMAP", params.pmap.name().to_owned()),
        ("DEPTH", params.depth.to_string()),
        ("BCAST", params.bcast.name().to_owned()),
        ("RFACT", params.rfact.name().to_owned()),
        ("NDIV", params.ndiv.to_string()),
        ("PFACT", params.pfact.name().to_owned()),
        ("NBMIN", params.nbmin.to_string()),
        ("SWAP", swap),
        ("L1", form(params.l1)),
        ("U", form(params.u)),
        ("EQUIL", if params.equil { "yes" } else { "no" }.to_owned()),
        ("ALIGN", params.align.to_string()),
    ]
}

/// Checks that the runs that `dat` names are those that `text` reports. `obeyed`: whether the engine takes a parameter.
pub(super) fn against_dat(
    checked: &mut Checked,
    [dat_file, file]: [&str; 2],
    dat: &str,
    text: &str,
    obeyed: impl Fn(&str) -> bool,
) -> Option<HplDat> {
    let dat = match HplDat::parse(dat) {
        Ok(dat) => dat,
        Err(error) => {
            checked.find(dat_file, format!("it is not an HPL.dat: {error}"), OWN_DAT);
            return None;
        }
    };
    let (runs, results) = (dat.runs(), results(text));
    if runs.len() != results.len() {
        checked.find(dat_file, format!("it asks for {} runs, {file} has {}", runs.len(), results.len()), OWN_DAT);
        return Some(dat);
    }
    for (run, Printed { record, .. }) in runs.iter().zip(&results) {
        let differing = values(run).into_iter().zip(values(&record.params)).filter(|(asked, ran)| asked != ran);
        let problems: Vec<String> = differing
            .filter(|((name, _), _)| ["N", "NB", "P", "Q"].contains(name) || obeyed(name))
            .map(|((name, asked), (_, ran))| format!("{name} is {asked}, in {file} it is {ran}"))
            .collect();
        if !problems.is_empty() {
            let codes = format!("T/V {} and {}", tv_code(run), tv_code(&record.params));
            checked.find(dat_file, format!("{} ({codes})", problems.join("; ")), OWN_DAT);
        }
    }
    Some(dat)
}

/// Checks that an output, which is `file`, is that of `row` as the journal has it.
pub(super) fn against_row(checked: &mut Checked, file: &str, text: &str, row: &Row) {
    let trial = row.trial;
    let way_out = format!("one of the two was changed: compare them with trials/{trial} of the run folder");
    let results = results(text);
    let Some(rate) = row.rate_gflops.filter(|_| !results.is_empty()) else { return };
    // Of several repeats the row has the median, which lies between them.
    let lowest =
        results.iter().map(|result| result.record.rate_gflops - result.half_gflops).fold(f64::INFINITY, f64::min);
    let highest = results.iter().map(|result| result.record.rate_gflops + result.half_gflops).fold(0.0, f64::max);
    if !(lowest..=highest).contains(&rate) {
        let rates: Vec<String> = results.iter().map(|result| result.record.rate_gflops.to_string()).collect();
        let problem = format!("{} GFLOP/s, but journal.jsonl has {rate} of trial {trial}", rates.join(", "));
        checked.find(file, problem, &way_out);
    }
    let candidate = row.candidate().hpl;
    let ran = results[0].record.params;
    if [ran.n, ran.nb, ran.p, ran.q] != [candidate.n, candidate.nb, candidate.p, candidate.q] {
        let words = |params: &HplParams| format!("N {} NB {} P {} Q {}", params.n, params.nb, params.p, params.q);
        let problem = format!("{}, but journal.jsonl has {} of trial {trial}", words(&ran), words(&candidate));
        checked.find(file, problem, &way_out);
    }
    if let (Some(printed), Some(known), 1) = (results[0].record.residual, row.residual, results.len())
        && (printed - known).abs() > 1e-6 * known.abs()
    {
        checked.find(file, format!("a residual of {printed}, but journal.jsonl has {known} of trial {trial}"), way_out);
    }
}

/// The results that another engine prints in a form of its own, by its profile; `None` for an output that is checked as one of HPL.
pub(super) fn in_other_form(engine: &Engine, text: &str) -> Option<Vec<PrintedResult>> {
    let Engine::Foreign(foreign) = engine else { return None };
    let scales = foreign.profile().patterns.residual_eps.is_some();
    if !scales && !parse(text).is_empty() {
        return None;
    }
    let found = foreign.read(text);
    (scales || !found.is_empty()).then_some(found)
}

/// Checks the results of an output, which is `file`, that is none of HPL: that they passed, and are those of `row` as the journal has it.
pub(super) fn in_other_form_against_row(checked: &mut Checked, file: &str, results: &[PrintedResult], row: &Row) {
    let trial = row.trial;
    if results.is_empty() {
        return checked.find(file, "no line matches the pattern of a result in engine.toml", ORIGINAL);
    }
    let mut wrong = |problem: String| checked.find(file, problem, ORIGINAL);
    if results.iter().any(|result| result.passed != Some(true)) {
        wrong("a result without a check that passed".to_owned());
    }
    let asked = row.candidate().hpl;
    if let Some((name, printed, asked)) = results.iter().find_map(|result| result.other_than(&asked)) {
        wrong(format!("{name} = {printed}, but journal.jsonl has {asked} of trial {trial}"));
    }
    // Of several repeats the row has the median, which lies between them, and the largest residual.
    let rates = || results.iter().map(|result| result.rate_gflops);
    let (lowest, highest) = (rates().fold(f64::INFINITY, f64::min), rates().fold(0.0, f64::max));
    if let Some(rate) = row.rate_gflops.filter(|rate| !(lowest..=highest).contains(rate)) {
        wrong(format!("{lowest} to {highest} GFLOP/s, but journal.jsonl has {rate} of trial {trial}"));
    }
    let residual = results.iter().filter_map(|result| result.residual).fold(0.0, f64::max);
    if let Some(known) = row.residual.filter(|known| (residual - known).abs() > 1e-6 * known.abs()) {
        wrong(format!("a residual of {residual}, but journal.jsonl has {known} of trial {trial}"));
    }
}

#[cfg(test)]
mod tests {
    use objectives::foreign::{Foreign, Profile, SHIPPED};

    use super::*;
    use crate::record::arbitrary;

    fn shipped(name: &str) -> Engine {
        let (_, text) = SHIPPED.iter().find(|(known, _)| *known == name).unwrap();
        Engine::Foreign(Box::new(Foreign::new(Profile::parse(text).unwrap()).unwrap()))
    }

    #[test]
    fn a_result_of_hpl_mxp_is_checked_by_its_profile() {
        let line = "WR0 1000 128 1 2 0.07 9.5452e+00";
        let mxp = text(line, "3.4e-03 ...... PASSED");
        let results = in_other_form(&shipped("rochpl-mxp"), &mxp).unwrap();
        let row = Row { n: 1000, nb: 128, p: 1, q: 2, ..arbitrary::row(0) };
        let row = Row { rate_gflops: Some(9.5452), residual: Some(3.4e-3), ..row };
        let findings = |results: &[PrintedResult], row: &Row| {
            let mut checked = Checked::default();
            in_other_form_against_row(&mut checked, "stdout.txt", results, row);
            checked.findings.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(findings(&results, &row), [] as [&str; 0]);
        assert!(
            findings(&results, &Row { rate_gflops: Some(19.0), ..row.clone() })[0].contains("journal.jsonl has 19")
        );
        assert!(findings(&results, &Row { n: 2000, ..row.clone() })[0].contains("N = 1000"));
        assert!(findings(&results, &Row { nb: 192, ..row.clone() })[0].contains("NB = 128, but journal.jsonl has 192"));
        assert!(findings(&results, &Row { residual: Some(1e-3), ..row.clone() })[0].contains("a residual of"));
        let failed = in_other_form(&shipped("rochpl-mxp"), &mxp.replace("PASSED", "FAILED")).unwrap();
        assert!(findings(&failed, &row)[0].contains("without a check that passed"));
        assert!(findings(&[], &row)[0].contains("no line matches"));
        // What has the form of HPL is checked as that.
        let hpl = text("WR11C2R4 1000 128 1 2 0.07 9.5452e+00", "3.4e-03 ...... PASSED");
        assert_eq!(in_other_form(&shipped("netlib"), &hpl), None);
        assert_eq!(in_other_form(&Engine::Ours, &mxp), None);
        assert_eq!(in_other_form(&shipped("netlib"), "nothing"), None, "and is then missing");
    }

    fn found(text: &str) -> Vec<String> {
        let mut checked = Checked::default();
        arithmetic(&mut checked, "HPL.out", text, 16.0);
        checked.findings.iter().map(ToString::to_string).collect()
    }

    fn text(line: &str, residual: &str) -> String {
        format!("{line}\n||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)= {residual}\n")
    }

    #[test]
    fn the_threshold_of_swap_is_compared() {
        let params = HplParams { swap: Swap::Mix { threshold: 60 }, ..HplParams::baseline(1000, 1, 2) };
        let dat = HplDat::single(&params).write().unwrap();
        let result = format!("{} 1000 {} 1 2 0.07 9.5452e+00", tv_code(&params), params.nb);
        let findings = |threshold: usize| {
            let output = format!("SWAP   : Mix (threshold = {threshold})\n") + &text(&result, "3.4e-03 ...... PASSED");
            let mut checked = Checked::default();
            against_dat(&mut checked, ["HPL.dat", "HPL.out"], &dat, &output, |_| true);
            checked.findings.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(findings(60), [] as [&str; 0]);
        let told = "SWAP is mix with threshold 60, in HPL.out it is mix with threshold 64";
        assert!(findings(64)[0].contains(told), "{:?}", findings(64));
    }

    /// Results as published: of the rules of a student competition (2025), and of Netlib's own page of results.
    #[test]
    fn published_results_hold() {
        let published = text("WR01C2L8 102144 192 8 8 514.92 1.380e+03", "0.0020152 ...... PASSED");
        assert_eq!(found(&published), [] as [&str; 0], "2/3 N³ + 3/2 N² in 514.92 s are 1379.8 GFLOP/s");
        // Three digits allow 1379.5 to 1380.5.
        let raised = found(&published.replace("1.380e+03", "1.382e+03"));
        assert!(
            raised.len() == 1 && raised[0].contains("1382 GFLOP/s, but N = 102144 in 514.92 s are 1379.8"),
            "{raised:?}"
        );
        let faster = found(&published.replace("514.92", "513.92"));
        assert_eq!(faster.len(), 1, "{faster:?}");
    }

    #[test]
    fn residuals_are_judged_by_their_number_and_their_word() {
        let line = "WR11C2R4 1000 128 1 2 0.07 9.5452e+00";
        assert_eq!(found(&text(line, "3.4e-03 ...... PASSED")), [] as [&str; 0]);
        for (residual, words) in [
            ("3.4e+01 ...... PASSED", "PASSED with a residual of 34, the threshold is 16"),
            ("3.4e+01 ...... FAILED", "is FAILED"),
            ("", "has no residual line"),
        ] {
            let problems = found(&text(line, residual));
            assert!(problems.len() == 1 && problems[0].contains(words), "{residual}: {problems:?}");
        }
        assert!(found("nothing")[0].contains("no result line"));
    }

    #[test]
    fn a_time_that_its_stamps_deny_is_told() {
        let line = "WR11C2R4 1000 128 1 2 0.07 9.5452e+00";
        let stamped = |end: &str| {
            let stamps = format!(
                "HPL_pdgesv() start time Tue Nov 24 08:00:10 2026\n\nHPL_pdgesv() end time   Tue Nov 24 08:{end} 2026\n"
            );
            found(&(text(line, "3.4e-03 ...... PASSED") + &stamps))
        };
        assert_eq!(stamped("00:11"), [] as [&str; 0]);
        assert!(stamped("soon")[0].contains("its start and end stamps cannot be read"));
        let summer =
            "HPL_pdgesv() start time Sun Mar 29 01:59:59 2026\n\nHPL_pdgesv() end time   Sun Mar 29 03:00:00 2026\n";
        assert_eq!(found(&(text(line, "3.4e-03 ...... PASSED") + summer)), [] as [&str; 0]);
        assert!(stamped("18:10")[0].contains("a time of 0.07 s, but 1080 s between"), "{:?}", stamped("18:10"));
    }

    #[test]
    fn digits_say_how_far_a_rate_may_be_off() {
        assert!((half_of_last_digit("1.380e+03").unwrap() - 0.5).abs() < 1e-12);
        assert!((half_of_last_digit("9.7500e+01").unwrap() - 5e-4).abs() < 1e-12);
        assert_eq!(half_of_last_digit("97.5"), None);
    }
}
