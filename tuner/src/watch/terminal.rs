//! The terminal: entered, drawn on, and left as it was, whatever happens.
//!
//! It is told by the sequences that all terminals of today know (ECMA-48 with the private modes of xterm). Keys are read by a poll of our own: a
//! hang-up, the end of the input and any error of it are the end. (The reader of crossterm goes on for ever, on a whole core, when the
//! terminal is gone.)

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, IsTerminal, Read, Write, stdin, stdout};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::panic;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, raise};
use ratatui_core::buffer::{Buffer, Cell};
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

/// Time in which the rest of a sequence follows the ESC that begins it.
const SEQUENCE: Duration = Duration::from_millis(50);

/// The alternate screen without a cursor, and back.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[0m\x1b[?25h\x1b[?1049l";
const CLEAR: &str = "\x1b[0m\x1b[2J";

/// What the terminal was before it was taken; nothing while it is not. Whoever comes first gives it back: the end of the program, a
/// panic, or a signal that could not wait.
#[derive(Debug, Clone)]
pub(super) struct Before {
    keyboard: Arc<File>,
    settings: Arc<Mutex<Option<Termios>>>,
}

impl Before {
    /// Of a terminal that is not taken yet.
    ///
    /// # Errors
    /// Where there is none.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { keyboard: Arc::new(keyboard()?), settings: Arc::default() })
    }

    fn take(&self) -> io::Result<()> {
        let now = tcgetattr(&self.keyboard)?;
        let mut raw = now.clone();
        raw.make_raw();
        let mut settings = self.settings.lock().unwrap_or_else(PoisonError::into_inner);
        settings.get_or_insert(now);
        tcsetattr(&self.keyboard, OptionalActions::Now, &raw)?;
        print(ENTER)
    }

    /// Gives the settings back; true where the terminal was taken.
    pub(super) fn restore(&self) -> bool {
        let settings = self.settings.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Of a terminal that is gone there is nothing to restore.
        settings.is_some_and(|settings| {
            let _ = tcsetattr(&self.keyboard, OptionalActions::Now, &settings);
            true
        })
    }

    /// Gives the settings and the screen back. The settings come first: a terminal that takes no output holds up the rest.
    fn leave(&self) {
        if self.restore() {
            let _ = print(LEAVE);
        }
    }
}

