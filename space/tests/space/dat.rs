//! HPL.dat: round trip, Netlib's reading of what we write, and every kind of damage.

use proptest::collection::vec;
use proptest::prelude::*;
use space::dat::{DatError, HplDat, MAX_RUNS};
use space::{Bcast, Form, Looking, Pmap, Swap};

use crate::strategies::{coded, params, size, swap};

/// The sample that comes with Netlib's HPL 2.3.
const NETLIB: &str = "\
HPLinpack benchmark input file
Innovative Computing Laboratory, University of Tennessee
HPL.out      output file name (if any)
6            device out (6=stdout,7=stderr,file)
4            # of problems sizes (N)
29 30 34 35  Ns
4            # of NBs
1 2 3 4      NBs
0            PMAP process mapping (0=Row-,1=Column-major)
3            # of process grids (P x Q)
2 1 4        Ps
2 4 1        Qs
16.0         threshold
3            # of panel fact
0 1 2        PFACTs (0=left, 1=Crout, 2=Right)
2            # of recursive stopping criterium
2 4          NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
3            # of recursive panel fact.
0 1 2        RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
0            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
0            DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
";

/// The sample with one line replaced.
fn with_line(number: usize, line: &str) -> String {
    let lines = NETLIB.lines().enumerate().map(|(i, old)| if i + 1 == number { line } else { old });
    lines.collect::<Vec<_>>().join("\n")
}

fn message(text: &str) -> String {
    HplDat::parse(text).expect_err("malformed").to_string()
}

#[test]
fn netlibs_sample_is_read() {
    let dat = HplDat::parse(NETLIB).unwrap();
    assert_eq!(dat.ns, [29, 30, 34, 35]);
    assert_eq!(dat.grids, [(2, 2), (1, 4), (4, 1)]);
    assert_eq!(dat.pfacts, [Looking::Left, Looking::Crout, Looking::Right]);
    assert_eq!((dat.device, dat.threshold, dat.pmap), (6, 16.0, Pmap::Row));
    assert_eq!((dat.swap, dat.equil, dat.align), (Swap::Mix { threshold: 64 }, true, 8));
    // Netlib's documentation: this file makes 864 tests.
    assert_eq!(dat.runs().len(), 864);
}

#[test]
fn what_is_written_looks_like_netlibs_sample() {
    assert_eq!(HplDat::parse(NETLIB).unwrap().write().unwrap(), NETLIB);
}

#[test]
fn runs_come_in_netlibs_order() {
    let runs = HplDat::parse(NETLIB).unwrap().runs();
    let first = runs[0];
    assert_eq!((first.p, first.q, first.n, first.nb), (2, 2, 29, 1));
    // NDIV has one value, so NBMIN turns first, then PFACT, RFACT, …, the grid last.
    assert_eq!((runs[1].nbmin, runs[1].pfact), (4, Looking::Left));
    assert_eq!((runs[2].nbmin, runs[2].pfact, runs[2].rfact), (2, Looking::Crout, Looking::Left));
    assert_eq!((runs[6].pfact, runs[6].rfact), (Looking::Left, Looking::Crout));
    assert_eq!((runs[18].nb, runs[18].n), (2, 29));
    assert_eq!((runs[72].nb, runs[72].n), (1, 30));
    assert_eq!((runs[288].p, runs[288].q, runs[288].n), (1, 4, 29));
}

#[test]
fn other_line_ends_tabs_and_trailing_lines_are_accepted() {
    let plain = HplDat::parse(NETLIB).unwrap();
    let tabs = NETLIB.replace("29 30 34 35  Ns", "\t29\t30 34\t35");
    let hpcc = format!("{NETLIB}##### This line (no. 32) is ignored (it serves as a separator). ######\n0  PTRANS\n");
    for text in [NETLIB.replace('\n', "\r\n"), tabs, hpcc, NETLIB.trim_end().to_owned() + "\r"] {
        assert_eq!(HplDat::parse(&text).as_ref(), Ok(&plain));
    }
}

