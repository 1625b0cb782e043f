//! Runs and decisions for people. First the outcome, then the evidence, then what to do.

use std::io::{self, Write as _};
use std::time::Duration;

use aldis_machine::phases::State;
use aldis_machine::turns::TurnHolder;
use aldis_machine::{delivery, run, turns};
use aldis_signal::time::Timestamp;
use aldis_store::Run;

use crate::io::Io;
use crate::view::display;
use crate::view::known::Known;
use crate::view::live::delivery::tally;
use crate::view::paint::Paint;
use crate::view::wire::run::{DecisionForm, EvidenceForm};

/// How much of a quotation is shown.
const QUOTE_MAX: usize = 160;
/// How much of a title is shown.
const TITLE_MAX: usize = 60;
/// How much history of a channel is shown.
const HISTORY_SHOWN: usize = 5;

/// The project of a run, for a line of its own.
pub(crate) fn project(run: &Run) -> String {
    match &*run.record.project {
        "" => "none".to_owned(),
        project => display::line(project),
    }
}

/// Shows a run in a few lines.
pub(crate) fn run(io: &mut Io, now: Timestamp, run: &Run, state: &State) -> io::Result<()> {
    let paint = Paint { on: io.color_stdout };
    let title = display::excerpt(&state.task, TITLE_MAX);
    writeln!(io.stdout, "{}  {}", paint.strong(&run.id), paint.strong(title))?;
    let out = &mut io.stdout;
    writeln!(out, "  {}", standing(paint, state))?;
    writeln!(out, "  project   {}", project(run))?;
    match &state.session {
        Some(session) => writeln!(out, "  session   {}", display::line(session))?,
        None if state.is_live() => {
            writeln!(out, "  session   none yet: the next one that stops here")?;
        }
        None => {}
    }
    if let Some(active) = state.last_activity {
        writeln!(out, "  active    {}", ago(now, active))?;
    }
    if let Some(error) = &state.last_error {
        writeln!(
            out,
            "  error     {} ({})",
            display::line(&error.message),
            display::line(&error.phase)
        )?;
    }
    Ok(())
}

/// Says in one line how a run stands.
pub(crate) fn standing(paint: Paint, state: &State) -> String {
    let phase = display::line(&state.phase);
    if state.is_live() {
        let count = format!("iteration {} of {}", state.iteration, state.max_iterations);
        let rests = match (state.paused, state.block_limit.capped) {
            (true, _) => ", paused: resume it",
            (false, true) => ", capped: send a prompt or resume it",
            (false, false) => "",
        };
        return format!("phase {}, {count}{rests}", paint.strong(phase));
    }
    match state.exit_reason {
        Some(reason) if reason.is_success() => {
            format!("{} ({})", paint.good("complete"), reason.as_str())
        }
        Some(reason) => {
            let place = state.failed_in.as_deref().unwrap_or(&state.phase);
            format!(
                "{} in phase {} ({})",
                paint.bad("ended"),
                display::line(place),
                reason.as_str()
            )
        }
        None => format!("ended in phase {phase}"),
    }
}

/// Says in one line who has the floor of a channel.
pub(crate) fn channel(state: &turns::State) -> String {
    let holder = state.holder.turn().map_or("nobody", |turn| &turn.agent);
    match &state.holder {
        TurnHolder::Nobody if state.closed => "closed".to_owned(),
        TurnHolder::Nobody => "nobody has the floor".to_owned(),
        TurnHolder::Active(_) => format!("turn {}: {holder} has the floor", state.turn),
        TurnHolder::Interrupted { asked, .. } => {
            format!("{holder} waits until {asked} has answered")
        }
        TurnHolder::Paused { why, .. } => format!("rests: {why}"),
    }
}

/// Shows a channel in a few lines.
pub(crate) fn channel_run(
    io: &mut Io,
    now: Timestamp,
    run: &Run,
    state: &turns::State,
) -> io::Result<()> {
    let paint = Paint { on: io.color_stdout };
    let out = &mut io.stdout;
    writeln!(out, "{}  {}", paint.strong(&run.id), channel(state))?;
    writeln!(out, "  queue     {}", state.queue.join(", "))?;
    if let Some(turn) = state.holder.active() {
        writeln!(out, "  until     {}", moment(turn.deadline))?;
    }
    for entry in state.history.iter().rev().take(HISTORY_SHOWN) {
        let reason = entry.reason.map_or("", turns::TurnEndReason::as_str);
        let when = paint.dim(ago(now, entry.at));
        writeln!(out, "  {} {} {reason}  {when}", entry.event, entry.agent)?;
    }
    Ok(())
}

