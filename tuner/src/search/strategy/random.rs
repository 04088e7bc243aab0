//! The honest baseline: any untried point, all equally likely.

use rand::RngExt;

use super::context::rng;
use super::context::untried;
use super::{Ctx, Proposal, Strategy};

/// Uniform sampling without replacement.
#[derive(Debug, Clone, Copy, Default)]
pub struct Random;

impl Strategy for Random {
    fn name(&self) -> &'static str {
        "random"
    }

    fn ask(&self, ctx: &Ctx<'_>) -> Option<Proposal> {
        let untried = untried(ctx);
        if untried.is_empty() {
            return None;
        }
        let point = untried[rng(ctx).random_range(0..untried.len())].clone();
        Some(Proposal { point, repeat_of: None, reference: None, why: "drawn at random".to_owned(), predicted: None })
    }
}
