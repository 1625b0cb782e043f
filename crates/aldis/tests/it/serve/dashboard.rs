//! The dashboard in a real browser, with real servers, runs and deliveries.
//!
//! What is here runs with all other tests. `thorough` looks at every page in every light and width and
//! takes its time: `cargo nextest run -p aldis --profile browser`.

mod link;
mod thorough;

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
        self.run_with(task, &[], rounds);
    }

    fn run_with(&mut self, task: &str, options: &[&str], rounds: &[&str]) {
        let rounds: Vec<_> =
            rounds.iter().map(|steps| format!("[[round]]\ndo = [{steps}]\n")).collect();
        self.write("script.toml", &format!("voice = \"claude-stream\"\n{}", rounds.concat()));
        let agent = scripted_agent();
        self.start(&[&["run", "--task", task], options, &["--", &agent, "script.toml"]].concat());
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
    browser.wait_until("document.querySelector('#connection')?.dataset.state === 'live'");
    browser.evaluate("window.marked = true");
}

#[track_caller]
fn assert_not_reloaded(browser: &mut Browser) {
    assert_eq!(browser.evaluate("window.marked"), json!(true), "the page was loaded again");
}

/// Goes to another page of the dashboard.
fn go(browser: &mut Browser, path: &str) {
    browser.evaluate(&format!("location.assign('{path}')"));
    browser.wait_until(&format!("document.body?.dataset.ready === '{path}'"));
}

/// Opens the page of the run with this title, as a person does: by clicking on it.
fn open_run(browser: &mut Browser, title: &str) {
    let link = format!(
        "[...document.querySelectorAll('main a.title')].find((one) => one.textContent.includes('{title}'))"
    );
    browser.wait_until(&format!("Boolean({link})"));
    browser.click(&link);
    browser.wait_until("location.pathname.startsWith('/runs/') && document.body.dataset.ready === location.pathname");
}

