//! User and password from Secrets Manager: read when the first connection is opened, kept while the sandbox is warm,
//! read again when Postgres refuses them.

mod fetch;
mod form;

pub use fetch::SecretError;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, WeakShared};

use crate::config::SecretLogin;

use super::login::Login;

use fetch::fetch;
use form::{Form, login};

type Read = BoxFuture<'static, Result<Arc<Login>, SecretError>>;

pub(super) struct Secret(Arc<Kept>);

struct Kept {
    secret: SecretLogin,
    /// What `DATABASE_URL` says of the server.
    url: tokio_postgres::Config,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    known: Option<Arc<Login>>,
    /// Whoever comes while it is underway waits for the same answer. It is dropped with the last who waits.
    underway: Option<WeakShared<Read>>,
}

impl Secret {
    /// Asks nobody yet.
    pub fn new(secret: SecretLogin, url: tokio_postgres::Config) -> Self {
        Self(Arc::new(Kept {
            secret,
            url,
            state: Mutex::default(),
        }))
    }

    pub async fn login(&self) -> Result<Arc<Login>, SecretError> {
        self.known_unless(|_| false).await
    }

    /// What the secret says now, which may still be the same. If it can't be read, what was known stays: it is all
    /// there is for the next connection.
    pub async fn login_instead_of(&self, refused: &Login) -> Result<Arc<Login>, SecretError> {
        self.known_unless(|known| known.settings == refused.settings)
            .await
    }

    async fn known_unless(
        &self,
        is_refused: impl FnOnce(&Login) -> bool,
    ) -> Result<Arc<Login>, SecretError> {
        let reading = {
            let mut state = self.0.state();
            match &state.known {
                Some(known) if !is_refused(known) => return Ok(Arc::clone(known)),
                _ => {}
            }
            let underway = state.underway.as_ref().and_then(WeakShared::upgrade);
            underway.unwrap_or_else(|| {
                let reading = Arc::clone(&self.0).read().boxed().shared();
                state.underway = reading.downgrade();
                reading
            })
        };
        reading.await
    }
}

impl Kept {
    async fn read(self: Arc<Self>) -> Result<Arc<Login>, SecretError> {
        let read = async {
            let form = Form::parse(&fetch(&self.secret.arn).await?)?;
            Ok(Arc::new(login(form, self.url.clone(), &self.secret)?))
        }
        .await;
        let mut state = self.state();
        state.underway = None;
        if let Ok(login) = &read {
            state.known = Some(Arc::clone(login));
        }
        read
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is locked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
