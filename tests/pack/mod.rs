//! Packs of a real session, and what `verify` finds in ones that were changed.

mod claims;
mod nodes;
mod other_form;
mod plain;
mod power;
mod scripts;
mod tampered;

use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::OnceLock;

use crate::program::{err, hpl_tune, out, tune};

/// What a site has to say for a complete pack of any purpose, but for the power.
const SITE: &str = "[site]\norganisation = \"Institute & Sons\"\ncity = \"Town\"\ncountry = \"Land\"\nsegment = \"Research\"\n\
    contact_name = \"Operator\"\ncontact_email = \"hpc@example.org\"\n[system]\nname = \"test\"\nmanufacturer = \"Maker\"\n\
    model = \"Model 1\"\nyear = 2026\nnodes = 1\nprocessor = \"CPU\"\nprocessor_mhz = 2000\nsockets_per_node = 1\n\
    cores_per_socket = 64\nmemory_per_node_gib = 8\naccelerator = \"none\"\naccelerators_per_node = 0\n\
    accelerator_fp64_cores = 0\ninterconnect = \"none: one node\"\nos = \"Linux\"\ncompiler = \"rustc\"\n\
    [peak]\nflops_per_cycle = 16\nclock_ghz = 2.5\n[power]\npeak_watts = 300\n";

/// The run folder that all packs here are of: that of the session which other tests share.
fn run() -> &'static Path {
    crate::tune::folder()
}

/// A site file in `folder`.
fn site(folder: &Path, text: &str) -> PathBuf {
    let path = folder.join("site.toml");
    std::fs::write(&path, text).unwrap();
    path
}

/// Packs the run for a purpose into `out`.
fn pack(purpose: &str, out: &Path, more: &[&str]) -> Output {
    pack_of(run(), purpose, out, more)
}

/// Packs the run in `folder`.
fn pack_of(folder: &Path, purpose: &str, out: &Path, more: &[&str]) -> Output {
    let mut command = hpl_tune();
    command.arg("pack").arg(folder).args(["--for", purpose, "--out"]).arg(out).args(more);
    command.output().unwrap()
}

