//! How a step is written: one statement, one round trip, one transaction.

use tokio_postgres::Row;

use super::text;
use super::values::{Columns, Decoded, Values};
use crate::error::CommitError;
use crate::step::{Committed, NewEvent, PartChange, Revision, RunId, Source, Step, TimerChange};

pub(super) const DOING: &str = "write a step";

pub(super) const STEP: &str = "SELECT * FROM {s}.commit_step($1, $2, $3, $4, $5, $6, $7, $8, $9, \
                               $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, \
                               $23, $24, $25, $26, $27, $28, $29)";

/// The parameters of [`STEP`].
pub(super) fn step_values(step: &Step) -> Values {
    let record = &step.record;
    let values = Values::default()
        .text(step.run.as_str())
        .number(step.expected.0)
        .maybe_number(step.fence)
        .moment(step.at)
        .text(&record.project)
        .maybe_text(record.session.as_deref())
        .text(&record.machine)
        .text(record.driver.as_str())
        .text(&record.title)
        .flag(record.active)
        .text(&record.state);
    let source = |event: &NewEvent| event.source.clone();
    let sources: Vec<Option<Source>> = step.events.iter().map(source).collect();
    let effects = &step.effects;
    values
        .moments(step.events.iter().map(|event| event.at))
        .texts(step.events.iter().map(|event| &*event.kind))
        .texts(step.events.iter().map(|event| &*event.body))
        .maybe_texts(sources.iter().map(|source| source.as_ref().map(|source| &*source.key)))
        .maybe_texts(sources.iter().map(|source| source.as_ref().map(|source| &*source.digest)))
        .moments(step.decisions.iter().map(|decision| decision.at))
        .texts(step.decisions.iter().map(|decision| &*decision.body))
        .texts(effects.iter().map(|effect| &*effect.key))
        .texts(effects.iter().map(|effect| &*effect.kind))
        .texts(effects.iter().map(|effect| &*effect.body))
        .moments(effects.iter().map(|effect| effect.due))
        .texts(effects.iter().map(|effect| &*effect.lane))
        .raw_texts(effects.iter().map(|effect| labels(&effect.requires)).collect())
        .texts(step.done.iter().map(|key| &**key))
        .texts(step.timers.iter().map(|change| match change {
            TimerChange::Set { key, .. } | TimerChange::Clear { key } => &**key,
        }))
        .maybe_moments(step.timers.iter().map(|change| match change {
            TimerChange::Set { due, .. } => Some(*due),
            TimerChange::Clear { .. } => None,
        }))
        .texts(step.parts.iter().map(|change| match change {
            PartChange::Set { key, .. } | PartChange::Clear { key } => &**key,
        }))
        .maybe_texts(step.parts.iter().map(|change| match change {
            PartChange::Set { body, .. } => Some(&**body),
            PartChange::Clear { .. } => None,
        }))
}

/// Arrays of arrays must be of one length, so the labels of an effect are one text.
pub(super) fn labels(labels: &[String]) -> String {
    labels.iter().map(|label| text::encode_label(label) + "\n").collect()
}

/// Understands what came of a step.
pub(super) fn outcome(run: &RunId, rows: &[Row]) -> Decoded<Result<Committed, CommitError>> {
    let row = rows.first().ok_or("a step without an outcome")?;
    let mut columns = Columns::of(row);
    let (outcome, number) = (columns.small()?, columns.maybe_number()?.unwrap_or_default());
    Ok(match outcome {
        0 => {
            let (_, _, revision) =
                (columns.maybe_text()?, columns.maybe_text()?, columns.revision()?);
            Ok(Committed { revision, last_event: number })
        }
        1 => Err(CommitError::Fenced { current: number }),
        2 => Err(CommitError::Duplicate {
            source_key: columns.text()?,
            digest: columns.maybe_text()?,
            revision: columns.maybe_number()?.map(Revision),
        }),
        3 => Err(CommitError::NoSuchRun { run: run.clone() }),
        4 => Err(CommitError::Conflict { found: Revision(number) }),
        other => return Err(format!("a step with the outcome {other}")),
    })
}

/// Understands what came of closing effects.
pub(super) fn closed(run: &RunId, rows: &[Row]) -> Decoded<Result<usize, CommitError>> {
    let row = rows.first().ok_or("an outcome is missing")?;
    let mut columns = Columns::of(row);
    let (outcome, number) = (columns.small()?, columns.maybe_number()?.unwrap_or_default());
    Ok(match outcome {
        0 => Ok(usize::try_from(number).unwrap_or(usize::MAX)),
        1 => Err(CommitError::Fenced { current: number }),
        _ => Err(CommitError::NoSuchRun { run: run.clone() }),
    })
}
