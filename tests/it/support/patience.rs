//! How long a test waits for a signal before it says that the signal never came.

use std::time::Duration;

/// Far more than anything here takes, so that a busy machine doesn't fail a test; only a broken run waits this long.
const PATIENCE: Duration = Duration::from_secs(20);

/// Waits for `signal`, and fails the test with `what` was awaited if it doesn't come.
pub async fn within_reason<T>(what: &str, signal: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, signal).await {
        Ok(value) => value,
        Err(_) => panic!("waited {PATIENCE:?} in vain for {what}"),
    }
}
