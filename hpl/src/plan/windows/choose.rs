//! The choice of windows to measure.

use std::str::FromStr;

use space::HplParams;

use super::{Window, WindowError, lead, owner_cycle};

/// Windows as requested by the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Windows {
    /// Windows that predict the whole run well in a small part of its time.
    Auto,
    /// The given windows.
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
    /// The windows for the run of `hpl`, in the requested order.
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

/// Time of the windows of `auto` as a fraction of the whole run's time, for a run of order [`COST_ORDER`].
const COST: f64 = 0.1;
const COST_ORDER: f64 = 16_000.0;
/// Larger runs have more, but cheaper steps: the fraction falls with this power of the order.
const COST_FALL: f64 = 0.75;

/// Overhead of a window in addition to its steps (the panels before them, the check), in steps.
const EXTRA: f64 = 0.16;

/// The largest trailing matrix of `auto`, as fraction of N.
const LARGEST: f64 = 0.9;
/// The first trailing matrix is at least this fraction of N, whatever its cost: large and small steps are limited by
/// different resources.
const LEAST: f64 = 0.6;
/// Ratio of each trailing matrix to the one before, at least: with the time for more windows it is closer to 1. A small ratio
/// leaves most of the time to the largest matrix, so that little is extrapolated.
const RATIO: f64 = 0.6;

/// Minimum steps of a window of `auto`, so that on one rank more steps are timed than run before.
const SHORTEST: usize = 2;
/// Maximum steps of a window that covers a whole cycle of panel owners.
const LONGEST: usize = 8;

/// The windows of `auto` on grids with a longer cycle of panel owners: fractions of N and steps. There a window covers only
/// some of the owners, and its error enters the extrapolation. More windows among the large steps reduce this error, and small
/// steps are cheap enough for long windows.
const LARGE: [(f64, usize); 5] = [(0.85, 4), (0.65, 4), (0.45, 4), (0.25, 8), (0.12, 16)];
/// The windows of `auto` on these grids without look-ahead, where all ranks wait for every panel and the time of a step depends on its panel's owner.
const LARGE_WITHOUT_LOOK_AHEAD: [(f64, usize); 4] = [(0.75, 8), (0.4, 8), (0.2, 8), (0.1, 8)];

/// The smallest trailing matrix of `auto`, as fraction of N. The steps after it take less than a thousandth of the time.
const SMALLEST: f64 = 0.06;

/// Windows of one cycle of panel owners each, on trailing matrices in geometric progression. Their cost is a sum of squares,
/// most of which is that of the first window; the others are cheap and show how the rate depends on the size. For a long
/// cycle, a window covers a part of it.
fn auto(hpl: &HplParams) -> Vec<Window> {
    let steps = hpl.n.div_ceil(hpl.nb);
    let requested: Vec<(f64, usize)> = match hpl.depth {
        _ if covers_owner_cycle(hpl) => parts(hpl).into_iter().map(|part| (part, length(hpl))).collect(),
        0 => LARGE_WITHOUT_LOOK_AHEAD.to_vec(),
        _ => LARGE.map(|(part, steps)| (part, steps.min(owner_cycle(hpl)))).to_vec(),
    };
    let mut windows: Vec<Window> = Vec::new();
    for (part, length) in requested {
        let free = windows.last().map_or(1, |last| last.first + last.steps);
        windows.extend(at(hpl, part, length).filter(|window| window.first >= free));
    }
    // A run of so few steps is measured completely.
    let all = Window { first: 0, steps };
    if windows.len() >= 2 { windows } else { Vec::from_iter((steps > 0).then_some(all)) }
}

/// Windows to compare two runs of the same order: pairs on trailing matrices of nearly the same order. Where one of the runs has a long cycle of
/// panel owners, those of `auto` at any DEPTH: the timeline, which is needed to compare such runs, says what other owners do.
pub(super) fn paired(a: &HplParams, b: &HplParams) -> Vec<[Window; 2]> {
    let windows: Vec<[Window; 2]> = if covers_owner_cycle(a) && covers_owner_cycle(b) {
        let [of_a, of_b] = [a, b].map(parts);
        let parts = if of_a.first() < of_b.first() { of_a } else { of_b };
        parts.into_iter().filter_map(|part| Some([at(a, part, length(a))?, at(b, part, length(b))?])).collect()
    } else {
        let of = |hpl: &HplParams, (part, most): (f64, usize)| at(hpl, part, most.min(owner_cycle(hpl)).max(SHORTEST));
        let mut windows: Vec<[Window; 2]> = Vec::new();
        for wanted in LARGE {
            let free = windows.last().map_or([0; 2], |last| last.map(|window| window.first + window.steps));
            let both = of(a, wanted).zip(of(b, wanted)).map(<[Window; 2]>::from);
            windows.extend(both.filter(|both| both[0].first >= free[0] && both[1].first >= free[1]));
        }
        windows
    };
    let all = [a, b].map(|hpl| Window { first: 0, steps: hpl.n.div_ceil(hpl.nb) });
    if windows.len() >= 2 { windows } else { Vec::from_iter((a.n > 0).then_some(all)) }
}

/// Orders of the trailing matrices of windows of the usual cost, as fractions of N, falling.
fn parts(hpl: &HplParams) -> Vec<f64> {
    let n = hpl.n as f64;
    // After the last step of a window, the panels in flight, except the last, update the rest of the matrix.
    let len = (lead(hpl) + length(hpl) + hpl.depth.saturating_sub(1)) as f64 + EXTRA;
    // A step on a trailing matrix of order f·N takes 3·NB/N·f² of the run.
    let squares = COST * (COST_ORDER / n).powf(COST_FALL) * n / (3.0 * hpl.nb as f64 * len);
    let squares = squares.max(LEAST * LEAST / (1.0 - RATIO * RATIO));
    let largest = (squares * (1.0 - RATIO * RATIO)).sqrt().min(LARGEST);
    let ratio = (1.0 - largest * largest / squares).max(0.0).sqrt();
    std::iter::successors(Some(largest), |part| Some(part * ratio)).take_while(|&part| part > SMALLEST).collect()
}

/// Steps of a window that covers a cycle of panel owners.
fn length(hpl: &HplParams) -> usize {
    owner_cycle(hpl).clamp(SHORTEST, LONGEST)
}

/// Whether windows contain a cycle of the panel owners of this run. On larger grids what the few owners in them have in common is in the
/// prediction, the same each time.
pub fn covers_owner_cycle(hpl: &HplParams) -> bool {
    owner_cycle(hpl) <= LONGEST
}

/// The window of `length` steps whose middle is on the trailing matrix of order `part`·N; `None` where it would contain the
/// first or the last step of the run.
fn at(hpl: &HplParams, part: f64, length: usize) -> Option<Window> {
    let steps = hpl.n.div_ceil(hpl.nb);
    let first = ((1.0 - part) * steps as f64 - length as f64 / 2.0).round() as usize;
    (first >= 1 && first + length < steps).then_some(Window { first, steps: length })
}
