//! The rules of the turns machine, each a name that `aldis why` shows and `docs/rules.md` explains.

use crate::rules::rules;

rules! {
    /// A channel was taken over from a state file.
    Adopted = "turns/adopted",
    /// An agent was added to the queue.
    AgentAdded = "turns/agent-added",
    /// An agent's process or connection is gone.
    AgentCrashed = "turns/agent-crashed",
    /// An agent was removed from the queue.
    AgentRemoved = "turns/agent-removed",
    /// An agent answered a human in another agent's turn.
    Answered = "turns/answered",
    /// A message came to a closed channel.
    ChannelClosed = "turns/channel-closed",
    /// The channel was closed.
    Closed = "turns/closed",
    /// The last sentence of a message is a completion phrase.
    CompletionPhrase = "turns/completion-phrase",
    /// The configuration of the channel was changed.
    Configured = "turns/configured",
    /// The time of a turn is over, and its agent has the grace period left.
    Grace = "turns/grace",
    /// A turn was interrupted until a human has an answer.
    Interrupted = "turns/interrupted",
    /// A message came after the turn it belongs to had been cut off.
    LateMessage = "turns/late-message",
    /// A human's message waits for the next turn.
    MessageHeld = "turns/message-held",
    /// A human's message went to the agent that has the turn.
    MessageInjected = "turns/message-injected",
    /// A human's message went to all agents.
    MessageToAll = "turns/message-to-all",
    /// A human or a program named the next agent.
    NextNamed = "turns/next-named",
    /// A message came from an agent that does not have the turn.
    NotActive = "turns/not-active",
    /// The channel was paused.
    Paused = "turns/paused",
    /// A turn timed out, and no agent took a turn for three rounds.
    PausedAfterSilence = "turns/paused-after-silence",
    /// The agent that has the turn sent a message without the keyword.
    Posted = "turns/posted",
    /// A message came in a channel without turns.
    PostedWithoutTurns = "turns/posted-without-turns",
    /// The deadline of a turn had passed when the machine came back after a restart.
    Recovered = "turns/recovered",
    /// A paused channel or an interrupted turn was resumed.
    Resumed = "turns/resumed",
    /// A human's message resumed a channel that was paused without a turn.
    ResumedByMessage = "turns/resumed-by-message",
    /// An agent was silent for longer than `silence_threshold`.
    Silence = "turns/silence",
    /// A channel was opened.
    Started = "turns/started",
    /// A turn's deadline passed.
    Timeout = "turns/timeout",
    /// A message ends with the keyword.
    TurnComplete = "turns/turn-complete",
    /// A human's question had no answer in time.
    Unanswered = "turns/unanswered",
}

#[cfg(test)]
mod tests {
    //! Names are unique, documented, and found again for what 0.1.0 stored.

    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_rule_has_one_name_and_a_line_in_the_document() {
        let document = include_str!("../../../../docs/rules.md");
        let names: BTreeSet<&str> = Rule::ALL.iter().map(|rule| rule.as_str()).collect();
        assert_eq!(names.len(), Rule::ALL.len());
        for rule in Rule::ALL.iter().copied() {
            let name = rule.as_str();
            let plain = |byte: u8| byte.is_ascii_lowercase() || b"-/".contains(&byte);
            assert!(name.bytes().all(plain), "{name}");
            assert!(document.contains(&format!("\n| `{name}` | ")), "{name} is not documented");
            assert_eq!(Rule::of_stored(name, ""), Some(rule));
        }
    }

    /// Every rule that 0.1.0 could write, with a summary of it.
    #[test]
    fn rules_of_0_1_0_are_known() {
        for (rule, summary, want) in [
            ("turns/added", "Put dev at place 2 of the queue", Rule::AgentAdded),
            ("turns/adopted", "Took over a channel", Rule::Adopted),
            ("turns/answer", "Posted what dev said", Rule::Answered),
            ("turns/closed", "Closed the channel", Rule::Closed),
            ("turns/closed", "Ignored dev", Rule::ChannelClosed),
            ("turns/configured", "Changed how the channel is run", Rule::Configured),
            ("turns/crashed", "Took dev out of the queue", Rule::AgentCrashed),
            ("turns/free", "Posted what dev said", Rule::PostedWithoutTurns),
            ("turns/grace", "Warned dev", Rule::Grace),
            ("turns/held", "Kept a human's words for the next turn", Rule::MessageHeld),
            ("turns/inject", "Gave a human's words to dev", Rule::MessageInjected),
            ("turns/interrupt", "Let the turn of dev wait", Rule::Interrupted),
            ("turns/late", "Posted what dev said", Rule::LateMessage),
            ("turns/next", "Gave the floor to dev", Rule::NextNamed),
            ("turns/not_active", "Did not post what dev said", Rule::NotActive),
            ("turns/parallel", "Gave a human's words to all", Rule::MessageToAll),
            ("turns/paused", "Let the channel rest", Rule::Paused),
            ("turns/phrase", "Ended the turn of dev", Rule::CompletionPhrase),
            ("turns/recovery", "Ended the turn of dev", Rule::Recovered),
            ("turns/removed", "Took dev out of the queue", Rule::AgentRemoved),
            ("turns/resumed", "Let the channel go on", Rule::Resumed),
            ("turns/said", "Heard dev, with nothing to post", Rule::Posted),
            ("turns/signal", "Ended the turn of dev", Rule::TurnComplete),
            ("turns/silence", "Ended the turn of dev", Rule::Silence),
            ("turns/start", "Opened the channel", Rule::Started),
            ("turns/timeout", "Ended the turn of dev", Rule::Timeout),
            ("turns/unanswered", "The turn goes on", Rule::Unanswered),
        ] {
            assert_eq!(rule_of_0_1_0(rule, summary), Some(want), "{rule}: {summary}");
            assert_eq!(Rule::of_stored(rule, summary), Some(want), "{rule}: {summary}");
        }
        assert_eq!(rule_of_0_1_0("turns/nothing", ""), None);
        assert_eq!(rule_of_0_1_0("phases/7", ""), None);
    }
}
