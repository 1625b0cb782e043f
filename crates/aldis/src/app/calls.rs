//! What agents report by calls: the MCP server and `aldis signal` come here.
//!
//! A call is judged by the rules that can be told now, made durable, and answered with what comes next.
//! Whatever ends a run, advances a phase or moves a task waits for the stop: its driver takes the call
//! over there (see `aldis_engine::CallRecord`).

pub(crate) mod answer;
pub(crate) mod caller;
pub(crate) mod checked;
pub(crate) mod elsewhere;

use aldis_engine::{AnyHandle, CallRecord, Engine, EngineError, Handle};
use aldis_machine::calls::{Call, Need, Reported};
use aldis_machine::delivery::{self, AgentReply};
use aldis_machine::phases::{self, Stop, call_finding};
use aldis_machine::{Evidence, Refusal, run, turns};
use aldis_signal::redact::redact_value;
use aldis_signal::signal::{Signal, Via};
use aldis_signal::time::Timestamp;
use aldis_store::RunId;

use self::answer::{CallReply, RefusalRule, Refused};
use self::caller::{Caller, CallerError};
use crate::hosts;

/// How long the words of a call may be.
const WORDS_MAX: usize = 16_000;
/// What a placeholder is written in.
const BRACKETS: [(char, char); 3] = [('[', ']'), ('<', '>'), ('{', '}')];
/// What is said of a claim that counts at the stop.
const AT_THE_STOP: &str = "Recorded. It counts when you stop: end your turn now";

/// What becomes of a call, before it is written.
struct Judged {
    /// Whether there is anything to keep.
    keep: bool,
    /// What comes next.
    next: String,
}

/// Takes a call, and says what becomes of it. A store that fails is an answer, too.
pub(crate) fn call(engine: &Engine, now: Timestamp, caller: &Caller, call: Call) -> CallReply {
    let mut found = None;
    match try_call(engine, now, caller, call, &mut found) {
        Ok(reply) => reply,
        Err(error) => CallReply::refused(found.as_ref().map(RunId::as_str), refusal_of(error)),
    }
}

/// What a failure is for whoever calls.
pub(crate) fn refusal_of(error: CallerError) -> Refused {
    match error {
        CallerError::Refused(refused) => *refused,
        CallerError::Engine(error) => not_recorded(&error.to_string()),
    }
}

/// A store that cannot be used is an answer: the agent has its text.
pub(crate) fn unavailable(error: &str) -> CallReply {
    CallReply::refused(None, not_recorded(error))
}

fn not_recorded(error: &str) -> Refused {
    let reason = format!("the report was not recorded: {error}");
    let remedy = "report in your final message, as your prompt shows";
    Refused::new(RefusalRule::StoreUnavailable, reason, remedy)
}

fn try_call(
    engine: &Engine,
    now: Timestamp,
    caller: &Caller,
    call: Call,
    found: &mut Option<RunId>,
) -> Result<CallReply, CallerError> {
    check_words(&call)?;
    if let Call::EndTurn { channel, turn } = &call {
        return end_turn(engine, now, caller, channel, *turn);
    }
    let run = caller.run(engine)?;
    *found = Some(run.id().clone());
    check_way(&run, caller, &call)?;
    let judged = match &run {
        AnyHandle::Run(run) => in_run(run.state(), caller, &call)?,
        AnyHandle::Phases(run) => in_phases(run.state(), now, caller, &call)?,
        AnyHandle::Delivery(run) => in_delivery(run, now, caller, &call)?,
        AnyHandle::Turns(_) => return Err(only_turns().into()),
    };
    let id = run.id().clone();
    if !judged.keep {
        return Ok(CallReply::accepted(id.as_str(), None, judged.next));
    }
    let record = CallRecord {
        session: caller.session.clone(),
        call_id: caller.call_id.clone(),
        agent: agent_of(&run, caller, &call)?,
        subagent: caller.subagent,
        ..CallRecord::new(now, caller.via, without_secrets(&call))?
    };
    let is_checked = is_checked(&run, &record.call);
    let known = engine.record_call(now, &id, &record)?.unwrap_or(record);
    let reply = CallReply::accepted(id.as_str(), Some(known.id), judged.next);
    match is_checked {
        true => Ok(checked::with_check(engine, &id, reply)?),
        false => Ok(reply),
    }
}

