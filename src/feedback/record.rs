//! One notification into the ledger.

use std::time::Duration;

use futures_util::future::join5;
use tokio_postgres::types::{Json, Type};

use crate::clock::Deadline;
use crate::database::{Connection, DatabaseError, DatabaseVerdict};
use crate::send::SesMessageId;

use super::kind::Kind;
use super::notification::{Notification, Tagged};
use super::sql;

/// The transaction takes milliseconds, and waits two seconds for a lock at the most.
const TIMEOUT: Duration = Duration::from_secs(6);

/// What a notification changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// It tells something new of an email.
    New,
    /// It was known.
    Known,
    /// It completed the claim of an email whose worker died.
    Settled,
    /// It tells of a second email for the same event.
    SecondEmail,
}

/// `tried`: an earlier try of the same record may have done it, with its answer lost.
///
/// # Errors
/// Nothing was recorded, or all of it and the answer was lost; doing it again is harmless.
pub(super) async fn record(
    connection: Connection,
    notification: &Notification,
    tried: bool,
    deadline: Deadline,
) -> Result<Recorded, DatabaseError> {
    let recorded = async {
        match (
            &notification.kind,
            &notification.tagged,
            &notification.ses_message_id,
        ) {
            (kind, Some(tagged), Some(id)) if kind.proves_acceptance() => {
                settle(connection, notification, tagged, id, tried).await
            }
            _ => keep(connection, notification, tried).await,
        }
    };
    tokio::time::timeout(deadline.left_at_most(TIMEOUT), recorded)
        .await
        .unwrap_or(Err(DatabaseError::NoAnswerInTime))
}

async fn keep(
    connection: Connection,
    notification: &Notification,
    tried: bool,
) -> Result<Recorded, DatabaseError> {
    let new = insert(&connection, notification).await?;
    connection.rest();
    Ok(if new == 1 || tried {
        Recorded::New
    } else {
        Recorded::Known
    })
}

/// In one round trip: each statement holds whatever the others find.
async fn settle(
    connection: Connection,
    notification: &Notification,
    tagged: &Tagged,
    id: &SesMessageId,
    tried: bool,
) -> Result<Recorded, DatabaseError> {
    let client = connection.client();
    let key = tagged.key.as_str();
    let event_type = tagged.event_type.as_str();
    let id = id.as_str();
    let is_send = notification.kind == Kind::Send;
    let settle = if is_send { sql::SETTLE } else { sql::COMPLETE };
    let (begun, new, settled, standing, committed) = join5(
        client.batch_execute(sql::BEGIN),
        insert(&connection, notification),
        client.query_typed(
            settle,
            &[
                (&key, Type::TEXT),
                (&event_type, Type::TEXT),
                (&id, Type::TEXT),
            ],
        ),
        client.query_typed(sql::STANDING, &[(&key, Type::TEXT), (&id, Type::TEXT)]),
        client.batch_execute("COMMIT"),
    )
    .await;
    // In the order in which they were sent: after a failure, `COMMIT` has rolled back and the connection is
    // as good as before.
    let result = (|| -> Result<Recorded, DatabaseError> {
        begun?;
        let new = new? == 1 || tried;
        let settled = settled?;
        let standing = standing?;
        committed?;
        let flag = |rows: &[tokio_postgres::Row], name: &str| {
            rows.first()
                .map(|row| row.try_get::<_, Option<bool>>(name))
                .transpose()
                .map(Option::flatten)
        };
        Ok(if flag(&settled, "by_ses")? == Some(true) {
            Recorded::Settled
        } else if is_send && new && flag(&standing, "same_email")? == Some(false) {
            Recorded::SecondEmail
        } else if new {
            Recorded::New
        } else {
            Recorded::Known
        })
    })();
    match &result {
        Err(error) if error.verdict() == DatabaseVerdict::TryAnotherConnection => {}
        _ => connection.rest(),
    }
    result
}

async fn insert(
    connection: &Connection,
    notification: &Notification,
) -> Result<u64, DatabaseError> {
    let key = notification
        .tagged
        .as_ref()
        .map(|tagged| tagged.key.as_str());
    let id = notification
        .ses_message_id
        .as_ref()
        .map(SesMessageId::as_str);
    Ok(connection
        .client()
        .execute_typed(
            sql::RECORD,
            &[
                (&key, Type::TEXT),
                (&id, Type::TEXT),
                (&notification.kind.name(), Type::TEXT),
                (&notification.occurred_at.as_str(), Type::TEXT),
                (&Json(&notification.detail), Type::JSONB),
            ],
        )
        .await?)
}