fn print(text: &str) -> io::Result<()> {
    let mut out = stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// The screen while it is ours; dropped, the terminal is as before.
pub(super) struct Screen {
    before: Before,
    /// What is on it.
    shown: Buffer,
}

impl Screen {
    /// Takes the screen. A panic leaves it before its message is printed.
    ///
    /// # Errors
    /// A terminal that is gone.
    pub(super) fn enter(before: Before) -> io::Result<Self> {
        let (told, at_panic) = (panic::take_hook(), before.clone());
        panic::set_hook(Box::new(move |what| {
            at_panic.leave();
            told(what);
        }));
        let screen = Self { before, shown: Buffer::empty(Rect::ZERO) };
        screen.before.take().map(|()| screen)
    }

    /// Draws, at the size that the terminal has now.
    ///
    /// # Errors
    /// A terminal that is gone.
    pub(super) fn draw(&mut self, draw: impl FnOnce(&mut Buffer)) -> io::Result<()> {
        let size = tcgetwinsize(stdout())?;
        let area = Rect::new(0, 0, size.ws_col, size.ws_row);
        let mut text = String::new();
        if area != self.shown.area {
            self.shown = Buffer::empty(area);
            text.push_str(CLEAR);
        }
        let mut next = Buffer::empty(area);
        draw(&mut next);
        text += &written(&self.shown.diff(&next));
        self.shown = next;
        print(&text)
    }

    /// Takes the screen again, after the process was stopped or something else has written there.
    ///
    /// # Errors
    /// A terminal that is gone.
    pub(super) fn again(&mut self) -> io::Result<()> {
        self.shown = Buffer::empty(Rect::ZERO);
        self.before.take()
    }

    /// Stops this process, as Ctrl-Z does, and takes the screen again when it goes on.
    ///
    /// # Errors
    /// A terminal that is gone.
    pub(super) fn suspend(&mut self) -> io::Result<()> {
        self.before.leave();
        raise(Signal::SIGSTOP)?;
        self.again()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.before.leave();
    }
}

/// The sequences that write these cells.
fn written(cells: &[(u16, u16, &Cell)]) -> String {
    let mut text = String::new();
    let (mut place, mut style) = (None, None);
    for &(x, y, cell) in cells {
        // Writing to a String cannot fail.
        if place != Some((x, y)) {
            let _ = write!(text, "\x1b[{};{}H", y + 1, x + 1);
        }
        let wanted = (cell.fg, cell.modifier);
        if style != Some(wanted) {
            let _ = write!(text, "\x1b[{}m", rendition(wanted));
            style = Some(wanted);
        }
        text.push_str(cell.symbol());
        // A sign of two columns takes the next place, too: there the cursor is set anew.
        place = Some((x + 1, y));
    }
    if style.is_some() {
        text.push_str("\x1b[0m");
    }
    text
}

/// The parameters of the sequence for this colour and these modifiers.
fn rendition((color, modifier): (Color, Modifier)) -> String {
    let mut parameters = "0".to_owned();
    for (wanted, parameter) in [(Modifier::BOLD, ";1"), (Modifier::DIM, ";2")] {
        if modifier.contains(wanted) {
            parameters.push_str(parameter);
        }
    }
    parameters.push_str(match color {
        Color::Red => ";31",
        Color::Green => ";32",
        Color::Yellow => ";33",
        Color::Cyan => ";36",
        _ => "",
    });
    parameters
}

/// What the user wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UserKey {
    /// To leave.
    Quit,
    /// To interrupt, Ctrl-C.
    Interrupt,
    /// To stop the process for a while, Ctrl-Z.
    Suspend,
    /// To see the screen anew, Ctrl-L.
    Redraw,
}

/// What ended a wait.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Waited {
    /// Keys, some of which may mean nothing.
    Keys(Vec<UserKey>),
    /// News, or the time is up.
    Woken,
    /// The terminal is gone.
    Gone,
}

/// The keyboard, and whoever wakes the waiting one.
#[derive(Debug)]
pub(super) struct Input {
    terminal: File,
    waker: UnixStream,
}

impl Input {
    /// The keyboard; `waker` becomes readable when there is something else to do.
    ///
    /// # Errors
    /// Where there is no terminal to read from.
    pub(super) fn open(waker: UnixStream) -> io::Result<Self> {
        waker.set_nonblocking(true)?;
        Ok(Self { terminal: keyboard()?, waker })
    }

    /// Waits for keys or news.
    pub(super) fn wait(&mut self, most: Duration) -> Waited {
        match self.ready(most) {
            Ok([_, true]) => Waited::Gone,
            Ok([true, _]) => self.keys().map_or(Waited::Gone, Waited::Keys),
            Ok(_) => Waited::Woken,
            Err(_) => Waited::Gone,
        }
    }

    /// Whether the keyboard can be read, and whether it is gone.
    fn ready(&mut self, most: Duration) -> nix::Result<[bool; 2]> {
        let mut looked =
            [PollFd::new(self.terminal.as_fd(), PollFlags::POLLIN), PollFd::new(self.waker.as_fd(), PollFlags::POLLIN)];
        match poll(&mut looked, PollTimeout::try_from(most).unwrap_or(PollTimeout::MAX)) {
            Ok(_) => {}
            Err(Errno::EINTR) => return Ok([false, false]),
            Err(error) => return Err(error),
        }
        let [keys, news] = looked.map(|looked| looked.revents().unwrap_or(PollFlags::empty()));
        if !news.is_empty() {
            // How often it was woken makes no difference.
            let _ = self.waker.read(&mut [0; 256]);
        }
        let gone = PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLNVAL;
        Ok([keys.contains(PollFlags::POLLIN), keys.intersects(gone)])
    }

