//! The person at the terminal, asked on the spot.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::view::display;

/// Whoever sits there, if anybody does.
#[derive(Debug)]
pub(crate) struct Person {
    present: bool,
    /// What was asked last, so that it is asked once.
    asked: Option<String>,
}

impl Person {
    /// Looks whether somebody can read and type.
    pub(crate) fn look() -> Self {
        Self { present: io::stdin().is_terminal() && io::stderr().is_terminal(), asked: None }
    }

    /// Nobody is to be asked.
    pub(crate) fn absent() -> Self {
        Self { present: false, asked: None }
    }

    /// Returns whether something was asked that has no answer yet: the line they type on is theirs.
    pub(crate) fn is_asked(&self) -> bool {
        self.asked.is_some()
    }

    /// Asks what is wanted, once, and returns the line that was typed since, without waiting. Until
    /// something else is wanted, an answer that does not settle it leads to being asked again.
    pub(crate) fn attend(&mut self, wanted: Option<String>) -> Option<String> {
        let wanted = wanted.filter(|_| self.present);
        if wanted.is_none() {
            self.asked = None;
            return None;
        }
        if self.asked != wanted {
            let question = wanted.as_deref().map(display::line).unwrap_or_default();
            let _asked = write!(io::stderr(), "{question} > ");
            self.asked = wanted;
        }
        let line = self.typed()?;
        self.asked = None;
        Some(line.trim().to_owned()).filter(|line| !line.is_empty())
    }

    fn typed(&mut self) -> Option<String> {
        let stdin = io::stdin();
        let mut watched = [PollFd::new(&stdin, PollFlags::IN)];
        let at_once = Timespec::try_from(Duration::ZERO).ok()?;
        if poll(&mut watched, Some(&at_once)).ok()? == 0 {
            return None;
        }
        let mut line = String::new();
        // The end of the input: from here on `aldis answer` is the way.
        if stdin.lock().read_line(&mut line).ok()? == 0 {
            (self.present, self.asked) = (false, None);
            return None;
        }
        Some(line)
    }
}
