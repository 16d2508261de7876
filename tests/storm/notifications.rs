//! What SES says of the emails that it took: mostly at once, sometimes late, in any order, and now and then twice.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fastrand::Rng;
use serde_json::Value;

use crate::dice::weighted;
use crate::modes::Modes;
use crate::plan::Plan;
use crate::queue::Queue;
use crate::support::mail::SendEmail;
use crate::support::notification::{in_eventbridge_envelope, in_sns_envelope, of_email};
use crate::tally::Tally;

pub struct Notifications {
    pub plan: Arc<Plan>,
    pub queue: Arc<Queue>,
    pub tally: Arc<Tally>,
    emails: Tally,
}

/// Slower than this is late: a message whose worker never learnt SES's answer comes back no sooner.
const LATE: Duration = Duration::from_secs(2);
/// In seconds: later than what comes back meanwhile.
const LATER: (f64, f64) = (2.5, 10.0);

impl Notifications {
    pub fn new(plan: Arc<Plan>, queue: Arc<Queue>, tally: Arc<Tally>) -> Self {
        Self {
            plan,
            queue,
            tally,
            emails: Tally::default(),
        }
    }

    pub fn tell_of(&self, email: &SendEmail) {
        let key = email.event_id();
        let mut rng = self
            .plan
            .dice
            .roll("notification", &key, self.emails.count(&key));
        let delay = delay(&mut rng, self.plan.modes);
        self.tally.count("notifications");
        if delay > LATE {
            self.tally.count("late notifications");
        }
        let send = of_email("send", email);
        self.put(email, &send, delay, &mut rng);
        if rng.u32(..100) < 15 {
            self.tally.count("repeated notifications");
            let delay = delay + seconds(&mut rng, 0.0, 3.0);
            self.put(email, &send, delay, &mut rng);
        }
        // What follows the email can be told before it.
        let others: &[&str] = weighted(
            &mut rng,
            &[
                (12, &[]),
                (6, &["delivery"]),
                (1, &["bounce"]),
                (1, &["delivery_delay", "delivery", "complaint"]),
            ],
        );
        for kind in others {
            let delay = seconds(&mut rng, 0.0, 4.0);
            self.put(email, &of_email(kind, email), delay, &mut rng);
        }
    }

    fn put(&self, email: &SendEmail, notification: &Value, delay: Duration, rng: &mut Rng) {
        let body = match rng.u32(..4) {
            0 => in_sns_envelope(notification),
            1 => in_eventbridge_envelope(notification),
            _ => notification.clone(),
        };
        let number = self.tally.count("messages of SES");
        let id = format!("n-{}-{number}", email.message_id);
        self.queue
            .send_at(&id, &body.to_string(), Instant::now() + delay);
    }
}

fn delay(rng: &mut Rng, modes: Modes) -> Duration {
    // In lease mode a crashed worker's event is sent again only after the lease and the wait.
    let later = if modes.have_leases() {
        (12.0, 24.0)
    } else {
        LATER
    };
    let (least, most) = weighted(
        rng,
        &[(80, (0.02, 0.3)), (12, (0.3, 1.5)), (4, LATER), (4, later)],
    );
    seconds(rng, least, most)
}

fn seconds(rng: &mut Rng, least: f64, most: f64) -> Duration {
    Duration::from_secs_f64(least + (most - least) * rng.f64())
}
