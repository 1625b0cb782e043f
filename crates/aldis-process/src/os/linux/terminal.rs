//! A pseudo-terminal for agents that refuse to work on pipes.
//!
//! It is wide, so that no line is wrapped. Echo is off, or the prompt would come back as if the
//! agent had printed it, and output processing is off, so that line ends stay as written. Queries
//! to the terminal, such as `ESC [ 6 n`, get no reply.

use std::io;
use std::os::fd::OwnedFd;

use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{
    LocalModes, OptionalActions, OutputModes, Winsize, tcgetattr, tcsetattr, tcsetwinsize,
};

/// Wide enough that no name or signal is wrapped.
const COLUMNS: u16 = 1000;
const ROWS: u16 = 50;
/// The end-of-file character (`VEOF`, Ctrl-D).
const END_OF_INPUT: u8 = 4;

/// Opens a pseudo-terminal. Returns our side and the agent's.
pub(super) fn open() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let ours = openpt(flags)?;
    grantpt(&ours)?;
    unlockpt(&ours)?;
    let theirs = ioctl_tiocgptpeer(&ours, flags)?;
    let mut modes = tcgetattr(&theirs)?;
    modes.local_modes.remove(LocalModes::ECHO);
    modes.output_modes.remove(OutputModes::OPOST);
    tcsetattr(&theirs, OptionalActions::Now, &modes)?;
    let size = Winsize { ws_row: ROWS, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&theirs, size)?;
    Ok((ours, theirs))
}

/// Turns text into keystrokes: the text and the end-of-file character.
pub(super) fn typed(mut text: Vec<u8>) -> Vec<u8> {
    // After an unfinished line the first end-of-file character only submits that line.
    if text.last().is_some_and(|byte| *byte != b'\n') {
        text.push(END_OF_INPUT);
    }
    text.push(END_OF_INPUT);
    text
}
