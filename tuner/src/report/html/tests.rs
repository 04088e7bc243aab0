use super::*;
use crate::record::arbitrary::row;
use crate::report::summary::tests::session;

#[test]
fn nothing_from_outside_becomes_markup_or_is_fetched() {
    let bad = "<script>alert('\"&')</script>";
    let mut session = session();
    (session.name, session.host, session.command, session.strategy) = (bad.into(), bad.into(), bad.into(), bad.into());
    (session.kernels, session.notes) = (Some(bad.to_owned().into()), vec![bad.into()]);
    let mut failed = row(1);
    (failed.passed, failed.failure_detail) = (false, Some(bad.into()));
    let mut rows = vec![row(0), failed];
    for row in &mut rows {
        (row.strategy, row.why, row.kernels) = (bad.into(), bad.into(), Some(bad.to_owned().into()));
    }
    let summary = Summary::new(&session, &rows);
    let exports = Exports {
        hpl_dat: bad.into(),
        engine_params: Some(bad.into()),
        run_sh: bad.into(),
        hpl_out: None,
        inputs: Vec::new(),
    };
    let page = page(&summary, &rows, Some(&exports));
    assert!(!page.contains("<script"));
    assert!(page.contains("&lt;script&gt;alert('&quot;&amp;')&lt;/script&gt;"));
    for fetched in ["http:", "https:", "src=", "href=", "url(", "@import"] {
        assert!(!page.contains(fetched), "{fetched}");
    }
}

#[test]
fn a_page_without_a_passed_trial_says_so() {
    assert!(page(&Summary::new(&session(), &[]), &[], None).contains("No trial passed"));
}
