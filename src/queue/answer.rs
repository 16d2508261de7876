//! The answer to SQS: which records it must hand out again.

use std::cell::RefCell;
use std::collections::HashMap;
use std::time::Duration;

use aws_lambda_events::sqs::SqsBatchResponse;
use thiserror::Error;

use super::record::{MessageId, Record};
use super::visibility::ComeBack;

/// Fails by default: each record is reported unless it was said to be done.
///
/// Whatever ends the batch early, the answer is right as it stands.
pub struct Answer {
    records: RefCell<Vec<Entry>>,
}

struct Entry {
    message_id: Option<MessageId>,
    done: bool,
    come_back: Option<Duration>,
}

/// Lambda takes an empty identifier for a failure of the whole batch, and a missing one for a success.
#[derive(Debug, Error, PartialEq, Eq)]
#[error(
    "{0} record(s) failed and have no messageId to report them by, so the whole batch is reported as failed; what was sent is not sent again"
)]
pub struct Unreportable(usize);

impl Answer {
    pub fn all_failed(records: &[Record]) -> Self {
        let records = records
            .iter()
            .map(|record| Entry {
                message_id: record.message_id.clone(),
                done: false,
                come_back: None,
            })
            .collect();
        Self {
            records: RefCell::new(records),
        }
    }

    /// The record at this place of the batch must not come back.
    pub fn done(&self, index: usize) {
        self.records.borrow_mut()[index].done = true;
    }

    /// The record must come back, after this time rather than at the queue's visibility timeout.
    pub fn come_back(&self, index: usize, after: Duration) {
        self.records.borrow_mut()[index].come_back = Some(after);
    }

    /// What was said of when failed records come back. A message that SQS has handed out twice waits for the later of
    /// the two times, since SQS takes the last word on it.
    pub fn come_backs<'r>(&self, records: &'r [Record]) -> Vec<ComeBack<'r>> {
        let entries = self.records.borrow();
        let failed = || {
            let failed = entries.iter().zip(records).filter(|(entry, _)| !entry.done);
            failed.filter_map(|(entry, record)| Some((entry, record, entry.come_back?)))
        };
        let mut latest = HashMap::new();
        for (entry, _, after) in failed() {
            let latest = latest.entry(&entry.message_id).or_insert(after);
            *latest = after.max(*latest);
        }
        failed()
            .filter_map(|(entry, record, after)| {
                record.receipt_handle.as_ref()?;
                let after = match entry.message_id {
                    Some(_) => latest[&entry.message_id],
                    None => after,
                };
                Some(ComeBack { record, after })
            })
            .collect()
    }

    /// # Errors
    /// A failed record has no identifier.
    pub fn into_response(self) -> Result<SqsBatchResponse, Unreportable> {
        let mut response = SqsBatchResponse::default();
        let mut unreportable = 0;
        for entry in self.records.into_inner() {
            match entry.message_id {
                _ if entry.done => {}
                Some(id) => response.add_failure(id.as_str()),
                None => unreportable += 1,
            }
        }
        if unreportable > 0 {
            return Err(Unreportable(unreportable));
        }
        Ok(response)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::batch::Batch;

    use super::*;

    fn records(ids: &[&str]) -> Vec<Record> {
        let records = ids
            .iter()
            .map(|id| json!({ "messageId": id }))
            .collect::<Vec<_>>();
        Batch::parse(json!({ "Records": records })).unwrap().records
    }

    #[test]
    fn what_was_not_said_to_be_done_is_reported() {
        let answer = Answer::all_failed(&records(&["a", "b", "c"]));
        answer.done(1);
        assert_eq!(
            serde_json::to_value(answer.into_response().unwrap()).unwrap(),
            json!({ "batchItemFailures": [{ "itemIdentifier": "a" }, { "itemIdentifier": "c" }] })
        );
    }

    #[test]
    fn a_failed_record_without_an_identifier_fails_the_batch() {
        let answer = Answer::all_failed(&records(&["a", ""]));
        answer.done(0);
        assert_eq!(answer.into_response().unwrap_err(), Unreportable(1));
        let answer = Answer::all_failed(&records(&[""]));
        answer.done(0);
        assert!(
            answer
                .into_response()
                .unwrap()
                .batch_item_failures
                .is_empty()
        );
    }
}
