//! What is logged, where, and where nothing may be.

use std::fs::{self, File};

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::phases::project::{Project, feed};
use crate::sandbox::{ALDIS, Done, Sandbox};
use crate::serve::client::{Server, command, place};

const AGENT: &str = "echo 'The secret plan.'; echo '<chorus>COMPLETE</chorus>'";
const SUPERVISE: [&str; 8] =
    ["run", "--task", "Add CSV export", "--quiet", "--", "/bin/sh", "-c", AGENT];

/// Runs an agent with these options before the command, and `ALDIS_LOG` set to this.
fn supervise(options: &[&str], filter: &str) -> Done {
    let project = Project::new();
    let mut command = project.command(ALDIS);
    command.env("ALDIS_LOG", filter).args(options).args(SUPERVISE);
    feed(command, b"")
}

#[test]
fn more_is_logged_on_request() {
    for (options, filter, logged, silent) in [
        (&[][..], "", &[][..], &["agent started", "step committed"][..]),
        (&["-v"], "", &["agent started", "agent ended", "decided"], &["step committed"]),
        (&["-vv"], "", &["agent started", "decided", "step committed"], &[]),
        (&[], "info", &["agent started"], &["step committed"]),
        (&["-v"], "off,aldis_engine=debug", &["step committed"], &["agent started"]),
    ] {
        let done = supervise(options, filter);
        assert_eq!(done.code, 0, "{}", done.text());
        for what in logged {
            assert!(done.stderr.contains(what), "{options:?} {filter}: {}", done.stderr);
        }
        for what in silent {
            assert!(!done.stderr.contains(what), "{options:?} {filter}: {}", done.stderr);
        }
        assert!(!done.stdout.contains("agent started"), "{}", done.text());
    }
}

#[test]
fn what_an_agent_says_is_not_logged() {
    let done = supervise(&["-v"], "");
    assert!(done.stderr.contains("agent ended"), "{}", done.stderr);
    assert!(!done.stderr.contains("secret plan"), "{}", done.stderr);
}

#[test]
fn a_filter_that_cannot_be_read_is_an_error() {
    let done = supervise(&[], "aldis=loud");
    assert_eq!(done.code, 2, "{}", done.text());
    assert!(done.stderr.contains("error: ALDIS_LOG: "), "{}", done.stderr);
    assert!(done.stderr.contains("info,aldis_store=debug"), "{}", done.stderr);
}

#[test]
fn a_hook_never_writes_to_standard_error() {
    let project = Project::new();
    project.start(&[]);
    let mut command = project.command(ALDIS);
    command.env("ALDIS_LOG", "trace").args(["-vv", "hook", "claude-code"]);
    let done = feed(command, project.payload("Not yet.").to_string().as_bytes());
    assert_eq!((done.code, &*done.stderr), (0, ""), "{}", done.text());
    assert!(done.stdout.contains("\"block\""), "{}", done.text());
    assert!(!project.state_dir().join("hook.jsonl").exists());
}

