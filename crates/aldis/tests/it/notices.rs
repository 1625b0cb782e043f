//! Notices of real runs: who is told, and that secrets stay at home.

use std::fs;
use std::io::{BufRead as _, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use rustls::pki_types::PrivateKeyDer;
use serde_json::Value;

use crate::phases::project::{Project, block, feed, testdata};
use crate::sandbox::{ALDIS, Done};
use crate::serve::client::Server;
use crate::serve::receiver::Inbox;

/// Answers every request on this machine with 200 and passes its text on.
fn receiver() -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (sender, requests) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let request = answer(stream.unwrap());
            if sender.send(request).is_err() {
                return;
            }
        }
    });
    (address, requests)
}

fn answer(mut stream: impl Read + Write + Borrowed) -> String {
    stream.socket().set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&request).into_owned();
        let lower = text.to_ascii_lowercase();
        if let Some((head, body)) = lower.split_once("\r\n\r\n") {
            let length = head.split("content-length: ").nth(1).unwrap();
            if body.len() >= length.lines().next().unwrap().parse().unwrap() {
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
                return text;
            }
        }
        let count = stream.read(&mut buffer).unwrap();
        assert!(count > 0, "cut off: {text}");
        request.extend(&buffer[..count]);
    }
}

/// The socket under a stream.
trait Borrowed {
    fn socket(&self) -> &TcpStream;
}

impl Borrowed for TcpStream {
    fn socket(&self) -> &TcpStream {
        self
    }
}

impl Borrowed for rustls::StreamOwned<rustls::ServerConnection, TcpStream> {
    fn socket(&self) -> &TcpStream {
        &self.sock
    }
}

/// Like [`receiver`], but with a certificate for `localhost`, which is returned too.
fn secure_receiver() -> (u16, Receiver<String>, String) {
    let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(signed.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![signed.cert.der().clone()], key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, requests) = mpsc::channel();
    thread::spawn(move || {
        for socket in listener.incoming() {
            let server = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = rustls::StreamOwned::new(server, socket.unwrap());
            // Whoever does not believe us goes away before a word is said.
            if stream.fill_buf().is_ok_and(|words| !words.is_empty()) {
                let _heard = sender.send(answer(stream));
            }
        }
    });
    (port, requests, signed.cert.pem())
}

#[test]
fn webhooks_go_only_to_those_the_system_believes() {
    let (port, requests, certificate) = secure_receiver();
    let project = project(&format!(
        "[notify]\nwebhook = \"https://localhost:{port}/hook\"\nwebhook_private = true\nwebhook_secret_file = \"secret\"\n"
    ));
    let certificates = project.root().join("certificates.pem");
    fs::write(&certificates, certificate).unwrap();
    let run = |known: &str| {
        let mut command = project.command(ALDIS);
        command.env(known, &certificates).args(["run", "--task", "x", "--", "/bin/sh", "-c"]);
        command.arg("echo '<chorus>COMPLETE</chorus>'");
        let done = feed(command, b"");
        assert_eq!(done.code, 0, "{}", done.text());
        done
    };
    let unknown = run("NO_CERT_FILE");
    assert!(unknown.stdout.contains("webhook: "), "{}", unknown.text());
    assert_eq!(requests.try_iter().count(), 0);
    let known = run("SSL_CERT_FILE");
    assert!(!known.stdout.contains("webhook: "), "{}", known.text());
    let request = requests.recv_timeout(Duration::from_secs(30)).unwrap();
    assert!(request.contains("\"type\":\"run_ended\""), "{request}");
}

/// A project whose user wants to be told by these means.
fn project(settings: &str) -> Project {
    let project = Project::new();
    let directory = project.home().join(".config/aldis");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("aldis.toml"), settings).unwrap();
    let secret = directory.join("secret");
    fs::write(&secret, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    project
}

fn run(project: &Project, script: &str) -> Done {
    let mut command = project.command(ALDIS);
    command.args(["run", "--task", "x", "--no-wait", "--", "/bin/sh", "-c", script]);
    feed(command, b"")
}

