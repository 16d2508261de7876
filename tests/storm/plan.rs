//! All that is going to happen, drawn from the seed before it begins.

mod event;
mod weather;

use std::collections::HashMap;
use std::time::Duration;

use fastrand::Rng;

use crate::dice::{Dice, weighted};
use crate::modes::Modes;
use crate::settings::Settings;

pub use event::{Event, FIRST_ORDER, IMPOSSIBLE_APPLICATION, Kind, WITHHELD_APPLICATION};
pub use weather::{Role, Weather};

pub struct Plan {
    pub modes: Modes,
    pub dice: Dice,
    pub length: Duration,
    pub events: Vec<Event>,
    /// In the order in which they arrive.
    pub messages: Vec<Message>,
    pub weather: Vec<(Duration, Weather)>,
    by_key: HashMap<String, usize>,
}

/// A message of an event. One event may have several, as a producer that retries makes them.
#[derive(Clone, Debug)]
pub struct Message {
    pub id: String,
    pub event: usize,
    /// Which of the event's payloads it carries.
    pub payload: usize,
    pub body: String,
    pub at: Duration,
    /// When SQS hands it out once more although nobody asked: at least once, as it promises.
    pub again_at: Option<Duration>,
}

impl Plan {
    pub fn draw(settings: Settings) -> Self {
        let dice = Dice::new(settings.seed);
        let mut rng = dice.roll("plan", "", 0);
        let length = settings.length;
        let events = (0..settings.events)
            .map(|number| Event::new(number, &mut rng))
            .collect::<Vec<_>>();
        let mut messages = Vec::new();
        for (number, event) in events.iter().enumerate() {
            add_messages(&mut messages, number, event, length, &mut rng);
        }
        messages.sort_by_key(|message| message.at);
        let key_of = |message: &Message| events[message.event].key.clone();
        let weather = weather::forecast(&mut rng, length, &messages, key_of);
        let by_key = events
            .iter()
            .enumerate()
            .map(|(number, event)| (event.key.clone(), number))
            .collect();
        Self {
            modes: settings.modes,
            dice,
            length,
            events,
            messages,
            weather,
            by_key,
        }
    }

    pub fn event(&self, key: &str) -> Option<&Event> {
        self.by_key.get(key).map(|number| &self.events[*number])
    }

    /// The event whose message this is.
    pub fn event_of(&self, message_id: &str) -> Option<&Event> {
        let number = message_id.split('-').nth(1)?.parse::<usize>().ok()?;
        self.events.get(number)
    }
}

fn add_messages(
    messages: &mut Vec<Message>,
    number: usize,
    event: &Event,
    length: Duration,
    rng: &mut Rng,
) {
    let first = length.mul_f64(0.85 * rng.f64());
    let count = weighted(rng, &[(55, 1), (30, 2), (10, 3), (5, 4)]).max(event.least_messages());
    for copy in 0..count {
        // At the same moment, soon after, or after the first may have been forgotten in some worker's death.
        let most = weighted(rng, &[(3, 0.0), (4, 0.5), (4, 3.0), (2, 12.0)]);
        let at = if copy == 0 {
            first
        } else {
            (first + Duration::from_secs_f64(most * rng.f64())).min(length)
        };
        let again = (rng.u32(..100) < 4)
            .then(|| (at + Duration::from_secs_f64(6.0 * rng.f64())).min(length));
        messages.push(Message {
            id: format!("m-{number:06}-{copy}"),
            event: number,
            payload: event.payload_of(copy),
            body: event.body(copy, rng),
            at,
            again_at: again,
        });
    }
}
