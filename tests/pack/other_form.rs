//! Run folders of engines whose output is none of HPL.

use super::{pack_of, verify};
use crate::engine::{Fake, run_until};
use crate::program::{err, out};

#[test]
fn a_run_folder_of_an_engine_with_an_output_of_its_own_holds() {
    let fake =
        Fake::new("rate=$((200 + $2 / 8))\necho \"GFLOPS = 0.$rate, per GPU = 1\"\necho \"check 2.1e-03 PASSED\"");
    let profile = std::fs::read_to_string(fake.profile()).unwrap();
    let other = profile.lines().map(|line| match line.split(' ').next() {
        Some("result") => r"result = '^GFLOPS = (?<gflops>[^,\s]+), per GPU'".to_owned(),
        Some("residual") => r"residual = '^check (?<residual>\S+) (?<verdict>PASSED|FAILED)'".to_owned(),
        _ => line.to_owned(),
    });
    std::fs::write(fake.profile(), other.collect::<Vec<_>>().join("\n")).unwrap();
    let rows = run_until(&mut fake.session(), &fake.folder(), 4);
    assert!(rows.iter().all(|row| row.passed), "{:?}", rows[0].failure_detail);
    let verified = verify(&fake.folder());
    assert_eq!(verified.status.code(), Some(0), "{}", out(&verified));
    // As if the fastest run had been the final one.
    let fastest = rows.iter().max_by(|a, b| a.rate_gflops.unwrap().total_cmp(&b.rate_gflops.unwrap())).unwrap().trial;
    super::edit(&fake.folder(), "journal.jsonl", |text| {
        let lines = text.lines().map(|line| {
            let mut row: serde_json::Value = serde_json::from_str(line).unwrap();
            if row["trial"] == fastest && row["outcome"].is_string() {
                row["strategy"] = "final".into();
            }
            row.to_string() + "\n"
        });
        lines.collect()
    });
    let refused = pack_of(&fake.folder(), "top500", &fake.home().join("no"), &[]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(err(&refused).contains("engine fake prints its results in another form than HPL"), "{}", err(&refused));
}
