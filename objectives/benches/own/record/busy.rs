//! Another program that takes a core half of the time.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

use crate::Flags;

/// The verb of that program.
pub(crate) const VERB: &str = "take-core";
/// Processor time of its work, and the sleep after it.
const TURN: Duration = Duration::from_millis(50);

/// The program while it runs.
pub(crate) struct Busy(Child);

impl Busy {
    /// Starts it on `core`, a logical CPU.
    pub(crate) fn on(core: usize) -> Self {
        let program = std::env::current_exe().expect("the path of this program");
        let child = Command::new(program).args([VERB, "--core", &core.to_string()]).stdin(Stdio::piped()).spawn();
        Self(child.expect("this program started again"))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn processor_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("the thread's clock").into()
}

/// Works and sleeps in turns of [`TURN`] until its standard input ends, which it does with the program that started it.
pub(crate) fn take(flags: &Flags) {
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    hpl::machine::affinity::pin_current_thread(flags.number("--core", 1)).expect("a core to run on");
    loop {
        let begun = processor_time();
        while processor_time() - begun < TURN {
            std::hint::spin_loop();
        }
        std::thread::sleep(TURN);
    }
}
