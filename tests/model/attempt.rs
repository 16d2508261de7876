//! What is remembered of each attempt to send, so that a second email can be told to be excused or not.

/// An email that SES has accepted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Email {
    /// Whether `feedback` has committed what the notification of it says.
    pub heard: bool,
    pub fate: Fate,
    pub claimed: Circumstances,
}

/// A request for an email that its worker gave up, or died over. SES may accept it still.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Request {
    pub fate: Fate,
    pub claimed: Circumstances,
}

/// What became of an attempt to send.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Fate {
    /// Nothing went wrong with it.
    Sound,
    /// Its worker died.
    Crashed,
    /// Its worker didn't learn SES's answer.
    NoAnswer,
    /// Transaction mode: its worker lost the transaction that held the key.
    ClaimLost,
    /// Its worker could not write until its deadline that the email left.
    NotWritten,
}

/// How things stood when an attempt won its claim: what decides whether a second email is excused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Circumstances {
    /// The notification of an earlier email had been processed.
    pub after_notification: bool,
    /// The fates of earlier attempts that have, or may yet have, sent an email.
    pub earlier: Fates,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Fates(u8);

impl Fates {
    pub fn add(&mut self, fate: Fate) {
        self.0 |= 1 << fate as u8;
    }

    pub fn only(self, excused: &[Fate]) -> bool {
        let mut allowed = Self::default();
        excused.iter().for_each(|&fate| allowed.add(fate));
        self.0 & !allowed.0 == 0
    }
}
