//! What must hold after every step of a channel, judged from the outside.
//!
//! The books know which turns have ended, how each agent's latest turn ended, who spoke in the turn
//! that goes on, and which requests were answered. They never ask the machine whether it is right.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use aldis::engine::channel_log::Kept;
use aldis_machine::turns::{
    Effect, Event, Floor, Heard, Mode, Reason, Reply, State, Turn, TurnOrder, Verdict,
};
use aldis_signal::time::Timestamp;

use super::super::oracle::{Check, hold};
use super::engine::Line;

/// The oldest line of history is forgotten after so many.
const HISTORY_MAX: usize = 100;

/// One step as it is judged.
pub(super) struct Seen<'s> {
    pub(super) now: Timestamp,
    pub(super) before: &'s State,
    pub(super) after: &'s State,
    pub(super) event: &'s Event,
    pub(super) source: Option<&'s str>,
    /// What was answered; nobody knows after a failure.
    pub(super) kept: Option<&'s Kept>,
}

/// The oracle's books about one channel.
#[derive(Debug, Default)]
pub(super) struct Books {
    /// The numbers of turns that have ended.
    ended: BTreeSet<u64>,
    last_ended: BTreeMap<String, Reason>,
    /// Turns in a row that nobody said a word in, and that ran out.
    silent: usize,
    /// What was answered to whom.
    answers: BTreeMap<String, Kept>,
}

impl Seen<'_> {
    /// Whether the turn that went on or waited is over.
    fn ended(&self) -> bool {
        self.before.floor.turn().is_some()
            && (self.after.turn > self.before.turn || self.after.floor.turn().is_none())
    }

    /// How it ended, as its line of history says.
    fn reasons(&self) -> Vec<Reason> {
        let of_turn = self.after.history.iter().filter(|line| line.turn == self.before.turn);
        of_turn.filter_map(|line| line.reason).collect()
    }

    fn effects(&self) -> &[Effect] {
        self.kept.map_or(&[], |kept| &kept.effects)
    }

    /// The machine's own time: it never goes back.
    fn time(&self) -> Timestamp {
        self.before.now.max(self.now)
    }
}

impl Books {
    /// Judges a step.
    pub(super) fn check(&mut self, seen: &Seen<'_>) -> Check {
        let known = seen.source.and_then(|source| self.answers.get(source));
        if let (Some(first), Some(again)) = (known, seen.kept) {
            hold(seen.before == seen.after, "a_request_is_taken_once", || what(seen))?;
            return hold(
                again.repeated
                    && (&first.effects, &first.replies) == (&again.effects, &again.replies),
                "a_repeated_request_has_the_first_answer",
                || format!("{first:?}\nthen {again:?}"),
            );
        }
        if seen.kept.is_some_and(|kept| kept.repeated) {
            // Its first delivery got no answer, and was looked at then.
            return hold(seen.before == seen.after, "a_request_is_taken_once", || what(seen));
        }
        if seen.kept.is_some_and(|kept| kept.rule.is_none()) {
            hold(seen.before == seen.after, "nothing_changes_without_a_decision", || what(seen))?;
            hold(seen.effects().is_empty(), "nothing_is_done_without_a_decision", || what(seen))?;
            return Ok(());
        }
        if let (Some(source), Some(kept)) = (seen.source, seen.kept) {
            self.answers.insert(source.to_owned(), kept.clone());
            hold(seen.before.now <= seen.after.now, "what_is_answered_is_stored", || what(seen))?;
        }
        if seen.kept.is_none() && seen.before == seen.after {
            return Ok(());
        }
        self.check_turns(seen)?;
        match seen.event {
            Event::Said { agent, turn, messages } => {
                self.check_said(seen, agent, *turn, messages)?;
            }
            Event::Wake { .. } | Event::Recovered => self.check_alarm(seen)?,
            _ => {}
        }
        self.note(seen);
        Ok(())
    }

