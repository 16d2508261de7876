//! The events of the storm: most can be sent, some can't, and each in its own way.

use fastrand::Rng;
use serde_json::{Value, json};

use crate::dice::weighted;
use crate::support::event::{
    in_eventbridge_envelope, in_sns_envelope, order_placed, status_changed,
};

/// What must become of an event.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// One email.
    Sendable,
    /// No email: the application was deleted.
    Gone,
    /// No email: the recipient is not on the allow list.
    Withheld,
    /// The dead-letter queue: SES says that it will never take it.
    RefusedBySes,
    /// The dead-letter queue.
    ImpossibleAddress,
    /// The dead-letter queue.
    Malformed,
    /// The dead-letter queue.
    UnknownType,
    /// Two payloads under one key: one email, and the other payload in the dead-letter queue.
    KeyReused,
}

impl Kind {
    /// `onemail_reason` of the letter, for those that end there.
    pub fn reason(self) -> Option<&'static str> {
        match self {
            Self::Sendable | Self::Gone | Self::Withheld => None,
            Self::RefusedBySes => Some("message_refused"),
            Self::ImpossibleAddress => Some("impossible_address"),
            Self::Malformed => Some("malformed"),
            Self::UnknownType => Some("unknown_type"),
            Self::KeyReused => Some("key_reused"),
        }
    }

    pub fn is_emailed(self) -> bool {
        matches!(self, Self::Sendable | Self::KeyReused)
    }

    /// What the ledger says at the end; `None`: nothing.
    pub fn outcome(self) -> Option<&'static str> {
        match self {
            Self::Sendable | Self::KeyReused => Some("sent"),
            Self::Gone => Some("skipped"),
            Self::Withheld => Some("withheld"),
            _ => None,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Event {
    pub key: String,
    pub kind: Kind,
    /// One, or two under the same key.
    payloads: Vec<Value>,
}

/// Rows that the job board has for the storm, beside those of its fixture.
pub const IMPOSSIBLE_APPLICATION: i64 = 900;
pub const WITHHELD_APPLICATION: i64 = 901;
pub const FIRST_ORDER: i64 = 10_000;
const APPLICATIONS: std::ops::RangeInclusive<i64> = 1..=40;
const NO_APPLICATION: i64 = 999_999;
const STATUSES: [&str; 6] = [
    "reviewing",
    "interview",
    "offer",
    "rejected",
    "hired",
    "on_hold",
];

impl Event {
    pub fn new(number: usize, rng: &mut Rng) -> Self {
        let key = format!("event-{number:06}");
        let kind = weighted(
            rng,
            &[
                (860, Kind::Sendable),
                (40, Kind::Gone),
                (30, Kind::Withheld),
                (20, Kind::RefusedBySes),
                (10, Kind::ImpossibleAddress),
                (15, Kind::Malformed),
                (10, Kind::UnknownType),
                (15, Kind::KeyReused),
            ],
        );
        let change =
            |application: i64, status: &str| status_changed(&key, application, "submitted", status);
        let application = rng.i64(APPLICATIONS);
        let status = STATUSES[rng.usize(..STATUSES.len())];
        let payloads = match kind {
            Kind::Sendable if rng.u32(..10) < 3 => {
                let order = FIRST_ORDER + i64::try_from(number).expect("it is small");
                return Self {
                    key: format!("order-{order}"),
                    kind,
                    payloads: vec![order_placed(order)],
                };
            }
            Kind::Sendable | Kind::RefusedBySes => vec![change(application, status)],
            Kind::Gone => vec![change(NO_APPLICATION, status)],
            Kind::Withheld => vec![change(WITHHELD_APPLICATION, status)],
            Kind::ImpossibleAddress => vec![change(IMPOSSIBLE_APPLICATION, status)],
            Kind::Malformed => {
                vec![json!({ "type": "application.status_changed", "event_id": key })]
            }
            Kind::UnknownType => vec![json!({ "type": "interview.cancelled", "event_id": key })],
            Kind::KeyReused => vec![change(application, "offer"), change(application, "hired")],
        };
        Self {
            key,
            kind,
            payloads,
        }
    }

    /// How many messages tell of it at the least.
    pub fn least_messages(&self) -> usize {
        self.payloads.len()
    }

    /// Which of its payloads a message of it carries.
    pub fn payload_of(&self, copy: usize) -> usize {
        copy % self.payloads.len()
    }

    /// The body of its message, as one producer or another would have it delivered.
    pub fn body(&self, copy: usize, rng: &mut Rng) -> String {
        let payload = &self.payloads[self.payload_of(copy)];
        match rng.u32(..6) {
            0 => in_sns_envelope(payload),
            1 => in_eventbridge_envelope(payload),
            _ => payload.clone(),
        }
        .to_string()
    }
}