#[test]
fn a_webhook_hears_of_the_end_before_the_command_is_over() {
    let (address, requests) = receiver();
    let project = project(&format!(
        "[notify]\nwebhook = \"http://{address}/hook\"\nwebhook_private = true\nwebhook_secret_file = \"secret\"\n"
    ));
    let done = run(&project, "echo '<chorus>NEEDS_HUMAN: keep or drop?</chorus>'");
    assert_eq!(done.code, 3, "{}", done.text());
    let schema = project.run(&["schema", "notice"]).stdout;
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let mut kinds = Vec::new();
    for request in requests.try_iter() {
        let body: Value = serde_json::from_str(request.split("\r\n\r\n").nth(1).unwrap()).unwrap();
        assert!(validator.is_valid(&body), "{body}");
        assert!(request.contains("webhook-signature: v1,"), "{request}");
        assert_eq!(body["data"]["project"], "project");
        kinds.push(body["type"].as_str().unwrap().to_owned());
    }
    assert_eq!(kinds.last().map(String::as_str), Some("run_ended"), "{kinds:?}\n{}", done.text());
}

#[test]
fn what_cannot_be_told_is_no_reason_to_fail() {
    let project = project("[notify]\ncommand = \"exit 9\"\n");
    let done = run(&project, "echo '<chorus>COMPLETE</chorus>'");
    assert_eq!(done.code, 0, "{}", done.text());
    assert!(done.stdout.contains("command: the command failed: exit status: 9"), "{}", done.text());

    let open = project.home().join(".config/aldis/secret");
    fs::set_permissions(open, fs::Permissions::from_mode(0o644)).unwrap();
    let settings =
        "[notify]\nwebhook = \"https://example.org/\"\nwebhook_secret_file = \"secret\"\n";
    fs::write(project.home().join(".config/aldis/aldis.toml"), settings).unwrap();
    let refused = run(&project, "echo '<chorus>COMPLETE</chorus>'");
    assert_eq!(refused.code, 2, "{}", refused.text());
    assert!(refused.stderr.contains("can be read by others"), "{}", refused.text());
}

#[test]
fn secrets_are_neither_shown_nor_stored_nor_sent() {
    let (address, requests) = receiver();
    for (file, secret) in [
        ("redact_00_anthropic.txt", "Zz9Zz9"),
        ("redact_02_aws.txt", "QQQQ"),
        ("redact_02_aws.txt", "wwww"),
        ("redact_03_pem.txt", "MIIB"),
        ("redact_06_split_chunks.txt", "QQQQ"),
        ("redact_07_ansi_inside.txt", "QQQQ"),
    ] {
        let project = project(&format!(
            "[notify]\nwebhook = \"http://{address}/hook\"\nwebhook_private = true\nwebhook_secret_file = \"secret\"\n[run]\nverify = \"cat words; exit 1\"\nmax_iterations = 2\n"
        ));
        fs::copy(testdata("hostile").join(file), project.path().join("words")).unwrap();
        let script = "cat words; echo; if [ -e asked ]; then echo '<chorus>COMPLETE</chorus>'; else touch asked; echo \"<chorus>NEEDS_HUMAN: $(cat words)</chorus>\"; fi";
        let mut told = run(&project, script).text();
        project.run(&["answer", "q1", "go on"]);
        told += &project.run(&["run", "--continue", "--max-iterations", "2"]).text();
        for args in [&["why", "--last"][..], &["log"], &["log", "--events", "--json"], &["status"]]
        {
            told += &project.run(args).text();
        }
        told.extend(requests.try_iter());
        assert!(told.contains("[redacted]"), "{file}: {told}");
        assert!(!told.contains(secret), "{file}: {told}");
        for entry in fs::read_dir(project.state_dir()).unwrap() {
            let path = entry.unwrap().path();
            let bytes = fs::read(&path).unwrap_or_default();
            let found = bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
            assert!(!found, "{file}: {}", path.display());
        }
    }
}

/// An address at which nobody listens yet.
fn nobody() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

/// A project whose user is told by a webhook.
fn hooked(address: &str) -> Project {
    project(&format!(
        "[notify]\nwebhook = \"http://{address}/hook\"\nwebhook_private = true\nwebhook_secret_file = \"secret\"\n"
    ))
}

