//! Working on a batch: some of it at a time, and no longer than the invocation lasts.

use futures_util::{StreamExt as _, stream};

use crate::clock::Deadline;

/// Runs all pieces of work, `at_once` at a time. What isn't done by the deadline is dropped where it stands;
/// the answer says of it what was true before.
pub async fn until_done<W, F: Future<Output = ()>>(
    pieces: impl IntoIterator<Item = W>,
    at_once: usize,
    deadline: Deadline,
    run: impl Fn(W) -> F,
) {
    let work = stream::iter(pieces).for_each_concurrent(at_once, run);
    if tokio::time::timeout_at(deadline.instant(), work)
        .await
        .is_err()
    {
        tracing::warn!("the deadline came before the batch was done; what is not done is reported");
    }
}
