//! What runs beside the supervisor: an agent that does anything, or the check of its claim.

use aldis_machine::run::{Event, Exit, Heard, Usage};
use aldis_signal::Meaning;
use aldis_signal::time::Timestamp;

use crate::corpus::rng::Rng;

/// A process of the supervisor.
#[derive(Debug)]
pub(super) enum Job {
    Agent(Agent),
    Check,
}

/// An agent at work.
#[derive(Debug)]
pub(super) struct Agent {
    pub(super) name: String,
    pub(super) suspended: bool,
    /// Whether it was asked to stop.
    pub(super) asked: bool,
    /// How it goes about its work.
    manner: Manner,
    spent: Usage,
    messages: u64,
}

#[derive(Clone, Copy, Debug)]
enum Manner {
    /// Works, reports, claims to be done at last.
    Diligent,
    /// Says the same again and again.
    Stuck,
    /// Says and does nothing.
    Silent,
    /// Ends at once.
    Hasty,
}

impl Agent {
    pub(super) fn new(rng: &mut Rng, number: u64) -> Self {
        let manners = [Manner::Diligent, Manner::Diligent, Manner::Stuck, Manner::Silent];
        let manner = if rng.chance(15) { Manner::Hasty } else { rng.pick(&manners) };
        let name = format!("agent-{number}");
        let spent = Usage::default();
        Self { name, suspended: false, asked: false, manner, spent, messages: 0 }
    }

    /// Does the next thing: nothing, something, or it ends.
    pub(super) fn act(&mut self, rng: &mut Rng, now: Timestamp) -> Option<Event> {
        if self.suspended {
            return None;
        }
        let ends = match self.manner {
            Manner::Hasty => 60,
            Manner::Diligent => 12,
            Manner::Stuck => 5,
            Manner::Silent => 1,
        };
        if rng.chance(if self.asked { 50 } else { ends }) {
            return Some(self.end(rng));
        }
        match (self.manner, rng.below(20)) {
            (Manner::Silent, _) => None,
            (Manner::Stuck, 0..14) => Some(self.says(Meaning::Progress, Some(40))),
            (_, 0..5) => Some(Event::Worked),
            (_, 5..8) => {
                let percent = u8::try_from(rng.below(101)).unwrap_or(100);
                Some(self.says(Meaning::Progress, Some(percent)))
            }
            (_, 8..11) => {
                self.spent.tokens += rng.below(50) as u64;
                self.spent.micro_dollars += rng.below(20) as u64;
                Some(Event::Spent(self.spent))
            }
            (_, 11..14) => Some(self.says(Meaning::Done, None)),
            (_, 14) => {
                let rare = [Meaning::Blocked, Meaning::NeedsHelp, Meaning::NeedsHuman];
                let rare = [&rare[..], &[Meaning::Failed, Meaning::Info]].concat();
                let meaning = rng.pick(&rare);
                Some(self.says(meaning, None))
            }
            (_, 15) => Some(Event::Missed { hint: format!("hint {}", rng.below(12)) }),
            (_, 16) => Some(Event::Retrying { what: "529".to_owned() }),
            (_, 17) => {
                let wait = std::time::Duration::from_secs(rng.below(5_000) as u64);
                let until = rng.chance(60).then(|| now.after(wait));
                Some(Event::Limited { what: "limit".to_owned(), until })
            }
            (_, 18) if rng.chance(20) => Some(Event::Refused { what: "401".to_owned() }),
            _ => None,
        }
    }

    fn says(&mut self, meaning: Meaning, progress: Option<u8>) -> Event {
        self.messages += 1;
        let heard = Heard {
            name: meaning.as_str().to_uppercase(),
            meaning,
            text: None,
            progress,
            phase: None,
            implied: None,
            iteration: None,
            no_op: false,
            message: self.messages,
            quote: String::new(),
            line: 1,
        };
        Event::Heard { said: vec![heard] }
    }

    /// How it ends: well, mostly.
    pub(super) fn end(&self, rng: &mut Rng) -> Event {
        let (code, signal) = match rng.below(12) {
            _ if self.asked => (None, Some(15)),
            0 => (Some(1), None),
            1 => (None, Some(11)),
            _ => (Some(0), None),
        };
        Event::Exited(Exit { code, signal })
    }
}
