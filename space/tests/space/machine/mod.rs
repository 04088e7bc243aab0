//! `machine.toml`: round trip, and every impossible value named.

mod strategies;

use proptest::prelude::*;
use space::machine::{Machine, MachineError, published};

use self::strategies::machine;

const EXAMPLE: &str = r#"
[host]
name = "desk"
cpu = "two cores"
origin = "made for this test"

[[node]]
name = "desk"
count = 1
cores = 2
memory_bytes = 16_000_000_000

[[rate]]
kernel = "dgemm"
threads = 1
coefficients = [3.6e-11, 0.0, 1e-10, 1e-10, 1e-6]
valid = [[64, 8000], [64, 8000], [16, 512]]
spread = 0.01
fit_error = 0.02
date = "2026-11-20"
origin = "made for this test"

[[layer]]
name = "threads"
ranks = 2
alpha_s = 1e-6
beta_s_per_word = 1e-9
"#;

fn message(text: &str) -> String {
    Machine::parse(text).expect_err("malformed").to_string()
}

#[test]
fn an_example_is_read_with_its_defaults() {
    let machine = Machine::parse(EXAMPLE).unwrap();
    assert_eq!((machine.nodes[0].reserved_bytes, machine.nodes[0].peak_gflops), (0, 0.0));
    assert_eq!((machine.layers[0].shared_by, &machine.accelerator), (1, &None));
    assert_eq!(machine.rates[0].valid[2], [16.0, 512.0]);
}

#[test]
fn impossible_values_are_named() {
    let cases = [
        ("count = 1", "count = 0", "[[node]] 1: count must be from 1 to 100000000, found 0"),
        ("cores = 2", "cores = 0", "[[node]] 1: cores must be from 1 to 100000000, found 0"),
        (
            "memory_bytes = 16_000_000_000",
            "memory_bytes = 16",
            "[[node]] 1: memory_bytes must be between 1 MiB (1048576) and 1 EiB, in bytes, found 16",
        ),
        (
            "cores = 2",
            "cores = 2\nreserved_bytes = 16_000_000_000",
            "[[node]] 1: reserved_bytes must be below memory_bytes = 16000000000, found 16000000000",
        ),
        (
            "cores = 2",
            "cores = 2\npeak_gflops = nan",
            "[[node]] 1: peak_gflops must be a number from 0 to 1e9, found NaN",
        ),
        ("[3.6e-11, 0.0, ", "[", "[[rate]] 1: coefficients must be 5 values for this form, found 3"),
        ("[3.6e-11", "[-3.6e-11", "[[rate]] 1: coefficients must be a number from 0 to 1e1, found -0.000000000036"),
        ("[3.6e-11", "[inf", "[[rate]] 1: coefficients must be a number from 0 to 1e1, found inf"),
        (
            "[3.6e-11, 0.0, 1e-10, 1e-10, 1e-6]",
            "[0.0, 0.0, 0.0, 0.0, 0.0]",
            "[[rate]] 1: coefficients must be greater than 0 in one place at least, found zeros alone",
        ),
        ("[[64, 8000], ", "[", "[[rate]] 1: valid must be 3 values for this form, found 2"),
        ("[16, 512]", "[512, 16]", "[[rate]] 1: valid must be pairs 0 ≤ smallest ≤ largest, found [512, 16]"),
        ("alpha_s = 1e-6", "alpha_s = -1", "[[layer]] 1: alpha_s must be a number from 0 to 1e1, found -1"),
        (
            "[[layer]]",
            "[[link]]\nnodes = [\"desk\", \"disk\"]\ngbytes_per_s = 1\n[[layer]]",
            "[[link]] 1: nodes must be names of two [[node]], found [\"desk\", \"disk\"]",
        ),
        (
            "[[layer]]",
            "[[link]]\nnodes = [\"desk\", \"desk\"]\ngbytes_per_s = -1\n[[layer]]",
            "[[link]] 1: gbytes_per_s must be a number from 0 to 1e6, found -1",
        ),
        (
            "beta_s_per_word = 1e-9",
            "beta_s_per_word = 1e-20",
            "[[layer]] 1: beta_s_per_word must be 0 or at least 1e-18 s per word of 8 bytes, found 0.00000000000000000001",
        ),
        (
            "[3.6e-11",
            "[3.6e-21",
            "[[rate]] 1: coefficients must be 0 or at least 1e-18 s per multiply-add in the first place, found 0.0000000000000000000036",
        ),
        ("cores = 2", "cores = 2\naccelerators = 0", "[[node]] 1: accelerators must be from 1 to 100000000, found 0"),
        ("ranks = 2", "ranks = 2\nshared_by = 0", "[[layer]] 1: shared_by must be from 1 to 100000000, found 0"),
    ];
    for (old, new, expected) in cases {
        assert!(EXAMPLE.contains(old));
        assert_eq!(message(&EXAMPLE.replacen(old, new, 1)), expected);
    }
}

