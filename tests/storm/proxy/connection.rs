//! One connection through the proxy.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;

use super::Shared;
use super::session::{Over, Session};
use super::strike::How;

/// Silence is for longer than any worker waits, but not for ever: Postgres has a limited number of sessions.
const SILENCE: Duration = Duration::from_secs(12);

pub async fn run(mut worker: TcpStream, shared: Arc<Shared>) {
    // Before anything passes, so that only cuts from now on are about this connection.
    let mut cuts = shared.sky.cuts();
    let Ok(mut postgres) = TcpStream::connect(("127.0.0.1", shared.upstream_port)).await else {
        return;
    };
    let _ = (worker.set_nodelay(true), postgres.set_nodelay(true));
    let mut session = Session::new(&shared);
    let over = tokio::select! {
        over = session.pass(&mut worker, &mut postgres) => over.unwrap_or(Over::ByWorker),
        _ = cuts.changed() => Over::Struck(How::Cut),
    };
    if let Over::Struck(how) = over {
        shared.strikes.count(how.name());
    }
    if matches!(over, Over::Struck(How::Kill)) {
        // First, since all else is because of it.
        shared.victims.kill(&session.worker);
    }
    session.ends(&over);
    match over {
        Over::Struck(How::Cut) => {
            let _ = worker.set_zero_linger();
        }
        Over::Struck(How::Silence) => tokio::time::sleep(SILENCE).await,
        _ => {}
    }
}
