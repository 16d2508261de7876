//! Which version the database's schema has, told by what each migration left in it.
//!
//! It is looked at when a statement finds a table or a column missing, and so costs nothing where all is well. A claim
//! names all that this binary needs, so an older schema is noticed before anything is claimed or sent.
//!
//! The migrations' own table isn't asked: the worker's role needs no right to it, and what counts is what the
//! statements will find. The catalog answers anybody, and looks along the same `search_path`.

use futures_util::future::join3;
use tokio_postgres::types::Type;

use super::pool::Connection;
use super::verdict::DatabaseError;

/// A column that a migration added. A migration that adds none can leave one that is good for nothing else.
struct Trace {
    version: i32,
    table: &'static str,
    column: &'static str,
}

/// One for each file of `migrations/`.
const TRACES: [Trace; 3] = [
    Trace {
        version: 1,
        table: "processed_events",
        column: "payload_sha256",
    },
    Trace {
        version: 2,
        table: "sends_in_doubt",
        column: "in_doubt_until",
    },
    Trace {
        version: 3,
        table: "processed_events",
        column: "lease_until",
    },
];

/// The version that this binary was built for. A newer one is as good: migrations only ever add.
pub const NEEDED_VERSION: i32 = TRACES[TRACES.len() - 1].version;

const FIRST_MISSING: &str = "\
    SELECT trace.ordinality AS number,
           current_user::text AS role,
           array_to_string(current_schemas(false), ', ') AS schemas
      FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS trace (relation, attribute, ordinality)
     WHERE NOT EXISTS (
           SELECT FROM pg_catalog.pg_attribute
            WHERE attrelid = to_regclass(trace.relation)
              AND attname = trace.attribute
              AND NOT attisdropped)
     ORDER BY trace.ordinality
     LIMIT 1";

/// For whoever operates this.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the database's schema has version {found}, and this onemail needs {NEEDED_VERSION}: invoke the migrate function{}",
    self.or_a_missing_grant()
)]
pub struct SchemaTooOld {
    /// 0 where there is no ledger at all.
    pub found: i32,
    role: String,
    schemas: String,
}

impl SchemaTooOld {
    /// A schema that a role may not use is one that it doesn't see.
    fn or_a_missing_grant(&self) -> String {
        let Self {
            found,
            role,
            schemas,
        } = self;
        if *found > 0 {
            return String::new();
        }
        format!(
            "; if it was, the role `{role}` doesn't see the ledger in the schemas that its search_path names and it \
             may use ({schemas})"
        )
    }
}

/// Looks in one round trip whether all that this binary needs is there.
///
/// # Errors
/// It isn't; or Postgres could not be asked, which says nothing of the schema.
pub(super) async fn look_at_schema(connection: &Connection) -> Result<(), DatabaseError> {
    let tables = TRACES.map(|trace| trace.table);
    let columns = TRACES.map(|trace| trace.column);
    let client = connection.client();
    let (begun, missing, ended) = join3(
        client.batch_execute("BEGIN READ ONLY"),
        client.query_typed(
            FIRST_MISSING,
            &[
                (&tables.as_slice(), Type::TEXT_ARRAY),
                (&columns.as_slice(), Type::TEXT_ARRAY),
            ],
        ),
        // A look, and nothing to commit: whoever counts commits counts what was written.
        client.batch_execute("ROLLBACK"),
    )
    .await;
    begun?;
    let missing = missing?;
    ended?;
    let Some(missing) = missing.first() else {
        return Ok(());
    };
    let number = usize::try_from(missing.try_get::<_, i64>("number")?).unwrap_or_default();
    let last_found = number.checked_sub(2).and_then(|index| TRACES.get(index));
    Err(DatabaseError::SchemaTooOld(SchemaTooOld {
        found: last_found.map_or(0, |trace| trace.version),
        role: missing.try_get("role")?,
        schemas: missing.try_get("schemas")?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a claim doesn't name would be missed in the middle of the work only.
    #[test]
    fn a_claim_of_either_mode_names_all_that_is_needed() {
        for claim in crate::claim::statements_of_a_claim() {
            for Trace { table, column, .. } in TRACES {
                assert!(
                    claim.contains(table) && claim.contains(column),
                    "{table}.{column} isn't in {claim}"
                );
            }
        }
    }

    #[test]
    fn each_migration_has_its_trace() {
        let versions = TRACES.map(|trace| trace.version);
        assert_eq!(versions.as_slice(), crate::migrate::versions());
    }
}
