//! Agents on a machine that keeps no runs: hooks, reports and the MCP server ask the server that does.

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use aldis_signal::time::Timestamp;
use serde_json::{Value, json};

use super::client::Server;
use crate::mcp::client::{Client, Era};
use crate::phases::project::{Project, feed};
use crate::sandbox::{ALDIS, Done};

/// A machine with a server, and one whose agents ask it. They share nothing but the address and a token.
struct Machines {
    keeper: Project,
    server: Option<Server>,
    address: String,
    agent: Project,
    token: String,
}

impl Machines {
    fn new() -> Self {
        let keeper = Project::new();
        let mut begin = keeper.command(ALDIS);
        begin.env_remove("ALDIS_NOW");
        begin.args(["auto", "start", "Add CSV export", "--session", "S1", "--json"]);
        let begun = feed(begin, b"");
        assert_eq!(begun.code, 0, "{}", begun.text());
        let server = Server::start(&keeper.state_dir());
        let address = server.address.clone();
        let token = token(&keeper, &["--scope", "work"]);
        let agent = Project::new().patient();
        Self { keeper, server: Some(server), address, agent, token }
    }

    /// A command on the machine of the agent.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.agent.command(ALDIS);
        command
            .env_remove("ALDIS_NOW")
            .env("ALDIS_SERVER", format!("http://{}", self.address))
            .env("ALDIS_TOKEN", &self.token)
            .env("CLAUDE_CODE_SESSION_ID", "S1")
            .args(args);
        command
    }

    fn run(&self, args: &[&str]) -> Done {
        feed(self.command(args), b"")
    }

    /// Calls the hook at a stop. It exits with 0 and says nothing on standard error, whatever happens.
    #[track_caller]
    fn stop(&self, text: &str) -> Value {
        self.hook(self.command(&["hook", "claude-code"]), text)
    }

    #[track_caller]
    fn hook(&self, command: Command, text: &str) -> Value {
        let payload = self.agent.payload(text).to_string();
        let done = feed(command, payload.as_bytes());
        assert_eq!((done.code, &*done.stderr), (0, ""), "{}", done.text());
        if done.stdout.is_empty() {
            return Value::Null;
        }
        serde_json::from_str(&done.stdout).unwrap()
    }

    fn status(&self) -> Value {
        self.keeper.status()
    }

    fn waiting(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.agent.state_dir().join("remote-spool"));
        entries.into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
    }

    fn failures(&self) -> String {
        fs::read_to_string(self.agent.state_dir().join("failures.jsonl")).unwrap_or_default()
    }

    /// The stops that the server took, as they are in the journal.
    fn stops(&self) -> Vec<Value> {
        let server = self.server.as_ref().unwrap();
        let run = server.get("/v1/runs").json()["runs"][0]["run"].as_str().unwrap().to_owned();
        let events = server.get(&format!("/v1/runs/{run}/events?limit=1000")).json();
        let events = events["events"].as_array().unwrap().clone();
        events.into_iter().filter(|event| event["event"] == "stop").collect()
    }

    fn restart(&mut self) {
        let state = self.keeper.state_dir();
        self.server = Some(Server::start_with(&state, &["--listen", &self.address]));
    }
}

fn token(keeper: &Project, args: &[&str]) -> String {
    let mut command = keeper.command(ALDIS);
    command.env_remove("ALDIS_NOW").args(["token", "new", "--json"]).args(args);
    let done = feed(command, b"");
    assert_eq!(done.code, 0, "{}", done.text());
    done.json()[0]["token"].as_str().unwrap().to_owned()
}

#[test]
fn a_server_decides_for_agents_elsewhere() {
    let machines = Machines::new();
    let blocked = machines.stop("Not there yet.");
    assert_eq!(blocked["decision"], "block", "{blocked}");
    // A report, then the stop at which it counts.
    let reported = machines.run(&["signal", "done", "analysed"]);
    assert_eq!(reported.code, 0, "{}", reported.text());
    assert!(reported.stdout.starts_with("Accepted as aldis-call-"), "{}", reported.text());
    let blocked = machines.stop("I am through.");
    assert_eq!(blocked["decision"], "block", "{blocked}");
    assert_eq!(machines.status()["phase"], "init", "{}", machines.status());
    // Nothing was kept on the machine of the agent.
    assert!(!machines.agent.state_dir().join("aldis.db").exists());
    assert_eq!(machines.waiting(), Vec::<PathBuf>::new());
    assert_eq!(machines.failures(), "");
}