/// Takes a picture for README and book, with `ALDIS_BLESS` anew.
#[track_caller]
fn keep_picture(browser: &mut Browser, file: &str) {
    let picture = browser.scaled_picture(file, 0.8);
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/images").join(file);
    if std::env::var_os("ALDIS_BLESS").is_some() {
        fs::write(&kept, &picture).unwrap();
    }
    let kept = fs::read(kept).unwrap();
    let is_small = kept.starts_with(b"\x89PNG") && kept.len() < 150_000;
    assert!(is_small, "{file}: {} bytes", kept.len());
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
    browser.wait_for(&["Add CSV export", "working", "30 %", "1 of ", "active", "s ago"]);
    browser.wait_until("document.querySelector('#running progress')?.value === 30");
    // Nothing moves: the page says so by itself.
    browser.wait_until("document.querySelector('#needs [data-need=stalled]') !== null");
    browser.picture("run-stalled.png");
    stage.let_through("go");
    // The new file is progress at once; a mere number comes with what is recorded next.
    browser.wait_until("document.querySelector('#needs [data-need=stalled]') === null");
    browser.wait_for(&["80 %"]);
    open_run(&mut browser, "Add CSV export");
    browser.wait_until("document.querySelector('.timeline .part.work') !== null");
    browser.wait_until("document.querySelector('.plot .curve') !== null");
    stage.let_through("end");
    browser.wait_until("document.querySelector('.head .good:not(.mark)')?.textContent === 'done'");
    browser.wait_until("document.querySelector('.claims .good') !== null");
    browser.wait_until("document.querySelector('.timeline .part.good') !== null");
    browser.picture("run-done.png");
    browser.evaluate("document.querySelector('#nav-runs').click()");
    browser.wait_until("[...document.querySelectorAll('#ended .good')].some((one) => one.textContent.startsWith('done'))");
    browser.wait_for(&["Nothing is running."]);
    stage.assert_success();
    assert_not_reloaded(&mut browser);
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
    browser.wait_until("document.title === '(1) Runs · Aldis'");
    // By keyboard alone: with Tab, or with the keys for the first item and its answer.
    browser.tab_to("Your answer");
    browser.evaluate("document.activeElement.blur()");
    browser.press("j");
    browser.press("a");
    browser.type_in("Drop it.");
    browser.press("Enter");
    browser.wait_for(&["really?"]);
    // With the mouse.
    browser.click("document.querySelector('#needs input')");
    browser.type_in("Yes.");
    browser.picture("question.png");
    browser.click(
        "[...document.querySelectorAll('#needs button')].find((one) => one.textContent === 'Send')",
    );
    browser.wait_until("[...document.querySelectorAll('#ended .good')].some((one) => one.textContent.startsWith('done'))");
    browser.wait_for(&["Nothing needs you."]);
    stage.assert_success();
    let prompts = stage.server.get("/v1/decisions").text;
    assert!(prompts.contains("run/answer"), "{prompts}");
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
    for text in &texts {
        let said = json!({ "agent": "pm", "text": text });
        assert_eq!(stage.server.post("/v1/channels/c1/messages", &said).status, 200, "{text}");
    }
    // As a title, as a question and as output, too.
    let question = HOSTILE.replace(['"', '\''], "");
    let asks = format!("{{ say = '<chorus>NEEDS_HUMAN: {question}</chorus>' }}");
    let says = format!("{{ say = '{question}' }}");
    stage.run(HOSTILE, &[&format!("{says}, {asks}")]);
    browser.wait_until(
        "document.querySelector('#needs .words')?.textContent.startsWith('<img src=x') === true",
    );
    let run = browser.evaluate("document.querySelector('#needs h3 a').getAttribute('href')");
    let run = run.as_str().unwrap().to_owned();
    for (path, shows) in [
        ("/".to_owned(), "<script>document.title='owned'</script>"),
        ("/inbox".to_owned(), "<script>document.title=owned</script>"),
        ("/runs/c1".to_owned(), "<script>document.title='owned'</script>"),
        ("/runs/c1?tab=journal".to_owned(), "pm"),
        (run.clone(), "<script>document.title=owned</script>"),
        (format!("{run}?tab=output"), "<script>document.title=owned</script>"),
        (format!("{run}?tab=journal"), "decisions"),
    ] {
        go(&mut browser, &path);
        browser.wait_for(&[shows]);
        browser.evaluate(
            "document.querySelectorAll('details').forEach((one) => { one.open = true; })",
        );
        if path.ends_with("journal") {
            // Every line opens its why.
            browser.wait_until("document.querySelectorAll('.linelike').length > 0");
            browser
                .evaluate("document.querySelectorAll('.linelike').forEach((one) => one.click())");
            browser.wait_until("document.querySelector('dialog').open");
        }
        let title = browser.evaluate("document.title").as_str().unwrap().to_owned();
        assert!(title.ends_with("Aldis"), "{path}: {title}");
        assert_eq!(browser.forbidden(), json!([]), "{path} asked for something that it may not");
        let scripts = "[...document.scripts].map((one) => one.src.replace(location.origin, '') + one.text).join()";
        assert_eq!(browser.evaluate(scripts), json!("/assets/app.js"), "{path}");
        let foreign = "[...document.querySelectorAll('img, iframe, object, embed, style, base, form[action], [onerror], [style*=url]')].map((one) => one.outerHTML).join()";
        assert_eq!(browser.evaluate(foreign), json!(""), "{path}");
        let links = "[...document.links].every((one) => one.origin === location.origin)";
        assert_eq!(browser.evaluate(links), json!(true), "{path}");
    }
    browser.picture("hostile.png");
    // The policy itself works: a script that is put into the page does not run.
    browser.evaluate("document.body.append(Object.assign(document.createElement('script'), { textContent: 'document.title = 1' }))");
    assert_ne!(browser.evaluate("document.title"), json!("1"));
    assert_ne!(browser.forbidden(), json!([]));
}