/// Calls the hook while calls are logged, and returns the log.
fn logged_call(project: &Project, payload: &[u8]) -> Vec<Value> {
    let mut command = project.command(ALDIS);
    command.env("ALDIS_HOOK_LOG", "1").args(["hook", "claude-code"]);
    let done = feed(command, payload);
    assert_eq!((done.code, &*done.stderr), (0, ""), "{}", done.text());
    let log = fs::read_to_string(project.state_dir().join("hook.jsonl")).unwrap();
    log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn hook_calls_are_logged_on_request() {
    let project = Project::new();
    let run = project.start(&[]);
    logged_call(&project, project.payload("Not yet. The secret plan.").to_string().as_bytes());
    let log = logged_call(&project, b"not a payload");
    let [blocked, failed] = &log[..] else { panic!("{log:?}") };
    assert_eq!(blocked["host"], "claude-code");
    assert_eq!((&blocked["event"], &blocked["answer"]), (&"stop".into(), &"block".into()));
    assert_eq!((&blocked["run"], &blocked["error"]), (&run["run"], &Value::Null));
    assert!(blocked["at"].is_string() && blocked["took_ms"].is_u64(), "{blocked}");
    assert!(!blocked.to_string().contains("secret plan"), "{blocked}");
    assert!(failed["error"].as_str().unwrap().contains("not_json"), "{failed}");

    let mut doctor = project.command(ALDIS);
    doctor.env("ALDIS_HOOK_LOG", "1").arg("doctor");
    let told = feed(doctor, b"").stdout;
    assert!(told.contains("hook.jsonl"), "{told}");
    assert!(!project.run(&["doctor"]).stdout.contains("hook.jsonl"));
}

#[test]
fn the_log_of_hook_calls_is_bounded_and_holds_nobody_up() {
    let project = Project::new();
    project.start(&[]);
    let path = project.state_dir().join("hook.jsonl");
    fs::write(&path, "x\n".repeat(200_000)).unwrap();
    let payload = project.payload("Not yet.").to_string();
    let log = logged_call(&project, payload.as_bytes());
    assert_eq!(log.len(), 1, "the full file was set aside");
    assert!(project.state_dir().join("hook.jsonl.old").exists());

    fs::remove_file(&path).unwrap();
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let mut command = project.command(ALDIS);
    command.env("ALDIS_HOOK_LOG", "1").args(["hook", "claude-code"]);
    let done = feed(command, payload.as_bytes());
    assert!(done.code == 0 && done.stdout.contains("\"block\""), "{}", done.text());
    assert_eq!(project.alarms(), "");
}

/// Returns what a server with these options logged about a request.
fn served(options: &[&str]) -> Vec<Value> {
    let (directory, state) = place();
    let log = directory.path().join("log");
    let mut command = command(&state, options);
    command.stderr(File::create(&log).unwrap());
    let server = Server::start_command(&state, command);
    assert_eq!(server.get("/v1/runs/none?note=private").status, 404);
    server.signal(Signal::SIGTERM);
    let link = server.link.clone();
    assert!(server.end().success());
    let text = fs::read_to_string(log).unwrap();
    let code = link.split("code=").nth(1).unwrap();
    assert!(!text.contains(code) && !text.contains("private"), "{text}");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_server_logs_one_json_object_per_line() {
    let messages = |log: &[Value]| -> Vec<String> {
        log.iter().map(|line| line["message"].as_str().unwrap().to_owned()).collect()
    };
    let log = served(&[]);
    assert_eq!(messages(&log), ["listening", "stopped"]);
    assert!(log.iter().all(|line| line["timestamp"].is_string() && line["level"] == "INFO"));

    let log = served(&["-v"]);
    let answered = log.iter().find(|line| line["message"] == "answered").unwrap();
    let span = &answered["span"];
    assert_eq!((&answered["status"], &span["name"]), (&404.into(), &"request".into()));
    assert_eq!((&span["method"], &span["route"]), (&"GET".into(), &"/v1/runs/{run}".into()));
    assert_eq!(span["run"], "none");
}

#[test]
fn agents_get_none_of_our_settings_for_logs() {
    let project = Project::new();
    let mut command = project.command(ALDIS);
    command.env("ALDIS_LOG", "info").env("ALDIS_HOOK_LOG", "1");
    let agent = "env | grep ^ALDIS > seen; echo '<chorus>COMPLETE</chorus>'";
    command.args(["run", "--task", "x", "--quiet", "--", "/bin/sh", "-c", agent]);
    let done = feed(command, b"");
    assert_eq!(done.code, 0, "{}", done.text());
    let seen = fs::read_to_string(project.path().join("seen")).unwrap();
    assert!(!seen.contains("ALDIS_LOG="), "{seen}");
    // Hooks within the agent log as asked.
    assert!(seen.contains("ALDIS_HOOK_LOG=1"), "{seen}");
}

#[test]
fn commands_that_only_read_log_nothing_unless_asked() {
    let sandbox = Sandbox::new();
    let done = sandbox.run_with(&["scan"], crate::sandbox::READY.as_bytes());
    assert_eq!((done.code, &*done.stderr), (0, ""), "{}", done.text());
}
