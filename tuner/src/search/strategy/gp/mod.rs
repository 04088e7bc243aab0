//! Gaussian process regression over the points of a space \[Rasmussen\].
//!
//! y = offset + slope · basis(x) + g(x) + noise, where g is what each dimension does by itself and what they do together ([`kernel`]), offset and slope
//! have normal priors, and the noise is equal for all runs, which two that were measured in turn have in common for the most part ([`hyper`]). [`data`] holds what was seen, [`parts`] makes
//! the covariance, [`fit`] chooses the hyperparameters, [`posterior`] predicts, [`screen`] does it roughly for all points of a large space.

pub(crate) mod data;
pub(crate) mod fit;
pub(crate) mod hyper;
pub(crate) mod kernel;
pub(crate) mod linalg;
mod parts;
pub(crate) mod posterior;
pub(crate) mod screen;