/// A complete pack for a competition, made once; it is copied before it is changed.
fn intact() -> &'static Path {
    static PACK: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = PACK.get_or_init(|| {
        let home = tempfile::tempdir().unwrap();
        let site = site(home.path(), SITE);
        let path = home.path().join("packed");
        let output = pack("scc", &path, &["--site", site.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        (home, path)
    });
    path
}

fn read(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Replaces the text of a file.
fn edit(folder: &Path, name: &str, change: impl Fn(&str) -> String) {
    let before = read(folder, name);
    let after = change(&before);
    assert_ne!(before, after, "{name} is changed");
    std::fs::write(folder.join(name), after).unwrap();
}

/// The trial whose run is packed.
fn packed_trial() -> u64 {
    serde_json::from_str::<serde_json::Value>(&read(intact(), "pack.json")).unwrap()["trial"].as_u64().unwrap()
}

fn check(folder: &Path) -> Output {
    tune(["pack", "--check", folder.to_str().unwrap()])
}

fn verify(folder: &Path) -> Output {
    tune(["verify", folder.to_str().unwrap()])
}

#[test]
fn a_competition_gets_its_files_and_they_hold() {
    let folder = intact();
    let printed = std::fs::read(run().join("trials").join(packed_trial().to_string()).join("stdout.txt")).unwrap();
    for name in ["HPL.out", "hpl/cert-1-hpl.rslts"] {
        assert_eq!(std::fs::read(folder.join(name)).unwrap(), printed, "{name} is what the engine wrote");
    }
    assert_eq!(read(folder, "hpl/cert-1-hpl.input"), read(folder, "HPL.dat"));
    assert_eq!(read(folder, "cert-1-configuration.txt").lines().count(), 17);
    assert!(read(folder, "cert-1-configuration.txt").starts_with("Cluster name: test\nModel: Model 1\n"));
    let stamps = read(folder, "hpl/cert-1-hpl.tstamps");
    assert!(stamps.lines().count() == 2 && stamps.lines().all(|line| line.contains(" UTC 2")), "{stamps}");
    let checked = check(folder);
    assert_eq!(checked.status.code(), Some(0), "{}", out(&checked));
    let verified = verify(folder);
    assert_eq!(verified.status.code(), Some(0), "{}", out(&verified));
    assert!(out(&verified).contains("pack for scc, all checks passed"), "{}", out(&verified));
    // As anybody verifies it, without this program.
    let sums =
        std::process::Command::new("sha256sum").args(["--check", "--quiet", "SHA256SUMS"]).current_dir(folder).output();
    assert!(sums.unwrap().status.success());
}

#[test]
fn the_archive_holds_the_folder() {
    let folder = intact();
    let mut archive = folder.as_os_str().to_owned();
    archive.push(".tar.zst");
    let bytes = zstd::decode_all(&std::fs::read(archive).unwrap()[..]).unwrap();
    let home = tempfile::tempdir().unwrap();
    tar::Archive::new(&bytes[..]).unpack(home.path()).unwrap();
    let unpacked = verify(&home.path().join("packed"));
    assert_eq!(unpacked.status.code(), Some(0), "{}", out(&unpacked));
}

/// The archive was in the folder then, and no part of what its sums list.
#[test]
fn a_slash_behind_the_folder_leaves_the_archive_beside_it() {
    let home = tempfile::tempdir().unwrap();
    let packed = pack("top500", &home.path().join("packed/"), &[]);
    assert_eq!(packed.status.code(), Some(0), "{}", err(&packed));
    assert!(home.path().join("packed.tar.zst").is_file());
    let verified = verify(&home.path().join("packed"));
    assert_eq!(verified.status.code(), Some(0), "{}", out(&verified));
}

#[test]
fn an_archive_that_is_there_is_not_replaced() {
    let home = tempfile::tempdir().unwrap();
    let (folder, archive) = (home.path().join("packed"), home.path().join("packed.tar.zst"));
    std::fs::write(&archive, "of last year").unwrap();
    let refused = pack("scc", &folder, &[]);
    assert_eq!(refused.status.code(), Some(2), "{}", err(&refused));
    assert!(err(&refused).contains("packed.tar.zst exists; choose another folder with --out"), "{}", err(&refused));
    assert!(!folder.exists() && read(home.path(), "packed.tar.zst") == "of last year");
    let without = pack("scc", &folder, &["--no-archive"]);
    assert_eq!(without.status.code(), Some(0), "{}", err(&without));
}

#[test]
fn the_script_of_a_pack_repeats_its_run() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("it's here");
    copy(intact(), &folder);
    let output = std::process::Command::new(folder.join("run.sh")).current_dir("/").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let n = space::out::parse(&read(&folder, "HPL.out"))[0].params.n;
    assert_eq!(space::out::parse(&out(&output))[0].params.n, n);
    let certified = std::process::Command::new("sh").arg(folder.join("hpl/cert-1-hpl.run")).current_dir("/").output();
    let certified = certified.unwrap();
    assert_eq!(certified.status.code(), Some(0), "{}", err(&certified));
    assert_eq!(space::out::parse(&out(&certified))[0].params.n, n);
    assert_eq!(verify(&folder).status.code(), Some(0), "{}", out(&verify(&folder)));
}

#[test]
fn a_list_gets_its_sheet_and_what_is_missing_is_named() {
    let home = tempfile::tempdir().unwrap();
    let (bare, full) = (home.path().join("bare"), home.path().join("full"));
    assert_eq!(pack("top500", &bare, &["--no-archive"]).status.code(), Some(0));
    assert!(!home.path().join("bare.tar.zst").exists());
    let checked = check(&bare);
    assert_eq!(checked.status.code(), Some(6));
    for words in [
        "missing: Site (site.organisation): in site.toml, [site] organisation = \"…\"",
        "missing: Installation year (system.year)",
        "not given, and not needed: N1/2 (run.n_half)",
        "incomplete for top500",
    ] {
        assert!(out(&checked).contains(words), "'{words}' is not in: {}", out(&checked));
    }
    let verified = verify(&bare);
    assert_eq!(verified.status.code(), Some(0), "what is missing is not wrong: {}", out(&verified));
    let site = site(home.path(), SITE);
    let packed = pack("top500", &full, &["--site", site.to_str().unwrap()]);
    assert_eq!(packed.status.code(), Some(0), "{}", err(&packed));
    assert_eq!(check(&full).status.code(), Some(0), "{}", out(&check(&full)));
    let sheet = read(&full, "top500.txt");
    // 64 cores of 16 operations at 2.5 GHz.
    for words in [
        "Rpeak in GFLOP/s: 2560  [computed]",
        "1 node × 1 socket × 64 cores × 16",
        "Site: Institute & Sons  [site.toml]",
    ] {
        assert!(sheet.contains(words), "'{words}' is not in: {sheet}");
    }
    let rmax = space::out::parse(&read(&full, "HPL.out"))[0].rate_gflops;
    assert!(sheet.contains(&format!("Efficiency, Rmax / Rpeak: {:.2} %", 100.0 * rmax / 2560.0)), "{sheet}");
    assert!(
        read(&full, "libraries.csv").lines().any(|line| line.starts_with("program,")),
        "{}",
        read(&full, "libraries.csv")
    );
    assert!(
        read(&full, "tunables.csv").lines().any(|line| line.starts_with("NB,128,")),
        "{}",
        read(&full, "tunables.csv")
    );
    assert!(read(&full, "nodes.csv").lines().count() == 2 && read(&full, "repeats.csv").lines().count() >= 2);
    assert!(read(&full, "host.toml").contains("[processor]"));
}

#[test]
fn an_acceptance_says_yes_or_no() {
    let home = tempfile::tempdir().unwrap();
    let rmax = space::out::parse(&read(intact(), "HPL.out"))[0].rate_gflops;
    for (target, code, word) in [(rmax, 0, "accepted: 100.0 %"), (2.0 * rmax, 6, "not accepted: 50.0 %")] {
        let folder = home.path().join(code.to_string());
        let output = pack("acceptance", &folder, &["--target", &target.to_string()]);
        assert_eq!(output.status.code(), Some(code), "{}", err(&output));
        assert!(out(&output).contains(word), "{}", out(&output));
        assert!(read(&folder, "acceptance.txt").contains(word));
        assert_eq!(verify(&folder).status.code(), Some(0), "{}", out(&verify(&folder)));
    }
    let open = home.path().join("open");
    assert_eq!(pack("acceptance", &open, &[]).status.code(), Some(0));
    for key in ["target_gflops", "of_target", "verdict"] {
        let told = format!("(acceptance.{key}): pack with --target GFLOPS");
        assert!(out(&check(&open)).contains(&told), "'{told}' is not in: {}", out(&check(&open)));
    }
}

#[test]
fn a_site_file_is_written_filled_in_and_never_replaced() {
    let home = tempfile::tempdir().unwrap();
    let init = || hpl_tune().args(["pack", "--init"]).current_dir(home.path()).output().unwrap();
    let first = init();
    assert_eq!(first.status.code(), Some(0), "{}", err(&first));
    let text = read(home.path(), "site.toml");
    assert!(text.contains("# organisation = \"\"") && text.contains("\nos = \""), "{text}");
    let second = init();
    assert_eq!(second.status.code(), Some(2));
    assert!(err(&second).contains("site.toml exists"), "{}", err(&second));
    // What it found is taken as it stands.
    let folder = home.path().join("packed");
    let packed = pack("top500", &folder, &["--site", home.path().join("site.toml").to_str().unwrap()]);
    assert_eq!(packed.status.code(), Some(0), "{}", err(&packed));
    assert!(read(&folder, "top500.txt").contains("[site.toml]"));
}

#[test]
fn bad_input_is_named_with_its_line() {
    let home = tempfile::tempdir().unwrap();
    let refused = |more: &[&str], words: &[&str]| {
        let output = pack("green500", &home.path().join("never"), more);
        let text = err(&output);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(words.iter().all(|word| text.contains(word)), "{words:?}: {text}");
        assert!(!home.path().join("never").exists());
    };
    let site = site(home.path(), "[site]\ncity = \"A\"\nmayor = \"B\"\n");
    refused(&["--site", site.to_str().unwrap()], &["site.toml: line 3: [site] mayor is unknown", "--init"]);
    refused(&["--site", "/no/such/site.toml"], &["/no/such/site.toml", "--init"]);
    let log = home.path().join("power.csv");
    std::fs::write(&log, "time,watts\n1,2\n2,x\n").unwrap();
    let log = log.to_str().unwrap();
    refused(&["--power-log", log], &["power.csv: line 3: watts", "'x'"]);
    refused(&["--power-log", log, "--power-offset", "soon"], &["soon", "not a number of seconds"]);
    refused(&["--power-offset", "3"], &["--power-log"]);
    refused(&["--target", "0"], &["--target", "not a rate"]);
    refused(&["--target", "1000"], &["--target is for --for acceptance", "--for green500"]);
    let taken = pack("scc", home.path(), &[]);
    assert_eq!(taken.status.code(), Some(2));
    assert!(err(&taken).contains("exists; choose another folder with --out"), "{}", err(&taken));
    for args in [
        ["pack", "/no/such/run", "--for", "scc"].as_slice(),
        &["verify", "/no/such/run"],
        &["pack", "--check", "/no/such/run"],
    ] {
        let output = tune(args);
        assert_eq!(output.status.code(), Some(2), "{args:?} {}", err(&output));
        assert!(err(&output).contains("/no/such/run"), "{}", err(&output));
    }
    let output = check(home.path());
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("no pack") && err(&output).contains("hpl-tune pack"), "{}", err(&output));
}

