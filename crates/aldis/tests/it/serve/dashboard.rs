//! The dashboard in a real browser, with real servers, runs and deliveries.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::json;
use tempfile::TempDir;

use super::browser::Browser;
use super::client::{Server, place};
use crate::phases::project::testdata;
use crate::sandbox::{ALDIS, scripted_agent};

/// What an agent may write, and a careless page would run.
const HOSTILE: &str = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>\
    <a href=\"javascript:document.title='owned'\">here</a><style>body{display:none}</style>";

/// An agent that waits at gates: before it says what its role should, for a file of its role and round.
const AGENT: &str = r#"#!/bin/sh
cat > /dev/null
role=$ALDIS_ROLE task=$ALDIS_TASK
gate() { while [ ! -e "$1" ]; do sleep 0.05; done; }
case $role in
developer) gate "developer-$task"
  printf 'Done.\n\nREADY_FOR_REVIEW: %s\nSummary: done\n' "$task";;
critic)
  if [ ! -e "reviewed-$task" ]; then
    gate "critic-$task"; touch "reviewed-$task"
    printf 'REVIEW_FAILED: %s\nIssues Found:\n- a.rs:1: quotes are not escaped\n' "$task"
  else
    gate "critic-again-$task"; printf 'REVIEW_PASSED: %s\n' "$task"
  fi;;
auditor) printf 'AUDIT_PASSED: %s\n' "$task";;
esac
"#;
const PLAN: &str = "# Billing export\n\n- [ ] writer: CSV writer\n  - [ ] quotes are escaped\n\
    - [ ] docs: Describe the format\n  needs: writer\n  - [ ] every column is named\n";

/// A server, its state, and a project in which agents work.
struct Stage {
    server: Server,
    state: PathBuf,
    project: PathBuf,
    children: Vec<Child>,
    _directory: TempDir,
}

