//! What is promised, each promise as a question about a state.

use crate::attempt::{Circumstances, Fate};
use crate::design::Design;
use crate::queue;
use crate::state::{Event, Message, Row, State};

/// Of every state.
pub type Property = fn(&Design, &State) -> bool;

/// An event that has no email has a message that can still bring it: on the queue, with a worker, or in the
/// dead-letter queue, where that of an event that is held is. Unless an operator has decided that it was sent.
pub fn no_email_is_lost(design: &Design, state: &State) -> bool {
    design.events().all(|event| {
        let Event {
            emails,
            taken_for_sent,
            ..
        } = state.event(event);
        let has_message =
            queue::messages_about(state, design, event).any(|message| message != Message::Deleted);
        has_message || !emails.is_empty() || *taken_for_sent
    })
}

/// Nobody is told that an email was sent that wasn't, but by an operator.
pub fn what_is_called_sent_was_sent(design: &Design, state: &State) -> bool {
    design.events().all(|event| {
        let Event {
            emails,
            row,
            taken_for_sent,
            ..
        } = state.event(event);
        *row != Row::Sent || !emails.is_empty() || *taken_for_sent
    })
}

pub fn no_second_email(design: &Design, state: &State) -> bool {
    design
        .events()
        .all(|event| state.event(event).emails.len() <= 1)
}

/// Each time that an operator has a held event sent again, it may be one more.
pub fn a_second_email_is_an_operators_choice(design: &Design, state: &State) -> bool {
    design.events().all(|event| {
        let Event {
            emails, resends, ..
        } = state.event(event);
        emails.len() <= 1 + usize::from(*resends)
    })
}

/// Transaction mode: a second email leaves only if every earlier attempt that may have sent one has broken (its
/// worker died, never learnt SES's answer, lost its transaction, or could not write its claim before the deadline),
/// and only if it was claimed before the notification of an earlier email was processed.
pub fn a_second_email_follows_a_broken_attempt_not_heard_of(
    design: &Design,
    state: &State,
) -> bool {
    second_emails_follow(
        &[
            Fate::Crashed,
            Fate::NoAnswer,
            Fate::ClaimLost,
            Fate::NotWritten,
        ],
        design,
        state,
    )
}

/// Lease mode: the same, but an attempt can't lose its claim as long as its worker lives.
pub fn a_second_email_follows_an_attempt_in_doubt_not_heard_of(
    design: &Design,
    state: &State,
) -> bool {
    second_emails_follow(
        &[Fate::Crashed, Fate::NoAnswer, Fate::NotWritten],
        design,
        state,
    )
}

/// What one would like to say of both modes, and can say of neither.
pub fn a_second_email_follows_a_crash_or_a_lost_answer(design: &Design, state: &State) -> bool {
    second_emails_follow(&[Fate::Crashed, Fate::NoAnswer], design, state)
}

fn second_emails_follow(excuses: &[Fate], design: &Design, state: &State) -> bool {
    design.events().all(|event| {
        let emails = &state.event(event).emails;
        let is_excused =
            |claimed: Circumstances| !claimed.after_notification && claimed.earlier.only(excuses);
        emails.len() < 2 || emails.iter().all(|email| is_excused(email.claimed))
    })
}

/// Once a notification has been processed, the ledger says `sent`, and goes on saying it.
pub fn what_ses_has_told_stands(design: &Design, state: &State) -> bool {
    design.events().all(|event| {
        let Event { emails, row, .. } = state.event(event);
        *row == Row::Sent || !emails.iter().any(|email| email.heard)
    })
}

/// What must stay within reach of every state, by reliable steps alone: nothing on the queue, nobody at work, no key
/// locked, and no row that says `sending`.
pub fn all_is_settled(design: &Design, state: &State) -> bool {
    let nobody_works = state.tasks().next().is_none();
    nobody_works
        && design.events().all(|event| {
            let Event {
                row, mark, orphan, ..
            } = state.event(event);
            let is_sending = matches!(row, Row::Sending(..));
            queue::is_empty_of(state, design, event)
                && !is_sending
                && mark.is_none()
                && orphan.is_none()
        })
}

/// Only what an operator can't know.
pub fn nothing_unsent_is_taken_for_sent(design: &Design, state: &State) -> bool {
    design.events().all(|event| {
        let Event {
            emails,
            taken_for_sent,
            ..
        } = state.event(event);
        !taken_for_sent || !emails.is_empty()
    })
}

/// Only what `hold` can't promise.
pub fn nothing_unsent_is_held(design: &Design, state: &State) -> bool {
    design.events().all(|event| {
        let Event { emails, row, .. } = state.event(event);
        !matches!(row, Row::Unknown(_)) || !emails.is_empty()
    })
}