#[test]
fn simulated_sessions_and_ones_without_a_final_run_are_no_scores() {
    let home = tempfile::tempdir().unwrap();
    let cluster = concat!(env!("CARGO_MANIFEST_DIR"), "/../datasets/simulated/four-nodes.toml");
    let simulated = home.path().join("simulated");
    let played = tune(["--budget", "10m", "--simulate", cluster, "--quiet", "--out", simulated.to_str().unwrap()]);
    assert_eq!(played.status.code(), Some(0), "{}", err(&played));
    let refused = |folder: &Path, words: &[&str]| {
        let output = tune([
            "pack",
            folder.to_str().unwrap(),
            "--for",
            "top500",
            "--out",
            home.path().join("no").to_str().unwrap(),
        ]);
        assert_eq!(output.status.code(), Some(2), "{}", err(&output));
        assert!(words.iter().all(|word| err(&output).contains(word)), "{words:?}: {}", err(&output));
        assert!(!home.path().join("no").exists());
    };
    refused(&simulated, &["the session was simulated", "\"hpl, simulated\"", "nothing of it was measured"]);
    let verified = verify(&simulated);
    assert_eq!(verified.status.code(), Some(0), "as a simulated session it holds: {}", out(&verified));
    // The session of the other tests up to its final run, as if it had been killed.
    let killed = home.path().join("killed");
    std::fs::create_dir(&killed).unwrap();
    std::fs::copy(run().join("session.toml"), killed.join("session.toml")).unwrap();
    let journal = read(run(), "journal.jsonl");
    let before: Vec<&str> = journal.lines().take_while(|line| !line.contains("\"strategy\":\"final\"")).collect();
    std::fs::write(killed.join("journal.jsonl"), before.join("\n") + "\n").unwrap();
    refused(&killed, &["no passed final run", "--resume"]);
    // Only windows of runs: an estimate, whatever is written of it.
    let windows: Vec<&str> = before.iter().copied().filter(|line| line.contains("\"extent\":\"windows\"")).collect();
    if !windows.is_empty() {
        std::fs::write(killed.join("journal.jsonl"), windows.join("\n") + "\n").unwrap();
        refused(&killed, &["only windows of runs passed", "estimate is not a score"]);
    }
}

/// Copies a folder with all below.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}
