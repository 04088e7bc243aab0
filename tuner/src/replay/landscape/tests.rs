use super::*;

const TOML: &str = r#"
schema_version = 1
name = "small"
origin = "made up"
table = "t.csv"
runs = { mode = "run" }
value = { column = "rate", goal = "maximize" }
cost = { column = "cost_s" }
failure = { column = "outcome", passed = ["ok"] }
model = { column = "rate", rows = { mode = "model" } }
[[dimension]]
name = "nb"
kind = "ordered"
scale = "log"
[[dimension]]
name = "grid"
kind = "ordered"
scale = "log"
ratio = ["p", "q"]
[[dimension]]
name = "bcast"
kind = "categorical"
"#;

const CSV: &str = "nb,p,q,bcast,mode,rate,cost_s,outcome
128,1,2,ring,run,50,4,ok
64,1,2,ring,run,40,5,ok
64,1,2,ring,run,42,5,ok
64,2,1,long,run,,7,crashed
64,1,2,ring,model,39,,
64,2,1,long,model,30,,
128,1,2,ring,model,55,,
256,1,2,ring,model,60,,
";

fn read(description: &str, table: &str) -> Result<Landscape, LandscapeError> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.csv"), table).unwrap();
    let path = folder.path().join("small.toml");
    std::fs::write(&path, description).unwrap();
    Landscape::read(&path, None, None, &Decoder::Here)
}

/// Eight values of NB by three broadcasts, three runs each; the last `failing` points fail.
pub(crate) fn hill(failing: usize) -> Landscape {
    let dim = |name: &str, kind, count: usize| {
        let level = |i: usize| Level { label: i.to_string(), feature: i as f64 };
        Dim { name: name.to_owned(), kind, levels: (0..count).map(level).collect() }
    };
    let dims = vec![dim("nb", DimKind::Ordered, 8), dim("bcast", DimKind::Categorical, 3)];
    let space = Listed::product(dims, |_| true);
    let site = |(at, point): (usize, &Point)| {
        let (nb, bcast) = (f64::from(point.0[0]), f64::from(point.0[1]));
        let rate = 50.0 - (nb - 4.5).powi(2) - 2.0 * bcast;
        let runs = if at + failing >= 24 { Vec::new() } else { vec![rate, rate * 1.002, rate * 0.997] };
        LandscapePoint { runs, cv: 0.0, cost_s: 2.0, model: Some(rate * 0.8) }
    };
    let sites = space.points().iter().enumerate().map(site).collect();
    Landscape { name: "hill".into(), goal: Goal::Maximize, space, sites, usual: None }
}

#[test]
fn a_table_becomes_a_space_with_runs_and_a_model() {
    let landscape = read(TOML, CSV).unwrap();
    assert_eq!(landscape.len(), 3);
    let labels =
        |d: usize| landscape.space.dims()[d].levels.iter().map(|level| level.label.as_str()).collect::<Vec<_>>();
    assert_eq!((labels(0), labels(1), labels(2)), (vec!["64", "128"], vec!["1:2", "2:1"], vec!["ring", "long"]));
    let features: Vec<f64> = landscape.space.dims()[1].levels.iter().map(|level| level.feature).collect();
    assert_eq!(features, [-1.0, 1.0]);
    let at = landscape.space.position(&Point(vec![0, 0, 0])).unwrap();
    assert_eq!(landscape.truth(at), Some(41.0));
    assert_eq!(landscape.sites[at].model, Some(39.0));
    let dead = landscape.space.position(&Point(vec![0, 1, 1])).unwrap();
    assert_eq!((landscape.truth(dead), landscape.sites[dead].cost_s), (None, 7.0));
    assert!(landscape.has_model());
}

