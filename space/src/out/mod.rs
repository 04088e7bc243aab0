//! HPL.out: what HPL prints.
//!
//! Written as Netlib's HPL 2.3 prints it; read as HPL 2.0 to 2.3 and HPCC do. SWAP, L1, U, EQUIL and ALIGN are
//! in the banner only, all else is in the T/V code of every result line.
//!
//! Source: \[HPL\] `testing/ptest/HPL_pdinfo.c`, `HPL_pdtest.c`, `HPL_pddriver.c`.

mod read;
mod stamp;
mod windows;
mod write;

use crate::params::Coded;
use crate::{HplParams, Looking, Pmap};

pub use read::{OutRecord, parse};
pub use stamp::ctime;
pub use windows::{pair, windows};
pub use write::{Norms, Tally, finished, footer, header, heading, progress, read_progress, report, residual, result};

/// Rules between the parts.
const DOUBLE: &str = "================================================================================";
const SINGLE: &str = "--------------------------------------------------------------------------------";

/// The T/V code: `W`, PMAP, DEPTH, BCAST, RFACT, NDIV, PFACT, NBMIN.
///
/// ```
/// let params = space::HplParams::baseline(8000, 1, 2);
/// assert_eq!(space::out::tv_code(&params), "WR11C2R4");
/// ```
pub fn tv_code(params: &HplParams) -> String {
    let HplParams { depth, ndiv, nbmin, .. } = params;
    let (pmap, bcast) = (if params.pmap == Pmap::Row { 'R' } else { 'C' }, params.bcast.code());
    let (rfact, pfact) = (letter(params.rfact), letter(params.pfact));
    format!("W{pmap}{depth}{bcast}{rfact}{ndiv}{pfact}{nbmin}")
}

fn letter(looking: Looking) -> char {
    match looking {
        Looking::Left => 'L',
        Looking::Crout => 'C',
        Looking::Right => 'R',
    }
}