impl Stage {
    fn new() -> Self {
        let (directory, state) = place();
        let server = Server::start(&state);
        let project = directory.path().join("project");
        fs::create_dir(&project).unwrap();
        Self { server, state, project, children: Vec::new(), _directory: directory }
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.project.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Opens a gate that an agent waits at.
    fn let_through(&self, gate: &str) {
        self.write(gate, "");
    }

    /// Starts a command in the project, with the server's state.
    fn start(&mut self, args: &[&str]) {
        let child = Command::new(ALDIS)
            .env_clear()
            .env("HOME", &self.project)
            .current_dir(&self.project)
            .arg("--state-dir")
            .arg(&self.state)
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        self.children.push(child);
    }

    /// Starts a supervised agent that follows a script.
    fn run(&mut self, task: &str, rounds: &[&str]) {
        let rounds: Vec<_> =
            rounds.iter().map(|steps| format!("[[round]]\ndo = [{steps}]\n")).collect();
        self.write("script.toml", &format!("voice = \"claude-stream\"\n{}", rounds.concat()));
        self.start(&["run", "--task", task, "--", &scripted_agent(), "script.toml"]);
    }

    fn deliver(&mut self) {
        self.write("agent.sh", AGENT);
        self.write("plan.md", PLAN);
        self.start(&["deliver", "plan.md", "--", "./agent.sh"]);
    }

    fn channel(&self, name: &str, timeout: u64) {
        let config = json!({ "default_timeout_seconds": timeout });
        let body = json!({ "channel": name, "agents": ["pm", "dev"], "config": config });
        let got = self.server.post("/v1/channels", &body);
        assert_eq!(got.status, 201, "{}", got.text);
    }

    /// Waits until everything that was started has ended well.
    fn assert_success(&mut self) {
        for child in &mut self.children {
            assert!(child.wait().unwrap().success());
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        for child in &mut self.children {
            child.kill().ok();
            child.wait().ok();
        }
    }
}

/// Steps of a script: uses a tool, so that what was said before is complete, and waits for a file.
fn gate(name: &str) -> String {
    let tool = "{ tool = { name = 'Bash' } }";
    format!("{tool}, {{ run = 'while [ ! -e {name} ]; do sleep 0.05; done' }}")
}

/// Marks the page; a page that was loaded again has no mark.
fn mark(browser: &mut Browser) {
    browser.wait_for(&["live"]);
    browser.evaluate("window.marked = true");
}

#[track_caller]
fn assert_not_reloaded(browser: &mut Browser) {
    assert_eq!(browser.evaluate("window.marked"), json!(true), "the page was loaded again");
}

#[test]
fn a_run_is_seen_from_start_to_end() {
    let mut stage = Stage::new();
    let Some(mut browser) = Browser::open(&stage.server.link) else { return };
    mark(&mut browser);
    browser.wait_for(&["Nothing is running."]);
    stage.write(
        "aldis.toml",
        "[stagnation]\nwarn_timeout = 1\npause_timeout = 0\nabort_timeout = 0\n",
    );
    let first = format!("{{ say = '<chorus>PROGRESS: 30</chorus>' }}, {}", gate("go"));
    let then = format!("{{ say = '<chorus>PROGRESS: 80</chorus>' }}, {}", gate("end"));
    let last = "{ say = '<chorus>COMPLETE</chorus>' }";
    stage.run("Add CSV export", &[&format!("{first}, {then}, {last}")]);
    browser.wait_for(&["Add CSV export", "working", "30 %", "1 of ", "last activity", "s ago"]);
    browser.wait_until("document.querySelector('#now progress')?.value === 30");
    // Nothing moves: the page says so by itself.
    browser.wait_until("document.querySelector('#now .warn')?.textContent === 'warn'");
    browser.picture("run-stalled.png");
    stage.let_through("go");
    // The new file is progress at once; a mere number comes with what is recorded next.
    browser.wait_until("document.querySelector('#now dd .warn') === null");
    browser.wait_for(&["80 %"]);
    stage.let_through("end");
    browser.wait_until("document.querySelector('#ended .good')?.textContent.startsWith('done')");
    browser.wait_for(&["Nothing is running."]);
    stage.assert_success();
    assert_not_reloaded(&mut browser);
    browser.picture("run-done.png");
}

#[test]
fn questions_are_answered_on_the_page() {
    let mut stage = Stage::new();
    let Some(mut browser) = Browser::open(&stage.server.link) else { return };
    mark(&mut browser);
    let ask = |question: &str| format!("{{ say = '<chorus>NEEDS_HUMAN: {question}</chorus>' }}");
    let done = "{ say = '<chorus>COMPLETE</chorus>' }";
    stage.run("Drop the endpoint", &[&ask("keep or drop?"), &ask("really?"), done]);
    browser.wait_for(&["keep or drop?", "waiting for your answer"]);
    // By keyboard alone.
    browser.tab_to("Your answer");
    browser.type_in("Drop it.");
    browser.press("Enter");
    browser.wait_for(&["really?"]);
    // With the mouse.
    browser.click("document.querySelector('#waiting input')");
    browser.type_in("Yes.");
    browser.picture("question.png");
    browser.click("document.querySelector('#waiting button')");
    browser.wait_until("document.querySelector('#ended .good')?.textContent.startsWith('done')");
    browser.wait_for(&["Nothing needs you."]);
    stage.assert_success();
    let prompts = stage.server.get("/v1/decisions").text;
    assert!(prompts.contains("run/answer"), "{prompts}");
    assert_not_reloaded(&mut browser);
}

#[test]
fn a_turn_that_takes_too_long_is_passed_on() {
    let stage = Stage::new();
    let Some(mut browser) = Browser::open(&stage.server.link) else { return };
    mark(&mut browser);
    stage.channel("c1", 5);
    browser.wait_for(&["# c1", "pm's turn", "s left"]);
    let left = "parseInt(document.querySelector('[data-deadline]')?.textContent ?? '99', 10)";
    let first = browser.evaluate(left).as_i64().unwrap();
    assert!(first <= 5, "{first}");
    browser.wait_until(&format!("{left} < {first}"));
    browser.picture("deadline.png");
    browser.wait_for(&["dev's turn", "Ended pm's turn"]);
    assert_not_reloaded(&mut browser);
    browser.evaluate("document.querySelector('#now summary').click()");
    browser.wait_for(&["turn timeout pm (timeout)"]);
}

#[test]
fn tasks_are_seen_by_state_and_round() {
    let mut stage = Stage::new();
    let Some(mut browser) = Browser::open(&stage.server.link) else { return };
    mark(&mut browser);
    stage.deliver();
    let in_state = |state: &str| {
        format!(
            "(document.querySelector('[data-state=\"{state}\"]')?.innerText ?? '').replace(/\\s+/g, ' ')"
        )
    };
    browser.wait_until(&format!(
        "{}.startsWith('implementing (1) writer CSV writer round 0 developer')",
        in_state("implementing")
    ));
    browser.wait_until(&format!("{}.includes('docs Describe the format')", in_state("pending")));
    stage.let_through("developer-writer");
    browser.wait_until(&format!(
        "{}.includes('writer CSV writer round 1 critic')",
        in_state("awaiting-review")
    ));
    stage.let_through("critic-writer");
    browser.wait_until(&format!(
        "{}.includes('writer CSV writer round 2 critic')",
        in_state("awaiting-review")
    ));
    browser.picture("delivery.png");
    for gate in ["critic-again-writer", "developer-docs", "critic-docs", "critic-again-docs"] {
        stage.let_through(gate);
    }
    browser.wait_until(&format!("{}.startsWith('complete (2)')", in_state("complete")));
    browser
        .wait_until("document.querySelector('#ended .good')?.textContent.startsWith('complete')");
    stage.assert_success();
    assert_not_reloaded(&mut browser);
}

#[test]
fn what_agents_write_is_words() {
    let mut stage = Stage::new();
    let Some(mut browser) = Browser::open(&stage.server.link) else { return };
    mark(&mut browser);
    let mut texts = vec![HOSTILE.to_owned()];
    for entry in fs::read_dir(testdata("hostile")).unwrap().flatten() {
        if entry.file_name().to_string_lossy().starts_with("display_") {
            texts.push(String::from_utf8_lossy(&fs::read(entry.path()).unwrap()).into_owned());
        }
    }
    assert!(texts.len() > 12, "{} texts", texts.len());
    stage.channel("c1", 600);
    let elements = "[...new Set([...document.querySelectorAll('*')].map((one) => one.tagName))].sort().join(' ')";
    browser.wait_for(&["pm's turn"]);
    for text in &texts {
        let said = json!({ "agent": "pm", "text": text });
        assert_eq!(stage.server.post("/v1/channels/c1/messages", &said).status, 200, "{text}");
    }
    // As a title and as a question, too.
    let question = HOSTILE.replace(['"', '\''], "");
    stage.run(HOSTILE, &[&format!("{{ say = '<chorus>NEEDS_HUMAN: {question}</chorus>' }}")]);
    browser.wait_until(
        "document.querySelector('#waiting .words')?.textContent.startsWith('<img src=x') === true",
    );
    browser.wait_until("document.querySelector('#now progress') !== null");
    browser
        .wait_until(&format!("document.querySelectorAll('#journal li').length > {}", texts.len()));
    browser.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })");
    browser.wait_for(&["<script>document.title='owned'</script>"]);
    assert_eq!(browser.evaluate("document.title"), json!("Aldis"));
    assert_eq!(browser.forbidden(), json!([]), "the page asked for something that it may not");
    // Nothing but what the page itself is made of.
    assert_eq!(
        browser.evaluate(elements),
        "A ARTICLE BODY BUTTON DD DETAILS DIV DL DT H1 H2 H3 HEAD HEADER HTML INPUT LI LINK MAIN META \
         NOSCRIPT OL P PROGRESS SCRIPT SECTION SPAN SUMMARY TIME TITLE UL"
    );
    let scripts = "[...document.scripts].map((one) => one.src.replace(location.origin, '') + one.text).join()";
    assert_eq!(browser.evaluate(scripts), json!("/app.js"), "no script but the page's own");
    let links = "[...document.links].every((one) => one.getAttribute('href').startsWith('#'))";
    assert_eq!(browser.evaluate(links), json!(true));
    browser.picture("hostile.png");
    // The policy itself works: a script that is put into the page does not run.
    browser.evaluate("document.body.append(Object.assign(document.createElement('script'), { textContent: 'document.title = 1' }))");
    assert_eq!(browser.evaluate("document.title"), json!("Aldis"));
    assert_ne!(browser.forbidden(), json!([]));
}

