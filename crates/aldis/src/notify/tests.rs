//! Who is told, how often, and that nobody waits for them.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use aldis_engine::{NOTICE, NewRun, Route as _, RoutedRun};
use aldis_machine::run::{Config, Start, State};
use aldis_store::{
    ClaimRequest, Driver, EffectFilter, EffectState, MemoryStore, NewEffect, RunId, Step,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::courier::{Courier, CourierRole, SinkReport};
use super::*;
use crate::settings::clock;
use crate::settings::config::Layered;
use crate::settings::trust::Trusted;

/// A run whose people want to be told, a secret, and a place for failures.
struct Stage {
    directory: TempDir,
    store: Arc<dyn Store>,
    run: RunId,
}

impl Stage {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let secret = directory.path().join("secret");
        fs::write(&secret, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n").unwrap();
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
        Self { directory, store: Arc::new(MemoryStore::new()), run: RunId::new("run1").unwrap() }
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

    /// Begins a run with these settings.
    fn begin(&self, text: &str) {
        let start = Start {
            task: "Add CSV export".to_owned(),
            dialect: "chorus".to_owned(),
            instructions: String::new(),
            launch: String::new(),
            config: Config::default(),
        };
        let new = NewRun {
            id: Some(self.run.clone()),
            notes: vec![note(&self.settings(text)).unwrap()],
            ..NewRun::of(self.directory.path().to_string_lossy(), Driver::Process)
        };
        let engine = Engine::new(Arc::clone(&self.store));
        engine.begin::<State>(clock::wall(), &new, start).unwrap();
    }

    /// Commits a step with a notice. Returns the keys of what the outbox got of it.
    fn tell(&self, kind: &str, text: &str, at: Timestamp) -> Vec<String> {
        let loaded = self.store.load(&self.run).unwrap().unwrap();
        let note = loaded.parts.iter().find(|part| part.key == NOTIFY).unwrap();
        let routed = RoutedRun {
            id: &self.run,
            driver: Driver::Process,
            machine: State::NAME,
            project: &loaded.run.record.project,
            title: &loaded.run.record.title,
            active: true,
            decision: None,
            at,
            notify: Some(&note.body),
        };
        let effect = json!({ "effect": "notice", "notice": kind, "text": text });
        let revision = loaded.run.revision;
        let mut step = Step::new(self.run.clone(), revision, loaded.run.record.clone(), at);
        for (way, sent) in Routes::default().route(&routed, &effect).into_iter().enumerate() {
            step.effects.push(NewEffect {
                key: format!("{}/{revision}/{way}", self.run),
                kind: sent.kind.to_owned(),
                lane: sent.lane,
                requires: sent.requires,
                body: sent.body.to_string(),
                due: at,
            });
        }
        step.effects.retain(|effect| effect.kind == NOTICE);
        self.store.commit(&step).unwrap();
        step.effects.into_iter().map(|effect| effect.key).collect()
    }

    /// Delivers what there is. Returns what was reported as given up, and what still waits.
    fn deliver(&self) -> Vec<String> {
        let (report, problems) = mpsc::channel();
        let on_report = move |it: SinkReport<'_>| {
            if let SinkReport::GivenUp(_, sink, why) = it {
                report.send(format!("{sink}: {why}")).unwrap();
            }
        };
        let place = self.directory.path();
        let role = CourierRole::Supervisor(self.run.clone());
        let courier = Courier::start(Arc::clone(&self.store), place, role, on_report);
        let waits = courier.finish(&self.run);
        problems.try_iter().chain(waits).collect()
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
            sender.send(request).ok();
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
    stage.begin(&webhook(&address));
    let secret_key = format!("ghp_{}", "x".repeat(36));
    let at = clock::wall();
    stage.tell("question", &format!("keep {secret_key}?\x1b[2J"), at);
    assert_eq!(stage.deliver(), [""; 0]);
    let [first, second] = [requests.recv().unwrap(), requests.recv().unwrap()];
    let id = first.header("webhook-id").to_owned();
    for request in [&first, &second] {
        assert_eq!(request.line, "POST /hook HTTP/1.1");
        assert_eq!(request.header("webhook-id"), id);
        assert_eq!(request.header("content-type"), "application/json");
        let seconds: i64 = request.header("webhook-timestamp").parse().unwrap();
        assert!((clock::wall().as_millis() / 1000 - seconds).abs() < 300, "of the attempt");
        let secret = signature::Secret::read(&stage.path("secret")).unwrap();
        let signed = secret.sign(&id, seconds, &request.body);
        assert_eq!(request.header("webhook-signature"), signed);
    }
    assert_eq!(first.body, second.body);
    let body: Value = serde_json::from_slice(&second.body).unwrap();
    assert_eq!(
        (&body["v"], &body["id"], &body["type"]),
        (&1.into(), &id.into(), &"question".into())
    );
    assert_eq!(body["timestamp"], at.to_string());
    let data = &body["data"];
    assert_eq!((&data["run"], &data["machine"]), (&"run1".into(), &"run".into()));
    assert_eq!((&data["title"], &data["active"]), (&"Add CSV export".into(), &true.into()));
    assert_eq!(data["text"], "keep [redacted]?␛[2J", "no secrets, nothing to obey");
}

#[test]
fn refusals_for_good_are_given_up_and_recorded() {
    for (answers, problem) in [
        (&["302 Found"][..], "webhook: answered 302; redirects are not followed"),
        (&["401 Unauthorized"], "webhook: answered 401"),
        (&["410 Gone"], "webhook: answered 410"),
    ] {
        let stage = Stage::new();
        let (address, requests) = receiver(answers);
        stage.begin(&webhook(&address));
        let keys = stage.tell("run_ended", "done", clock::wall());
        assert_eq!(stage.deliver(), [problem], "one attempt, one line");
        requests.recv().unwrap();
        let effect = stage.store.effect(&keys[0]).unwrap().unwrap();
        assert_eq!(effect.state, EffectState::GivenUp);
        let seen = troubles(&*stage.store, stage.directory.path(), clock::wall()).unwrap();
        assert_eq!(seen.len(), 1);
        assert!(seen[0].contains("run1 was given up: answered"), "{seen:?}");
    }
}

#[test]
fn a_receiver_that_wants_to_be_left_alone_is() {
    let stage = Stage::new();
    let (address, requests) = receiver(&["429 Slow Down\r\nretry-after: 600"]);
    stage.begin(&webhook(&address));
    let now = clock::wall();
    let first = stage.tell("question", "one", now);
    let second = stage.tell("question", "two", now);
    let role = CourierRole::Supervisor(stage.run.clone());
    let courier = Courier::start(Arc::clone(&stage.store), stage.directory.path(), role, |_| {});
    requests.recv().unwrap();
    let due = |key: &str| stage.store.effect(key).unwrap().unwrap();
    while due(&first[0]).attempts == 0 {
        thread::sleep(Duration::from_millis(10));
    }
    drop(courier);
    let waits = due(&first[0]).due.since(now);
    assert!(waits >= Duration::from_secs(590), "{waits:?}");
    assert_eq!(due(&second[0]).attempts, 0, "what follows does not overtake it");
    let seen = failing(&*stage.store).unwrap();
    assert_eq!(seen, ["webhook of run run1: 2 notices wait for another attempt: answered 429"]);
    // Nobody holds on to what was not sent.
    let request = ClaimRequest::new(&[NOTICE], "other", now.after(Duration::from_secs(700)), GRACE);
    let claimed = || stage.store.claim(&request).unwrap().len();
    assert_eq!(claimed(), 2);
}

/// Longer than any test.
const GRACE: Duration = Duration::from_secs(1_000);

#[test]
fn what_is_a_day_old_gets_one_more_attempt() {
    let stage = Stage::new();
    let (address, _requests) = receiver(&["503 Not Now", "503 Not Now"]);
    stage.begin(&webhook(&address));
    let old = clock::wall().before(Duration::from_secs(25 * 60 * 60));
    stage.tell("question", "one", old);
    stage.tell("question", "two", old);
    assert_eq!(stage.deliver(), ["webhook: answered 503", "webhook: answered 503"]);
}

#[test]
fn names_that_lead_here_are_refused_without_leave() {
    let stage = Stage::new();
    stage.begin("webhook = \"https://localhost:9/\"\nwebhook_secret_file = \"secret\"\n");
    stage.tell("run_ended", "done", clock::wall());
    let problems = stage.deliver();
    assert!(problems[0].contains("allow it with `webhook_private = true`"), "{problems:?}");
}

#[test]
fn a_secret_must_be_there_and_private() {
    let stage = Stage::new();
    let settings = stage.settings(&webhook("http://127.0.0.1:9"));
    let secret = stage.path("secret");
    let said = || match check(&settings, stage.directory.path()) {
        Ok(()) => String::new(),
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
    stage.begin(text);
    for kind in ["question", "rate_limit", "run_ended", "budget_soon"] {
        stage.tell(kind, "$(id) `id` ; id", clock::wall());
    }
    assert_eq!(stage.deliver(), [""; 0]);
    let told = fs::read_to_string(stage.path("told")).unwrap();
    let said = "run1 $(id) `id` ; id";
    assert_eq!(told, format!("run_ended {said}\nbudget_soon {said}\n"));
    assert!(!ring(&stage.settings(text), Kind::RunEnded), "the terminal is switched off");
    let usual = stage.settings("[notify.events]\nrate_limit = false\n");
    assert!(ring(&usual, Kind::Question) && !ring(&usual, Kind::RateLimit));
}

#[test]
fn a_command_that_fails_is_not_started_again() {
    let stage = Stage::new();
    stage.begin("command = \"echo x >> runs; exit 3\"\n");
    stage.tell("question", "x", clock::wall());
    assert_eq!(stage.deliver(), ["command: the command failed: exit status: 3"]);
    assert_eq!(fs::read_to_string(stage.path("runs")).unwrap(), "x\n");
}

#[test]
fn a_queue_that_is_too_long_loses_its_oldest_and_says_so() {
    let stage = Stage::new();
    // The listener is closed again: connections are refused.
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    stage.begin(&webhook(&format!("http://{closed}")));
    let now = clock::wall();
    let keys: Vec<String> =
        (0..1_010).flat_map(|number| stage.tell("question", &number.to_string(), now)).collect();
    let (report, dropped) = mpsc::channel();
    let on_report = move |it: SinkReport<'_>| {
        if let SinkReport::Dropped(sink, count) = it {
            report.send((sink.to_owned(), count)).ok();
        }
    };
    let place = stage.directory.path();
    let role = CourierRole::Supervisor(stage.run.clone());
    let courier = Courier::start(Arc::clone(&stage.store), place, role, on_report);
    let mut lost = 0;
    while lost < 10 {
        let (sink, count) = dropped.recv_timeout(Duration::from_secs(30)).unwrap();
        assert_eq!(sink, "webhook");
        lost += count;
    }
    drop(courier);
    assert_eq!(lost, 10);
    let ever = EffectFilter::due_by(Timestamp::from_millis(i64::MAX));
    let left =
        stage.store.pending_effects(&EffectFilter { kinds: vec![NOTICE.to_owned()], ..ever });
    let left: Vec<String> = left.unwrap().into_iter().map(|effect| effect.key).collect();
    assert_eq!(left.len(), 1_000);
    assert_eq!(left[989..], keys[1_010 - 11..], "the latest are kept");
    let seen = troubles(&*stage.store, place, clock::wall()).unwrap();
    assert!(seen.iter().any(|it| it.contains("were dropped: more than 1000 waited")), "{seen:?}");
}

/// A receiver that fails on one notice alone is not down.
#[test]
fn a_notice_that_is_always_refused_holds_up_no_other() {
    const NO: &str = "500 No\r\nretry-after: 0";
    const YES: &str = "200 OK";
    let stage = Stage::new();
    let (address, requests) = receiver(&[NO, NO, NO, NO, NO, NO, NO, NO, NO, YES, YES]);
    stage.begin(&webhook(&address));
    let now = clock::wall();
    let keys: Vec<String> =
        ["bad", "second", "third"].iter().flat_map(|it| stage.tell("question", it, now)).collect();
    let why = "answered 500 again and again, but took the notice behind it";
    assert_eq!(stage.deliver(), [format!("webhook: {why}")]);
    let seen: Vec<String> =
        requests.iter().map(|request| request.header("webhook-id").replace('-', "/")).collect();
    assert!(seen[..9].iter().all(|key| *key == keys[0]), "{seen:?}");
    assert_eq!(seen[9..], keys[1..]);
}

#[test]
fn what_another_process_left_is_delivered_once() {
    let stage = Stage::new();
    let (address, requests) = receiver(&["200 OK", "200 OK"]);
    stage.begin(&webhook(&address));
    // Its supervisor had its time.
    let before = clock::wall().before(Duration::from_secs(120));
    stage.tell("run_ended", "old", before);
    stage.tell("question", "new", clock::wall());
    let other = RunId::new("other").unwrap();
    let start = || {
        let (store, place) = (Arc::clone(&stage.store), stage.directory.path());
        Courier::start(store, place, CourierRole::Supervisor(other.clone()), |_| {})
    };
    let couriers = [start(), start()];
    let first = requests.recv_timeout(Duration::from_secs(30)).unwrap();
    let body: Value = serde_json::from_slice(&first.body).unwrap();
    assert_eq!(body["data"]["text"], "old");
    drop(couriers);
    assert_eq!(stage.deliver(), [""; 0], "its own process waits for nobody");
    let second = requests.recv_timeout(Duration::from_secs(30)).unwrap();
    let body: Value = serde_json::from_slice(&second.body).unwrap();
    assert_eq!(body["data"]["text"], "new");
    assert!(requests.try_recv().is_err());
}
