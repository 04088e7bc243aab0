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
        run_power_coverage: Some(0.67),
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

/// The efficiency of one run stood beside the number of all three.
#[test]
fn an_efficiency_of_some_runs_says_of_how_many() {
    let unread = |number: u64| run(number, 64, 20.0, None);
    let found = Summary::new(&session(), &[with_power(0, 64, 20.0, 100.0), unread(1), unread(2)]);
    assert_eq!((found.pareto[0].runs, found.pareto[0].runs_read), (3, 1));
    let text = table::summary(&found, None);
    assert!(text.contains("20.00 GFLOP/s at 0.2000 GFLOPS/W (NB 64, 1×2×1t, 1 of 3 runs read)"), "{text}");
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
        "Power trial 0: 100.0 W, 1000 J in the core phase (95 % of it read), 0.2000 GFLOPS/W; whole run 90.00 W, 1200 J \
         (67 % of it read); \
         software reading: powercap package-0; not Green500 grade"
    );
    assert!(html::ReportPage::new(&found, &[]).html().contains("not Green500 grade"));
    let none = table::summary(&Summary::new(&session(), &[run(0, 64, 20.0, None)]), None);
    assert!(!none.contains("Power") && !none.contains(" W"), "{none}");
}

/// One of two nodes was read: its watts stood beside the rate of both.
#[test]
fn watts_of_a_part_do_not_stand_beside_a_rate() {
    let source = Some("powercap package-0, of 1 of 2 nodes, not of n2; not Green500 grade".into());
    let part = Row { gflops_per_w: None, power_source: source, ..with_power(0, 64, 20.0, 100.0) };
    let text = table::summary(&Summary::new(&session(), &[part]), None);
    let told: Vec<&str> = text.lines().filter(|line| line.contains(" W") || line.contains("watts")).collect();
    assert!(matches!(told[..], [power] if power.starts_with("Power ") && power.contains("100.0 W")), "{text}");
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
    // The page is in the same order, and says by what.
    let page = html::ReportPage::new(&found, &rows).html();
    for words in ["The 3 highest medians of GFLOPS/W", "<th>core W</th><th>GFLOPS/W of the run</th>", ">0.2222<"] {
        assert!(page.contains(words), "{words}");
    }
}

/// The default takes 100 W, the verified one more; no run of either is left out of the ratio for its own reading.
#[test]
fn below_a_power_limit_each_candidate_is_judged_by_its_median() {
    let of = |default: f64, verified: [f64; 2]| {
        let (session, mut rows) = session_with_rounds(&[(10.0, 8.0, 11.0); 2]);
        let session = Session { objective: Objective::GflopsWithin { power_limit_w: 120 }, ..session };
        rows.iter_mut().for_each(|row| row.power_w = Some(default));
        let own = rows.iter_mut().filter(|row| row.nb == 192 && row.strategy != Identity::FINAL);
        own.zip(verified.into_iter().cycle()).for_each(|(row, watts)| row.power_w = Some(watts));
        let found = Summary::new(&session, &rows);
        let said = table::summary(&found, None).split_whitespace().collect::<Vec<_>>().join(" ");
        (found, said)
    };
    let (found, said) = of(100.0, [110.0, 125.0]);
    assert_eq!(found.best.unwrap().candidate.hpl.nb, 192);
    assert!(said.contains("Best/default 1.1") && said.contains("(2 pairs, too few for an interval)"), "{said}");
    let (found, said) = of(100.0, [124.0, 125.0]);
    assert_eq!((found.best.unwrap().candidate.hpl.nb, found.taken_back.unwrap().above_limit_w), (128, Some(124.5)));
    assert!(said.contains("takes 124.5 W, more than the power limit, which the default keeps: the default is best"));
    let (_, said) = of(100.0, [120.004; 2]);
    assert!(said.contains("takes 120.01 W, more than the power limit"), "as 120.0 W it would keep it: {said}");
    let (found, said) = of(130.0, [110.0, 112.0]);
    assert_eq!(found.best.unwrap().candidate.hpl.nb, 192);
    assert!(said.contains("the default takes 130.0 W, above the power limit of 120 W"), "{said}");
}
