//! A session watched from outside, in a terminal: at work or over, on this machine or another one with the same file system.
//!
//! ```text
//! session.toml, journal.jsonl, now.json, trials/N/trial.json, lock …   of the run folder, written by the session
//!   │ reading     each second what is new; work: whether the session is at work; report::Summary when trials have ended
//!   ▼
//! Record          the folder as it is now
//!   │ model       what is to be seen: words and numbers
//!   ▼
//! WatchModel
//!   │ draw        by the size of the screen and the look: colours or none, Unicode or ASCII
//!   ▼
//! the screen (live, terminal), or a text (draw::plain) where there is no terminal
//! ```
//!
//! Nothing is written, and the session's lock is not touched. Files are looked at by their size and time and opened anew each time: a
//! network file system tells no more. Watts are not shown but those of the best beside a power limit, nor temperatures but those of GPUs.
//!
//! It takes little: the journal is read on from where the last look ended, and the summary, which takes a second for thousands of
//! trials, is made when there are new ones, and the more seldom the longer it takes ([`reading`]).

mod begun;
pub mod draw;
pub mod live;
pub mod look;
pub mod model;
pub mod reading;
pub mod terminal;
pub mod work;