/// Whether a check decides about a claim that somebody runs at once.
fn is_checked(run: &AnyHandle, call: &Call) -> bool {
    let AnyHandle::Run(run) = run else { return false };
    let works = *run.state().status() == run::Status::Working;
    works && run.state().setup().config.has_check() && matches!(call, Call::Complete { .. })
}

/// Refuses what would not count at the stop, because of the way it comes.
fn check_way(run: &AnyHandle, caller: &Caller, call: &Call) -> Result<(), Refused> {
    let accept = match run {
        AnyHandle::Delivery(run) => run.state().run().config.accept,
        AnyHandle::Phases(run) => run.state().config().accept,
        AnyHandle::Run(run) => run.state().setup().config.accept,
        AnyHandle::Turns(_) => Via::Said,
    };
    if caller.via >= accept || matches!(call, Call::Progress { .. }) {
        return Ok(());
    }
    let reason = hosts::calls::hint(call.tool(), caller.via, accept);
    Err(Refused::new(RefusalRule::Unattested, reason, "call the tool of the MCP server aldis"))
}

/// Takes what looks like a secret out of the words of a call.
pub(crate) fn without_secrets(call: &Call) -> Call {
    let clean = serde_json::to_value(call).and_then(|mut value| {
        redact_value(&mut value);
        serde_json::from_value(value)
    });
    clean.unwrap_or_else(|_| call.clone())
}

/// Refuses words that are missing, not filled in, or too many.
fn check_words(call: &Call) -> Result<(), Refused> {
    let words = call.words().trim();
    let needs_words = !matches!(call, Call::EndTurn { .. } | Call::Verdict { .. });
    let is_placeholder = BRACKETS.iter().any(|(open, close)| {
        words.starts_with(*open) && words.ends_with(*close) && !words.contains(' ')
    });
    let what = match words {
        "" if needs_words => "the words are missing",
        _ if is_placeholder => "the words are a placeholder that was not filled in",
        words if words.len() > WORDS_MAX => "the words are longer than 16,000 bytes",
        _ => return Ok(()),
    };
    let tool = call.tool();
    let remedy = format!("call `{tool}` again, in your own words");
    Err(Refused::new(RefusalRule::BadArguments, format!("`{tool}`: {what}"), remedy))
}

/// A call for a supervised run: everything counts when its agent stops.
fn in_run(state: &run::State, caller: &Caller, call: &Call) -> Result<Judged, CallerError> {
    call.in_run(caller.via).map_err(Refused::from)?;
    if caller.subagent {
        return Err(only_main(call).into());
    }
    let config = &state.setup().config;
    let next = match call {
        Call::Complete { .. } if config.has_check() => {
            format!("{AT_THE_STOP}. The check of this run then decides; status shows the result.")
        }
        Call::Complete { .. } => format!("{AT_THE_STOP}."),
        Call::Blocked { .. } => format!("{AT_THE_STOP}. The run then ends as blocked."),
        Call::AskHuman { .. } if config.no_wait => {
            format!("{AT_THE_STOP}. The run then ends, and a human continues it with the answer.")
        }
        Call::AskHuman { .. } => format!("{AT_THE_STOP}. You get the answer in your next prompt."),
        _ => "Recorded. Go on working.".to_owned(),
    };
    Ok(Judged { keep: true, next })
}

