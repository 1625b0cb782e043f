//! Runs and decisions for people. First the outcome, then the evidence, then what to do.

use std::io::{self, Write as _};
use std::time::Duration;

use aldis_core::machine::phases::State;
use aldis_core::time::Timestamp;
use aldis_store::Run;

use crate::display;
use crate::io::Io;
use crate::paint::Paint;
use crate::wire::run::{DecisionForm, EvidenceForm};

/// How much of a quotation is shown.
const QUOTE_MAX: usize = 160;
/// How much of a title is shown.
const TITLE_MAX: usize = 60;

/// Shows a run in a few lines.
pub(crate) fn run(io: &mut Io, now: Timestamp, run: &Run, state: &State) -> io::Result<()> {
    let paint = Paint { on: io.color_stdout };
    let title = display::excerpt(&state.task, TITLE_MAX);
    writeln!(io.stdout, "{}  {}", paint.strong(&run.id), paint.strong(title))?;
    let out = &mut io.stdout;
    writeln!(out, "  {}", standing(paint, state))?;
    writeln!(out, "  project   {}", display::line(&run.record.project))?;
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
        let capped =
            if state.governor.capped { ", capped: send a prompt or resume it" } else { "" };
        return format!("phase {}, {count}{capped}", paint.strong(phase));
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

/// Shows a decision with its reasons.
pub(crate) fn decision(
    io: &mut Io,
    now: Timestamp,
    form: &DecisionForm,
    about: Option<(&Run, &State)>,
) -> io::Result<()> {
    let paint = Paint { on: io.color_stdout };
    let out = &mut io.stdout;
    let when = form.at.parse().map_or_else(|_| form.at.clone(), |at| ago(now, at));
    writeln!(out, "{}   {}", paint.strong(display::line(&form.summary)), paint.dim(when))?;
    if let Some((run, state)) = about {
        let title = display::excerpt(&state.task, TITLE_MAX);
        let standing = standing(Paint { on: false }, state);
        writeln!(out, "  run       {}  \"{title}\"  {standing}", run.id)?;
    }
    writeln!(out, "  rule      {}: {}", form.rule, display::line(&form.because))?;
    for (count, evidence) in form.evidence.iter().enumerate() {
        let label = if count == 0 { "evidence" } else { "" };
        writeln!(out, "  {label:<9} {}", quoted(evidence))?;
    }
    if !form.counters.is_empty() {
        let counters: Vec<String> = form
            .counters
            .iter()
            .map(|(name, count)| format!("{} {count}", display::line(&name.replace('_', " "))))
            .collect();
        writeln!(out, "  counters  {}", counters.join(", "))?;
    }
    writeln!(out, "  next      {}", display::line(&form.remedy))
}

fn quoted(evidence: &EvidenceForm) -> String {
    let quote = display::excerpt(&evidence.quote, QUOTE_MAX);
    let name = evidence.name.as_deref().map(display::line).unwrap_or_default();
    let place = match (evidence.line, &evidence.agent) {
        (Some(line), Some(agent)) => format!(" (sub-agent {}, line {line})", display::line(agent)),
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

/// A moment, exact and relative.
pub(crate) fn ago(now: Timestamp, at: Timestamp) -> String {
    let span = now.since(at);
    if span.is_zero() && at > now {
        return at.to_string();
    }
    format!("{at}, {} ago", rough(span))
}

fn rough(span: Duration) -> String {
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
