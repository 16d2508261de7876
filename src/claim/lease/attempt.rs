//! The number of an attempt, by which a row knows whose it is.

/// The number under which keys are claimed and settled. What another attempt writes late, when its lease has run out
/// and somebody else has the row, changes nothing.
///
/// It is random and not counted: a row that is released is deleted, and the next one of its key must not begin with a
/// number that a late statement still carries. Chosen here and not by Postgres, so that a claim whose answer was lost
/// is known again when it is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt(i64);

impl Attempt {
    /// A new one.
    #[expect(clippy::new_without_default, reason = "no two are equal")]
    pub fn new() -> Self {
        let number = getrandom::u64().expect("the operating system has random numbers");
        Self(number.cast_signed())
    }

    pub(super) fn number(self) -> i64 {
        self.0
    }
}
