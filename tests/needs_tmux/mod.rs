//! `hpl-tune watch` in a real terminal: keys, sizes, signals, and the loss of the terminal.

mod terminal;

use std::fs;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, SysconfVar, sysconf};

use self::terminal::Terminal;
use crate::hostile::until;
use crate::program::{hpl_tune, machine_toml};
use crate::watch::simulated;

/// Share of a core that watching may take.
const MOST: f64 = 0.01;

/// An end of the watcher: its name, its exit code, and how it comes.
type End<'a> = (&'a str, i32, &'a dyn Fn(Pid));

/// What watches the simulated session.
fn watching(terminal: &Terminal) -> Pid {
    terminal.run(&format!("{} watch {}", env!("CARGO_BIN_EXE_hpl-tune"), simulated().display()));
    terminal.shows("verified by the final run");
    terminal.shows("q: quit");
    assert!(terminal.is_alternate());
    terminal.child()
}

#[test]
#[ignore = "needs tmux: tests/run --install"]
fn every_size_shows_the_result_and_the_terminal_is_drawn_anew() {
    let terminal = Terminal::new(80, 24);
    watching(&terminal);
    let usual = terminal.screen();
    for word in ["simulated, nothing is measured", "Best/default", "Best so far", "GFLOP/s", "Trials", "Nodes"] {
        assert!(usual.contains(word), "'{word}' is not in:\n{usual}");
    }
    assert!(usual.chars().any(|sign| ('⠁'..='⣿').contains(&sign)), "a curve in Braille:\n{usual}");
    terminal.resize(200, 50);
    until("two stacks", || {
        terminal.screen().lines().any(|line| line.contains("Best so far") && line.contains("Best   "))
    });
    terminal.resize(40, 10);
    until("a small screen", || {
        let screen = terminal.screen();
        screen.contains("Result ") && screen.contains("q: quit") && !screen.contains("Best so far")
    });
    for (width, height) in [(10, 3), (2, 1), (1, 1), (80, 24)] {
        terminal.resize(width, height);
    }
    until("the usual screen", || terminal.screen() == usual);
    terminal.keys("q");
    terminal.ended_with(0);
}

#[test]
#[ignore = "needs tmux: tests/run --install"]
fn without_colour_and_in_ascii() {
    let terminal = Terminal::new(100, 30);
    let watch = format!("{} watch {}", env!("CARGO_BIN_EXE_hpl-tune"), simulated().display());
    for (command, colour, ascii) in [
        (watch.clone(), true, false),
        (format!("NO_COLOR=1 {watch}"), false, false),
        (format!("{watch} --color never"), false, false),
        (format!("NO_COLOR=1 {watch} --color always --ascii"), true, true),
        (format!("LC_ALL=C {watch}"), true, true),
    ] {
        terminal.run(&command);
        terminal.shows("q: quit");
        let screen = terminal.screen_with_colours();
        // Of the colours 30 to 37: bold and dim text are none.
        let coloured = (30..38)
            .any(|number| screen.contains(&format!("\x1b[{number}m")) || screen.contains(&format!(";{number}m")));
        assert_eq!((coloured, screen.is_ascii()), (colour, ascii), "{command}:\n{screen}");
        terminal.keys("Escape");
        terminal.ended_with(0);
    }
}

#[test]
#[ignore = "needs tmux: tests/run --install"]
fn the_terminal_is_as_before_after_any_end() {
    let terminal = Terminal::new(80, 24);
    let before = terminal.settings();
    assert!(before.contains(" icanon") && before.contains(" echo "), "{before}");
    let ends: [End; 7] = [
        ("q", 0, &|_| terminal.keys("q")),
        ("Esc", 0, &|_| terminal.keys("Escape")),
        ("Ctrl-C", 130, &|_| terminal.keys("C-c")),
        ("SIGTERM", 130, &|pid| kill(pid, Signal::SIGTERM).unwrap()),
        ("SIGHUP", 130, &|pid| kill(pid, Signal::SIGHUP).unwrap()),
        ("SIGINT", 130, &|pid| kill(pid, Signal::SIGINT).unwrap()),
        ("SIGQUIT", 130, &|pid| kill(pid, Signal::SIGQUIT).unwrap()),
    ];
    for (name, code, end) in ends {
        let pid = watching(&terminal);
        assert_ne!(terminal.settings(), before, "{name}: keys are read one by one");
        // No end: arrows and other keys.
        terminal.keys("Up");
        terminal.keys("x");
        end(pid);
        terminal.ended_with(code);
        assert!(!terminal.is_alternate() && terminal.has_cursor(), "{name}:\n{}", terminal.screen());
        assert_eq!(terminal.settings(), before, "{name}");
    }
}

