//! State files of other tools: taken over when they are this session's, and left alone otherwise.

use std::fs::File;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::project::{Answer, NOW, Project, conversation, prompted, said};

/// [`NOW`] in seconds.
const NOW_SECONDS: u64 = 1_772_445_600;

/// A state file, and the session that stops beside it.
struct Case {
    session: Value,
    /// All times in the file.
    times: &'static str,
    tracked: bool,
    /// How many seconds ago the file was changed.
    age: u64,
    /// When the session began, if its transcript can be read.
    began: Option<&'static str>,
}

impl Case {
    /// A file that this session's agent wrote a minute ago.
    fn fresh() -> Self {
        Self {
            session: Value::Null,
            times: "2026-03-02T09:59:00Z",
            tracked: false,
            age: 60,
            began: Some("2026-03-02T09:00:00Z"),
        }
    }

    fn project(&self) -> Project {
        let project = Project::new();
        let state = json!({
            "schema_version": "2.0", "active": true, "phase": "qa", "iteration": 0,
            "task_description": "Theirs", "started_at": self.times, "session_id": self.session,
            "signals": { "last_checked": self.times, "detected_signals": [] }, "config": {},
        });
        project.write_view(&state.to_string());
        git(&project, &["init", "-q", "."]);
        if self.tracked {
            git(&project, &["add", "."]);
        }
        let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(NOW_SECONDS - self.age);
        let file = File::options().write(true).open(project.view_path()).unwrap();
        file.set_modified(changed).unwrap();
        project
    }

    fn stop(&self, project: &Project) -> Answer {
        let mut payload = project.payload("The parser is written.");
        if let Some(began) = self.began {
            let lines = [
                prompted("Go", Some(began)),
                prompted("Go on", Some("2026-03-02T09:59:30Z")),
                said("The parser is written.", Some(NOW)),
            ];
            payload["transcript_path"] = json!(project.transcript(&conversation(&lines)));
        }
        project.hook(&payload)
    }
}

fn git(project: &Project, args: &[&str]) {
    let status = project.command("git").args(args).status().unwrap();
    assert!(status.success(), "git {args:?}");
}

#[test]
fn a_file_that_this_session_wrote_is_adopted() {
    for (name, case) in [
        ("changed since the session began", Case::fresh()),
        ("names the session", Case { session: json!("S1"), age: 90_000, ..Case::fresh() }),
        ("names it, and is tracked", Case { session: json!("S1"), tracked: true, ..Case::fresh() }),
        (
            "names it, without a transcript",
            Case { session: json!("S1"), began: None, ..Case::fresh() },
        ),
    ] {
        let project = case.project();
        assert_eq!(case.stop(&project).word(), "block", "{name}");
        assert_eq!(project.status()["phase"], "qa", "{name}");
    }
}

#[test]
fn a_file_that_came_with_the_repository_is_not() {
    let future = "2099-01-01T00:00:00Z";
    for (name, case, told) in [
        ("tracked", Case { tracked: true, ..Case::fresh() }, "git tracks it"),
        ("future", Case { times: future, ..Case::fresh() }, "a time in the future, 2099"),
        ("older than the session", Case { age: 3_601, ..Case::fresh() }, "began before the file"),
        ("no transcript", Case { began: None, ..Case::fresh() }, "began before the file"),
        (
            "another session",
            Case { session: json!("S2"), ..Case::fresh() },
            "belongs to session S2",
        ),
    ] {
        let project = case.project();
        let before = std::fs::read(project.view_path()).unwrap();
        assert_eq!(case.stop(&project), Answer::Allow, "{name}");
        assert_eq!(std::fs::read(project.view_path()).unwrap(), before, "{name}");
        let status = project.run(&["auto", "status"]);
        assert_eq!(status.code, 1, "{name}");
        assert!(status.stderr.contains(told), "{name}: {}", status.stderr);
        assert!(project.run(&["status"]).stderr.contains(told), "{name}");
        let doctor = project.run(&["doctor", "claude-code"]).stdout;
        assert!(doctor.contains(told), "{name}: {doctor}");
    }
}

#[test]
fn a_git_that_does_not_answer_is_no_permission() {
    let project = Case::fresh().project();
    std::fs::write(project.path().join(".git/HEAD"), "nonsense").unwrap();
    assert_eq!(Case::fresh().stop(&project), Answer::Allow);
    let told = project.run(&["auto", "status"]).stderr;
    assert!(told.contains("git did not say"), "{told}");
}
