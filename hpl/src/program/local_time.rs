//! Local time, in which HPL prints when a run began and ended.

use std::mem::MaybeUninit;

use nix::libc::{localtime_r, tm};

/// Seconds by which local time is ahead of UTC, at `unix_s` seconds since 1970 in UTC: in the zone that the variable TZ names, else in
/// that of the machine. 0 where the system does not know.
pub fn local_offset_s(unix_s: u64) -> i64 {
    let Ok(time) = i64::try_from(unix_s) else { return 0 };
    let mut local = MaybeUninit::<tm>::zeroed();
    // SAFETY: reads the first place and writes the second, both of which are this function's; zeros are a value of `tm`. It reads TZ,
    // which no thread of our programs writes.
    let (known, local) = unsafe { (!localtime_r(&raw const time, local.as_mut_ptr()).is_null(), local.assume_init()) };
    if known { local.tm_gmtoff } else { 0 }
}
