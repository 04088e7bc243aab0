//! Pictures in SVG: what all of them share.
//!
//! An [`Svg`] is a document or an element of a page to which shapes and texts are added; it escapes all texts. An [`Axis`] chooses
//! round ticks, a [`Frame`] is the rectangle with axes into which values are drawn.

mod axis;
mod svg;

pub use axis::{Axis, Frame, in_rows};
pub use svg::{Anchor, Paint, Svg, escape};