#[test]
fn every_malformed_line_is_named() {
    let cases = [
        (4, "six", "HPL.dat line 4: output device must be a whole number from -2147483648 to 2147483647, found six"),
        (5, "0", "HPL.dat line 5: number of N values must be at least 1, found 0"),
        (5, "21", "HPL.dat line 5: number of N values must be at most 20, found 21"),
        (5, "", "HPL.dat line 5: number of N values must be a whole number from 1 to 2147483647, found nothing"),
        (6, "29 30 34 Ns", "HPL.dat line 6: 4 values of N expected, found 3 before Ns"),
        (6, "29 30", "HPL.dat line 6: 4 values of N expected, found 2 before the end of the line"),
        (6, "29 30 34 -1", "HPL.dat line 6: N must be at least 0, found -1"),
        (6, "29 30 34 1e4", "HPL.dat line 6: N must be a whole number from 0 to 2147483647, found 1e4"),
        (6, "29 30 34 3000000000", "HPL.dat line 6: N must be at most 2147483647, found 3000000000"),
        (8, "0 2 3 4", "HPL.dat line 8: NB must be at least 1, found 0"),
        (9, "2", "HPL.dat line 9: PMAP must be 0 (row) or 1 (column), found 2"),
        (11, "2 0 4", "HPL.dat line 11: P must be at least 1, found 0"),
        (12, "2 4", "HPL.dat line 12: 3 values of Q expected, found 2 before the end of the line"),
        (13, "nan", "HPL.dat line 13: threshold must be a number, found nan"),
        (15, "0 1 7", "HPL.dat line 15: PFACT must be 0 (left) or 1 (crout) or 2 (right), found 7"),
        (15, "0 -1 2", "HPL.dat line 15: PFACT must be 0 (left) or 1 (crout) or 2 (right), found -1"),
        (17, "0 4", "HPL.dat line 17: NBMIN must be at least 1, found 0"),
        (19, "1", "HPL.dat line 19: NDIV must be at least 2, found 1"),
        (21, "0 1 3", "HPL.dat line 21: RFACT must be 0 (left) or 1 (crout) or 2 (right), found 3"),
        (
            23,
            "9",
            "HPL.dat line 23: BCAST must be 0 (1ring) or 1 (1ringM) or 2 (2ring) or 3 (2ringM) or 4 (long) or 5 \
             (longM), found 9",
        ),
        (25, "-1", "HPL.dat line 25: DEPTH must be at least 0, found -1"),
        (26, "3", "HPL.dat line 26: SWAP must be 0 (bin-exch), 1 (long) or 2 (mix), found 3"),
        (27, "-3", "HPL.dat line 27: SWAP threshold must be at least 0, found -3"),
        (28, "2", "HPL.dat line 28: L1 must be 0 (transposed) or 1 (not-transposed), found 2"),
        (29, "2", "HPL.dat line 29: U must be 0 (transposed) or 1 (not-transposed), found 2"),
        (30, "2", "HPL.dat line 30: EQUIL must be 0 (no) or 1 (yes), found 2"),
        (30, "yes", "HPL.dat line 30: EQUIL must be 0 (no) or 1 (yes), found yes"),
        (31, "0", "HPL.dat line 31: ALIGN must be at least 1, found 0"),
    ];
    for (number, line, expected) in cases {
        assert_eq!(message(&with_line(number, line)), expected);
    }
}

#[test]
fn a_truncated_file_says_where_it_ends() {
    let expected = "HPL.dat line 1: comment expected, but the file ends after line 0; HPL.dat has 31 lines";
    assert_eq!(message(""), expected);
    for lines in 0..31 {
        let text: String = NETLIB.lines().take(lines).map(|line| format!("{line}\n")).collect();
        let error = HplDat::parse(&text).unwrap_err();
        assert!(matches!(error, DatError::Truncated { line, last, .. } if line == lines + 1 && last == lines));
    }
}

#[test]
fn strange_values_are_quoted_short_and_printable() {
    let found = message(&with_line(13, &format!("\u{1b}[31m{}", "x".repeat(200))));
    assert!(found.len() < 150 && !found.contains('\u{1b}'), "{found}");
    assert!(message(&with_line(8, "１ 2 3 4")).contains("line 8: NB must be a whole number"));
}

