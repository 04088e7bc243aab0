//! Which windows of a run are worth measuring.

use std::str::FromStr;

use space::HplParams;

use super::{Window, WindowError};

/// Windows as asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Windows {
    /// Those that predict the whole run well for little time.
    Auto,
    /// These.
    These(Vec<Window>),
}

impl FromStr for Windows {
    type Err = WindowError;

    /// Reads `auto` or `FIRST:STEPS,FIRST:STEPS,…`.
    fn from_str(text: &str) -> Result<Self, WindowError> {
        match text.trim() {
            "auto" => Ok(Self::Auto),
            list => list.split(',').map(str::parse).collect::<Result<_, _>>().map(Self::These),
        }
    }
}

impl Windows {
    /// The windows of the run of `hpl`, in the order asked for.
    ///
    /// # Errors
    /// [`WindowError::Beyond`].
    pub fn of(&self, hpl: &HplParams) -> Result<Vec<Window>, WindowError> {
        let steps = hpl.n.div_ceil(hpl.nb);
        match self {
            Self::Auto => Ok(auto(hpl)),
            Self::These(windows) => {
                windows.iter().try_for_each(|window| window.check(steps))?;
                Ok(windows.clone())
            }
        }
    }
}

/// Orders of the trailing matrices at which steps are measured, as parts of N.
const ORDERS: [f64; 4] = [0.7, 0.45, 0.25, 0.1];

fn auto(hpl: &HplParams) -> Vec<Window> {
    let steps = hpl.n.div_ceil(hpl.nb);
    let len = 1 + period(hpl.p, hpl.q);
    if steps < 4 * len * ORDERS.len() {
        // Of so few steps all are measured.
        return if steps == 0 { Vec::new() } else { vec![Window { first: 0, steps }] };
    }
    let first = |part: f64| ((1.0 - part) * steps as f64) as usize;
    ORDERS.iter().map(|&part| Window { first: first(part), steps: len }).collect()
}

/// Steps after which the owners of the panels repeat.
fn period(p: usize, q: usize) -> usize {
    let gcd = |mut a: usize, mut b: usize| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    p / gcd(p, q) * q
}
