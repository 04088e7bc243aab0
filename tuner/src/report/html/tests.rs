use objectives::launcher::MpiJob;
use objectives::real::Extent;

use super::*;
use crate::record::arbitrary::{row, windows};
use crate::record::session::Session;
use crate::report::closing::closing;
use crate::report::summary::tests::session;
use crate::report::table;

/// What of the page is made of the record: all but its two scripts.
fn without_scripts(page: &str) -> String {
    let rest = page.replace(PLOTLY, "").replace(SCRIPT, "");
    assert_eq!(rest.len(), page.len() - PLOTLY.len() - SCRIPT.len(), "both stand in it as they are, once");
    rest
}

#[test]
fn nothing_from_outside_becomes_markup_or_is_fetched() {
    let bad = "</script><script>alert('\"&')</script><!--";
    let mut session = session();
    (session.name, session.host, session.command, session.strategy) = (bad.into(), bad.into(), bad.into(), bad.into());
    (session.kernels, session.notes) = (Some(bad.to_owned().into()), vec![bad.into()]);
    let mut failed = row(1);
    (failed.passed, failed.failure_detail) = (false, Some(bad.into()));
    let mut rows = vec![row(0), failed];
    for row in &mut rows {
        (row.strategy, row.why, row.kernels) = (bad.into(), bad.into(), Some(bad.to_owned().into()));
        row.extra = Some(serde_json::json!({ bad: bad }).to_string());
        row.host = bad.into();
    }
    let mut summary = Summary::new(&session, &rows);
    summary.closing = closing(&summary, bad);
    let exports = Exports {
        hpl_dat: bad.into(),
        engine_params: Some(bad.into()),
        run_sh: bad.into(),
        hpl_out: None,
        inputs: Vec::new(),
    };
    let page = ReportPage { exports: Some(&exports), ..ReportPage::new(&summary, &rows) }.html();
    let page = without_scripts(&page);
    let scripts: Vec<&str> = page.match_indices("<script").map(|(at, _)| &page[at..at + 12]).collect();
    assert_eq!(scripts, ["<script type", "<script></sc", "<script></sc"]);
    assert_eq!((page.matches("</script").count(), page.matches("<!--").count()), (3, 0));
    assert!(page.contains("&lt;script&gt;alert('&quot;&amp;')&lt;/script&gt;"));
    for fetched in ["http:", "https:", "src=", "href=", "url(", "@import"] {
        assert!(!page.contains(fetched), "{fetched}");
    }
}

#[test]
fn one_candidate_is_no_plural() {
    let summary = Summary::new(&session(), &[row(0)]);
    let page = without_scripts(&ReportPage::new(&summary, &[row(0)]).html());
    assert!(page.contains("The 1 highest median<") && page.contains("1 different candidate; failed: none"));
    assert!(page.contains("The only trial<"));
    assert!(table::summary(&summary, None).contains("1, of 1 different candidate; failed: none"));
}

#[test]
fn a_page_without_a_passed_trial_says_so() {
    assert!(ReportPage::new(&Summary::new(&session(), &[]), &[]).html().contains("Nothing is verified"));
}

#[test]
fn a_session_of_windows_alone_shows_its_leader_as_the_terminal_does() {
    let session = Session { extent: Extent::Windows, ..session() };
    let rows = [windows(0, 128, 20.0), windows(1, 192, 21.0)];
    let summary = Summary::new(&session, &rows);
    let page = without_scripts(&ReportPage::new(&summary, &rows).html());
    let words = "not verified, as no whole run has passed";
    assert!(table::summary(&summary, None).contains(words));
    for said in
        [format!("The best, {words}"), format!("{words}: estimated by windows, 1 sample"), "21.00 GFLOP/s".into()]
    {
        assert!(page.contains(&said), "{said}");
    }
}

#[test]
fn the_trials_of_a_simulated_session_are_not_called_measured() {
    let job = MpiJob { simulated: Some("simulated.toml".into()), ..MpiJob::new("mpiexec", "xhpl".into()) };
    let simulated = Session { mpi_job: Some(job), ..session() };
    for (session, column) in [(session(), "measured"), (simulated, "simulated")] {
        let rows = [row(0), row(1)];
        let page = without_scripts(&ReportPage::new(&Summary::new(&session, &rows), &rows).html());
        let header = format!("<th>{column} GFLOP/s</th><th>estimated GFLOP/s</th>");
        assert!(page.contains(&header), "{header}");
    }
}

/// Score with N, then comparisons, then what to do next; plots and tables follow.
#[test]
fn numbers_come_first() {
    let rows = [row(0), row(1)];
    let mut summary = Summary::new(&session(), &rows);
    summary.closing = closing(&summary, "runs/one");
    let page = without_scripts(&ReportPage::new(&summary, &rows).html());
    let places: Vec<usize> =
        ["N = 1000", "best / default", "Won: ", "Next: ", "plot-history", "The best", "All 2 trials"]
            .iter()
            .map(|word| page.find(word).unwrap_or_else(|| panic!("{word}")))
            .collect();
    assert!(places.is_sorted(), "{places:?}");
}

/// Pictures and tables, in elements that a script hides.
#[test]
fn without_a_script_there_are_pictures_and_tables() {
    let rows: Vec<Row> = (0..10)
        .map(|trial| Row { nb: 64 + 64 * (trial as usize % 3), ndiv: 2 + trial as usize % 2, ..row(trial) })
        .collect();
    let summary = Summary::new(&session(), &rows);
    let page = without_scripts(&ReportPage::new(&summary, &rows).html());
    assert_eq!(page.matches("<svg").count(), 2);
    assert_eq!(page.matches("class=\"plot\"").count(), page.matches("class=\"still\"").count());
    assert!(page.contains("This plot is drawn by JavaScript"));
}

/// However many trials there are, and however long their texts.
#[test]
fn a_page_can_be_sent() {
    let vary = |trial: u64| Row {
        nb: 32 + 8 * (trial as usize % 60),
        ndiv: 2 + trial as usize % 3,
        nbmin: 1 + trial as usize % 16,
        depth: trial as usize % 3,
        swap_threshold: trial as usize % 200,
        passed: !trial.is_multiple_of(7),
        why: "<expected> improvement over the best of the runs ".repeat(20),
        ..row(trial)
    };
    let rows: Vec<Row> = (0..12_000).map(vary).collect();
    let summary = Summary::new(&session(), &rows);
    let page = ReportPage::new(&summary, &rows).html();
    println!("{} bytes", page.len());
    assert!(page.len() < 6_000_000, "{} bytes", page.len());
    assert!(page.contains("The last 3000 of 12000 trials"));
}
