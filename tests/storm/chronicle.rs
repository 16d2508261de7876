//! What happened, as the stand-ins saw it: every claim, every email, every death, each with its time.

mod gap;
mod lease;
mod story;

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use lease::Lease;

pub use gap::{SecondEmail, Way};

#[derive(Default)]
pub struct Chronicle(Mutex<Book>);

#[derive(Default)]
struct Book {
    claims: Vec<Claim>,
    emails: Vec<Email>,
    /// When a worker was killed, or stood still for good.
    deaths: HashMap<String, Instant>,
    /// When Postgres had committed what SES said of an email, by its message id.
    processed: HashMap<String, Instant>,
    /// From when until when Postgres was being restarted.
    restarts: Vec<(Instant, Instant)>,
}

/// A worker's claim of a key, as it passed the proxy on its way to Postgres.
#[derive(Clone, Debug)]
struct Claim {
    key: String,
    worker: String,
    began: Instant,
    ended: Option<(Instant, End)>,
    /// In lease mode.
    lease: Option<Lease>,
}

/// How a claim ended, as Postgres answered.
/// Under a lease: settled, left in doubt, or released.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum End {
    Committed,
    /// Given up and marked, since nobody knows whether the email left.
    InDoubt,
    RolledBack,
    /// The network lost its connection: cut or swallowed.
    Lost,
    /// Postgres closed its connection.
    EndedByPostgres,
    /// The worker closed its connection.
    Dropped,
}

#[derive(Clone, Debug)]
struct Email {
    key: String,
    worker: String,
    ses_message_id: String,
    accepted: Instant,
    reply_lost: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct ClaimNumber(usize);

impl Chronicle {
    pub fn claim_begins(&self, key: &str, worker: &str) -> ClaimNumber {
        let mut book = self.book();
        book.claims.push(Claim {
            key: key.to_owned(),
            worker: worker.to_owned(),
            began: Instant::now(),
            ended: None,
            lease: None,
        });
        ClaimNumber(book.claims.len() - 1)
    }

    /// The first end counts: what follows a cut is nobody's business.
    pub fn claim_ends(&self, number: ClaimNumber, end: End) {
        let claim = &mut self.book().claims[number.0];
        claim.ended.get_or_insert((Instant::now(), end));
    }

    /// Gives the message id of the email that has just left.
    pub fn email_leaves(&self, key: &str, worker: &str) -> String {
        let mut book = self.book();
        let ses_message_id = format!("0102018c7f3a5b2c-{:08x}-000000", book.emails.len() + 1);
        book.emails.push(Email {
            key: key.to_owned(),
            worker: worker.to_owned(),
            ses_message_id: ses_message_id.clone(),
            accepted: Instant::now(),
            reply_lost: false,
        });
        ses_message_id
    }

    pub fn reply_is_lost(&self, ses_message_id: &str) {
        let mut book = self.book();
        let mut emails = book.emails.iter_mut().rev();
        let email = emails.find(|email| email.ses_message_id == ses_message_id);
        email.expect("it has left").reply_lost = true;
    }

    pub fn worker_dies(&self, worker: &str) {
        let mut book = self.book();
        book.deaths
            .entry(worker.to_owned())
            .or_insert_with(Instant::now);
    }

    pub fn notification_is_processed(&self, ses_message_id: &str) {
        let mut book = self.book();
        book.processed
            .entry(ses_message_id.to_owned())
            .or_insert_with(Instant::now);
    }

    pub fn postgres_was_restarted(&self, began: Instant, ended: Instant) {
        self.book().restarts.push((began, ended));
    }

    /// The message ids of all emails, by key, in the order in which they left.
    pub fn emails(&self) -> HashMap<String, Vec<String>> {
        let mut emails = HashMap::<String, Vec<String>>::new();
        for email in &self.book().emails {
            let of_key = emails.entry(email.key.clone()).or_default();
            of_key.push(email.ses_message_id.clone());
        }
        emails
    }

    /// `in_doubt_wait`: for how long after a lease's end SES's word may settle its claim.
    pub fn second_emails(&self, in_doubt_wait: Duration) -> Vec<SecondEmail> {
        gap::second_emails(&self.book(), in_doubt_wait)
    }

    /// All that is known of a key, in the order of time, for whoever must find out how it came about.
    pub fn story(&self, key: &str) -> String {
        story::tell(&self.book(), key)
    }

    /// Emails whose claim or whose notification was never seen to pass: if there are any, what is said here of second
    /// emails is worth nothing.
    pub fn untraced(&self) -> Vec<String> {
        gap::untraced(&self.book())
    }

    fn book(&self) -> std::sync::MutexGuard<'_, Book> {
        self.0.lock().expect("nobody panics here")
    }
}