/// Shows a supervised run in a few lines.
pub(crate) fn supervised_run(
    io: &mut Io,
    now: Timestamp,
    run: &Run,
    state: &run::State,
) -> io::Result<()> {
    let paint = Paint { on: io.color_stdout };
    let title = display::excerpt(&state.setup().task, TITLE_MAX);
    let out = &mut io.stdout;
    writeln!(out, "{}  {}", paint.strong(&run.id), paint.strong(title))?;
    writeln!(out, "  {}", supervised(paint, state))?;
    writeln!(out, "  project   {}", project(run))?;
    writeln!(out, "  progress  {}", ago(now, state.monitor().last_progress()))?;
    let cost = state.cost();
    if cost != run::Usage::default() {
        writeln!(out, "  cost      {}, {} tokens", dollars(cost), cost.tokens)?;
    }
    if let Some(question) = state.question() {
        writeln!(out, "  question  {}: {}", question.id, display::line(&question.text))?;
    }
    Ok(())
}

/// Says in one line how a supervised run stands.
pub(crate) fn supervised(paint: Paint, state: &run::State) -> String {
    let (iteration, most) = (state.iteration(), state.setup().config.max_iterations);
    let count = format!("iteration {iteration} of {most}");
    let percent = state.progress().map(|percent| format!(", {percent} %")).unwrap_or_default();
    match state.ending() {
        None => format!("{}, {count}{percent}", paint.strong(state.status().name())),
        Some(run::Ending::Done) => format!("{} ({count})", paint.good("done")),
        Some(ending) => format!("{} ({count}{percent})", paint.bad(ending.as_str())),
    }
}

/// Shows a delivery in a few lines.
pub(crate) fn delivery_run(
    io: &mut Io,
    now: Timestamp,
    run: &Run,
    state: &delivery::State,
) -> io::Result<()> {
    let paint = Paint { on: io.color_stdout };
    let title = display::excerpt(&state.run().title, TITLE_MAX);
    let out = &mut io.stdout;
    writeln!(out, "{}  {}", paint.strong(&run.id), paint.strong(title))?;
    writeln!(out, "  {}", delivery(paint, state))?;
    writeln!(out, "  project   {}", project(run))?;
    writeln!(out, "  began     {}", ago(now, state.run().started_at))?;
    for (id, question) in &state.run().questions {
        writeln!(out, "  question  {id}: {}", display::line(&question.text))?;
    }
    writeln!(out, "  tasks     aldis tasks {}", run.id)
}

/// Says in one line how a delivery stands.
pub(crate) fn delivery(paint: Paint, state: &delivery::State) -> String {
    let tally = tally(state);
    let working = state.run().agents.len();
    match state.ending() {
        None if state.run().paused => format!("{}, {tally}", paint.warn("paused")),
        None => format!("{}, {tally}, {working} agents at work", paint.strong("delivering")),
        Some(delivery::Ending::Complete) => format!("{}, {tally}", paint.good("complete")),
        Some(ending) => format!("{}, {tally}", paint.bad(ending.as_str())),
    }
}

/// Shows a decision with its reasons.
pub(crate) fn decision(
    io: &mut Io,
    now: Timestamp,
    form: &DecisionForm,
    about: Option<&Known>,
) -> io::Result<()> {
    let paint = Paint { on: io.color_stdout };
    let out = &mut io.stdout;
    let when = form.at.parse().map_or_else(|_| form.at.clone(), |at| ago(now, at));
    writeln!(out, "{}   {}", paint.strong(display::line(&form.summary)), paint.dim(when))?;
    if let Some(known) = about {
        let Run { id, record, .. } = known.run();
        let title = display::excerpt(&record.title, TITLE_MAX);
        let standing = known.standing(Paint { on: false });
        writeln!(out, "  run       {id}  \"{title}\"  {standing}")?;
    }
    for (label, text) in reasons(form) {
        writeln!(out, "  {label:<9} {text}")?;
    }
    Ok(())
}

