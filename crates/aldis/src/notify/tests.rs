//! Who is told, how often, and that nobody waits for them.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use serde_json::Value;
use tempfile::TempDir;

use super::*;
use crate::settings::config::Layered;
use crate::settings::trust::Trusted;

/// A place with a secret, and settings made from TOML.
struct Stage {
    directory: TempDir,
}

impl Stage {
    fn new() -> Self {
        let stage = Self { directory: tempfile::tempdir().unwrap() };
        let secret = stage.path("secret");
        fs::write(&secret, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n").unwrap();
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
        stage
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn settings(&self, text: &str) -> Notify {
        let file = self.path("aldis.toml");
        fs::write(&file, format!("[notify]\n{text}")).unwrap();
        let document = crate::settings::config::Document::read(&file, false).unwrap();
        let trusted = Trusted::of_user(Some(self.directory.path())).unwrap();
        Layered::of_document(&document).unwrap().supervision(&trusted).unwrap().notify
    }

    fn notices(&self, text: &str) -> Notices {
        Notices::new(&self.settings(text), self.directory.path()).unwrap()
    }
}

fn message(kind: Kind, text: &str) -> Message {
    Message {
        id: "run1-5-0".to_owned(),
        at: Timestamp::from_millis(1_772_445_600_000),
        run: "run1".to_owned(),
        project: "shop".to_owned(),
        kind,
        text: text.to_owned(),
    }
}

/// A request as a receiver sees it.
#[derive(Debug)]
struct Request {
    line: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(header, _)| header.eq_ignore_ascii_case(name));
        &found.unwrap_or_else(|| panic!("no {name} in {self:?}")).1
    }
}

/// Listens on this machine, answers one request after the other, and passes them on.
fn receiver(answers: &'static [&'static str]) -> (String, Receiver<Request>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (sender, requests) = mpsc::channel();
    thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut lines = reader.by_ref().lines().map(|line| line.unwrap());
            let line = lines.next().unwrap();
            let headers: Vec<(String, String)> = lines
                .take_while(|line| !line.is_empty())
                .map(|line| {
                    line.split_once(": ").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap()
                })
                .collect();
            let mut request = Request { line, headers, body: Vec::new() };
            request.body.resize(request.header("content-length").parse().unwrap(), 0);
            reader.read_exact(&mut request.body).unwrap();
            let rest = "content-length: 0\r\nconnection: close\r\n\r\n";
            stream.write_all(format!("HTTP/1.1 {answer}\r\n{rest}").as_bytes()).unwrap();
            sender.send(request).unwrap();
        }
    });
    (address, requests)
}

fn webhook(address: &str) -> String {
    format!(
        "webhook = \"{address}/hook\"\nwebhook_secret_file = \"secret\"\nwebhook_private = true\n"
    )
}

#[test]
fn webhooks_are_signed_and_tried_again_under_the_same_name() {
    let stage = Stage::new();
    let (address, requests) = receiver(&["503 Not Now", "200 OK"]);
    let notices = stage.notices(&webhook(&address));
    let key = format!("ghp_{}", "x".repeat(36));
    notices.tell(&message(Kind::Question, &format!("keep {key}?\x1b[2J")));
    let first = requests.recv_timeout(Duration::from_secs(30)).unwrap();
    let second = requests.recv_timeout(Duration::from_secs(30)).unwrap();
    assert_eq!(notices.finish(), [""; 0]);
    for request in [&first, &second] {
        assert_eq!(request.line, "POST /hook HTTP/1.1");
        assert_eq!(request.header("webhook-id"), "run1-5-0");
        assert_eq!(request.header("content-type"), "application/json");
        let seconds: i64 = request.header("webhook-timestamp").parse().unwrap();
        assert!(
            (clock::wall().as_millis() / 1000 - seconds).abs() < 300,
            "the time of the attempt"
        );
        let secret = signature::Secret::read(&stage.path("secret")).unwrap();
        let signed = secret.sign("run1-5-0", seconds, &request.body);
        assert_eq!(request.header("webhook-signature"), signed);
    }
    let body: Value = serde_json::from_slice(&second.body).unwrap();
    assert_eq!((&body["type"], &body["data"]["run"]), (&"question".into(), &"run1".into()));
    assert_eq!(body["timestamp"], "2026-03-02T10:00:00Z");
    assert_eq!(body["data"]["text"], "keep [redacted]?␛[2J", "no secrets, nothing to obey");
}