#[test]
fn a_phase_with_a_wrong_form_is_named() {
    let phase = |coefficients: &str, n: &str| {
        let numbers = format!("coefficients = {coefficients}\nn = {n}\nnb = [16, 512]\nruns = 9");
        let rest = "spread = 0.01\nfit_error = 0.01\ndate = \"2026-11-20\"\norigin = \"made up\"";
        message(&format!("{EXAMPLE}\n[[phase]]\nphase = \"trsv\"\nthreads = 1\n{numbers}\n{rest}"))
    };
    assert_eq!(phase("[1e-9]", "[1, 2]"), "[[phase]] 1: coefficients must be 2 values for this form, found 1");
    assert_eq!(phase("[1e-9, 0.0]", "[9, 2]"), "[[phase]] 1: n must be a pair smallest ≤ largest, found [9, 2]");
    assert!(phase("[0.0, 0.0]", "[1, 2]").contains("greater than 0 in one place"));
}

#[test]
fn impossible_costs_of_a_rank_are_named() {
    let text = published::find("dahu").unwrap().text;
    let cases = [
        ("cpus = 2", "cpus = 0", "[timeline]: cpus must be from 1 to 100000000, found 0"),
        ("pivot_s = 13e-6", "pivot_s = -1.0", "[timeline]: pivot_s must be a number from 0 to 1e1, found -1"),
        ("cache_bytes = 16e6", "cache_bytes = 0.0", "[timeline]: cache_bytes must be a number above 0"),
        ("dgemm_mn_s = -4.17e-10", "dgemm_mn_s = nan", "[timeline]: dgemm_mn_s must be a number from -1e-6 to 1e-6"),
        ("panel_s = [1e-10,", "panel_s = [inf,", "[timeline]: panel_s must be a number from 0"),
    ];
    for (good, bad, expected) in cases {
        assert!(text.contains(good), "{good}");
        let found = message(&text.replace(good, bad));
        assert!(found.starts_with(expected), "{bad}: {found}");
    }
}

#[test]
fn unknown_and_missing_keys_are_named() {
    assert!(message(&EXAMPLE.replace("cores =", "corse =")).contains("corse"));
    assert!(message(&EXAMPLE.replace("name = \"threads\"\n", "")).contains("name"));
    assert!(message(&EXAMPLE.replace("dgemm", "sgemm")).contains("sgemm"));
    assert!(message(&EXAMPLE.replace("count = 1", "count = -1")).contains("count"));
    for (old, new, way_out) in [
        ("alpha_s = 1e-6", "alpha_us = 1", "units are part of the key: write alpha_s, in seconds"),
        ("memory_bytes = 16_000_000_000", "memory_gib = 16", "write memory_bytes, in bytes"),
        ("beta_s_per_word = 1e-9", "beta_gb_per_s = 8", "write beta_s_per_word, in seconds per 8-byte word"),
        ("memory_bytes = 16_000_000_000", "link_gb_per_s = 12", "write link_gbytes_per_s, in GB/s (1e9"),
    ] {
        let text = message(&EXAMPLE.replace(old, new));
        assert!(text.contains(way_out) && text.contains("line "), "{text}");
    }
    assert!(!message(&EXAMPLE.replace("cores =", "corse =")).contains("units"));
    assert!(message("").contains("host"));
    assert!(message("[host").contains("line 1"));
    let node = EXAMPLE.find("[[node]]").unwrap()..EXAMPLE.find("[[rate]]").unwrap();
    let without = format!("node = []\n{}{}", &EXAMPLE[..node.start], &EXAMPLE[node.end..]);
    assert_eq!(Machine::parse(&without), Err(MachineError::NoNode));
}

#[test]
fn layers_multiply() {
    let three = format!("{EXAMPLE}\n[[layer]]\nname = \"net\"\nranks = 3\nbeta_s_per_word = 1e-9\n");
    let expected = "[[layer]] 2 (net): ranks must be a multiple of the 2 that [[layer]] 1 (threads) joins, found 3";
    assert_eq!(message(&three), expected);
    assert_eq!(Machine::parse(&three.replace("ranks = 3", "ranks = 6")).unwrap().layers[1].alpha_s, None);
}