    /// A turn ends once, for a reason, and the next one begins properly.
    fn check_turns(&mut self, seen: &Seen<'_>) -> Check {
        let Seen { before, after, event, .. } = seen;
        let next = after.turn - before.turn.min(after.turn);
        hold(after.turn >= before.turn && next <= 1, "one_turn_at_a_time", || what(seen))?;
        if seen.ended() {
            hold(self.ended.insert(before.turn), "a_turn_ends_once", || what(seen))?;
            hold(seen.reasons().len() == 1, "a_turn_has_one_end_in_history", || what(seen))?;
            hold(may_end(before, event), "a_turn_ends_for_a_reason", || what(seen))?;
        }
        if next == 1 {
            check_beginning(seen)?;
        } else if seen.kept.is_some() && !matches!(event, Event::Resume { .. }) {
            let told = seen.effects().iter().any(|effect| matches!(effect, Effect::Notify { .. }));
            hold(!told, "nobody_is_told_without_a_turn", || what(seen))?;
        }
        Ok(())
    }

    /// What an agent says counts as it should.
    fn check_said(
        &self,
        seen: &Seen<'_>,
        agent: &str,
        named: Option<u64>,
        messages: &[Heard],
    ) -> Check {
        let Seen { before, after, .. } = seen;
        let holds = before.floor.turn().is_some_and(|turn| turn.agent == agent);
        let over = named.is_some_and(|named| named < before.turn);
        let ends = messages.iter().any(|message| message.signal.is_some() || message.phrase);
        let takes_turns = takes_turns(before);
        hold(
            seen.ended() == (takes_turns && holds && !over && ends),
            "only_the_keyword_of_the_floor_ends_a_turn",
            || what(seen),
        )?;
        if let (Floor::Held(was), Floor::Held(is)) = (&before.floor, &after.floor)
            && before.turn == after.turn
        {
            hold(was.deadline == is.deadline, "talking_moves_no_deadline", || what(seen))?;
        }
        let Some(kept) = seen.kept else { return Ok(()) };
        hold(kept.replies.len() == messages.len(), "every_message_has_a_reply", || what(seen))?;
        let asked = matches!(&before.floor, Floor::Interrupted { asked, .. } if asked == agent);
        let late = self.last_ended.get(agent).copied().is_some_and(cut_off);
        let mut advanced = false;
        for (reply, message) in kept.replies.iter().zip(messages) {
            let verdict = match () {
                () if before.closed => Some(Verdict::ChannelClosed),
                () if advanced => Some(Verdict::AfterTurnEnd),
                () if !takes_turns && before.queue.iter().any(|queued| queued == agent) => None,
                () if !takes_turns => Some(Verdict::NotActiveAgent),
                () if holds && over => Some(Verdict::LateSignal),
                () if holds => None,
                // The first answer lets the turn go on.
                () if asked => reply.reason.filter(|it| *it != Verdict::ChannelClosed),
                () if late => Some(Verdict::LateSignal),
                () => Some(Verdict::NotActiveAgent),
            };
            hold(reply.reason == verdict, "a_message_counts_as_it_should", || what(seen))?;
            check_posted(seen, reply, message)?;
            advanced |= reply.turn_advanced;
        }
        let ended = kept.replies.iter().filter(|reply| reply.turn_advanced).count();
        hold(ended == usize::from(seen.ended()), "one_message_ends_a_turn", || what(seen))?;
        let posted: Vec<&str> = posts(seen, |by| by == agent);
        let said: Vec<&str> = kept
            .replies
            .iter()
            .filter(|reply| reply.posted)
            .filter_map(|reply| reply.display.as_deref())
            .collect();
        hold(posted == said, "what_is_posted_was_said", || what(seen))
    }

