//! What takes minutes with real hosts: sessions at a terminal, which are woken in place, and deliveries.
//! `scripts/release-check` runs these (`cargo nextest run -p aldis --profile long`); `scripts/test` does
//! not.

use std::time::{Duration, Instant};
use std::{fs, thread};

use aldis_testkit::model_server::{ModelServer, ScriptedReply};
use aldis_testkit::real_host::HostKind;
use serde_json::Value;

use super::stage::Stage;
use super::{SHORT, assert_told, model, supervised, work};
use crate::watch::Watched;

/// How long something may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

mod claude {
    //! A hook that waits beside the session wakes it.

    use aldis_testkit::real_host::HostKind::Claude;

    #[test]
    fn an_answer_wakes_a_session_at_a_terminal() {
        super::an_answer_wakes_a_session_at_a_terminal(Claude);
    }

    #[test]
    fn the_end_of_a_limit_wakes_a_session_at_a_terminal() {
        super::the_end_of_a_limit_wakes_a_session_at_a_terminal();
    }

    #[test]
    fn being_woken_begins_the_count_of_blocked_stops_anew() {
        super::being_woken_begins_the_count_of_blocked_stops_anew();
    }

    #[test]
    fn delivers_two_tasks_and_leaves_transcripts() {
        super::delivers_two_tasks_and_leaves_transcripts(Claude);
    }
}

mod codex {
    //! Its own queue wakes it.

    use aldis_testkit::real_host::HostKind::Codex;

    #[test]
    fn an_answer_wakes_a_session_at_a_terminal() {
        super::an_answer_wakes_a_session_at_a_terminal(Codex);
    }

    #[test]
    fn the_end_of_a_usage_limit_is_waited_for() {
        super::super::limits::the_end_of_a_usage_limit_is_waited_for();
    }

    #[test]
    fn delivers_two_tasks_and_leaves_transcripts() {
        super::delivers_two_tasks_and_leaves_transcripts(Codex);
    }
}

/// A host at a terminal of its own.
struct Session {
    screen: Watched,
}

impl Session {
    fn open(stage: &Stage, model: &ModelServer) -> Self {
        let screen = Watched::start(stage.host().interactive(model).unwrap(), (50, 140));
        let session = Self { screen };
        let ready = match stage.host().kind() {
            HostKind::Claude => "/effort",
            HostKind::Codex => "Ask Codex to do anything",
        };
        session.wait_for(ready);
        session
    }

    /// Sends the first prompt. Hosts take keys that come with Enter as pasted, so that comes later; and
    /// while a host starts its servers it may not take Enter at all.
    fn begin(&mut self, model: &ModelServer) {
        self.screen.press("Begin.");
        self.wait_for("Begin.");
        let began = Instant::now();
        while model.main_requests().is_empty() {
            assert!(began.elapsed() < PATIENCE, "it never began:\n{}", self.screen.text());
            thread::sleep(Duration::from_secs(2));
            self.screen.press("\r");
        }
    }

    fn wait_for(&self, text: &str) {
        self.wait_until(text, || self.screen.text().contains(text));
    }

    fn wait_until(&self, what: &str, condition: impl Fn() -> bool) {
        let began = Instant::now();
        while !condition() {
            assert!(began.elapsed() < PATIENCE, "{what} never came:\n{}", self.screen.text());
            thread::sleep(Duration::from_millis(100));
        }
    }
}

/// A run that the first session takes.
fn begin(stage: &Stage) {
    stage.aldis(&[&["auto", "start", "write a parser"], &SHORT[..]].concat());
}

/// The agent asks, nobody types, and `aldis answer` lets it go on until its run is complete.
fn an_answer_wakes_a_session_at_a_terminal(kind: HostKind) {
    let Some(stage) = Stage::new(kind) else { return };
    let stage = stage.with_host_on_path();
    begin(&stage);
    let asks = "---\nSIGNAL: PHASE_ERROR\nPHASE: init\nSTATUS: error\nERROR: which branch?\n\
                RECOVERABLE: true\n---\n";
    let model = model([vec![ScriptedReply::says(asks)], work(&super::SHORT_PHASES)].concat());
    let mut session = Session::open(&stage, &model);
    session.begin(&model);
    session.wait_until("the question", || {
        stage.aldis(&["status", "--json"]).contains("which branch?")
    });
    let answered = stage.aldis(&["answer", "q1", "Use the release branch."]);
    session.wait_until("the end of the run", || stage.status()["active"] == false);
    stage.assert_complete();
    if kind == HostKind::Codex {
        assert!(answered.contains("the agent continues phase init"), "{answered}");
    }
    let asked = model.main_requests();
    assert_told(&asked[1], "Use the release branch.");
    assert_told(&asked[1], "aldis woke this session for run");
    assert!(asked[1].knows("which branch?"), "it is another session");
    let rules = stage.aldis(&["why", "--all", "--json", &stage.run_name()]);
    assert_eq!(rules.matches("phases/woken").count(), 1, "{rules}");
}

