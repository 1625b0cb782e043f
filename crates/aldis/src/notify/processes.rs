//! Notices by programs: the user's own command, and the desktop's.

use std::path::PathBuf;
use std::process::{Child, Command as Process, Stdio};
use std::thread;
use std::time::Duration;

use super::sink::Delivery;
use crate::settings::clock::Stopwatch;
use crate::view::wire::notice::Notice;

/// How long a program may take.
pub(super) const PROGRAM_WAIT: Duration = Duration::from_secs(30);
/// How often to look whether it has ended.
const LOOK: Duration = Duration::from_millis(20);

/// The user's own command.
pub(crate) struct Command {
    /// For a shell. Nothing an agent said is part of it: the words are in the environment.
    pub(super) command: String,
    /// Where it runs.
    pub(super) directory: PathBuf,
}

impl Command {
    pub(super) fn run(&self, notice: &Notice) -> Result<(), String> {
        let mut process = Process::new("/bin/sh");
        process
            .args(["-c", &self.command])
            .env("ALDIS_NOTICE", &notice.kind)
            .env("ALDIS_TEXT", &notice.data.text)
            .env("ALDIS_RUN", &notice.data.run)
            .current_dir(&self.directory);
        perform(process, "the command")
    }
}

/// Shows a notice on the desktop.
pub(super) fn desktop(notice: &Notice) -> Result<(), String> {
    let title = format!("Aldis, {}: {}", notice.data.project, notice.kind);
    if cfg!(target_os = "macos") {
        perform(osascript(&title, &notice.data.text), "osascript")
    } else {
        perform(notify_send(&title, &notice.data.text), "notify-send")
    }
}

/// A program that failed may have done half of it: it is not started again.
pub(super) fn told(result: Result<(), String>) -> Delivery {
    result.map_or_else(Delivery::Impossible, |()| Delivery::Done)
}

fn notify_send(title: &str, text: &str) -> Process {
    let mut process = Process::new("notify-send");
    // Desktops read the text as markup.
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    process.args(["--app-name=aldis", "--", title, &text]);
    process
}

fn osascript(title: &str, text: &str) -> Process {
    let mut process = Process::new("osascript");
    let script = [
        "on run argv",
        "display notification (item 2 of argv) with title (item 1 of argv)",
        "end run",
    ];
    for line in script {
        process.args(["-e", line]);
    }
    process.args(["--", title, text]);
    process
}

/// Runs a program to its end, or to the end of our patience.
fn perform(mut process: Process, name: &str) -> Result<(), String> {
    process.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut process, 0);
    let mut child = process.spawn().map_err(|error| format!("{name} did not start: {error}"))?;
    let watch = Stopwatch::start();
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("{name} failed: {status}")),
            Ok(None) if watch.elapsed() < PROGRAM_WAIT => thread::sleep(LOOK),
            Ok(None) => {
                end(&mut child);
                return Err(format!("{name} took too long and was ended"));
            }
            Err(error) => return Err(format!("{name}: {error}")),
        }
    }
}

/// Ends a program and what it started.
fn end(child: &mut Child) {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Pid, Signal, kill_process_group};
        // It may have ended just now.
        let _killed = kill_process_group(Pid::from_child(child), Signal::KILL);
    }
    let _killed = child.kill();
    let _waited = child.wait();
}

#[cfg(test)]
mod tests {
    //! What programs are given.

    use super::*;

    fn arguments(process: &Process) -> Vec<String> {
        process.get_args().map(|arg| arg.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn what_was_said_is_never_an_option_nor_markup_nor_a_script() {
        let text = "--icon=/etc/passwd <b>bold</b> & \"; do shell script \"id";
        let send = notify_send("-t", text);
        assert_eq!(send.get_program(), "notify-send");
        let escaped = "--icon=/etc/passwd &lt;b&gt;bold&lt;/b&gt; &amp; \"; do shell script \"id";
        assert_eq!(arguments(&send), ["--app-name=aldis", "--", "-t", escaped]);
        let script = osascript("-t", text);
        let given = arguments(&script);
        assert_eq!(given[given.len() - 3..], ["--", "-t", text]);
        let lines = given.iter().take(6).filter(|arg| arg.contains("item"));
        assert!(lines.clone().count() == 1 && lines.clone().all(|line| !line.contains("bold")));
    }

    #[test]
    fn failures_are_told() {
        assert_eq!(perform(Process::new("true"), "it"), Ok(()));
        assert_eq!(
            perform(Process::new("false"), "it"),
            Err("it failed: exit status: 1".to_owned())
        );
        let missing = perform(Process::new("/no/such/program"), "it").unwrap_err();
        assert!(missing.starts_with("it did not start: "), "{missing}");
    }
}