/// Lets everything happen that the page can show. Returns the page when it shows it.
fn everything(stage: &mut Stage, task: &str) -> Option<Browser> {
    let mut browser = Browser::open(&stage.server.link)?;
    mark(&mut browser);
    stage.channel("release", 600);
    let said = json!({ "agent": "pm", "text": "The scope is settled. TURN_COMPLETE" });
    stage.server.post("/v1/channels/release/messages", &said);
    stage.deliver();
    stage.let_through("developer-writer");
    stage.let_through("critic-writer");
    browser.wait_for(&["round 2", "dev's turn"]);
    let ask = "{ say = '<chorus>PROGRESS: 60</chorus>' }, { say = '<chorus>NEEDS_HUMAN: Keep or drop the old endpoint? It is still called twice a day.</chorus>' }";
    stage.run(task, &[ask]);
    browser.wait_for(&[task, "Keep or drop the old endpoint?", "60 %"]);
    Some(browser)
}

#[test]
fn it_fits_a_phone_in_any_light() {
    let mut stage = Stage::new();
    let endless = "AVeryLongWordWithoutASingleSpace".repeat(8);
    let Some(mut browser) = everything(&mut stage, &endless) else { return };
    let wide = "[...document.querySelectorAll('body *')].filter((one) => \
        one.getBoundingClientRect().right > innerWidth + 1).map((one) => one.tagName).join()";
    let paper = "getComputedStyle(document.body).backgroundColor";
    let mut papers = Vec::new();
    browser.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })");
    for light in ["light", "dark"] {
        for width in [400, 1400] {
            browser.light_and_width(light, width);
            browser.wait_until(&format!("innerWidth === {width}"));
            let fits = "document.documentElement.scrollWidth <= innerWidth";
            assert_eq!(browser.evaluate(fits), json!(true), "{width} px, {light}");
            assert_eq!(browser.evaluate(wide), json!(""), "{width} px, {light}");
            browser.picture(&format!("dashboard-{light}-{width}.png"));
        }
        papers.push(browser.evaluate(paper));
    }
    assert_ne!(papers[0], papers[1], "it is dark in the dark");
    assert_eq!(browser.forbidden(), json!([]));
}

/// The picture of the README. Set `ALDIS_BLESS=1` to take it anew.
#[test]
fn the_picture_of_the_readme_shows_what_there_is() {
    let mut stage = Stage::new();
    let Some(mut browser) = everything(&mut stage, "Drop the old endpoint") else { return };
    browser.light_and_width("light", 1200);
    let picture = browser.scaled_picture("dashboard.png", 0.8);
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/images/dashboard.png");
    if std::env::var_os("ALDIS_BLESS").is_some() {
        fs::create_dir_all(kept.parent().unwrap()).unwrap();
        fs::write(&kept, &picture).unwrap();
    }
    let kept = fs::read(kept).unwrap();
    assert!(kept.starts_with(b"\x89PNG") && kept.len() < 150_000, "{} bytes", kept.len());
}
