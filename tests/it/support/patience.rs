//! How long a test waits for a signal before it says that the signal never came.

use std::time::Duration;

/// Far more than anything here takes, so that a busy machine doesn't fail a test; only a broken run waits this long.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for `signal`, and fails the test with `what` was awaited if it doesn't come.
pub async fn within_reason<T>(what: &str, signal: impl Future<Output = T>) -> T {
    match if_it_comes(signal).await {
        Some(value) => value,
        None => panic!("waited {PATIENCE:?} in vain for {what}"),
    }
}

/// Waits just as long, for a test that has more to say if it doesn't come.
pub async fn if_it_comes<T>(signal: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(PATIENCE, signal).await.ok()
}