#[test]
#[ignore = "needs tmux: tests/run --install"]
fn a_stopped_watcher_goes_on_where_it_was() {
    let terminal = Terminal::new(80, 24);
    let before = terminal.settings();
    watching(&terminal);
    terminal.keys("C-z");
    until("the shell again", || !terminal.is_alternate());
    assert_eq!(terminal.settings(), before);
    terminal.run("fg");
    until("the screen again", || terminal.is_alternate() && terminal.screen().contains("q: quit"));
    terminal.keys("q");
    terminal.ended_with(0);
}

/// Also where no SIGHUP tells it: in a session of its own it is no child of the terminal.
#[test]
#[ignore = "needs tmux: tests/run --install"]
fn it_ends_when_its_terminal_is_gone() {
    for before in ["", "setsid ", "nohup_ () { trap '' HUP; \"$@\"; }; nohup_ "] {
        let terminal = Terminal::new(80, 24);
        terminal.run(&format!("{before}{} watch {}", env!("CARGO_BIN_EXE_hpl-tune"), simulated().display()));
        terminal.shows("q: quit");
        let pid = terminal.watcher();
        drop(terminal);
        let begun = Instant::now();
        while kill(pid, None).is_ok() {
            assert!(begun.elapsed() < Duration::from_secs(10), "'{before}': {pid} goes on without a terminal");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Seconds of processor time of a process.
fn processor_s(pid: Pid) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks: f64 = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
    ticks / sysconf(SysconfVar::CLK_TCK).unwrap().unwrap() as f64
}

/// A session of this machine with many short trials.
fn session(folder: &std::path::Path) -> Child {
    let mut command = hpl_tune();
    command.args(["--budget", "60s", "--blas", "builtin", "--n", "1500", "--machine"]).arg(machine_toml());
    command.arg("--out").arg(folder).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

#[test]
#[ignore = "needs tmux: tests/run --install"]
fn it_follows_a_session_at_work_and_takes_less_than_a_hundredth_of_a_core() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("real");
    let mut working = session(&folder);
    until("a session", || folder.join("session.toml").exists());
    let terminal = Terminal::new(100, 30);
    terminal.run(&format!("{} watch {}", env!("CARGO_BIN_EXE_hpl-tune"), folder.display()));
    terminal.shows("searching · at work · real");
    terminal.shows("Running");
    let trials = || {
        let screen = terminal.screen();
        let line = screen.lines().find_map(|line| line.strip_prefix("Trials        ")).unwrap_or_default().to_owned();
        line.split(',').next().unwrap().parse::<u64>().unwrap_or(0)
    };
    let pid = terminal.watcher();
    let (first, begun, before_s) = (trials(), Instant::now(), processor_s(pid));
    until("more trials", || begun.elapsed() > Duration::from_secs(10) && trials() > first + 3);
    let share = (processor_s(pid) - before_s) / begun.elapsed().as_secs_f64();
    println!("watching a session at work takes {:.2} % of a core", 100.0 * share);
    assert!(share < MOST, "{share}");
    // The session is stopped: that is told, and how it goes on.
    kill(Pid::from_raw(working.id().cast_signed()), Signal::SIGINT).unwrap();
    working.wait().unwrap();
    terminal.shows("stopped · without a verified run");
    terminal.shows("continue with: hpl-tune --resume");
    let (begun, before_s) = (Instant::now(), processor_s(pid));
    std::thread::sleep(Duration::from_secs(5));
    let share = (processor_s(pid) - before_s) / begun.elapsed().as_secs_f64();
    println!("watching a session that is over takes {:.2} % of a core", 100.0 * share);
    assert!(share < MOST, "{share}");
    terminal.keys("q");
    terminal.ended_with(0);
}

/// A session that is killed leaves its trial in now.json: nothing runs any more all the same.
#[test]
#[ignore = "needs tmux: tests/run --install"]
fn a_session_that_was_killed_is_not_at_work_for_long() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("killed");
    let mut working = session(&folder);
    until("a trial", || folder.join("now.json").exists());
    let terminal = Terminal::new(100, 30);
    terminal.run(&format!("{} watch {}", env!("CARGO_BIN_EXE_hpl-tune"), folder.display()));
    terminal.shows("at work");
    working.kill().unwrap();
    working.wait().unwrap();
    terminal.shows("stopped · without a verified run");
    crate::kill::nothing_is_left(&folder.join("trials"));
}
