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
    match change(&connection, sql::TAKE_OVER, event, doubt).await {
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
    let held = async {
        begin_anew(&connection, aborted).await?;
        let held = change(&connection, sql::HOLD, event, doubt).await?;
        connection.client().batch_execute("COMMIT").await?;
        Ok(held)
    };
    match held.await {
        Ok(true) => {
            connection.rest();
            Ok(Claim::Lost(Standing::Held))
        }
        Ok(false) => Ok(overtaken(connection).await),
        Err(error) => Err(give_back(connection, error).await),
    }
}

/// From now on another event under this key is known to be one.
pub(super) async fn learn_payload(
    connection: Connection,
    event: &Event<'_>,
    aborted: Option<&str>,
) -> Result<Claim, DatabaseError> {
    let learnt = async {
        begin_anew(&connection, aborted).await?;
        let parameters: [(&(dyn ToSql + Sync), Type); 2] = [
            (&event.key.as_str(), Type::TEXT),
            (&event.payload_hash.0.as_slice(), Type::BYTEA),
        ];
        let client = connection.client();
        let learnt = client
            .execute_typed(sql::LEARN_PAYLOAD, &parameters)
            .await?
            == 1;
        client.batch_execute("COMMIT").await?;
        Ok(learnt)
    };
    match learnt.await {
        Ok(true) => {
            connection.rest();
            Ok(Claim::Lost(Standing::Settled))
        }
        Ok(false) => Ok(overtaken(connection).await),
        Err(error) => Err(give_back(connection, error).await),
    }
}

/// `aborted`: what begins the transaction, where it is aborted.
async fn begin_anew(connection: &Connection, aborted: Option<&str>) -> Result<(), DatabaseError> {
    if let Some(begin) = aborted {
        let again = format!("ROLLBACK; {begin}");
        connection.client().batch_execute(&again).await?;
    }
    Ok(())
}

/// Whether the row was as we thought it was.
async fn change(
    connection: &Connection,
    statement: &str,
    event: &Event<'_>,
    doubt: DoubtPolicy,
) -> Result<bool, DatabaseError> {
    let parameters: [(&(dyn ToSql + Sync), Type); 2] = [
        (&event.key.as_str(), Type::TEXT),
        (&doubt.wait.as_secs_f64(), Type::FLOAT8),
    ];
    let client = connection.client();
    Ok(client.execute_typed(statement, &parameters).await? == 1)
}

/// Another worker was quicker.
async fn overtaken(connection: Connection) -> Claim {
    roll_back(connection).await;
    Claim::Lost(Standing::InProgress(Duration::ZERO))
}
