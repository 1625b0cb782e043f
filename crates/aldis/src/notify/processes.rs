//! Notices by programs: the user's own command, and the desktop's.

use std::path::PathBuf;
use std::process::Command as Process;
use std::time::Duration;

use aldis_process::run_bounded;

use super::sink::Delivery;
use crate::settings::system::System;
use crate::view::wire::notice::Notice;

/// How long a program may take.
pub(super) const PROGRAM_WAIT: Duration = Duration::from_secs(30);

/// The user's own command.
pub(crate) struct Command {
    /// For a shell. Nothing an agent said is part of it: the words are in the environment.
    pub(super) command: String,
    /// Where it runs.
    pub(super) directory: PathBuf,
}

impl Command {
    pub(super) fn run(&self, notice: &Notice) -> Delivery {
        let [shell, option] = System::CURRENT.shell();
        let mut process = Process::new(shell);
        process
            .args([option, &self.command])
            .env("ALDIS_NOTICE", &notice.kind)
            .env("ALDIS_TEXT", &notice.data.text)
            .env("ALDIS_RUN", &notice.data.run)
            .env("ALDIS_LINK", notice.data.link.as_deref().unwrap_or_default())
            .current_dir(&self.directory);
        perform(process, "the command")
    }
}

/// Shows a notice on the desktop.
pub(super) fn desktop(notice: &Notice) -> Delivery {
    let title = format!("Aldis, {}: {}", notice.data.project, notice.kind);
    let link = notice.data.link.as_deref().map(|link| format!("\n{link}")).unwrap_or_default();
    let text = format!("{}{link}", notice.data.text);
    if cfg!(target_os = "macos") {
        perform(osascript(&title, &text), "osascript")
    } else {
        perform(notify_send(&title, &text), "notify-send")
    }
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

/// Runs a program to its end, or to the end of our patience. One that failed may have done half of it,
/// so it is not started again.
fn perform(process: Process, name: &str) -> Delivery {
    match run_bounded(process, PROGRAM_WAIT, 0) {
        Ok(done) if done.status.success() => Delivery::Done,
        Ok(done) => Delivery::Impossible(format!("{name} failed: {}", done.status)),
        Err(error) => Delivery::Impossible(format!("{name}: {error}")),
    }
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
        let failed = |program: &str| match perform(Process::new(program), "it") {
            Delivery::Impossible(why) => why,
            other => format!("{other:?}"),
        };
        assert_eq!(failed("true"), "Done");
        assert_eq!(failed("false"), "it failed: exit status: 1");
        let missing = failed("/no/such/program");
        assert!(missing.starts_with("it: failed to start `/no/such/program`"), "{missing}");
    }
}
