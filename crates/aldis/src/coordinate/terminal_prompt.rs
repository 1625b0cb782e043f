//! The person at the terminal, asked on the spot.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::sync::mpsc::{self, Sender, SyncSender};
use std::thread;

use super::world::Happening;
use crate::view::display;

/// Whoever sits at the terminal, if anybody does.
#[derive(Debug, Default)]
pub(crate) struct TerminalPrompt {
    /// Lets one more line be read. What is typed before anything is asked stays where it is.
    permits: Option<Sender<()>>,
    /// Whether a line is being read.
    reads: bool,
    /// What was asked last, so that it is asked once.
    asked: Option<String>,
}

impl TerminalPrompt {
    /// Nobody is to be asked.
    pub(crate) fn absent() -> Self {
        Self::default()
    }

    /// Looks whether somebody can read and type. Lines are reported when something was asked.
    pub(crate) fn detect(report: SyncSender<Happening>) -> Self {
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return Self::absent();
        }
        let (permits, permitted) = mpsc::channel::<()>();
        let _thread = thread::spawn(move || {
            for () in permitted {
                let mut line = String::new();
                match io::stdin().lock().read_line(&mut line) {
                    // The end of the input: from here on `aldis answer` is the way.
                    Ok(0) | Err(_) => return,
                    Ok(_) => {}
                }
                if report.send(Happening::Typed(line.trim().to_owned())).is_err() {
                    return;
                }
            }
        });
        Self { permits: Some(permits), ..Self::default() }
    }

    /// Asks what is wanted, once.
    pub(crate) fn ask(&mut self, question: Option<&str>) {
        let Some(permits) = &self.permits else { return };
        if self.asked.as_deref() == question {
            return;
        }
        self.asked = question.map(str::to_owned);
        let Some(question) = question else { return };
        let _asked = write!(io::stderr(), "{} > ", display::line(question));
        if !self.reads {
            self.reads = permits.send(()).is_ok();
        }
    }

    /// A line was typed. If it does not settle what was asked, it is asked again.
    pub(crate) fn typed(&mut self) {
        (self.reads, self.asked) = (false, None);
    }
}
