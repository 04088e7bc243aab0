//! Summaries of sessions whose power was read.

use super::*;

/// A passed run with its powers.
fn with_power(number: u64, nb: usize, rate: f64, watts: f64) -> Row {
    Row {
        power_w: Some(watts),
        energy_j: Some(10.0 * watts),
        gflops_per_w: Some(rate / watts),
        power_coverage: Some(0.95),
        run_power_w: Some(0.9 * watts),
        run_energy_j: Some(12.0 * watts),
        power_source: Some("powercap package-0; not Green500 grade".into()),
        ..run(number, nb, rate, None)
    }
}

#[test]
fn the_front_is_who_is_not_beaten_in_both() {
    let rows = [
        Row { max_clock_mhz: Some(2100), ..with_power(0, 64, 20.0, 100.0) },
        with_power(1, 96, 30.0, 200.0),
        with_power(2, 128, 25.0, 200.0),
        with_power(3, 160, 10.0, 40.0),
        with_power(4, 192, 9.0, 40.0),
        run(5, 224, 99.0, None),
    ];
    let found = Summary::new(&session(), &rows);
    let front: Vec<(usize, f64)> =
        found.pareto.iter().map(|point| (point.candidate.hpl.nb, point.gflops_per_w)).collect();
    assert_eq!(front, [(96, 0.15), (64, 0.2), (160, 0.25)]);
    let text = table::summary(&found, None);
    assert!(
        text.contains("not beaten in speed and efficiency: 30.00 GFLOP/s at 0.1500 GFLOPS/W (NB 96, 1×2×1t, 1 run); "),
        "{text}"
    );
    assert!(text.contains("(NB 64, 1×2×1t, max_clock_mhz 2100, 1 run)"), "{text}");
    assert!(!text.contains("Objective") && Summary::new(&session(), &[run(0, 64, 20.0, None)]).pareto.is_empty());
}

#[test]
fn power_is_told_with_its_source() {
    let found = Summary::new(&session(), &[with_power(0, 64, 20.0, 100.0)]);
    let text = table::summary(&found, None);
    let line =
        |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{text}")).to_owned();
    assert!(line("Best ").ends_with(", 100.0 W, 0.2000 GFLOPS/W"), "{text}");
    assert_eq!(
        line("Power").split_whitespace().collect::<Vec<_>>().join(" "),
        "Power trial 0: 100.0 W, 1000 J in the core phase (95 % of it read), 0.2000 GFLOPS/W; whole run 90.00 W, 1200 J; \
         software reading: powercap package-0; not Green500 grade"
    );
    assert!(html::ReportPage::new(&found, &[]).html().contains("not Green500 grade"));
    let none = table::summary(&Summary::new(&session(), &[run(0, 64, 20.0, None)]), None);
    assert!(!none.contains("Power") && !none.contains(" W"), "{none}");
}

#[test]
fn by_gflops_per_watt_the_most_efficient_is_best() {
    let rows = [with_power(0, 64, 20.0, 100.0), with_power(1, 96, 30.0, 200.0), run(2, 128, 40.0, None)];
    let session = Session { objective: Objective::GflopsPerWatt, ..session() };
    let found = Summary::new(&session, &rows);
    let order: Vec<usize> = found.top.iter().map(|score| score.candidate.hpl.nb).collect();
    assert_eq!((order, found.best.as_ref().unwrap().candidate.hpl.nb), (vec![64, 96, 128], 64));
    assert!(table::summary(&found, None).starts_with("Objective     GFLOPS/W"), "{}", table::summary(&found, None));
    assert_eq!(found.higher, None, "a higher rate is no reason");
}
