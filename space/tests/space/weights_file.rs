//! The weights file: round trip, and every impossible one named.

use proptest::prelude::*;
use space::weights_file::{WeightedNode, WeightsFile};
use space::{Share, Weights};

fn message(text: &str) -> String {
    WeightsFile::parse(text).expect_err("malformed").to_string()
}

#[test]
fn a_file_becomes_weights() {
    let text = "columns = [0.75, 0.25]\n[[node]]\nname = \"new\"\nspeed = 3.0\n[[node]]\nname = \"old\"\nspeed = 1\n";
    let share = |value| Share::new(value).unwrap();
    let weights = WeightsFile::parse(text).unwrap().weights();
    assert_eq!(weights, Weights { rows: Vec::new(), columns: vec![share(0.75), share(0.25)] });
}

#[test]
fn impossible_files_are_named() {
    assert_eq!(message("origin = \"me\""), "neither rows nor columns; give the shares of one of them");
    assert!(message("columns = [0.0, 0]").starts_with("all columns are 0"));
    assert!(message("rows = [1.0, -0.5]").contains("a share must be a finite number of at least 0, found -0.5"));
    assert!(message("rows = [1.0, nan]").contains("found NaN"));
    assert!(message("row = [1.0]").contains("row"));
    let node = "[[node]]\nname = \"a\"\nspeed = 1.0\n";
    assert_eq!(
        message(&format!("rows = [1.0, 2.0]\n{node}")),
        "1 [[node]] for 2 rows and 1 columns; give one of each rank, or none"
    );
}

proptest! {
    #[test]
    fn round_trip(shares in proptest::collection::vec(0.001..1e6f64, 1..9), name in "[ -~é\"\\\\]{0,12}") {
        let columns: Vec<Share> = shares.iter().map(|&share| Share::new(share).unwrap()).collect();
        let nodes = columns.iter().map(|&speed| WeightedNode { name: name.clone(), speed }).collect();
        let file = WeightsFile { origin: name.clone(), rows: Vec::new(), columns, nodes };
        prop_assert_eq!(WeightsFile::parse(&file.to_toml().unwrap()), Ok(file));
    }
}
