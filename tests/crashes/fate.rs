//! What a case must come to. All that decides is how far the event had come.

use crate::stage::{Ending, InDoubt, Mode, Setting, Word};
use crate::table::Column;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// SES doesn't have the email and the key is free, or the claim is settled: nothing depends on SES's word.
    Safe,
    /// SES doesn't have the email, but the key is under a lease whose worker won't come back.
    Unsent,
    /// SES has the email, and the ledger doesn't know.
    Gap,
    /// The same, and the message was acknowledged, since the email left: nothing is there to send it again but another
    /// message.
    Acknowledged,
}

impl Fate {
    pub fn ending(self, setting: Setting) -> Ending {
        // In transaction mode Postgres frees the key, and nobody learns that there was a doubt.
        let held = setting.first == Mode::Lease && setting.in_doubt == InDoubt::Hold;
        match (self, setting.word) {
            (Self::Safe, _) => Ending::of(1, "worker"),
            (Self::Unsent, _) if held => Ending::of(0, "held"),
            (Self::Unsent, _) => Ending::of(1, "worker"),
            (Self::Gap | Self::Acknowledged, Word::InTime) => Ending::of(1, "ses"),
            (Self::Gap, Word::Late) if held => Ending::of(1, "ses"),
            (Self::Gap, Word::Never) if held => Ending::of(1, "held"),
            (Self::Gap, _) => Ending::of(2, "worker"),
            (Self::Acknowledged, Word::Late) => Ending::of(1, "ses"),
            (Self::Acknowledged, Word::Never) => Ending::of(1, "nobody"),
        }
    }
}

/// In transaction mode. Where SES never tells, the next worker is tried in both modes, and with what could hold an
/// email in one of them.
pub fn in_transactions() -> Vec<Column> {
    let never = Setting::transaction(Word::Never);
    let then_lease = Setting {
        in_doubt: InDoubt::Hold,
        ..never.then(Mode::Lease)
    };
    vec![
        Column {
            heading: "SES tells",
            settings: vec![Setting::transaction(Word::InTime)],
        },
        Column {
            heading: "SES never tells",
            settings: vec![never, then_lease],
        },
    ]
}

/// In lease mode. Where SES never tells, the next worker is tried in both modes.
pub fn under_leases() -> Vec<Column> {
    let column = |heading, in_doubt, word| {
        let lease = Setting::lease(in_doubt, word);
        let mut settings = vec![lease];
        if word == Word::Never {
            settings.push(lease.then(Mode::Transaction));
        }
        Column { heading, settings }
    };
    vec![
        column("`resend`: SES tells", InDoubt::Resend, Word::InTime),
        column("`resend`: never", InDoubt::Resend, Word::Never),
        column("`hold`: SES tells", InDoubt::Hold, Word::InTime),
        column("`hold`: never", InDoubt::Hold, Word::Never),
    ]
}

/// For what no word of SES's and no setting may change.
pub fn whatever_is_said_under_leases() -> Vec<Column> {
    let lease = Setting::lease;
    vec![
        Column {
            heading: "SES tells",
            settings: vec![lease(InDoubt::Resend, Word::InTime)],
        },
        Column {
            heading: "SES never tells",
            settings: vec![
                lease(InDoubt::Resend, Word::Never),
                lease(InDoubt::Hold, Word::Never).then(Mode::Transaction),
            ],
        },
    ]
}
