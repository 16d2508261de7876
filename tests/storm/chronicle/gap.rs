//! Whether a second email is one of those that `docs/guarantee.md` says may leave.

use std::collections::HashMap;
use std::time::Duration;

use super::lease::Lease;
use super::{Book, Claim, Email, End};

/// What befell an attempt between SES's acceptance and the commit of its claim.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Way {
    WorkerDied,
    ReplyLost,
    /// Postgres or the connection to it was lost, and the claim with it.
    ClaimLost,
}

#[derive(Clone, Debug)]
pub struct SecondEmail {
    pub key: String,
    /// How it came to be, or why it should not have.
    pub excuse: Result<Way, String>,
}

/// The book with its claims by key.
struct Index<'a> {
    book: &'a Book,
    in_doubt_wait: Duration,
    claims: HashMap<&'a str, Vec<&'a Claim>>,
}

impl<'a> Index<'a> {
    fn of(book: &'a Book, in_doubt_wait: Duration) -> Self {
        let mut claims = HashMap::<&str, Vec<&Claim>>::new();
        for claim in &book.claims {
            claims.entry(&claim.key).or_default().push(claim);
        }
        Self {
            book,
            in_doubt_wait,
            claims,
        }
    }
}

pub(super) fn second_emails(book: &Book, in_doubt_wait: Duration) -> Vec<SecondEmail> {
    let index = Index::of(book, in_doubt_wait);
    let mut by_key = HashMap::<&str, Vec<&Email>>::new();
    for email in &book.emails {
        by_key.entry(&email.key).or_default().push(email);
    }
    let mut seconds = Vec::new();
    for (key, emails) in by_key {
        for (place, email) in emails.iter().enumerate().skip(1) {
            seconds.push(SecondEmail {
                key: key.to_owned(),
                excuse: excuse(&index, &emails[..place], email),
            });
        }
    }
    seconds.sort_by(|one, other| one.key.cmp(&other.key));
    seconds
}

pub(super) fn untraced(book: &Book) -> Vec<String> {
    let index = Index::of(book, Duration::ZERO);
    let mut untraced = Vec::new();
    for email in &book.emails {
        if let Err(problem) = claim_of(&index, email) {
            untraced.push(problem);
        }
        if !book.processed.contains_key(&email.ses_message_id) {
            let id = &email.ses_message_id;
            untraced.push(format!("the notification of {id} was never committed"));
        }
    }
    untraced
}

/// Each email before it must have been sent by an attempt that was struck in that moment, or this one was itself; and
/// this one's claim must have begun before SES's word of any of them was in the ledger.
fn excuse(index: &Index<'_>, before: &[&Email], email: &Email) -> Result<Way, String> {
    let claim = claim_of(index, email)?;
    let mut way = Err("it is the first".to_owned());
    for earlier in before {
        let processed = index.book.processed.get(&earlier.ses_message_id);
        if processed.is_some_and(|processed| *processed <= claim.began) {
            return Err(format!(
                "the notification of {} was in the ledger before the claim of {} began",
                earlier.ses_message_id, email.ses_message_id
            ));
        }
        way = match way_of(index, earlier, email) {
            Err(_) if was_overtaken(index.book, claim, email)? => Ok(Way::ClaimLost),
            way => Ok(way?),
        };
    }
    way
}

/// A worker whose connection is lost learns of it at once, and must not send any more. What it has just sent may reach
/// SES after the email of whoever has the claim now.
const UNDERWAY: Duration = Duration::from_millis(300);

fn was_overtaken(book: &Book, claim: &Claim, email: &Email) -> Result<bool, String> {
    let lost = match claim.ended {
        Some((lost, End::Dropped)) if died_meanwhile(book, claim) => lost,
        Some((lost, _)) if was_lost(book, claim) => lost,
        _ => return Ok(false),
    };
    let since = email.accepted.saturating_duration_since(lost);
    if since > UNDERWAY {
        return Err(format!(
            "{} was sent {} ms after its claim had been lost",
            email.ses_message_id,
            since.as_millis()
        ));
    }
    Ok(true)
}

fn way_of(index: &Index<'_>, email: &Email, next: &Email) -> Result<Way, String> {
    let claim = claim_of(index, email)?;
    let id = &email.ses_message_id;
    match claim.ended {
        Some((_, End::Committed)) => return Err(format!("the claim of {id} was committed")),
        Some((_, End::RolledBack)) if claim.lease.is_some() => {
            return Err(format!("the claim of {id} was released"));
        }
        _ => {}
    }
    if let Some(lease) = &claim.lease {
        was_waited_for(index, lease, email, next)?;
    }
    if email.reply_lost {
        return Ok(Way::ReplyLost);
    }
    if died_meanwhile(index.book, claim) {
        return Ok(Way::WorkerDied);
    }
    if was_lost(index.book, claim) {
        return Ok(Way::ClaimLost);
    }
    Err(format!(
        "nothing befell the worker of {id}, and its claim ended so: {:?}",
        claim.ended
    ))
}

/// What a lease promises, and transaction mode doesn't: whoever comes next lets it run out, unless its worker told of
/// the doubt itself, and then waits for SES's word.
fn was_waited_for(
    index: &Index<'_>,
    lease: &Lease,
    email: &Email,
    next: &Email,
) -> Result<(), String> {
    let claim = claim_of(index, next)?;
    let in_doubt = lease.doubted.map_or(lease.ends, |at| at.min(lease.ends));
    let answered = claim.lease.as_ref().and_then(|lease| lease.answered);
    let decided = answered.map_or(next.accepted, |(at, _)| at);
    let early = (in_doubt + index.in_doubt_wait).saturating_duration_since(decided);
    if early.is_zero() {
        return Ok(());
    }
    Err(format!(
        "the claim of {} came {} ms before SES's word of {} had had its time",
        next.ses_message_id,
        early.as_millis(),
        email.ses_message_id
    ))
}

/// By the network, or by a restart of Postgres; that Postgres ends a session for any other reason is no excuse. A
/// lease is not lost; but its settlement may never get through.
fn was_lost(book: &Book, claim: &Claim) -> bool {
    if let Some(lease) = &claim.lease {
        let mut restarts = book.restarts.iter();
        return claim.ended.is_none()
            && (lease.settling
                || restarts.any(|(began, ended)| *ended >= claim.began && *began <= lease.ends));
    }
    match claim.ended {
        Some((_, End::Lost)) => true,
        Some((at, End::EndedByPostgres)) => {
            let mut restarts = book.restarts.iter();
            restarts.any(|(began, ended)| (*began..=*ended).contains(&at))
        }
        _ => false,
    }
}

fn died_meanwhile(book: &Book, claim: &Claim) -> bool {
    let death = book.deaths.get(&claim.worker);
    death.is_some_and(|death| {
        *death >= claim.began && claim.ended.is_none_or(|(ended, _)| ended >= *death)
    })
}

/// The claim under which an email was sent: the worker's last one for its key before SES took it.
fn claim_of<'a>(index: &Index<'a>, email: &Email) -> Result<&'a Claim, String> {
    let id = &email.ses_message_id;
    let claims = index.claims.get(email.key.as_str());
    let mut claims = claims.into_iter().flatten().rev();
    let claim = claims
        .find(|claim| claim.worker == email.worker && claim.began <= email.accepted)
        .ok_or_else(|| format!("{id} was sent without a claim"))?;
    let answered = claim.lease.as_ref().and_then(|lease| lease.answered);
    if answered.is_some_and(|(_, won)| !won) {
        return Err(format!("{id} was sent although the claim was not won"));
    }
    Ok(claim)
}