/// A call for a run through phases: what the stop would decide is found out on a copy.
fn in_phases(
    state: &phases::State,
    now: Timestamp,
    caller: &Caller,
    call: &Call,
) -> Result<Judged, CallerError> {
    let signal = match call.in_phases(state, caller.via).map_err(Refused::from)? {
        Reported::Signal(signal) => signal,
        Reported::Asks(_) => {
            let next = "Recorded. Ask the question in your final message and end your turn: you \
                        may stop, and the answer comes as a prompt or as a message.";
            return Ok(Judged { keep: true, next: next.to_owned() });
        }
        Reported::Nothing => {
            let phase = state.phase();
            let next = format!("Phase {phase} keeps no progress. Go on working.");
            return Ok(Judged { keep: false, next });
        }
    };
    let mut signal = *signal;
    if caller.subagent {
        signal.origin = aldis_signal::Origin::new(aldis_signal::message::Role::Subagent);
    }
    let mut after = state.clone();
    let session = state.session().map(str::to_owned).or_else(|| Some("call".to_owned()));
    let findings = vec![call_finding(&signal, &[], now)];
    let event = if caller.subagent {
        let (agent, fresh_token) = (None, None);
        phases::Event::SubagentStop { session, agent, findings, fresh_token }
    } else {
        phases::Event::Stop(Stop { session, findings, ..Stop::default() })
    };
    let outcome = after.on_event(now, &event);
    let decision = outcome.decision();
    let seen = decision.map(|decision| &*decision.evidence).unwrap_or_default();
    if let Some(refused) = refused_in(seen, &signal) {
        let remedy =
            format!("work on phase {}, and call `complete` when it is done", state.phase());
        return Err(refused_by_machine(refused, &signal, remedy).into());
    }
    let next = match (after.is_live(), after.phase() == state.phase()) {
        (false, _) => format!("{AT_THE_STOP}. It ends the run."),
        (true, false) => format!("{AT_THE_STOP}. Phase {} is next.", after.phase()),
        (true, true) => format!("{AT_THE_STOP}."),
    };
    Ok(Judged { keep: true, next })
}

/// A call by an agent of a delivery: what its reply would come to is found out on a copy.
fn in_delivery(
    run: &Handle<delivery::State>,
    now: Timestamp,
    caller: &Caller,
    call: &Call,
) -> Result<Judged, CallerError> {
    let state = run.state();
    let (agent, role) = working(state, caller, call)?;
    let subject = state.subject_of(agent);
    let reported = call.in_delivery((role, subject.as_deref()), caller.via);
    let Reported::Signal(signal) = reported.map_err(Refused::from)? else {
        return Ok(Judged { keep: false, next: "Go on working.".to_owned() });
    };
    let mut reply = AgentReply::default();
    reply.add_call(&signal);
    let mut after = state.clone();
    let is_progress = matches!(call, Call::Progress { .. });
    let event = match is_progress {
        true => delivery::Event::Reported { agent, reply },
        false => delivery::Event::Finished { agent, exit: None, reply },
    };
    let outcome = after.on_event(now, &event);
    let seen = outcome.decisions.iter().flat_map(|decision| &decision.evidence);
    let seen: Vec<Evidence> = seen.cloned().collect();
    if let Some(refused) = refused_in(&seen, &signal) {
        let remedy = match subject {
            Some(subject) => format!("you work on {subject}: report about that"),
            None => "report about your own work".to_owned(),
        };
        return Err(refused_by_machine(refused, &signal, remedy).into());
    }
    let next = match call {
        Call::Progress { .. } => "Recorded. Go on working.".to_owned(),
        Call::AskHuman { .. } => format!("{AT_THE_STOP}. You continue with the answer."),
        Call::Blocked { needs: Need::Environment, .. } => {
            format!("{AT_THE_STOP}. Somebody repairs the environment first.")
        }
        _ => format!("{AT_THE_STOP}."),
    };
    Ok(Judged { keep: true, next })
}

/// The agent that calls, and what it was started for: the one that it says it is, else the only one
/// that works on the task, else the only one at work.
fn working(
    state: &delivery::State,
    caller: &Caller,
    call: &Call,
) -> Result<(u64, delivery::Role), Refused> {
    let agents = &state.run().agents;
    if let Some(number) = caller.agent {
        let agent = agents.get(&number).ok_or_else(|| {
            let reason = format!("agent {number} is no longer at work in this delivery");
            Refused::new(RefusalRule::RunEnded, reason, "nothing more is needed: end your turn")
        })?;
        return Ok((number, agent.role));
    }
    let works = |number: &u64| match call.task() {
        Some(task) => state.subject_of(*number).as_deref() == Some(task),
        None => true,
    };
    let mut found = agents.iter().filter(|(number, _)| works(number));
    match (found.next(), found.next()) {
        (Some((number, agent)), None) => Ok((*number, agent.role)),
        _ => Err(Refused::new(
            RefusalRule::NoRun,
            "which agent of this delivery calls is not known",
            "name your task in `task`; or report in your final message, as your prompt shows",
        )),
    }
}

