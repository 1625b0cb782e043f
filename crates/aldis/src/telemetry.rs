//! OpenTelemetry: what was committed about a run, as a trace.
//!
//! Spans are derived from the journal, never beside it: commit first, then export. So nothing is exported
//! that did not happen, exporting delays no run, and the past can be exported as well. Ids are derived
//! from the run, so that an agent gets the id of its span before that span is exported.
//!
//! [`context`] has the ids, [`names`] what everything is called, [`machines`] what the events of each
//! machine mean, [`trace`] folds a journal into spans, [`otlp`] writes them down, [`export`] sends them,
//! [`follow`] does so while a run goes on.

mod context;
mod export;
mod follow;
mod machines;
mod names;
mod otlp;
mod span;
mod target;
mod trace;

pub(crate) use self::context::{Tracing, note_of_caller};
pub(crate) use self::follow::{ExportScope, Exporter, export_run};
pub(crate) use self::target::Target;