/// Nobody does anything: the service refuses, says until when, and then the session goes on.
fn the_end_of_a_limit_wakes_a_session_at_a_terminal() {
    let Some(stage) = Stage::new(HostKind::Claude) else { return };
    let stage = stage.with_env("CLAUDE_CODE_MAX_RETRIES", "0");
    begin(&stage);
    let limited =
        ScriptedReply::fails(429, "rate_limit_error", "You are limited. Try again in 8s.");
    let model = model([vec![limited], work(&super::SHORT_PHASES)].concat());
    let mut session = Session::open(&stage, &model);
    session.begin(&model);
    session.wait_until("the limit", || {
        stage.aldis(&["status"]).contains("waits for a limit in phase init")
    });
    session.wait_until("the end of the run", || stage.status()["active"] == false);
    stage.assert_complete();
    let asked = model.main_requests();
    assert_told(&asked[1], "The limit that ended your turn is over.");
}

/// The host lets a hook block eight times in a row. Whether a session that was woken has all eight again
/// was not known before it was measured here: it has.
fn being_woken_begins_the_count_of_blocked_stops_anew() {
    let Some(stage) = Stage::new(HostKind::Claude) else { return };
    begin(&stage);
    let model = model(vec![ScriptedReply::says("Still thinking about it.")]);
    let mut session = Session::open(&stage, &model);
    session.begin(&model);
    let capped = || stage.status()["capped"] == true;
    session.wait_until("the cap", capped);
    assert_eq!(model.main_requests().len(), 8 + 1);
    stage.aldis(&["tell", &stage.run_name(), "Go on."]);
    session.wait_until("eight more", || model.main_requests().len() == 2 * (8 + 1));
    session.wait_until("the cap again", capped);
    thread::sleep(Duration::from_secs(5));
    assert_eq!(model.main_requests().len(), 2 * (8 + 1), "{}", session.screen.text());
}

/// Two tasks, the second needs the first, each in a work tree of its own; then what the transcripts that
/// they left say.
fn delivers_two_tasks_and_leaves_transcripts(kind: HostKind) {
    let Some(stage) = supervised::Stage::new(kind) else { return };
    let project = stage.host.project();
    let git = |arguments: &[&str]| {
        let mut git = std::process::Command::new("git");
        git.current_dir(&project).args(["-c", "user.name=A", "-c", "user.email=a@example.org"]);
        let done = git.args(arguments).output().unwrap();
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stdout).unwrap()
    };
    git(&["init", "--quiet", "."]);
    let plan = "# Export\n\n- [ ] csv: Write the CSV\n  - [ ] it has a header\n\
                - [ ] docs: Describe it\n  needs: csv\n  - [ ] the header is named\n";
    fs::write(project.join("plan.md"), plan).unwrap();
    git(&["add", "plan.md"]);
    git(&["commit", "--quiet", "-m", "plan"]);
    git(&["config", "user.name", "A"]);
    git(&["config", "user.email", "a@example.org"]);
    let task = |name: &str, command: &str| {
        vec![
            ScriptedReply::runs(command),
            ScriptedReply::says(format!("Written.\n\nREADY_FOR_REVIEW: {name}\nSummary: written")),
            ScriptedReply::says(format!("REVIEW_PASSED: {name}")),
            ScriptedReply::says(format!("AUDIT_PASSED: {name}")),
        ]
    };
    let replies = [task("csv", "echo name > export.csv"), task("docs", "echo name > docs.md")];
    let model = model(replies.concat());
    let (code, text) = stage.command(&model, &["deliver", "plan.md"]);
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(model.main_requests().len(), 8, "{text}");
    assert!(project.join("export.csv").exists() && project.join("docs.md").exists(), "{text}");
    let log = git(&["log", "--format=%s"]);
    assert!(log.contains("Write the CSV") && log.contains("Describe it"), "{log}");
    let ticked = fs::read_to_string(project.join("plan.md")).unwrap();
    assert_eq!(ticked.matches("- [x] ").count(), 2, "{ticked}");

    let told = stage.aldis(&["postmortem", "--json"]);
    let told = String::from_utf8(told.stdout).unwrap();
    let sessions: Vec<Value> =
        told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let claims: u64 =
        sessions.iter().map(|it| it["claim_counts"]["unchecked"].as_u64().unwrap()).sum();
    assert_eq!((sessions.len(), claims), (6, 6), "{told}");
    let page = project.join("night.html");
    let written = stage.aldis(&["postmortem", "-o", page.to_str().unwrap()]);
    assert!(written.status.success(), "{written:?}");
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("<svg") && page.contains("READY_FOR_REVIEW"), "{page}");
}