    /// Alarms end turns whose time is over, and say so once.
    fn check_alarm(&self, seen: &Seen<'_>) -> Check {
        let notices = posts(seen, |by| by == Effect::SYSTEM).len();
        let Floor::Held(turn) = &seen.before.floor else {
            return hold(notices == 0, "one_notice_per_timeout", || what(seen));
        };
        let mut wanted = 0;
        if let (true, [reason]) = (seen.ended(), &*seen.reasons()) {
            let rests = matches!(seen.after.floor, Floor::Paused { .. });
            hold(ripe(seen, turn, *reason), "no_turn_ends_before_its_time", || what(seen))?;
            let announced = *reason == Reason::Timeout && seen.before.config.announce_timeouts;
            wanted = usize::from(announced) + usize::from(rests);
            let silent = *reason == Reason::Timeout && turn.spoke_at.is_none();
            let rounds = self.silent + usize::from(silent);
            let must = rounds >= 3 * seen.before.queue.len();
            hold(rests == must, "three_silent_rounds_and_no_more", || {
                format!("{rounds} silent turns\n{}", what(seen))
            })?;
        }
        hold(seen.kept.is_none() || notices == wanted, "one_notice_per_timeout", || what(seen))
    }

    /// Enters a step into the books.
    fn note(&mut self, seen: &Seen<'_>) {
        if let (true, Some(turn), [reason]) =
            (seen.ended(), seen.before.floor.turn(), &*seen.reasons())
        {
            let silent = turn.spoke_at.is_none();
            match reason {
                Reason::Timeout if silent => self.silent += 1,
                Reason::Recovery => {}
                _ => self.silent = 0,
            }
            self.last_ended.insert(turn.agent.clone(), *reason);
        }
        let spoke = |state: &State| state.floor.turn().and_then(|turn| turn.spoke_at);
        if matches!(seen.event, Event::Said { .. }) && spoke(seen.after) != spoke(seen.before)
            || seen.after.silent_turns == 0 && went_on(seen)
        {
            self.silent = 0;
        }
    }

    /// What holds of a channel at any moment.
    pub(super) fn check_state(&self, state: &State, alarm: Option<Timestamp>) -> Check {
        let shown = || format!("{state:?}\nalarm {alarm:?}");
        if let Some(turn) = state.floor.turn() {
            hold(state.queue.contains(&turn.agent), "the_floor_is_in_the_queue", shown)?;
            let there = state.queue.get(state.index);
            hold(there == Some(&turn.agent), "the_place_is_that_of_the_floor", shown)?;
            hold(!self.ended.contains(&state.turn), "an_ended_turn_stays_ended", shown)?;
            hold(takes_turns(state), "no_floor_without_turns", shown)?;
        }
        let different: BTreeSet<&String> = state.queue.iter().collect();
        hold(different.len() == state.queue.len(), "nobody_is_queued_twice", shown)?;
        hold(state.history.len() <= HISTORY_MAX, "history_is_bounded", shown)?;
        hold(alarm == state.next_wake(), "the_alarm_is_that_of_the_turn", shown)
    }

    /// Every answered request is in the journal once, and no other twice.
    pub(super) fn check_journal(&self, journal: &[Line]) -> Check {
        let mut sources = BTreeSet::new();
        for source in journal.iter().filter_map(|line| line.source.as_ref()) {
            hold(sources.insert(source), "a_request_is_taken_once", || source.clone())?;
        }
        let lost = self.answers.keys().find(|source| !sources.contains(source));
        hold(lost.is_none(), "what_is_answered_is_stored", || format!("{lost:?}"))
    }
}

/// Whether what happened can end the turn at all.
fn may_end(before: &State, event: &Event) -> bool {
    let holder = before.floor.turn().map(|turn| &turn.agent);
    match event {
        Event::Close { .. } | Event::Configure { .. } | Event::Recovered | Event::Wake { .. } => {
            true
        }
        Event::Crashed { agent } | Event::Remove { agent } => holder == Some(agent),
        Event::Next { turn, .. } => turn.is_none_or(|turn| turn == before.turn),
        // Looked at more closely elsewhere.
        Event::Said { .. } => true,
        Event::Add { .. } | Event::Human { .. } | Event::Pause { .. } | Event::Resume { .. } => {
            false
        }
    }
}

