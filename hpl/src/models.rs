//! All models of threads that share memory: small programs on the engine's own code, which loom runs in all orders of their
//! threads (`tests/loom`).

use crate::backend::host::{team, update};
use crate::comm::threads;
use crate::lu::fact;

/// A small program on some threads.
#[derive(Debug)]
pub struct Model {
    /// Its name.
    pub name: &'static str,
    /// Preemptions of a thread in one order, at most; `None` for all orders.
    pub preemptions: Option<usize>,
    /// The program, which panics when something is wrong.
    pub run: fn(),
}

/// The models, with the largest number of preemptions that ends within seconds.
pub const MODELS: &[Model] = &[
    model("two threads meet", None, team::models::two_threads_meet),
    model("barrier breaks", None, team::models::barrier_breaks),
    model("two threads fork", None, team::models::two_threads_fork),
    model("three threads fork", Some(3), team::models::three_threads_fork),
    model("four threads fork", Some(1), team::models::four_threads_fork),
    model("a helper panics", Some(3), team::models::a_helper_panics),
    model("items are dealt", Some(3), team::models::items_are_dealt),
    model("parts are mapped", Some(3), team::models::parts_are_mapped),
    model("a sub-team joins", Some(2), team::models::a_sub_team_joins),
    model("tiles follow their U", Some(3), update::models::tiles_follow_their_u),
    model("preparing panics", Some(3), update::models::preparing_panics),
    model("rows are posted and read", None, fact::models::rows_are_posted_and_read),
    model("a message arrives", Some(3), threads::models::a_message_arrives),
    model("messages keep their order", Some(3), threads::models::messages_keep_their_order),
    model("the sender leaves", Some(3), threads::models::the_sender_leaves),
    model("the world is poisoned", Some(3), threads::models::the_world_is_poisoned),
    model("ranks are split", Some(2), threads::models::ranks_are_split),
    model("buffers are used again", Some(3), threads::models::buffers_are_used_again),
];

const fn model(name: &'static str, preemptions: Option<usize>, run: fn()) -> Model {
    Model { name, preemptions, run }
}