/// What ends the first phase.
const DONE: &str = "All read.\n\n---\nSIGNAL: EXPANSION_COMPLETE\nPHASE: expansion\nSTATUS: complete\n\
                    TIMESTAMP: 2026-03-02T10:00:00Z\nNEXT: init\n---";

#[test]
fn the_transcript_goes_along() {
    let machines = Machines::new();
    let file = machines.agent.home().join(".claude/session.jsonl");
    // Longer than what is sent. Times are as the server's clock has them.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    let at =
        |ago: i64| Timestamp::from_millis(i64::try_from(now).unwrap() - ago * 1_000).to_string();
    let entry = |role: &str, text: &str, ago: i64| {
        let content = json!([{ "type": "text", "text": text }]);
        json!({ "type": role, "sessionId": "S1", "uuid": format!("{role}-{ago}"),
                "timestamp": at(ago),
                "message": { "role": role, "content": content } })
        .to_string()
    };
    let mut lines = vec![entry("user", &"old ".repeat(100_000), 2)];
    lines.push(entry("user", "Go on.", 1));
    lines.push(entry("assistant", DONE, 0));
    fs::write(&file, lines.join("\n") + "\n").unwrap();
    let payload = json!({ "session_id": "S1", "cwd": machines.agent.path(),
                          "hook_event_name": "Stop", "stop_hook_active": false,
                          "transcript_path": file });
    let before = machines.status()["phase"].clone();
    let done = feed(machines.command(&["hook", "claude-code"]), payload.to_string().as_bytes());
    assert_eq!((done.code, &*done.stderr), (0, ""), "{}", done.text());
    assert_ne!(machines.status()["phase"], before, "{}{}", done.text(), machines.failures());
}

#[test]
fn the_mcp_server_passes_calls_on() {
    let machines = Machines::new();
    let mut client = Client::spawn(machines.command(&["mcp"]), Era::Old);
    let status = client.call("status", json!({}), "toolu_1");
    assert_eq!(status["accepted"], true, "{status}");
    let told = client.call("complete", json!({ "summary": "analysed" }), "toolu_2");
    assert_eq!(told["accepted"], true, "{told}");
    let resource = client.request("resources/read", json!({ "uri": "aldis://run/current" }));
    let text = resource["result"]["contents"][0]["text"].as_str().unwrap_or_default();
    assert!(text.contains("Add CSV export"), "{resource}");
    let prompt = client.request("prompts/get", json!({ "name": "handover" }));
    assert!(prompt.to_string().contains("Continue the work from there"), "{prompt}");
    let none = client.request("prompts/get", json!({ "name": "none" }));
    assert!(none["error"]["message"].as_str().unwrap().contains("no prompt `none`"), "{none}");
    drop(machines.server);
    let told = client.call("complete", json!({ "summary": "analysed" }), "toolu_2");
    assert_eq!(told["rule"], "call/store-unavailable", "{told}");
}

#[test]
fn what_happens_while_the_server_is_away_is_delivered_later() {
    let mut machines = Machines::new();
    assert_eq!(machines.stop("Not there yet.")["decision"], "block");
    machines.server.take().unwrap().crash();
    // Nobody is trapped, and nothing is lost.
    for count in 1..=3 {
        assert_eq!(machines.stop("Not there yet."), Value::Null);
        assert_eq!(machines.waiting().len(), count);
    }
    let told = machines.run(&["signal", "done", "analysed"]);
    assert_eq!(told.code, 0, "{}", told.text());
    assert!(told.stdout.contains("waits on this machine"), "{}", told.text());
    assert!(machines.failures().contains("it is delivered later"), "{}", machines.failures());
    let doctor = machines.run(&["doctor", "claude-code"]).stdout;
    assert!(doctor.contains("4 of what happened here waits for the server"), "{doctor}");
    assert!(doctor.contains("did not answer"), "{doctor}");
    machines.restart();
    let answer = machines.stop("I am through.");
    assert_eq!(answer["decision"], "block", "{answer}");
    assert_eq!(machines.waiting(), Vec::<PathBuf>::new());
    let stops = machines.stops();
    let late = stops.iter().filter(|stop| stop.to_string().contains("\"late\"")).count();
    assert_eq!((stops.len(), late), (5, 3), "{stops:?}");
    assert_eq!(machines.status()["phase"], "init", "the report came before the stop");
    let doctor = machines.run(&["doctor", "claude-code"]).stdout;
    assert!(doctor.contains("answers, and takes the token"), "{doctor}");
    assert!(!doctor.contains("waits for the server"), "{doctor}");
}

