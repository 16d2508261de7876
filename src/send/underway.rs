//! Whether a request has left for SES. Before that nothing can have been sent, whatever goes wrong.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aws_sdk_sesv2::config::interceptors::BeforeTransmitInterceptorContextRef;
use aws_sdk_sesv2::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_sesv2::error::BoxError;

/// Set when the SDK hands the request to the network. Region and credentials are known then, and it is addressed and
/// signed.
#[derive(Clone, Debug, Default)]
pub(super) struct Underway(Arc<AtomicBool>);

impl Underway {
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl Intercept for Underway {
    fn name(&self) -> &'static str {
        "Underway"
    }

    fn read_before_transmit(
        &self,
        _: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        self.0.store(true, Ordering::Release);
        Ok(())
    }
}