    /// The keys that were pressed; `None` at the end of the input.
    fn keys(&mut self) -> Option<Vec<UserKey>> {
        let mut bytes = self.read()?;
        // The rest of the sequence of an arrow may be late.
        if bytes.ends_with(b"\x1b") && matches!(self.ready(SEQUENCE), Ok([true, false])) {
            bytes.extend(self.read()?);
        }
        Some(keys(&bytes))
    }

    fn read(&mut self) -> Option<Vec<u8>> {
        let mut bytes = [0; 256];
        match self.terminal.read(&mut bytes) {
            Ok(0) => None,
            Ok(count) => Some(bytes[..count].to_vec()),
            Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {
                Some(Vec::new())
            }
            Err(_) => None,
        }
    }
}

/// The standard input where that is a terminal, else the terminal of this process.
fn keyboard() -> io::Result<File> {
    let stdin = stdin();
    if stdin.is_terminal() {
        return Ok(File::from(stdin.as_fd().try_clone_to_owned()?));
    }
    File::open("/dev/tty")
}

/// Whether there is a keyboard.
pub fn has_keyboard() -> bool {
    keyboard().is_ok()
}

/// The keys in what was typed. ESC is a key where nothing follows it: arrows and function keys are sequences that begin with it.
fn keys(bytes: &[u8]) -> Vec<UserKey> {
    if bytes == b"\x1b" {
        return vec![UserKey::Quit];
    }
    let mut found = Vec::new();
    let mut rest = bytes;
    while let [first, after @ ..] = rest {
        rest = after;
        match first {
            b'q' | b'Q' => found.push(UserKey::Quit),
            0x03 => found.push(UserKey::Interrupt),
            0x0c => found.push(UserKey::Redraw),
            0x1a => found.push(UserKey::Suspend),
            0x1b => rest = after_sequence(after),
            _ => {}
        }
    }
    found
}

/// What is behind a sequence, given without its ESC: `[`, parameters, and a letter or `~`; or `O` and a letter; or one sign.
fn after_sequence(bytes: &[u8]) -> &[u8] {
    match bytes {
        [b'[', rest @ ..] => {
            let end = rest.iter().position(|byte| (0x40..=0x7e).contains(byte));
            end.map_or(&[], |end| &rest[end + 1..])
        }
        [b'O', _, rest @ ..] | [_, rest @ ..] => rest,
        [] => bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_changed_is_written() {
        use ratatui_core::style::Style;
        let area = Rect::new(0, 0, 8, 2);
        let (before, mut after) = (Buffer::empty(area), Buffer::empty(area));
        after.set_string(0, 1, "ab", Style::new());
        after.set_string(4, 1, "c", Style::new().fg(Color::Red).add_modifier(Modifier::BOLD));
        assert_eq!(written(&before.diff(&after)), "\x1b[2;1H\x1b[0mab\x1b[2;5H\x1b[0;1;31mc\x1b[0m");
        assert_eq!(written(&after.diff(&after)), "");
    }

    #[test]
    fn keys_are_told_from_sequences() {
        assert_eq!(keys(b"q"), [UserKey::Quit]);
        assert_eq!(keys(b"\x1b"), [UserKey::Quit]);
        assert_eq!(keys(b"\x03"), [UserKey::Interrupt]);
        assert_eq!(keys(b"xyz\x1a"), [UserKey::Suspend]);
        // Arrow up, F2, page down, Alt-q, a cursor with parameters.
        assert_eq!(keys(b"\x1b[A\x1bOQ\x1b[6~\x1bq\x1b[1;5C"), []);
        assert_eq!(keys(b"\x1b[Aq"), [UserKey::Quit]);
        assert_eq!(keys(b"\x1b["), []);
    }
}
