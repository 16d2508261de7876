//! Where the proxy strikes, and how.

use crate::dice::weighted;

use super::Shared;

/// A message that matters is on its way to Postgres.
#[derive(Clone, Copy, Debug)]
pub enum Moment {
    Claim,
    Commit,
    /// `feedback` commits what SES said.
    Settlement,
}

#[derive(Clone, Copy, Debug)]
pub struct Strike {
    pub when: When,
    pub how: How,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum When {
    /// Postgres never gets it.
    Before,
    /// Postgres has done it; the worker doesn't hear of it.
    Done,
}

#[derive(Clone, Copy, Debug)]
pub enum How {
    /// The connection is reset.
    Cut,
    /// Nothing passes any more, and nobody is told.
    Silence,
    Kill,
}

impl How {
    pub fn name(self) -> &'static str {
        match self {
            Self::Cut => "cut",
            Self::Silence => "silenced",
            Self::Kill => "killed",
        }
    }
}

/// In a thousand moments of each kind.
const AT_CLAIM: u32 = 30;
const AT_COMMIT: u32 = 70;
const AT_SETTLEMENT: u32 = 60;
/// A key that has had so many such moments has had its share.
const MOST: u32 = 4;

impl Shared {
    pub fn strike(&self, moment: Moment, key: &str) -> Option<Strike> {
        if !self.sky.is_storming() {
            return None;
        }
        let (name, in_a_thousand) = match moment {
            Moment::Claim => ("claim", AT_CLAIM),
            Moment::Commit => ("commit", AT_COMMIT),
            Moment::Settlement => ("settlement", AT_SETTLEMENT),
        };
        let time = self.moments.count(&format!("{name} {key}"));
        let mut rng = self.dice.roll(name, key, time);
        if time >= MOST || rng.u32(..1000) >= in_a_thousand {
            return None;
        }
        let when = weighted(&mut rng, &[(1, When::Before), (1, When::Done)]);
        let how = weighted(
            &mut rng,
            &[(5, How::Cut), (2, How::Silence), (1, How::Kill)],
        );
        Some(Strike { when, how })
    }
}