#[test]
fn lines_that_netlib_cuts_are_refused() {
    let line = |length: usize| with_line(6, &format!("29 30 34 35 {}", "x".repeat(length - 12)));
    let whole = HplDat::parse(NETLIB).unwrap();
    assert_eq!(HplDat::parse(&line(252)).as_ref(), Ok(&whole));
    // A carriage return takes the place of a character.
    assert_eq!(HplDat::parse(&line(251).replace('\n', "\r\n")).as_ref(), Ok(&whole));
    let error = HplDat::parse(&line(252).replace('\n', "\r\n")).unwrap_err().to_string();
    assert!(error.contains("line 6: N has a line of 253 bytes"), "{error}");
    let expected = "HPL.dat line 6: N has a line of 253 bytes, HPL cuts lines after 252 and takes the rest for the next \
                    line; shorten its comment";
    assert_eq!(message(&line(253)), expected);
    // Text after the 31 lines is nobody's.
    assert_eq!(HplDat::parse(&format!("{NETLIB}{}", "x".repeat(9000))).as_ref(), Ok(&whole));
    // Bytes that are no UTF-8 count once.
    assert_eq!(HplDat::parse(&with_line(6, &format!("29 30 34 35 {}", "\u{fffd}".repeat(240)))).as_ref(), Ok(&whole));
}

/// As the reader in Debian's hpcc does: of `8   10 32` it says 'Value of NB less than 1'.
#[test]
fn blanks_that_mislead_netlib_are_refused() {
    let expected = "HPL.dat line 6: HPL would take 0 for the N 34, because blanks repeat; write one blank between values \
                    and none in front";
    assert_eq!(message(&with_line(6, "29   30 34 35")), expected);
    assert!(message(&with_line(6, "  29 30 34 35")).contains("HPL would take 9 for the N 30"));
    // One blank more is made up for by the one that separates.
    for line in [" 29 30 34 35", "29  30 34 35", "29 30 34   35", "29 30 34 35     Ns"] {
        assert_eq!(HplDat::parse(&with_line(6, line)).unwrap().ns, [29, 30, 34, 35]);
    }
}

#[test]
fn the_device_may_be_called_file() {
    let dat = HplDat::parse(&with_line(4, "file  device out (6=stdout,7=stderr,file)")).unwrap();
    assert!(dat.device != 6 && dat.device != 7);
    assert_eq!(HplDat::parse(&dat.write().unwrap()).unwrap(), dat);
}

#[test]
fn grids_beyond_all_ranks_are_refused() {
    let text = with_line(11, "2 1 65536").replace("2 4 1        Qs", "2 4 32768 Qs");
    assert_eq!(message(&text), "HPL.dat line 12: P×Q must be at most 2147483647 ranks, found 65536×32768");
    HplDat::parse(&text.replace("32768", "32767")).unwrap();
}

#[test]
fn more_runs_than_anyone_waits_for_are_refused() {
    let mut dat = HplDat::parse(NETLIB).unwrap();
    dat.ns = vec![1000; 20];
    dat.nbs = vec![64; 20];
    dat.depths = vec![0; 20];
    assert_eq!(dat.write(), Err(DatError::TooManyRuns { runs: 432_000.0 }));
}

#[test]
fn what_could_not_be_read_back_is_not_written() {
    let dat = HplDat::parse(NETLIB).unwrap();
    let damaged = [
        HplDat { output_file: "HPL out".to_owned(), ..dat.clone() },
        HplDat { output_file: String::new(), ..dat.clone() },
        HplDat { output_file: "x".repeat(300), ..dat.clone() },
        HplDat { output_file: "HPL\u{b}out".to_owned(), ..dat.clone() },
        HplDat { ns: vec![], ..dat.clone() },
        HplDat { ns: vec![usize::MAX], ..dat.clone() },
        HplDat { nbs: vec![64; 21], ..dat.clone() },
        HplDat { threshold: f64::NAN, ..dat.clone() },
        HplDat { align: 0, ..dat.clone() },
    ];
    for dat in damaged {
        assert!(dat.write().is_err(), "{dat:?}");
    }
    let long = HplDat { comments: ["é".repeat(300), "two\nlines".to_owned()], ..dat };
    let text = long.write().unwrap();
    assert!(text.lines().next().unwrap().len() <= 250);
    assert_eq!(text.lines().count(), 31);
}

fn dat() -> impl Strategy<Value = HplDat> {
    // Short lists, so that the number of runs stays below MAX_RUNS; one long one.
    let comment = "[ -~é]{0,80}";
    let head = ([comment, comment], "[!-~]{1,40}", -9..9i64, vec(size(0), 1..20), vec(size(1), 1..3), coded());
    let grids = (vec((1..9usize, 1..9usize), 1..3), -1e3..1e3f64);
    let panel = (vec(coded(), 1..3), vec(size(1), 1..3), vec(2..9usize, 1..3), vec(coded(), 1..3));
    let tail = (vec(coded(), 1..3), vec(0..9usize, 1..3), swap(), coded(), coded(), any::<bool>(), 1..99usize);
    (head, grids, panel, tail).prop_map(|(head, (grids, threshold), panel, tail)| {
        let (comments, output_file, device, ns, nbs, pmap) = head;
        let (pfacts, nbmins, ndivs, rfacts) = panel;
        let (bcasts, depths, mut swap, l1, u, equil, align) = tail;
        // Only mix has a threshold to give back.
        if let Swap::Mix { threshold } = &mut swap {
            *threshold += 1;
        }
        HplDat {
            comments,
            output_file,
            device,
            ns,
            nbs,
            pmap,
            grids,
            threshold,
            pfacts,
            nbmins,
            ndivs,
            rfacts,
            bcasts,
            depths,
            swap,
            l1,
            u,
            equil,
            align,
        }
    })
}