#[test]
fn webhooks_follow_nobody_and_give_up() {
    for (answers, problem) in [
        (&["302 Found"][..], "webhook: answered 302; redirects are not followed"),
        (&["401 Unauthorized"], "webhook: answered 401"),
        (&["410 Gone"], "webhook: answered 410"),
    ] {
        let stage = Stage::new();
        let (address, requests) = receiver(answers);
        let notices = stage.notices(&webhook(&address));
        notices.tell(&message(Kind::RunEnded, "done"));
        requests.recv_timeout(Duration::from_secs(30)).unwrap();
        assert_eq!(notices.finish(), [problem], "one attempt, one line");
    }
}

#[test]
fn names_that_lead_here_are_refused_without_leave() {
    let stage = Stage::new();
    let text = "webhook = \"https://localhost:9/\"\nwebhook_secret_file = \"secret\"\n";
    let notices = stage.notices(text);
    notices.tell(&message(Kind::RunEnded, "done"));
    let problems = notices.finish();
    assert!(problems[0].contains("allow it with `webhook_private = true`"), "{problems:?}");
}

#[test]
fn a_secret_must_be_there_and_private() {
    let stage = Stage::new();
    let settings = stage.settings(&webhook("http://127.0.0.1:9"));
    let secret = stage.path("secret");
    let said = || match Notices::new(&settings, stage.directory.path()) {
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    };
    assert_eq!(said(), "");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o640)).unwrap();
    assert!(said().ends_with("can be read by others"), "{}", said());
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&secret, "password").unwrap();
    assert!(said().contains("holds no secret"), "{}", said());
    fs::remove_file(&secret).unwrap();
    assert!(said().contains("secret"), "{}", said());
}

#[test]
fn each_kind_of_notice_goes_where_it_is_wanted() {
    let stage = Stage::new();
    let text = "terminal = false\ncommand = \"echo $ALDIS_NOTICE $ALDIS_RUN $ALDIS_TEXT >> told\"\n\
        [notify.events]\nquestion = [\"desktop\"]\nrate_limit = false\nrun_ended = [\"command\", \"terminal\"]\n";
    let notices = stage.notices(text);
    for kind in [Kind::Question, Kind::RateLimit, Kind::RunEnded, Kind::BudgetSoon] {
        notices.tell(&message(kind, "$(id) `id` ; id"));
        assert!(!notices.ring(kind), "the terminal is switched off");
    }
    assert_eq!(notices.finish(), [""; 0]);
    let told = fs::read_to_string(stage.path("told")).unwrap();
    let said = "run1 $(id) `id` ; id";
    assert_eq!(told, format!("run_ended {said}\nbudget_soon {said}\n"));
    let usual = stage.notices("[notify.events]\nrate_limit = false\n");
    assert!(usual.ring(Kind::Question) && !usual.ring(Kind::RateLimit));
}

#[test]
fn what_fails_is_told_and_what_hangs_is_left() {
    let stage = Stage::new();
    let notices = stage.notices("command = \"exit 3\"\n");
    notices.tell(&message(Kind::Question, "x"));
    assert_eq!(notices.finish(), ["command: the command failed: exit status: 3"]);

    let notices = stage.notices("command = \"sleep 20\"\n");
    for _ in 0..QUEUE + 2 {
        notices.tell(&message(Kind::Question, "x"));
    }
    assert_eq!(
        notices.problems().last().unwrap(),
        "command: too many notices wait; one was dropped"
    );
    let late = notices.finish_within(Duration::from_millis(50));
    assert_eq!(late, ["command: the last notices may not have arrived"]);
}
