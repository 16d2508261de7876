//! What happens at its own time, whatever the workers are doing: kills, cuts, restarts, neighbours.

use std::time::Duration;

use fastrand::Rng;

use super::Message;

#[derive(Clone, Debug)]
pub enum Weather {
    /// `kill -9` of a worker: the `which`-th, counted around.
    Kill { role: Role, which: usize },
    /// A worker stands still until its deadline has passed, and Lambda ends it.
    Stop { which: usize },
    /// All connections to Postgres are reset.
    Cut,
    /// `pg_ctl restart -m immediate`.
    Restart,
    /// Somebody inserts this key, and takes so long to roll it back.
    HoldKey { key: String, time: Duration },
    /// Somebody alters a table of the job board.
    LockJobBoard { time: Duration },
    /// SES throttles every request.
    Throttle { time: Duration },
    /// SES answers every request with 503.
    SesDown { time: Duration },
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Role {
    Notify,
    Feedback,
}

/// In the order of their times.
pub fn forecast(
    rng: &mut Rng,
    length: Duration,
    messages: &[Message],
    keys: impl Fn(&Message) -> String,
) -> Vec<(Duration, Weather)> {
    let mut all = Vec::new();
    // How far apart on average, in seconds.
    for (apart, kind) in [
        (3.0, 0),
        (6.0, 1),
        (12.0, 2),
        (4.0, 3),
        (6.0, 4),
        (0.7, 5),
        (7.0, 6),
        (10.0, 7),
        (12.0, 8),
    ] {
        let count = (length.as_secs_f64() / apart).ceil() as usize;
        for _ in 0..count {
            let at = length.mul_f64(0.03 + 0.94 * rng.f64());
            let weather = match kind {
                0 => Weather::Kill {
                    role: Role::Notify,
                    which: rng.usize(..100),
                },
                1 => Weather::Kill {
                    role: Role::Feedback,
                    which: rng.usize(..100),
                },
                2 => Weather::Stop {
                    which: rng.usize(..100),
                },
                3 => Weather::Cut,
                4 => Weather::Restart,
                5 => Weather::HoldKey {
                    key: keys(about_to_arrive(messages, at, rng)),
                    time: between(rng, 0.2, 6.0),
                },
                6 => Weather::LockJobBoard {
                    time: between(rng, 0.2, 1.5),
                },
                7 => Weather::Throttle {
                    time: between(rng, 0.3, 1.5),
                },
                _ => Weather::SesDown {
                    time: between(rng, 0.2, 0.8),
                },
            };
            all.push((at, weather));
        }
    }
    all.sort_by_key(|(at, _)| *at);
    all
}

/// A message of the second that follows.
fn about_to_arrive<'a>(messages: &'a [Message], at: Duration, rng: &mut Rng) -> &'a Message {
    let next = messages.partition_point(|message| message.at < at + between(rng, 0.0, 1.0));
    &messages[next.min(messages.len() - 1)]
}

fn between(rng: &mut Rng, least: f64, most: f64) -> Duration {
    Duration::from_secs_f64(least + (most - least) * rng.f64())
}