/// A turn that begins: the right agent has it, has its own time, and is told once.
fn check_beginning(seen: &Seen<'_>) -> Check {
    let Seen { before, after, event, .. } = seen;
    let Floor::Held(turn) = &after.floor else {
        return hold(false, "a_new_turn_is_held", || what(seen));
    };
    let passed = matches!(event, Event::Said { .. } | Event::Wake { .. } | Event::Recovered);
    if passed && !before.queue.is_empty() {
        let next = before.queue.get((before.index + 1) % before.queue.len());
        hold(next == Some(&turn.agent), "the_next_in_the_queue_is_next", || what(seen))?;
        hold(before.config.turn_order != TurnOrder::Manual, "nobody_is_next_unless_named", || {
            what(seen)
        })?;
    }
    let persona = after.personas.get(&turn.agent);
    let seconds = persona.and_then(|persona| persona.turn_behavior.timeout_seconds);
    let seconds = seconds.unwrap_or(after.config.default_timeout_seconds);
    let deadline = seen.time().after(Duration::from_secs(seconds));
    hold(turn.deadline == deadline, "a_turn_has_the_time_of_its_agent", || what(seen))?;
    let told = seen.effects().iter().filter(|effect| {
        matches!(effect, Effect::Notify { agent, turn: number, deadline, .. }
            if (agent, number, deadline) == (&turn.agent, &after.turn, &turn.deadline))
    });
    hold(seen.kept.is_none() || told.count() == 1, "whoever_is_next_is_told_once", || what(seen))
}

/// Whether it was time for this end.
fn ripe(seen: &Seen<'_>, turn: &Turn, reason: Reason) -> bool {
    let (now, config) = (seen.time(), &seen.before.config);
    let grace = Duration::from_secs(if config.grace { config.grace_seconds } else { 0 });
    match reason {
        Reason::Timeout => {
            now > turn.deadline.after(if turn.warned { grace } else { Duration::ZERO })
                && (turn.warned || !config.grace || now > turn.deadline.after(grace))
                && matches!(seen.event, Event::Wake { .. })
        }
        Reason::Recovery => now > turn.deadline && matches!(seen.event, Event::Recovered),
        Reason::AutoDetect => {
            let silence = Duration::from_secs(config.auto_detect.silence_threshold);
            let spoke = turn.spoke_at.filter(|_| config.auto_detect.enabled);
            spoke.is_some_and(|spoke| now > spoke.after(silence))
        }
        Reason::Manual | Reason::Removed | Reason::TurnComplete => false,
    }
}

/// What is posted is what is left to be seen, of those who may speak.
fn check_posted(seen: &Seen<'_>, reply: &Reply, message: &Heard) -> Check {
    let visible = message.display.chars().any(|c| !c.is_whitespace() && c != '\u{200b}');
    let may = matches!(reply.reason, None | Some(Verdict::Answer | Verdict::LateSignal));
    hold(reply.posted == (visible && may), "late_words_are_posted_and_others_not", || what(seen))?;
    hold(!reply.turn_advanced || reply.reason.is_none(), "late_words_end_nothing", || what(seen))
}

fn posts<'s>(seen: &'s Seen<'_>, by: impl Fn(&str) -> bool) -> Vec<&'s str> {
    let text = |effect: &'s Effect| match effect {
        Effect::Post { agent, text, .. } if by(agent) => Some(&**text),
        _ => None,
    };
    seen.effects().iter().filter_map(text).collect()
}

fn takes_turns(state: &State) -> bool {
    !state.closed && !matches!(state.config.mode, Some(Mode::Broadcast | Mode::Direct))
}

fn cut_off(reason: Reason) -> bool {
    matches!(reason, Reason::Timeout | Reason::Recovery)
}

/// Whether somebody let the channel go on, or named the next.
fn went_on(seen: &Seen<'_>) -> bool {
    matches!(seen.event, Event::Human { .. } | Event::Next { .. } | Event::Resume { .. })
}

fn what(seen: &Seen<'_>) -> String {
    let Seen { now, before, after, event, kept, .. } = seen;
    format!("at {now} {event:?}\nbefore {before:?}\nafter {after:?}\nanswered {kept:?}")
}