#[test]
fn impossible_runs_are_named() {
    let run = "\n[[measured]]\nn = 1000\np = 2\nq = 3\nranks = 6\nrate_gflops = 5.0\n";
    let machine = Machine::parse(&format!("{EXAMPLE}{run}")).unwrap();
    assert_eq!((machine.measured[0].ranks(), machine.measured[0].grid()), (Some(6), Some((2, 3))));
    for (old, new, expected) in [
        ("ranks = 6", "ranks = 5", "[[measured]] 1: ranks must be p·q = 2·3, found 5"),
        (
            "rate_gflops = 5.0",
            "rate_gflops = -5",
            "[[measured]] 1: rate_gflops must be a number above 0, at most 1e12, found -5",
        ),
        ("n = 1000", "n = 0", "[[measured]] 1: n must be from 1 to 1000000000, found 0"),
    ] {
        assert_eq!(message(&format!("{EXAMPLE}{}", run.replace(old, new))), expected);
    }
    let offload = "\n[offload]\nsteady_gflops = 5.0\nhidden_steps = 1.0\n";
    assert_eq!(
        message(&format!("{EXAMPLE}{offload}")),
        "[offload]: hidden_steps must be a share above 0 and below 1, found 1"
    );
}

#[test]
fn impossible_rates_of_a_device_are_named() {
    let device = "\n[device]\ndgemm_gflops = [[512, 40_000], [1024, 47_100.0]]\ntrsm_share = 0.5\n\
                  memory_gbytes_per_s = 3350\nlink_gbytes_per_s = 55\nlaunch_s = 5e-6\n\
                  panel_s = 12e-3\npanel_row_s = 0.15e-6\npanel_nb = 1024\n";
    let read = Machine::parse(&format!("{EXAMPLE}{device}")).unwrap().device.unwrap();
    assert_eq!((read.dgemm_gflops[1], read.dgemm_half, read.panel_nb), ([1024.0, 47_100.0], 0.0, Some(1024)));
    for (old, new, expected) in [
        ("[512, 40_000]", "[2048, 40_000]", "dgemm_gflops must be pairs [k, GFLOP/s], one at least, with k ascending"),
        ("[[512, 40_000], [1024, 47_100.0]]", "[]", "dgemm_gflops must be pairs [k, GFLOP/s], one at least"),
        ("40_000", "0", "of a k from 1 and a rate above 0, at most 1e9, found [512, 0]"),
        ("trsm_share = 0.5", "trsm_share = 1.5", "trsm_share must be a share above 0, at most 1, found 1.5"),
        ("= 55", "= 0", "link_gbytes_per_s must be a number above 0"),
        ("= 3350", "= inf", "memory_gbytes_per_s must be a number above 0"),
        ("launch_s = 5e-6", "launch_s = -5e-6", "launch_s must be a number from 0"),
        ("panel_nb = 1024", "", "panel_s must be stated together with panel_row_s and panel_nb"),
        ("panel_nb = 1024", "panel_nb = 1024\npanel_share = 1", "panel_share must be a share from 0, below 1, found 1"),
        ("panel_nb = 1024", "panel_nb = 1024\nhost_panel_gflops = 0", "host_panel_gflops must be a number above 0"),
    ] {
        let text = message(&format!("{EXAMPLE}{}", device.replace(old, new)));
        assert!(text.starts_with("[device]: ") && text.contains(expected), "{text}");
    }
    assert!(message(&format!("{EXAMPLE}{}", device.replace("trsm_share = 0.5", ""))).contains("trsm_share"));
}

#[test]
fn every_published_description_is_read_and_names_its_source() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../datasets/machines");
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap().trim_end_matches(".toml").to_owned())
        .collect();
    names.sort();
    assert_eq!(names, published::ALL.iter().map(|published| published.name).collect::<Vec<_>>());
    for published in published::ALL {
        let machine = published.machine().unwrap_or_else(|error| panic!("{}: {error}", published.name));
        assert!(published.text.contains("# Source") && !machine.host.origin.is_empty(), "{}", published.name);
        assert_eq!(published::find(published.name), Some(*published));
    }
    assert_eq!(published::find("no-such"), None);
}

proptest! {
    #[test]
    fn round_trip(machine in machine()) {
        let text = machine.to_toml().unwrap();
        prop_assert_eq!(Machine::parse(&text), Ok(machine));
    }

    #[test]
    fn no_damage_makes_it_panic(at in 0..EXAMPLE.len(), len in 0..20usize, new in "\\PC{0,8}") {
        let mut text = EXAMPLE.to_owned();
        text.replace_range(at..(at + len).min(EXAMPLE.len()), &new);
        if let Ok(machine) = Machine::parse(&text) {
            prop_assert_eq!(machine.check(), Ok(()));
        }
    }
}
