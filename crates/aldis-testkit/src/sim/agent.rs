//! A fake agent: says the right thing, the wrong thing, the same thing again, or nothing.

use std::sync::LazyLock;

use aldis_machine::Miss;
use aldis_machine::phases::{Pipeline, Said, SaidSignal, State, Utterance, hear};
use aldis_signal::time::Timestamp;
use aldis_signal::{Dialect, Meaning, Origin, Role, Rules};

use crate::corpus::rng::Rng;

/// One finding in so many is made from text by the real scanner.
const SCANNED_EVERY: usize = 64;

/// Who speaks, and when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Speaker<'w> {
    /// The run as far as the agent can know it.
    pub(super) state: &'w State,
    pub(super) now: Timestamp,
    /// A sub-agent's name; the main agent has none.
    pub(super) agent: Option<&'w str>,
    /// Whether the host says when each message was written.
    pub(super) timed: bool,
}

/// What the agent says before it stops.
pub(super) fn speak(rng: &mut Rng, speaker: Speaker<'_>) -> Vec<Said> {
    let state = speaker.state;
    if rng.below(SCANNED_EVERY) == 0 {
        return scanned(rng, speaker);
    }
    let mut said = Vec::new();
    match rng.below(100) {
        0..42 => {}
        42..50 => said.push(almost(state)),
        50..80 => said.push(speaker.signal(rng, &ending(&state.pipeline, &state.phase))),
        80..84 => {
            // Several phases in one message, in order.
            let mut phase = state.phase.clone();
            for _ in 0..rng.between(2, 4) {
                said.push(speaker.signal(rng, &ending(&state.pipeline, &phase)));
                let next = state.pipeline.next(&phase, &state.config.skip);
                phase = next.unwrap_or("complete").to_owned();
            }
        }
        84..89 => {
            let any = rng.below(state.pipeline.phases.len());
            let phase = state.pipeline.phases[any].name.clone();
            said.push(speaker.signal(rng, &ending(&state.pipeline, &phase)));
        }
        89..91 => said.push(speaker.signal(rng, &("AUTO_COMPLETE".to_owned(), Meaning::Done))),
        91..95 => {
            let recoverable = rng.chance(75);
            said.push(speaker.error(rng, recoverable));
        }
        95..97 => {
            // Both at once: failure and success, in either order.
            let done = speaker.signal(rng, &ending(&state.pipeline, &state.phase));
            let failed = speaker.error(rng, true);
            said.extend(if rng.chance(50) { [done, failed] } else { [failed, done] });
        }
        _ => said.push(speaker.signal(rng, &("TRANSITION_TO_QA".to_owned(), Meaning::Info))),
    }
    said
}

/// The signal that ends a phase, or one that ends any.
fn ending(pipeline: &Pipeline, phase: &str) -> (String, Meaning) {
    let named = pipeline.phase(phase).and_then(|phase| phase.signal.clone());
    (named.unwrap_or_else(|| "COMPLETE".to_owned()), Meaning::Done)
}

fn almost(state: &State) -> Said {
    let (name, _) = ending(&state.pipeline, &state.phase);
    Said::NearMiss(Miss {
        quote: format!("I will say {name}"),
        reason: "not_whole_line".to_owned(),
        hint: "write it on a line of its own".to_owned(),
        line: 3,
        name,
    })
}

impl Speaker<'_> {
    fn signal(&self, rng: &mut Rng, (name, meaning): &(String, Meaning)) -> Said {
        Said::Signal(SaidSignal {
            name: name.clone(),
            meaning: *meaning,
            phase: None,
            error: None,
            recoverable: None,
            message: 0,
            agent: self.agent.map(str::to_owned),
            subagent: self.agent.is_some(),
            at: self.moment(rng),
            new_by_position: false,
            line: 2,
            quote: format!("SIGNAL: {name}"),
            trusted: self.state.token.is_some(),
        })
    }

    fn error(&self, rng: &mut Rng, recoverable: bool) -> Said {
        let Said::Signal(mut signal) =
            self.signal(rng, &("PHASE_ERROR".to_owned(), Meaning::Failed))
        else {
            return almost(self.state);
        };
        signal.phase = rng.chance(60).then(|| self.state.phase.clone());
        signal.error = Some("no disk".to_owned());
        signal.recoverable = (recoverable || rng.chance(90)).then_some(recoverable);
        Said::Signal(signal)
    }

    /// When it was said: just now, or long ago where a transcript is read again.
    fn moment(&self, rng: &mut Rng) -> Option<Timestamp> {
        if !self.timed {
            return None;
        }
        let ago = if rng.chance(85) { rng.below(900) } else { rng.below(7_200_000) };
        Some(Timestamp::from_millis(self.now.as_millis() - i64::try_from(ago).unwrap_or(0)))
    }
}

/// What the real scanner hears in a message that says the expected thing, or almost.
fn scanned(rng: &mut Rng, speaker: Speaker<'_>) -> Vec<Said> {
    let state = speaker.state;
    let (name, _) = ending(&state.pipeline, &state.phase);
    let token = state.token.as_ref().map(|code| format!("TOKEN: {code}\n")).unwrap_or_default();
    let text = match (&*state.pipeline.dialect, rng.below(4)) {
        ("chorus", 0) => "I am about to say `<chorus>COMPLETE</chorus>`.".to_owned(),
        ("chorus", _) => match &state.token {
            Some(_) => "All green.".to_owned(),
            None => "All green.\n\n<chorus>COMPLETE</chorus>".to_owned(),
        },
        (_, 0) => format!("I will print SIGNAL: {name} later."),
        (_, 1) => format!("> ---\n> SIGNAL: {name}\n> ---\n\nas they said."),
        _ => format!("Done.\n\n---\nSIGNAL: {name}\nSTATUS: complete\n{token}---\n"),
    };
    let origin = match speaker.agent {
        Some(agent) => Origin::new(Role::Subagent).with_agent(agent),
        None => Origin::assistant(),
    };
    let at = speaker.moment(rng);
    let utterance = Utterance { text: &text, origin, at, new_by_position: false, last: true };
    hear(rules(&state.pipeline.dialect), &state.expected_token(), &[utterance])
}

fn rules(dialect: &str) -> &'static Rules {
    static CAW: LazyLock<Rules> = LazyLock::new(|| built("caw"));
    static CHORUS: LazyLock<Rules> = LazyLock::new(|| built("chorus"));
    if dialect == "chorus" { &CHORUS } else { &CAW }
}

fn built(dialect: &str) -> Rules {
    Rules::new(Dialect::builtin(dialect).cloned())
}
