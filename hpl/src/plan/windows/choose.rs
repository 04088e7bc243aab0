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

/// What the windows of `auto` may take of the time of a run of order [`COST_ORDER`].
const COST: f64 = 0.07;
const COST_ORDER: f64 = 16_000.0;
/// Larger runs have more, but cheaper steps: the part falls with this power of the order.
const COST_FALL: f64 = 0.75;

/// Generation and check aside, what a window costs beside its steps, as part of one of them: the panels before it,
/// the check.
const EXTRA: f64 = 0.16;

/// The largest trailing matrix of `auto`, as part of N, and the ratio of each to the one before: far apart when time
/// is short, so that the largest is large and little is extrapolated.
const LARGEST: f64 = 0.9;
/// It is no smaller than this part, whatever that costs: what bounds a step changes with the size.
const LEAST: f64 = 0.6;
const RATIO: f64 = 0.6;

/// Steps of a window at most, where turns of the owners are whole.
const LONGEST: usize = 8;

/// The windows of `auto` on grids whose turns are longer: parts of N and steps. There no window sees all owners, so that one
/// window's error tilts what is extrapolated, the less so the more windows there are among the large steps, and the small
/// ones are cheap enough for many steps.
const LARGE: [(f64, usize); 5] = [(0.85, 4), (0.65, 4), (0.45, 4), (0.25, 8), (0.12, 16)];
/// The same without look-ahead, where every panel is waited for and each owner's takes its own time.
const LARGE_IN_TURN: [(f64, usize); 4] = [(0.75, 8), (0.4, 8), (0.2, 8), (0.1, 8)];

/// The smallest trailing matrix of `auto`, as part of N. What follows takes less than a thousandth of the time.
const SMALLEST: f64 = 0.06;

/// Windows of one turn each, on trailing matrices in geometric progression: their cost is a sum of squares, most of which
/// the first one takes, and the others, nearly for nothing, tell how the rate depends on the size. Of long turns a part.
fn auto(hpl: &HplParams) -> Vec<Window> {
    let (steps, turn) = (hpl.n.div_ceil(hpl.nb), turn(hpl));
    let asked: Vec<(f64, usize)> = match hpl.depth {
        _ if turn <= LONGEST => parts(hpl).into_iter().map(|part| (part, turn)).collect(),
        0 => LARGE_IN_TURN.to_vec(),
        _ => LARGE.map(|(part, length)| (part, length.min(turn))).to_vec(),
    };
    let mut windows: Vec<Window> = Vec::new();
    for (part, length) in asked {
        let free = windows.last().map_or(1, |last| last.first + last.steps);
        windows.extend(at(hpl, part, length).filter(|window| window.first >= free));
    }
    // Of so few steps all are measured.
    let all = Window { first: 0, steps };
    if windows.len() >= 2 { windows } else { Vec::from_iter((steps > 0).then_some(all)) }
}

/// Windows of two runs of the same order that compare: on trailing matrices of the same orders, nearly.
pub(crate) fn paired(a: &HplParams, b: &HplParams) -> Vec<[Window; 2]> {
    let [of_a, of_b] = [a, b].map(parts);
    let parts = if of_a.first() < of_b.first() { of_a } else { of_b };
    let windows: Vec<[Window; 2]> =
        parts.into_iter().filter_map(|part| Some([at(a, part, length(a))?, at(b, part, length(b))?])).collect();
    let all = [a, b].map(|hpl| Window { first: 0, steps: hpl.n.div_ceil(hpl.nb) });
    if windows.len() >= 2 { windows } else { Vec::from_iter((a.n > 0).then_some(all)) }
}

/// Times that each window of a pair is measured: once before and once after its counterpart.
pub(crate) const VISITS: usize = 2;

/// Orders of the trailing matrices of windows of the usual cost, as parts of N, falling.
fn parts(hpl: &HplParams) -> Vec<f64> {
    let n = hpl.n as f64;
    // After its last step a window is left as one matrix: the panels in flight but the last update the rest.
    let len = (length(hpl) + hpl.depth.saturating_sub(1)) as f64 + EXTRA;
    // A step on the part f of N takes 3·NB/N·f² of the run.
    let squares = COST * (COST_ORDER / n).powf(COST_FALL) * n / (3.0 * hpl.nb as f64 * len);
    let squares = squares.max(LEAST * LEAST / (1.0 - RATIO * RATIO));
    let largest = (squares * (1.0 - RATIO * RATIO)).sqrt().min(LARGEST);
    let ratio = (1.0 - largest * largest / squares).max(0.0).sqrt();
    std::iter::successors(Some(largest), |part| Some(part * ratio)).take_while(|&part| part > SMALLEST).collect()
}

/// Steps of a window of two runs that compare: a turn of the owners, of large grids a part of one. There what each owner has
/// differs little, and a turn takes so long that its trailing matrix would have to be small, which says little of the large ones.
fn length(hpl: &HplParams) -> usize {
    turn(hpl).min(LONGEST)
}

/// The window of `length` steps on the trailing matrix of this part of N; none where it would begin with the run or reach its
/// last step.
fn at(hpl: &HplParams, part: f64, length: usize) -> Option<Window> {
    let steps = hpl.n.div_ceil(hpl.nb);
    let first = ((1.0 - part) * steps as f64).round() as usize;
    (first >= 1 && first + length < steps).then_some(Window { first, steps: length })
}

/// Steps after which the owners of the panels repeat, if dealt in turns.
pub(super) fn turn(hpl: &HplParams) -> usize {
    let (mut a, mut b) = (hpl.p, hpl.q);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    hpl.p / a * hpl.q
}