/// The number of the agent that calls, where a run has several.
fn agent_of(run: &AnyHandle, caller: &Caller, call: &Call) -> Result<Option<u64>, Refused> {
    match run {
        AnyHandle::Delivery(run) => working(run.state(), caller, call).map(|(no, _)| Some(no)),
        AnyHandle::Phases(_) | AnyHandle::Run(_) | AnyHandle::Turns(_) => Ok(None),
    }
}

/// Gives the turn in a channel on.
fn end_turn(
    engine: &Engine,
    now: Timestamp,
    caller: &Caller,
    channel: &str,
    turn: Option<u64>,
) -> Result<CallReply, CallerError> {
    let unknown = || {
        let reason = format!("there is no open channel `{channel}`");
        Refused::new(RefusalRule::NoRun, reason, "name the channel as your notification did")
    };
    let id = RunId::new(channel).map_err(|_| unknown())?;
    let Some(agent) = caller.name.clone() else {
        return Err(Refused::new(
            RefusalRule::NoRun,
            "which agent of the channel calls is not known",
            "set ALDIS_AGENT to its name, or use a token of `aldis token new --agent NAME`",
        )
        .into());
    };
    let mut run = match engine.open::<turns::State>(&id) {
        Err(EngineError::NoSuchRun(_) | EngineError::Unreadable { .. }) => {
            return Err(unknown().into());
        }
        run => run?,
    };
    if !caller.reaches(run.id().as_str(), run.project()) {
        return Err(unknown().into());
    }
    let call = Call::EndTurn { channel: channel.to_owned(), turn };
    let messages = vec![call.ends_turn(caller.via)];
    let event = turns::Event::Message { agent, turn, messages };
    let outcome = engine.step(now, &mut run, event, None)?;
    let reply = outcome.replies().first().map(|reply| (*reply).clone()).unwrap_or_default();
    if !reply.turn_advanced {
        let reason = match reply.reason {
            Some(reason) => format!("the turn was not yours to end: {}", reason.as_str()),
            None => "the turn was not yours to end".to_owned(),
        };
        let rule = RefusalRule::OtherSession;
        return Err(Refused::new(rule, reason, "wait for your turn").into());
    }
    let next = match reply.next_agent {
        Some(next) => format!("Your turn is over. {next} is next."),
        None => "Your turn is over.".to_owned(),
    };
    Ok(CallReply::accepted(id.as_str(), None, next))
}

/// What of the evidence says that the signal does not count.
fn refused_in<'e>(seen: &'e [Evidence], signal: &Signal) -> Option<&'e Evidence> {
    seen.iter().find(|it| it.what == "refused" && it.name.as_deref() == Some(&*signal.name))
}

fn refused_by_machine(refused: &Evidence, signal: &Signal, remedy: String) -> Refused {
    let code = refused.reason.as_deref().unwrap_or("refused");
    let refusal = Refusal::named(code);
    let why = refusal.map_or(code, |refusal| match refusal {
        Refusal::OutOfOrder => "another phase comes first",
        Refusal::RoleNotAllowed => "you may not report it",
        Refusal::SubjectMismatch => "it is about something else than you were started for",
        Refusal::LateSignal => "it came too late",
        _ => code,
    });
    let reason = format!("{} does not count: {why}", signal.name);
    Refused { rule: format!("call/{}", code.replace('_', "-")), reason, remedy }
}

fn only_main(call: &Call) -> Refused {
    Refused {
        rule: "call/role-not-allowed".to_owned(),
        reason: format!("`{}` was called by a sub-agent", call.tool()),
        remedy: "tell the agent that started you; only the main agent reports for the run"
            .to_owned(),
    }
}

fn only_turns() -> Refused {
    let reason = "in a channel only turns are ended by a call";
    Refused::new(
        RefusalRule::NoRun,
        reason,
        "call `end_turn`, or write your message to the channel",
    )
}