/// Netlib's way through a line ([HPL] `HPL_pdinfo.c`): a word, then on by its length plus one.
fn netlib_ints(line: &str, count: usize) -> Vec<i64> {
    let (mut at, mut word) = (0, "");
    let read = |_| {
        word = line.get(at..).unwrap_or("").split_ascii_whitespace().next().unwrap_or(word);
        at += word.len() + 1;
        word.parse().expect("atoi finds a number")
    };
    (0..count).map(read).collect()
}

proptest! {
    #[test]
    fn round_trip(dat in dat()) {
        let text = dat.write().unwrap();
        prop_assert_eq!(HplDat::parse(&text).unwrap(), dat);
    }

    #[test]
    fn netlib_reads_what_is_written(dat in dat()) {
        let text = dat.write().unwrap();
        let lines: Vec<_> = text.lines().collect();
        prop_assert_eq!(lines.len(), 31);
        prop_assert!(lines.iter().all(|line| line.len() < 253));
        let ints = |values: &[usize]| values.iter().map(|&value| value as i64).collect::<Vec<_>>();
        for (number, values) in [(6, &dat.ns), (8, &dat.nbs), (17, &dat.nbmins), (19, &dat.ndivs), (25, &dat.depths)] {
            prop_assert_eq!(netlib_ints(lines[number - 2], 1), [values.len() as i64]);
            prop_assert_eq!(netlib_ints(lines[number - 1], values.len()), ints(values));
        }
        let ps: Vec<_> = dat.grids.iter().map(|grid| grid.0).collect();
        prop_assert_eq!(netlib_ints(lines[10], ps.len()), ints(&ps));
    }

    #[test]
    fn a_single_run_is_itself(params in params()) {
        let dat = HplDat::single(&params);
        prop_assert_eq!(dat.runs(), vec![params]);
        let back = HplDat::parse(&dat.write().unwrap()).unwrap().runs();
        prop_assert_eq!(back, vec![params]);
    }

    #[test]
    fn runs_are_the_product_of_the_lists(dat in dat()) {
        let lists = [dat.grids.len(), dat.ns.len(), dat.nbs.len(), dat.depths.len(), dat.bcasts.len(),
                     dat.rfacts.len(), dat.pfacts.len(), dat.nbmins.len(), dat.ndivs.len()];
        prop_assert_eq!(dat.runs().len(), lists.iter().product::<usize>());
    }

    #[test]
    fn no_text_makes_it_panic(text in "\\PC*") {
        let _ = HplDat::parse(&text);
    }

    /// Damage: bytes of a good file replaced, inserted, removed, the rest cut.
    #[test]
    fn no_damage_makes_it_panic(edits in vec((0..NETLIB.len(), 0..4u8, any::<char>()), 1..8)) {
        let mut text: Vec<char> = NETLIB.chars().collect();
        for (at, what, c) in edits {
            let at = at.min(text.len().saturating_sub(1));
            match what {
                _ if text.is_empty() => text.push(c),
                0 => text[at] = c,
                1 => text.insert(at, c),
                2 => drop(text.remove(at)),
                _ => text.truncate(at),
            }
        }
        if let Ok(dat) = HplDat::parse(&text.into_iter().collect::<String>()) {
            prop_assert!(dat.runs().len() <= MAX_RUNS);
            prop_assert!(dat.bcasts.iter().all(|bcast| (*bcast as usize) < 6));
        }
    }
}

#[test]
fn coded_values_keep_netlibs_numbers() {
    let dat = HplDat::parse(&with_line(23, "5")).unwrap();
    assert_eq!(dat.bcasts, [Bcast::LongM]);
    assert_eq!(HplDat::parse(&with_line(29, "1")).unwrap().u, Form::NotTransposed);
}