#[test]
fn an_evaluation_costs_the_mean_of_the_runs_that_it_may_be() {
    let more = "64,1,2,ring,run,42,9,ok\n64,1,2,ring,run,,30,crashed\n64,2,1,long,run,,9,crashed\n";
    let table = CSV.replace("64,1,2,ring,run,42,5,ok\n", more);
    let cost_s = |table: &str, point: [u16; 3]| {
        let landscape = read(TOML, table).unwrap();
        landscape.sites[landscape.space.position(&Point(point.into())).unwrap()].cost_s
    };
    assert_eq!([[0, 0, 0], [0, 1, 1], [1, 0, 0]].map(|point| cost_s(&table, point)), [7.0, 8.0, 4.0]);
}

#[test]
fn what_is_wrong_is_named() {
    for (from, to, wanted) in [
        ("column = \"cost_s\"", "column = \"seconds\"", "no column 'seconds'"),
        ("name = \"bcast\"", "name = \"nb\"", "'nb' is there twice"),
        ("schema_version = 1", "schema_version = 9", "schema_version 9"),
        ("mode = \"run\"", "mode = \"dream\"", "no row of"),
        ("passed = [\"ok\"]", "passed = [\"fine\"]", "passed"),
        ("goal = \"maximize\"", "goal = \"win\"", "unknown variant `win`"),
        ("table = \"t.csv\"", "table = \"gone.csv\"", "gone.csv"),
        ("table = \"t.csv\"", "table = \"../t.csv\"", "'../t.csv' is not in the folder"),
        ("table = \"t.csv\"", "table = \"/dev/null\"", "'/dev/null' is not in the folder"),
        ("model = {", "model = { table = \"/dev/null\",", "'/dev/null' is not in the folder"),
        ("table = \"t.csv\"", "table = \"t.csv\"\nsmooth_with = \"depth\"", "'depth', which is not a dimension"),
    ] {
        let error = read(&TOML.replace(from, to), CSV).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
    for (from, to, wanted) in [
        ("64,1,2,ring,run,40", "64,1,2,ring,run,NaN", "row 2: rate is 'NaN'"),
        ("128,1,2,ring,run,50", "0,1,2,ring,run,50", "row 1: nb is '0'"),
        ("64,1,2,ring,model,39", "64,1,2,ring,model,-", "row 5: rate is '-'"),
    ] {
        let error = read(TOML, &CSV.replace(from, to)).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
}

#[test]
fn a_description_reads_no_device_by_a_link_in_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (path, table) = (folder.path().join("small.toml"), folder.path().join("t.csv"));
    std::fs::write(&path, TOML).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &table).unwrap();
    let error = Landscape::read(&path, None, None, &Decoder::Here).unwrap_err().to_string();
    assert!(error.contains("t.csv") && error.contains("no regular file"), "{error}");
    // What the user names is read, by a link, too.
    std::fs::remove_file(&table).unwrap();
    std::fs::write(folder.path().join("own.csv"), CSV).unwrap();
    std::os::unix::fs::symlink("own.csv", &table).unwrap();
    Landscape::read(&path, Some(&table), None, &Decoder::Here).unwrap();
}

#[test]
fn smoothing_keeps_effects_and_shares_luck_among_many() {
    let level = |i: usize| Level { label: i.to_string(), feature: i as f64 };
    let dim = |name: &str| Dim { name: name.into(), kind: DimKind::Categorical, levels: (0..4).map(level).collect() };
    let space = Listed::product(vec![dim("nb"), dim("bcast"), dim("swap")], |_| true);
    // NB acts with BCAST and with SWAP, which is all that the fit contains.
    let log = |point: &Point| {
        let at = |d: usize| f64::from(point.0[d]);
        0.1 * at(0) * at(1) - 0.05 * at(2) * (at(0) - 2.0) + 0.03 * at(1)
    };
    let lucky = 5;
    let site = |(i, point): (usize, &Point)| {
        let luck = if i == lucky { 0.2 } else { 0.0 };
        LandscapePoint { runs: vec![(log(point) + luck).exp()], cv: 0.01, cost_s: 1.0, model: None }
    };
    let sites = space.points().iter().enumerate().map(site).collect();
    let mut landscape = Landscape { name: "t".into(), goal: Goal::Maximize, space, sites, usual: None };
    landscape.smooth_with(0);
    for (i, point) in landscape.space.points().iter().enumerate() {
        let excess = landscape.truth(i).unwrap().ln() - log(point);
        assert!(excess.abs() < if i == lucky { 0.1 } else { 0.06 }, "{i}: {excess}");
    }
}

