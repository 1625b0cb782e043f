//! What is reported: findings as they become certain, and near misses within limits.

use std::collections::VecDeque;
use std::sync::Arc;

use super::draft::Defect;
use super::engine::Engine;
use super::misses::Misses;
use super::window::Window;
use crate::signal::{Finding, NearMiss, Place, Reason, Span};

/// How many findings near the end are remembered: more do not fit into what is looked at there.
const SPANS_MAX: usize = 2048;

/// What was reported so far.
#[derive(Debug, Default)]
pub(crate) struct FindingQueue {
    /// Findings that nobody has taken yet.
    pub(super) out: Vec<Finding>,
    pub(super) misses: Misses,
    /// Where the last ones were, so that they are not reported again as misspelled.
    pub(super) spans: VecDeque<Span>,
}

impl FindingQueue {
    pub(super) fn note(&mut self, span: Span) {
        if self.spans.len() == SPANS_MAX {
            self.spans.pop_front();
        }
        self.spans.push_back(span);
    }
}

impl Engine<'_> {
    pub(crate) fn miss(
        &mut self,
        dialect: usize,
        reason: Reason,
        name: Arc<str>,
        about: Option<String>,
        place: Place,
        raw: String,
    ) {
        if !self.options.near_misses {
            return;
        }
        self.report.note(place.span);
        if self.report.misses.counts(dialect, reason) {
            return;
        }
        let definition = &self.rules.dialects()[dialect];
        let miss = Box::new(NearMiss {
            dialect: definition.name.clone(),
            definition: definition.clone(),
            name,
            reason,
            about: about.filter(|about| !about.is_empty()),
            origin: self.origin.clone(),
            place,
            raw,
            more: 0,
        });
        if let Some(told) = self.report.misses.tell(dialect, miss) {
            self.report.out.push(Finding::NearMiss(told));
        }
    }

    /// Reports something malformed.
    pub(crate) fn report(
        &mut self,
        window: &Window<'_>,
        dialect: usize,
        defect: Defect,
        quoted: bool,
    ) {
        if !self.options.near_misses {
            return;
        }
        let reason = self.reason_here(if quoted { Reason::Quoted } else { defect.reason });
        let (start, end) = defect.range;
        if self.report.misses.counts(dialect, reason) {
            return self.report.note(window.offsets.span(start, end));
        }
        let place = self.place(window, start, end);
        let raw = window.offsets.restore(start, window.slice(start, end));
        self.miss(dialect, reason, defect.name, defect.about, place, raw);
    }

    /// Returns why something does not count: from others nothing does.
    pub(crate) fn reason_here(&self, reason: Reason) -> Reason {
        if self.origin.may_signal() { reason } else { Reason::UntrustedOrigin }
    }
}
