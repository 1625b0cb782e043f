//! The terminal while the view is on it, and as it was afterwards, whatever happens.

use std::io::{self, Write};
use std::panic;
use std::time::Duration;

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{
    self, DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture,
    Event, KeyEventKind,
};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::layout::Size;
use ratatui::{Frame, Terminal};

use super::model::ViewInput;

/// A terminal of which we have the whole screen. Given back when dropped.
pub(super) struct Screen<W: Write> {
    terminal: Terminal<CrosstermBackend<W>>,
}

impl<W: Write> Screen<W> {
    /// Takes the screen.
    ///
    /// # Errors
    ///
    /// Fails if there is no terminal. Then nothing has changed.
    pub(super) fn take(out: W) -> io::Result<Self> {
        restore_before_panics();
        let terminal = Terminal::new(CrosstermBackend::new(out))?;
        enable_raw_mode()?;
        let mut screen = Self { terminal };
        // Without brackets a pasted text would be so many keys, and one of them aborts.
        let out = screen.terminal.backend_mut();
        execute!(out, EnterAlternateScreen, EnableBracketedPaste, Clear(ClearType::All))?;
        Ok(screen)
    }

    pub(super) fn size(&self) -> io::Result<Size> {
        self.terminal.size()
    }

    pub(super) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(draw).map(drop)
    }

    /// Takes the mouse, or leaves it to the terminal, which then selects text with it.
    pub(super) fn mouse(&mut self, on: bool) -> io::Result<()> {
        let out = self.terminal.backend_mut();
        if on { execute!(out, EnableMouseCapture) } else { execute!(out, DisableMouseCapture) }
    }

    /// Returns what was typed, pasted or clicked within some time.
    ///
    /// # Errors
    ///
    /// Fails if the terminal is gone.
    pub(super) fn next(&self, patience: Duration) -> io::Result<Option<ViewInput>> {
        if !wait(patience)? {
            return Ok(None);
        }
        Ok(match event::read()? {
            Event::Key(key) if key.kind != KeyEventKind::Release => Some(ViewInput::Key(key)),
            Event::Paste(text) => Some(ViewInput::Paste(text)),
            Event::Mouse(mouse) => Some(ViewInput::Mouse(mouse)),
            _ => None,
        })
    }
}

impl<W: Write> Drop for Screen<W> {
    fn drop(&mut self) {
        // A panic has restored it before it said anything.
        if !std::thread::panicking() {
            restore(self.terminal.backend_mut());
        }
    }
}

/// Waits until there is an event, some time is over, or a signal came; returns whether there is one.
/// Waits here and not in crossterm, which reads the end of a closed terminal for ever.
///
/// # Errors
///
/// Fails if the terminal was closed on its other side.
#[cfg(target_os = "linux")]
fn wait(patience: Duration) -> io::Result<bool> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::io::Errno;
    let terminal = io::stdin();
    let mut ready = [PollFd::new(&terminal, PollFlags::IN)];
    let patience = Timespec::try_from(patience).map_err(io::Error::other)?;
    match poll(&mut ready, Some(&patience)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    if ready[0].revents().intersects(gone) {
        return Err(io::Error::new(io::ErrorKind::BrokenPipe, "it is gone"));
    }
    event::poll(Duration::ZERO)
}

/// The same where `poll` knows no terminals (macOS), or is not there (Windows).
#[cfg(not(target_os = "linux"))]
fn wait(patience: Duration) -> io::Result<bool> {
    event::poll(patience)
}

/// Gives the terminal back as it was. Nobody is left to tell when that fails.
fn restore(out: &mut impl Write) {
    let _left =
        execute!(out, DisableMouseCapture, DisableBracketedPaste, LeaveAlternateScreen, Show);
    let _cooked = disable_raw_mode();
}

/// Lets panics speak on a terminal that shows what they say.
fn restore_before_panics() {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        restore(&mut io::stdout());
        before(panic);
    }));
}
