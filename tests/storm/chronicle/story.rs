//! What happened around one key.

use std::time::Instant;

use super::Book;

pub(super) fn tell(book: &Book, key: &str) -> String {
    let mut lines = Vec::new();
    for claim in book.claims.iter().filter(|claim| claim.key == key) {
        lines.push((claim.began, format!("{} claims", claim.worker)));
        if let Some(lease) = &claim.lease {
            if let Some((answered, won)) = lease.answered {
                let end = lease.ends.saturating_duration_since(answered).as_secs_f64();
                let won = if won { "wins" } else { "does not win" };
                let line = format!("{} {won} a lease for {end:.3} s", claim.worker);
                lines.push((answered, line));
            }
            if let Some(doubted) = lease.doubted {
                lines.push((doubted, format!("{} tells of its doubt", claim.worker)));
            }
        }
        if let Some((ended, end)) = claim.ended {
            lines.push((ended, format!("{}: the claim ends, {end:?}", claim.worker)));
        }
        if let Some(death) = book.deaths.get(&claim.worker) {
            lines.push((*death, format!("{} is killed", claim.worker)));
        }
    }
    for email in book.emails.iter().filter(|email| email.key == key) {
        let id = &email.ses_message_id;
        let reply = if email.reply_lost { ", reply lost" } else { "" };
        lines.push((
            email.accepted,
            format!("SES takes {id} from {}{reply}", email.worker),
        ));
        if let Some(processed) = book.processed.get(id) {
            lines.push((*processed, format!("the ledger knows of {id} from SES")));
        }
    }
    lines.sort();
    lines.dedup();
    told(&lines)
}

fn told(lines: &[(Instant, String)]) -> String {
    let start = lines.first().map(|(at, _)| *at);
    let lines = lines.iter().map(|(at, what)| {
        let after = start.map(|start| *at - start).unwrap_or_default();
        format!("    {:8.3} s  {what}", after.as_secs_f64())
    });
    lines.collect::<Vec<_>>().join("\n")
}
