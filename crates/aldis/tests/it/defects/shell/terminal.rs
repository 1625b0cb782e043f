//! `aldis watch` and a terminal that goes away.

use std::fs::{self, File};
use std::io::{ErrorKind, Read as _};
use std::num::NonZero;
use std::process::Stdio;

use nix::pty::{Winsize, openpty};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{FdFlags, fcntl_setfd};

use super::installation::{Installation, Started, wait_until, within};
use super::{PATIENCE, pin, seen};
use crate::sandbox::ALDIS;

/// As much time of a processor, in hundredths of a second, as no process needs to end.
const TICKS_MAX: u64 = 100;

const SIZE: Winsize = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };

#[test]
fn s1_1_watch_ends_with_its_terminal() {
    let installation = Installation::new();
    installation.start_phases("Hangup");
    let ends = openpty(&SIZE, None).unwrap();
    // The window must be ours alone, or it would stay open as long as the view does.
    fcntl_setfd(&ends.master, FdFlags::CLOEXEC).unwrap();
    // A session of its own, as a window has one: the system tells it when the window is closed. The
    // limit is for the case that this test is killed and nobody else ends the view.
    let mut command = installation.command("Hangup", "setsid");
    command.args(["--ctty", "sh", "-c", "ulimit -t 30; exec \"$0\" watch", ALDIS]);
    command.env("TERM", "xterm-256color");
    let side = || Stdio::from(ends.slave.try_clone().unwrap());
    command.stdin(side()).stdout(side()).stderr(side());
    let mut watch = Started(command.spawn().unwrap());
    drop((command, ends.slave));

    let flags = fcntl_getfl(&ends.master).unwrap();
    fcntl_setfl(&ends.master, flags | OFlags::NONBLOCK).unwrap();
    let mut window = File::from(ends.master);
    let [rows, columns] = [SIZE.ws_row, SIZE.ws_col].map(|side| NonZero::new(side).unwrap());
    let mut screen = vt100::Parser::new(rows, columns, 0);
    wait_until("the view is there", || {
        let mut bytes = [0; 4_096];
        match window.read(&mut bytes) {
            Ok(length) => screen.process(&bytes[..length]),
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}"),
        }
        screen.screen().contents().contains("Hangup")
    });

    let before = ticks(watch.0.id());
    drop(window);
    let outcome = within(PATIENCE, || {
        if watch.0.try_wait().unwrap().is_some() {
            return Some(None);
        }
        let used = ticks(watch.0.id()).saturating_sub(before);
        (used > TICKS_MAX).then(|| Some(format!("alive, and {used} ticks of a processor later")))
    });
    let wrong = outcome.unwrap_or_else(|| Some("alive".to_owned()));
    pin("S1-1", seen(wrong));
}

/// The time a process has used, in hundredths of a second.
fn ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // The name may hold anything; what follows it are numbers, from the third field on.
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let fields = fields.split_whitespace().skip(11).take(2);
    fields.map(|field| field.parse::<u64>().unwrap()).sum()
}
