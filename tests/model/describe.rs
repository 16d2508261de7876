//! A design in words, for the figures.

use std::fmt::{Display, Formatter, Result};

use crate::design::{
    ANY, Design, DoubtRead, DoubtRow, Fault, Fences, Leases, Mode, Notifications, Sweep,
};
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
        if self.doubt_row == DoubtRow::OtherMessages {
            write!(f, ", in-doubt row for other messages only")?;
        }
        if self.doubt_read == DoubtRead::InTheInsert {
            write!(f, ", in-doubt row read in the insert")?;
        }
        match self.fences {
            Fences::Unique => {}
            Fences::FromOne => write!(f, ", attempts numbered from one")?,
            Fences::None => write!(f, ", attempts not numbered")?,
        }
        if self.leases == Leases::MayEndBefore {
            write!(f, ", short leases")?;
        }
        if self.sweep == Sweep::Never {
            write!(f, ", no sweep")?;
        }
        Ok(())
    }
}

impl Display for Mode {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(match self {
            Self::Transaction(_) => "transaction mode",
            Self::Lease(InDoubt::Resend) => "lease mode, resend",
            Self::Lease(InDoubt::Hold) => "lease mode, hold",
            Self::ClaimAndKeep => "claim, commit, send",
            Self::SendThenClaim => "send, then claim",
            Self::CheckThenMark => "check, send, mark",
            Self::ExpiringLock => "lock, check, send, mark",
        })
    }
}