/// Those that were run several times, as the default of a session is, were searched without any noise.
#[test]
fn fitted_values_scatter_alike_however_often_their_points_were_run() {
    let with = |more: &str| {
        let description = TOML.replacen("[[dimension]]", &format!("noise = {{ cv = 0.02 }}\n{more}[[dimension]]"), 1);
        read(&description, CSV).unwrap()
    };
    let of = |landscape: &Landscape| {
        let (once, twice) = (Point(vec![1, 0, 0]), Point(vec![0, 0, 0]));
        [once, twice].map(|point| {
            let site = &landscape.sites[landscape.space.position(&point).unwrap()];
            (site.runs.len(), site.cv)
        })
    };
    assert_eq!(of(&with("")), [(1, 0.02), (2, 0.0)]);
    assert_eq!(of(&with("smooth_with = \"nb\"\n")), [(1, 0.02), (1, 0.02)]);
}

#[test]
fn the_trials_of_a_session_are_a_landscape_and_a_damaged_table_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("trials.parquet");
    let rows: Vec<_> = [0, 1, 1, 2].map(crate::record::arbitrary::row).into();
    crate::record::parquet::write(&table, &rows).unwrap();
    let path = folder.path().join("mine.toml");
    let description = "schema_version = 1\nname = 'mine'\norigin = 'a session'\ntable = 'trials.parquet'\n\
        value = { column = 'rate_gflops', goal = 'maximize' }\ncost = { column = 'wall_s' }\n\
        failure = { column = 'outcome', passed = ['passed'] }\n\
        [[dimension]]\nname = 'nb'\nkind = 'ordered'\nscale = 'log'\n";
    std::fs::write(&path, description).unwrap();
    let landscape = Landscape::read(&path, None, None, &Decoder::Here).unwrap();
    let truths: Vec<_> = (0..3).map(|at| landscape.truth(at)).collect();
    assert_eq!((landscape.len(), truths), (3, vec![Some(20.0), Some(21.0), Some(22.0)]));
    assert_eq!(landscape.sites[1].runs.len(), 2);
    let bytes = std::fs::read(&table).unwrap();
    std::fs::write(&table, &bytes[..bytes.len() / 2]).unwrap();
    let message = Landscape::read(&path, None, None, &Decoder::Here).unwrap_err().to_string();
    assert!(message.contains("trials.parquet"), "{message}");
}

#[test]
fn the_usual_point_is_named_by_its_labels_or_refused_with_the_key() {
    let with = |usual: &str| read(&TOML.replacen("[[dimension]]", &format!("{usual}\n[[dimension]]"), 1), CSV);
    let landscape = with("usual = { nb = \"64\", grid = \"1:2\", bcast = \"ring\" }").unwrap();
    assert_eq!(landscape.space.points()[landscape.usual.unwrap()].0, landscape.space.points()[1].0);
    let wrong = |usual: &str| with(usual).unwrap_err().to_string();
    for (usual, said) in [
        ("usual = { nb = \"64\", grid = \"1:2\" }", "lacks bcast"),
        ("usual = { nb = \"65\", grid = \"1:2\", bcast = \"ring\" }", "nb = \"65\" is in no row"),
        ("usual = { nb = \"128\", grid = \"2:1\", bcast = \"ring\" }", "is not a point"),
        ("usual = { kb = \"128\" }", "kb is not a dimension"),
    ] {
        assert!(wrong(usual).contains(said), "{}", wrong(usual));
    }
}