#[test]
fn what_could_not_be_sent_is_shown_and_sent_when_the_run_goes_on() {
    let address = nobody();
    let project = hooked(&address);
    let args =
        ["run", "--task", "x", "--max-iterations", "1", "--", "/bin/sh", "-c", "echo so far"];
    let done = project.run(&args);
    assert_eq!(done.code, 5, "{}", done.text());
    let waits = ": 1 notice waits for another attempt: cannot be reached";
    assert!(done.stdout.contains(waits), "{}", done.text());
    let status = project.run(&["status"]);
    assert!(status.stderr.contains(waits), "{}", status.text());

    let inbox = Inbox::at(&address, &[]);
    let mut command = project.command(ALDIS);
    command.args(["run", "--continue", "--max-iterations", "2", "--", "/bin/sh", "-c"]);
    command.arg("while [ ! -e got ]; do sleep 0.1; done");
    let mut child = command.stdout(std::process::Stdio::null()).spawn().unwrap();
    let ends = |limit: &str| {
        let body = inbox.next().json();
        assert_eq!(body["type"], "run_ended");
        assert!(body["data"]["text"].as_str().unwrap().contains(limit), "{body}");
    };
    ends("1 of 1");
    fs::write(project.path().join("got"), "").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(5));
    ends("2 of 2");
    assert!(!project.run(&["status"]).stderr.contains("webhook"));
}

#[test]
fn a_server_sends_what_a_run_left() {
    let address = nobody();
    let project = hooked(&address);
    let done = run(&project, "echo '<chorus>COMPLETE</chorus>'");
    assert_eq!(done.code, 0, "{}", done.text());
    assert!(done.stdout.contains(": 1 notice waits"), "{}", done.text());
    let inbox = Inbox::at(&address, &[]);
    let _server = Server::start(&project.state_dir());
    let arrived = inbox.next();
    let data = &arrived.json()["data"];
    assert_eq!(
        (&data["machine"], &data["title"], &data["active"]),
        (&"run".into(), &"x".into(), &false.into())
    );
}

#[test]
fn the_end_of_a_run_under_a_hook_is_told() {
    let project = hooked(&nobody());
    project.start(&["--skip-expansion", "--skip-qa", "--skip-review", "--skip-reflect"]);
    for phase in ["init", "planning"] {
        project.stop(&block(phase));
    }
    assert!(!project.run(&["status"]).stderr.contains("webhook"));
    project.stop(&block("execution"));
    let status = project.run(&["status", "--all"]);
    assert!(status.stderr.contains(": 1 notice waits"), "{}", status.text());
}

#[test]
fn an_abandoned_run_that_is_aborted_keeps_its_work_and_tells() {
    let (address, requests) = receiver();
    let project = hooked(&address);
    let path = std::env::var_os("PATH").unwrap();
    let git = |args: &[&str]| {
        let mut command = project.command("git");
        command.env("PATH", &path).args(["-c", "user.name=t", "-c", "user.email=t@t"]);
        let output = command.args(args).output().unwrap();
        (output.status.success(), String::from_utf8(output.stdout).unwrap())
    };
    fs::write(project.path().join("file"), "first\n").unwrap();
    for args in [&["init", "-q", "."][..], &["add", "."], &["commit", "-qm", "first"]] {
        assert!(git(args).0);
    }
    let mut command = project.command(ALDIS);
    command.env("PATH", &path).args(["run", "--task", "x", "--", "/bin/sh", "-c"]);
    command.arg("echo work > new.txt; sleep 1000");
    let mut child = command.stdout(std::process::Stdio::null()).spawn().unwrap();
    // Only of an agent that is known to have started there is work to keep.
    let is_recorded = || project.run(&["log", "--json"]).stdout.contains("run/agent-started");
    while !project.path().join("new.txt").exists() || !is_recorded() {
        thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let mut abort = project.command(ALDIS);
    abort.env("PATH", &path).arg("abort");
    let done = feed(abort, b"");
    assert_eq!(done.code, 0, "{}", done.text());
    let request = requests.recv_timeout(Duration::from_secs(30)).unwrap();
    assert!(request.contains("\"type\":\"run_ended\""), "{request}");
    let branches = git(&["branch", "--list", "aldis/partial-*"]).1;
    let kept = git(&["show", &format!("{}:new.txt", branches.trim())]);
    assert_eq!(kept.1, "work\n", "{branches} {}", done.text());
}