/// What a decision rests on, line by line: what each line is, and its words made harmless. Evidence
/// after the first has no label.
pub(crate) fn reasons(form: &DecisionForm) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    lines.extend(form.task.as_deref().map(|task| ("task", display::line(task))));
    lines.push(("rule", format!("{}: {}", form.rule, display::line(&form.because))));
    for (count, evidence) in form.evidence.iter().enumerate() {
        lines.push((if count == 0 { "evidence" } else { "" }, quoted(evidence)));
    }
    if !form.counters.is_empty() {
        let counters: Vec<String> = form
            .counters
            .iter()
            .map(|(name, count)| format!("{} {count}", display::line(&name.replace('_', " "))))
            .collect();
        lines.push(("counters", counters.join(", ")));
    }
    lines.push(("next", display::line(&form.remedy)));
    lines
}

fn quoted(evidence: &EvidenceForm) -> String {
    let quote = display::excerpt(&evidence.quote, QUOTE_MAX);
    let name = evidence.name.as_deref().map(display::line).unwrap_or_default();
    let place = match (evidence.line, &evidence.agent) {
        (Some(line), Some(agent)) => format!(" (agent {}, line {line})", display::line(agent)),
        (Some(line), None) => format!(" (line {line})"),
        (None, _) => String::new(),
    };
    let verdict = match (&*evidence.what, &evidence.reason) {
        ("near_miss", Some(reason)) => format!("  -> near miss: {}", display::line(reason)),
        ("refused", Some(reason)) => format!("  -> {name} refused: {}", display::line(reason)),
        ("signal", _) => format!("  -> {name}"),
        _ => String::new(),
    };
    format!("\"{quote}\"{place}{verdict}")
}

/// Minutes and seconds; hours where there are some.
pub(crate) fn elapsed(span: Duration) -> String {
    let seconds = span.as_secs();
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{seconds:02}")
    } else {
        format!("{minutes:02}:{seconds:02}")
    }
}

/// Money where a host names it, else tokens.
pub(crate) fn spent(cost: run::Usage) -> Option<String> {
    match (cost.tokens, cost.micro_dollars) {
        (0, 0) => None,
        (tokens, 0) => Some(format!("{tokens} tokens")),
        _ => Some(dollars(cost)),
    }
}

/// What something has cost in dollars and cents, rounded up: less would be a lie.
pub(crate) fn dollars(cost: run::Usage) -> String {
    let cents = cost.micro_dollars.div_ceil(10_000);
    format!("${}.{:02}", cents / 100, cents % 100)
}

/// A moment to the second: what is exact to the millisecond is in the JSON form.
pub(crate) fn moment(at: Timestamp) -> Timestamp {
    Timestamp::from_millis(at.as_millis().div_euclid(1_000) * 1_000)
}

/// A moment, exact and relative.
pub(crate) fn ago(now: Timestamp, at: Timestamp) -> String {
    let (span, moment) = (now.since(at), moment(at));
    if span.is_zero() && at > now {
        return moment.to_string();
    }
    format!("{moment}, {} ago", rough(span))
}

/// A span as people say it.
pub(crate) fn rough(span: Duration) -> String {
    let seconds = span.as_secs();
    let (count, unit) = match seconds {
        0..=119 => (seconds, "second"),
        120..=7_199 => (seconds / 60, "minute"),
        7_200..=172_799 => (seconds / 3_600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {unit}{plural}")
}

#[cfg(test)]
mod tests {
    //! Spans as people say them.

    use super::*;

    #[test]
    fn moments_are_to_the_second() {
        for at in ["2026-03-02T10:00:00Z", "2026-03-02T10:00:00.45Z", "2026-03-02T10:00:00.999Z"] {
            assert_eq!(moment(at.parse().unwrap()).to_string(), "2026-03-02T10:00:00Z");
        }
    }

    #[test]
    fn spans_are_rough() {
        for (seconds, want) in [
            (0, "0 seconds"),
            (1, "1 second"),
            (119, "119 seconds"),
            (120, "2 minutes"),
            (7_200, "2 hours"),
            (172_800, "2 days"),
        ] {
            assert_eq!(rough(Duration::from_secs(seconds)), want);
        }
    }
}