#[test]
fn a_server_that_does_not_answer_holds_up_nobody() {
    let mut machines = Machines::new();
    // One that takes the connection and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    machines.address = silent.local_addr().unwrap().to_string();
    let mut command = machines.command(&["hook", "claude-code"]);
    command.env_remove("ALDIS_HOOK_DEADLINE");
    assert_eq!(machines.hook(command, "Not there yet."), Value::Null);
    assert_eq!(machines.waiting().len(), 1, "{}", machines.failures());
    assert!(machines.failures().contains("did not answer"), "{}", machines.failures());
}

#[test]
fn a_server_that_refuses_the_token_lets_the_agent_stop() {
    let mut machines = Machines::new();
    let good = machines.token.clone();
    let observe = token(&machines.keeper, &["--scope", "observe"]);
    for (token, said) in [("wrong", "(401)"), (&*observe, "(403)")] {
        token.clone_into(&mut machines.token);
        assert_eq!(machines.stop("Not there yet."), Value::Null);
        assert!(machines.failures().contains(said), "{}", machines.failures());
        // It would be refused again.
        assert_eq!(machines.waiting(), Vec::<PathBuf>::new());
        let told = machines.run(&["signal", "done", "analysed"]);
        assert_eq!(told.code, 1, "{}", told.text());
    }
    assert!(!machines.failures().contains(&observe), "no token is written down");
    // One of another project decides nothing, and does not say that there is a run.
    machines.token = token(&machines.keeper, &["--scope", "work", "--project", "/elsewhere"]);
    assert_eq!(machines.stop("Not there yet."), Value::Null);
    let told = machines.run(&["signal", "done", "analysed"]);
    assert!(told.stdout.contains("call/no-run"), "{}", told.text());
    assert_eq!(machines.stops(), Vec::<Value>::new());
    machines.token = good;
    assert_eq!(machines.stop("Not there yet.")["decision"], "block");
}

#[test]
fn a_token_is_never_sent_in_the_clear() {
    let machines = Machines::new();
    let mut command = machines.command(&["signal", "done"]);
    command.env("ALDIS_SERVER", "http://192.0.2.1:7373");
    let done = feed(command, b"");
    assert_eq!(done.code, 2, "{}", done.text());
    assert!(done.stderr.contains("is not https"), "{}", done.text());
    let mut command = machines.command(&["signal", "done"]);
    command.env_remove("ALDIS_TOKEN");
    let done = feed(command, b"");
    assert!(done.code == 2 && done.stderr.contains("ALDIS_TOKEN is not"), "{}", done.text());
}

/// An agent whose run is kept here reports here, whatever server is named for other sessions.
#[test]
fn agents_of_a_run_here_do_not_ask_elsewhere() {
    let project = Project::new();
    let mut command = project.command(ALDIS);
    command.env("ALDIS_SERVER", "http://127.0.0.1:1").env("ALDIS_TOKEN", "geheim");
    let agent = "env | grep -c geheim > seen; echo '<chorus>COMPLETE</chorus>'";
    command.args(["run", "--task", "x", "--quiet", "--", "/bin/sh", "-c", agent]);
    let done = feed(command, b"");
    assert_eq!(done.code, 0, "{}", done.text());
    assert_eq!(fs::read_to_string(project.path().join("seen")).unwrap(), "0\n");
}
