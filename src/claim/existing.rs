//! What transaction mode changes about a row that it found.

use std::time::Duration;

use tokio_postgres::types::{ToSql, Type};

use crate::config::InDoubt;
use crate::database::{Connection, DatabaseError};
use crate::receive::Event;

use super::claimed::Claimed;
use super::doubt::DoubtPolicy;
use super::roll_back::{give_back, roll_back};
use super::{Claim, Row, Standing, read_rows, sql};

/// A lease ran out, and SES's word has not come: the row becomes ours, or is held.
pub(super) async fn decide(
    connection: Connection,
    event: &Event<'_>,
    doubt: DoubtPolicy,
    rows: Result<Vec<tokio_postgres::Row>, tokio_postgres::Error>,
    begin: &str,
) -> Result<Claim, DatabaseError> {
    let rows = rows.map_err(DatabaseError::from);
    match doubt.then {
        InDoubt::Resend => match rows.and_then(|rows| read_rows(&rows)) {
            Ok(rows) => take_over(connection, event, doubt, rows).await,
            Err(error) => Err(give_back(connection, error).await),
        },
        // Whom the email would be for doesn't matter, and neither does it if that query failed.
        InDoubt::Hold => hold(connection, event, doubt, rows.is_err().then_some(begin)).await,
    }
}

async fn take_over(
    connection: Connection,
    event: &Event<'_>,
    doubt: DoubtPolicy,
    rows: Vec<Row>,
) -> Result<Claim, DatabaseError> {
    let (key, wait) = (event.key.as_str(), doubt.wait.as_secs_f64());
    let parameters: Parameters<'_> = [(&key, Type::TEXT), (&wait, Type::FLOAT8)];
    match change(&connection, sql::TAKE_OVER, &parameters).await {
        Ok(true) => Ok(Claim::Won(Box::new(Claimed::new(connection, event)), rows)),
        Ok(false) => Ok(overtaken(connection).await),
        Err(error) => Err(give_back(connection, error).await),
    }
}

async fn hold(
    connection: Connection,
    event: &Event<'_>,
    doubt: DoubtPolicy,
    aborted: Option<&str>,
) -> Result<Claim, DatabaseError> {
    let (key, wait) = (event.key.as_str(), doubt.wait.as_secs_f64());
    let parameters: Parameters<'_> = [(&key, Type::TEXT), (&wait, Type::FLOAT8)];
    commit(connection, aborted, sql::HOLD, &parameters, Standing::Held).await
}

/// From now on another event under this key is known to be one.
pub(super) async fn learn_payload(
    connection: Connection,
    event: &Event<'_>,
    aborted: Option<&str>,
) -> Result<Claim, DatabaseError> {
    let (key, hash) = (event.key.as_str(), event.payload_hash.0.as_slice());
    let parameters: Parameters<'_> = [(&key, Type::TEXT), (&hash, Type::BYTEA)];
    let learn = sql::LEARN_PAYLOAD;
    commit(connection, aborted, learn, &parameters, Standing::Settled).await
}

type Parameters<'a> = [(&'a (dyn ToSql + Sync), Type); 2];

/// Changes the row for good. `aborted`: what begins the transaction anew, where it is aborted.
async fn commit(
    connection: Connection,
    aborted: Option<&str>,
    statement: &str,
    parameters: &Parameters<'_>,
    standing: Standing,
) -> Result<Claim, DatabaseError> {
    let changed = async {
        if let Some(begin) = aborted {
            let again = format!("ROLLBACK; {begin}");
            connection.client().batch_execute(&again).await?;
        }
        let changed = change(&connection, statement, parameters).await?;
        connection.client().batch_execute("COMMIT").await?;
        Ok(changed)
    };
    match changed.await {
        Ok(true) => {
            connection.rest();
            Ok(Claim::Lost(standing))
        }
        Ok(false) => Ok(overtaken(connection).await),
        Err(error) => Err(give_back(connection, error).await),
    }
}

/// Whether the row was as we thought it was.
async fn change(
    connection: &Connection,
    statement: &str,
    parameters: &Parameters<'_>,
) -> Result<bool, DatabaseError> {
    let client = connection.client();
    Ok(client.execute_typed(statement, parameters).await? == 1)
}

/// Another worker was quicker.
async fn overtaken(connection: Connection) -> Claim {
    roll_back(connection).await;
    Claim::Lost(Standing::InProgress(Duration::ZERO))
}
