//! Working on a batch: some of it at a time, and no longer than the invocation lasts.

use std::panic::AssertUnwindSafe;

use futures_util::{FutureExt as _, StreamExt as _, stream};

use crate::clock::Deadline;

/// Runs all pieces of work, `at_once` at a time.
pub async fn each<W, F: Future<Output = ()>>(
    pieces: impl IntoIterator<Item = W>,
    at_once: usize,
    run: impl Fn(W) -> F,
) {
    stream::iter(pieces).for_each_concurrent(at_once, run).await;
}

/// Works until the deadline. What isn't done by then, or when a fault of ours ends the work, is dropped where it
/// stands; the answer says of it what was true before.
pub async fn until(deadline: Deadline, work: impl Future<Output = ()>) {
    let work = AssertUnwindSafe(work).catch_unwind();
    match tokio::time::timeout_at(deadline.instant(), work).await {
        Ok(Ok(())) => {}
        Ok(Err(_)) => {
            tracing::error!("the work on the batch panicked; what is not done is reported")
        }
        Err(_) => {
            tracing::warn!(
                "the deadline came before the batch was done; what is not done is reported"
            );
        }
    }
}
