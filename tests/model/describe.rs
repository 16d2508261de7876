//! A design in words, for the figures.

use std::fmt::{Display, Formatter, Result};

use crate::choices::{
    Begins, Fences, Held, LastRead, Leases, MarkRead, MarkStops, MarkedRows, Marks, Releases,
    Retries, Settles, Sweep, TakeOvers,
};
use crate::design::{ANY, Design, Fault, Mode, Notifications};
use crate::state::InDoubt;

impl Display for Design {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let [one, other] = self.workers;
        write!(f, "{one}")?;
        if one != other {
            write!(f, " beside {other}")?;
        }
        match self.messages {
            [_] => write!(f, ": one message")?,
            [0, 0] => write!(f, ": two messages")?,
            _ => write!(f, ": two events")?,
        }
        match self.copies {
            0 => {}
            1 => write!(f, ", a copy")?,
            copies => write!(f, ", {copies} copies")?,
        }
        self.describe_faults(f)?;
        match self.decisions {
            0 => {}
            1 => write!(f, ", an operator's decision")?,
            decisions => write!(f, ", {decisions} decisions of an operator")?,
        }
        self.describe_notifications(f)?;
        self.describe_details(f)
    }
}

impl Design {
    fn describe_faults(&self, f: &mut Formatter<'_>) -> Result {
        let kind = match self.kinds {
            [Fault::Crash] => "crash",
            [Fault::LostAnswer] => "lost answer",
            [Fault::LostConnection] => "lost connection",
            [Fault::LostReply] => "lost reply of Postgres",
            kinds if kinds == ANY => "fault of any kind",
            _ => "fault",
        };
        match self.faults {
            0 => write!(f, ", no fault"),
            faults => write!(f, ", {faults} \u{d7} {kind}"),
        }
    }

    fn describe_notifications(&self, f: &mut Formatter<'_>) -> Result {
        match self.notifications {
            Notifications::Sometime => Ok(()),
            Notifications::InTime => write!(f, ", notifications in time"),
            Notifications::None => write!(f, ", no feedback"),
        }
    }

    /// Those that aren't as they should be.
    fn describe_details(&self, f: &mut Formatter<'_>) -> Result {
        match self.begins {
            Begins::New => {}
            Begins::WithALateRelease => write!(f, ", a row in doubt whose release is late")?,
            Begins::WithALostTakeOver => write!(f, ", a row in doubt beside a mark")?,
        }
        if self.mark_stops == MarkStops::Everybody {
            write!(f, ", marks for everybody")?;
        }
        if self.mark_read == MarkRead::InTheInsert {
            write!(f, ", marks read in the insert")?;
        }
        if self.last_read == LastRead::Marks {
            write!(f, ", marks alone read before the send")?;
        }
        if self.marks == Marks::OutliveTheInvocation {
            write!(f, ", long marks")?;
        }
        if self.marked_rows == MarkedRows::AreTakenOver {
            write!(f, ", marked rows taken over")?;
        }
        match self.fences {
            Fences::Unique => {}
            Fences::FromOne => write!(f, ", attempts numbered from one")?,
            Fences::None => write!(f, ", attempts not numbered")?,
            Fences::OfTheBatch => write!(f, ", batches numbered, not records")?,
        }
        self.describe_statements(f)?;
        if self.leases == Leases::MayEndBefore {
            write!(f, ", short leases")?;
        }
        if self.sweep == Sweep::Never {
            write!(f, ", no sweep")?;
        }
        Ok(())
    }

    fn describe_statements(&self, f: &mut Formatter<'_>) -> Result {
        if self.retries == Retries::TakeANewNumber {
            write!(f, ", claims sent again with a new number")?;
        }
        match self.take_overs {
            TakeOvers::NumberAndMark => {}
            TakeOvers::NumberAlone => write!(f, ", rows taken over left without a mark")?,
            TakeOvers::MarkAlone => write!(f, ", rows taken over left with their number")?,
            TakeOvers::Neither => write!(f, ", rows taken over left as they were")?,
        }
        if self.releases == Releases::Anything {
            write!(f, ", releases of anything")?;
        }
        if self.settles == Settles::OfAnyAttempt {
            write!(f, ", settles of any attempt")?;
        }
        if self.held == Held::Acknowledged {
            write!(f, ", held messages acknowledged")?;
        }
        Ok(())
    }
}

impl Display for Mode {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(match self {
            Self::Transaction(InDoubt::Resend) => "transaction mode",
            Self::Transaction(InDoubt::Hold) => "transaction mode, hold",
            Self::Lease(InDoubt::Resend) => "lease mode, resend",
            Self::Lease(InDoubt::Hold) => "lease mode, hold",
            Self::ClaimAndKeep => "claim, commit, send",
            Self::SendThenClaim => "send, then claim",
            Self::CheckThenMark => "check, send, mark",
            Self::ExpiringLock => "lock, check, send, mark",
        })
    }
}
