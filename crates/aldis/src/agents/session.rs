//! One agent at work: what it writes becomes reports, and all of it is kept.

use aldis_machine::run::Exit;
use aldis_signal::Rules;
use aldis_signal::time::Timestamp;
use aldis_transcript::events::{TextEvents, Zone};
use aldis_transcript::{Format, Input};

use super::listener::{Listener, Listening, Report};
use super::output_log::OutputLog;

/// The output of one agent.
pub(crate) struct Session<'r> {
    listener: Listener<'r>,
    /// What its host reports on standard error.
    errors: TextEvents,
    log: OutputLog,
}

impl<'r> Session<'r> {
    /// `zone` is the one of clock times that name none; text is reported only if it is `shown`.
    pub(crate) fn new(
        rules: &'r Rules,
        input: Input,
        zone: &Zone,
        shown: bool,
        log: OutputLog,
    ) -> Self {
        let listener = Listener::new(Listening::live(rules, input, shown), Some(zone));
        let errors = TextEvents::new(zone.clone());
        Self { listener, errors, log }
    }

    /// Returns what the agent writes, once that is known.
    pub(crate) fn format(&self) -> Option<Format> {
        self.listener.format()
    }

    /// Reads what it wrote to standard output.
    pub(crate) fn stdout(&mut self, bytes: &[u8], now: Timestamp, sink: &mut dyn FnMut(Report)) {
        self.log.write(bytes);
        self.listener.push(bytes, now, sink);
    }

    /// Reads what it wrote to standard error. Nothing there is a signal; its host says there, at the
    /// very end, why it gave up.
    pub(crate) fn stderr(&mut self, bytes: &[u8]) {
        self.log.write(bytes);
        self.errors.push(bytes);
    }

    /// Writes what the log holds back: nothing came for a while.
    pub(crate) fn flush(&mut self) {
        self.log.flush();
    }

    /// The agent has ended.
    pub(crate) fn finish(self, exit: Exit, now: Timestamp, sink: &mut dyn FnMut(Report)) {
        let Self { listener, errors, mut log } = self;
        let _skipped = listener.finish(now, sink);
        // A host that ended well has overcome what it complained of.
        if !exit.is_clean() {
            errors.finish(now).into_iter().for_each(|event| sink(Report::Host(event)));
        }
        log.flush();
    }
}
