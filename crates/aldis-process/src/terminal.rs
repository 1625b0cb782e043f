//! A terminal for agents that refuse to work without one.
//!
//! It is wide, so that nothing is wrapped; it does not echo, or the prompt would come back as if
//! the agent had said it; and it leaves line ends alone. Questions to the terminal, such as
//! `ESC [ 6 n`, get no answer.

use std::io;
use std::os::fd::OwnedFd;

use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{
    LocalModes, OptionalActions, OutputModes, Winsize, tcgetattr, tcsetattr, tcsetwinsize,
};

/// Wide enough that no name or signal is wrapped.
const COLUMNS: u16 = 1000;
const ROWS: u16 = 50;
/// What ends the input of a terminal, or of a line that has none.
const END_OF_INPUT: u8 = 4;

/// Opens a terminal: our end and the agent's.
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

/// Turns text into what is typed: the text and the key that ends the input.
pub(super) fn typed(mut text: Vec<u8>) -> Vec<u8> {
    // The first one only ends an unfinished line.
    if text.last().is_some_and(|byte| *byte != b'\n') {
        text.push(END_OF_INPUT);
    }
    text.push(END_OF_INPUT);
    text
}
