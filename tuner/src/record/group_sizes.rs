//! How many nodes run a trial together before all of them do.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Numbers of nodes of a trial, one for each stage before all nodes, rising; none for trials on all nodes alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GroupSizes(pub Vec<usize>);

impl FromStr for GroupSizes {
    type Err = String;

    /// `none`, or numbers as in `1,4,16`.
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self::default());
        }
        let wrong = || format!("'{text}' are no sizes of groups; give none, or rising numbers of nodes such as 1,4,16");
        let sizes: Result<Vec<usize>, _> = text.split(',').map(|size| size.trim().parse()).collect();
        let sizes = sizes.map_err(|_| wrong())?;
        let rises = sizes.windows(2).all(|pair| pair[0] < pair[1]);
        if rises && sizes[0] > 0 { Ok(Self(sizes)) } else { Err(wrong()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_rise_from_one() {
        let of = |text: &str| text.parse::<GroupSizes>().map(|sizes| sizes.0);
        assert_eq!(of("none"), Ok(vec![]));
        assert_eq!(of("1"), Ok(vec![1]));
        assert_eq!(of("1, 4,16"), Ok(vec![1, 4, 16]));
        for bad in ["", "0", "4,1", "4,4", "1,", "all", "-1"] {
            assert!(of(bad).unwrap_err().contains("none, or rising numbers"), "{bad}");
        }
    }
}
