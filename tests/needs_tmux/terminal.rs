//! A terminal of tmux with a shell in it.

use std::process::{Command, Output};
use std::time::{Duration, Instant};

use nix::unistd::Pid;

use crate::program::out;

/// Time in which a busy machine shows what is asked for.
const PATIENCE: Duration = Duration::from_secs(60);

/// A terminal, gone when dropped. Its server is its own.
pub(super) struct Terminal {
    folder: tempfile::TempDir,
}

impl Terminal {
    /// A terminal of this size, with a shell that says `done CODE` after each command.
    pub(super) fn new(width: u16, height: u16) -> Self {
        let terminal = Self { folder: tempfile::tempdir().unwrap() };
        let shell = "env PS1='done $? > ' LC_ALL=C.UTF-8 bash --norc --noprofile --noediting";
        let size = [width.to_string(), height.to_string()];
        let started = terminal.tmux(&["new-session", "-d", "-s", "watch", "-x", &size[0], "-y", &size[1], shell]);
        assert!(started.status.success(), "{}", String::from_utf8_lossy(&started.stderr));
        terminal.tmux(&["set-option", "-g", "window-size", "manual"]);
        terminal.shows("done 0 >");
        terminal
    }

    fn tmux(&self, words: &[&str]) -> Output {
        let mut command = Command::new("tmux");
        // Its own socket and no configuration of the user.
        command.arg("-S").arg(self.folder.path().join("socket")).args(["-f", "/dev/null", "-u"]).args(words);
        for name in ["TMUX", "NO_COLOR", "LC_CTYPE"] {
            command.env_remove(name);
        }
        command.env("LC_ALL", "C.UTF-8").env("SHELL", "/bin/bash").output().unwrap()
    }

    fn tells(&self, what: &str) -> String {
        out(&self.tmux(&["display-message", "-p", "-t", "watch", what])).trim().to_owned()
    }

    /// Types a command, which begins with an empty screen.
    pub(super) fn run(&self, command: &str) {
        self.tmux(&["send-keys", "-t", "watch", "-l", &format!("clear; {command}")]);
        self.keys("Enter");
    }

    /// Presses a key.
    pub(super) fn keys(&self, key: &str) {
        self.tmux(&["send-keys", "-t", "watch", key]);
    }

    pub(super) fn resize(&self, width: u16, height: u16) {
        let size = [width.to_string(), height.to_string()];
        self.tmux(&["resize-window", "-t", "watch", "-x", &size[0], "-y", &size[1]]);
    }

    pub(super) fn screen(&self) -> String {
        out(&self.tmux(&["capture-pane", "-p", "-t", "watch"]))
    }

    /// The screen with the sequences of its colours.
    pub(super) fn screen_with_colours(&self) -> String {
        out(&self.tmux(&["capture-pane", "-e", "-p", "-t", "watch"]))
    }

    /// Waits until this text is on the screen.
    pub(super) fn shows(&self, text: &str) {
        let begun = Instant::now();
        while !self.screen().contains(text) {
            assert!(begun.elapsed() < PATIENCE, "'{text}' is not on the screen:\n{}", self.screen());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until the shell is back, which says this exit code.
    pub(super) fn ended_with(&self, code: i32) {
        self.shows(&format!("done {code} >"));
    }

    /// Whether a program has a screen of its own.
    pub(super) fn is_alternate(&self) -> bool {
        self.tells("#{alternate_on}") == "1"
    }

    pub(super) fn has_cursor(&self) -> bool {
        self.tells("#{cursor_flag}") == "1"
    }

    /// What `stty` says of the terminal, whoever uses it.
    pub(super) fn settings(&self) -> String {
        let output = Command::new("stty").args(["-a", "-F", &self.tells("#{pane_tty}")]).output().unwrap();
        let text = out(&output);
        // The first line has the size.
        text.split_once('\n').map_or(String::new(), |(_, rest)| rest.replace('\n', " ") + " ")
    }

    /// The process that the shell has started.
    pub(super) fn child(&self) -> Pid {
        let shell = self.tells("#{pane_pid}");
        let children = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).unwrap();
        Pid::from_raw(children.split_whitespace().next().expect("a process").parse().unwrap())
    }

    /// The watcher, whether the shell has started it or a program in between.
    pub(super) fn watcher(&self) -> Pid {
        let terminal = self.tells("#{pane_tty}");
        let of_terminal = |pid: &i32| {
            let input = std::fs::read_link(format!("/proc/{pid}/fd/0"));
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            input.is_ok_and(|input| input.to_str() == Some(&terminal)) && name.starts_with("hpl-tune")
        };
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let mut numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        Pid::from_raw(numbers.find(of_terminal).expect("it is there"))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}
