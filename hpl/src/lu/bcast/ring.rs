//! Broadcasts that send the panel as one message along rings.

use super::{Steps, Transfer};

/// The ring broadcasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ring {
    /// 1ring: each position sends to the next.
    One,
    /// 1ringM: the root sends to position 1, which does not forward, and then to position 2, where the ring starts.
    OneM,
    /// 2ring: two half rings, the second starting at position ⌈Q/2⌉.
    Two,
    /// 2ringM: position 1 does not forward; half rings start at positions 2 and ⌈Q/2⌉.
    TwoM,
}

impl Ring {
    /// Position that sends the panel to `position` among `q`; `None` for the root, position 0.
    pub fn parent(self, position: usize, q: usize) -> Option<usize> {
        let half = q.div_ceil(2);
        let from_root = match self {
            Self::One => position == 1,
            Self::OneM => position <= 2,
            Self::Two => position == 1 || position == half,
            Self::TwoM => position <= 2 || position == half,
        };
        match position {
            0 => None,
            _ if from_root => Some(0),
            _ => Some(position - 1),
        }
    }

    /// Positions that `position` sends to, in order.
    pub fn children(self, position: usize, q: usize) -> impl Iterator<Item = usize> {
        (position + 1..q).filter(move |&child| self.parent(child, q) == Some(position))
    }

    pub(super) fn steps(self, position: usize, q: usize) -> Steps {
        let whole = |peer| Transfer { peer, pieces: 0..1 };
        Steps {
            pieces: 1,
            receives: self.parent(position, q).map(whole).into_iter().collect(),
            sends: self.children(position, q).map(whole).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RINGS: [Ring; 4] = [Ring::One, Ring::OneM, Ring::Two, Ring::TwoM];

    #[test]
    fn parents_form_a_tree() {
        for (ring, q) in RINGS.into_iter().flat_map(|ring| (1..=17).map(move |q| (ring, q))) {
            for start in 1..q {
                let mut at = start;
                while let Some(parent) = ring.parent(at, q) {
                    assert!(parent < at, "the parent has a smaller position");
                    assert!(ring.children(parent, q).any(|child| child == at));
                    at = parent;
                }
                assert_eq!(at, 0);
            }
            assert_eq!((0..q).map(|at| ring.children(at, q).count()).sum::<usize>(), q - 1, "one copy each");
        }
    }
}
