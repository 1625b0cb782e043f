//! The person at the terminal, asked on the spot.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::sync::mpsc::SyncSender;
use std::thread;

use super::world::Happening;
use crate::view::display;

/// Whoever sits at the terminal, if anybody does.
#[derive(Debug)]
pub(crate) struct TerminalPrompt {
    present: bool,
    /// What was asked last, so that it is asked once.
    asked: Option<String>,
}

impl TerminalPrompt {
    /// Looks whether somebody can read and type.
    pub(crate) fn detect() -> Self {
        Self { present: io::stdin().is_terminal() && io::stderr().is_terminal(), asked: None }
    }

    /// Nobody is to be asked.
    pub(crate) fn absent() -> Self {
        Self { present: false, asked: None }
    }

    /// Reports every line that is typed. At the end of the input `aldis answer` is the way.
    pub(crate) fn listen(&self, report: SyncSender<Happening>) {
        if !self.present {
            return;
        }
        let _thread = thread::spawn(move || {
            for line in io::stdin().lock().lines() {
                let Ok(line) = line else { return };
                let line = line.trim().to_owned();
                if report.send(Happening::Typed(line)).is_err() {
                    return;
                }
            }
        });
    }

    /// Asks what is wanted, once. An answer that did not settle it is followed by the question again.
    pub(crate) fn ask(&mut self, question: Option<&str>) {
        if !self.present || self.asked.as_deref() == question {
            return;
        }
        self.asked = question.map(str::to_owned);
        if let Some(question) = question {
            let _asked = write!(io::stderr(), "{} > ", display::line(question));
        }
    }
}
