//! Every sample of every host, in and out.

mod answers;
mod headless;
mod hostile;
mod payloads;
mod properties;
mod systems;

use std::fs;
use std::path::{Path, PathBuf};

use super::hook::fields::Fields;
use super::{Env, Event, HookCall, Host, parse};

pub(super) const ANTIGRAVITY: Host = Host(&super::antigravity::SPEC);
pub(super) const CLAUDE_CODE: Host = Host(&super::claude_code::SPEC);
pub(super) const CODEX: Host = Host(&super::codex::SPEC);
pub(super) const COPILOT: Host = Host(&super::copilot::SPEC);
pub(super) const CURSOR: Host = Host(&super::cursor::SPEC);
pub(super) const DROID: Host = Host(&super::droid::SPEC);
pub(super) const GEMINI: Host = Host(&super::gemini::SPEC);
pub(super) const GOOSE: Host = Host(&super::goose::SPEC);
pub(super) const KILO: Host = Host(&super::kilo::SPEC);
pub(super) const OPENCLAW: Host = Host(&super::openclaw::SPEC);
pub(super) const OPENCODE: Host = Host(&super::opencode::SPEC);
pub(super) const PI: Host = Host(&super::earendil_pi::SPEC);
pub(super) const QWEN: Host = Host(&super::qwen::SPEC);

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata")
}

fn sample(name: &str) -> Vec<u8> {
    let path = testdata().join("hosts/samples").join(name);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn env() -> Env {
    Env::from_lookup(|name| (name == "HOME").then(|| "/home/dev".into()))
}

fn call(registered: Host, sample_name: &str) -> HookCall {
    parse(registered, &sample(sample_name), &env()).unwrap()
}

/// The folder of a host's samples.
fn folder(host: Host) -> String {
    host.name().replace('-', "_")
}

/// All payloads, with the host that sends them.
fn payloads() -> Vec<(Host, String)> {
    let mut found = Vec::new();
    for host in Host::all().iter().copied() {
        let folder = folder(host);
        let directory = testdata().join("hosts/samples").join(&folder);
        for entry in fs::read_dir(directory).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let is_payload = ["in_", "event_", "plugin_agent_", "internal_"]
                .iter()
                .any(|start| name.starts_with(start))
                || name == "plugin_before_agent_finalize_event.json";
            if is_payload && name.ends_with(".json") {
                found.push((host, format!("{folder}/{name}")));
            }
        }
    }
    assert!(found.len() > 30, "the samples were not found");
    found.sort_by(|one, other| one.1.cmp(&other.1));
    found
}

#[test]
fn names_are_stable_and_lead_back() {
    for host in Host::all().iter().copied() {
        assert_eq!(host.name().parse(), Ok(host));
        assert_eq!(host.to_string(), host.name());
        assert_eq!(<Host as clap::ValueEnum>::from_str(host.name(), false), Ok(host));
    }
    assert_eq!("agy".parse(), Ok(ANTIGRAVITY));
    assert_eq!("claude".parse(), Ok(CLAUDE_CODE));
    assert_eq!(<Host as clap::ValueEnum>::from_str("claude", false), Ok(CLAUDE_CODE));
    assert!("cline".parse::<Host>().is_err());
}

#[test]
fn specs_are_complete() {
    assert_eq!(Host::original(), CLAUDE_CODE);
    assert!(Host::all().is_sorted_by_key(|host| host.name()));
    let originals = Host::all().iter().filter(|host| host.spec().is_original);
    assert_eq!(originals.count(), 1);
    for host in Host::all() {
        let spec = host.spec();
        assert!(!spec.programs.is_empty() && !spec.get_program.is_empty(), "{host}");
        assert!(!spec.registration.events().is_empty(), "{host}");
        let stop = (spec.payload.test_stop)("/home/dev").to_string();
        let call = parse(*host, stop.as_bytes(), &env()).unwrap();
        assert_eq!(call.host, *host, "{stop}");
    }
}

#[test]
fn no_payload_has_the_marks_of_two_hosts() {
    for (host, name) in payloads() {
        let sample = sample(&name);
        let text = String::from_utf8_lossy(&sample);
        let fields = Fields::read(text.trim_start_matches('\u{feff}')).unwrap();
        let marked = Host::all().iter().filter(|host| (host.spec().payload.is_marked)(&fields));
        assert!(marked.into_iter().all(|found| *found == host), "{name}");
    }
}

#[test]
fn events_have_their_samples() {
    let event = |sample: &str| call(CLAUDE_CODE, sample).event;
    assert_eq!(event("claude_code/in_stop.json"), Event::Stop);
    assert_eq!(event("cursor/in_stop.json"), Event::Stop);
    assert_eq!(event("copilot/in_agent_stop_camel.json"), Event::Stop);
    assert_eq!(event("gemini/in_after_agent.json"), Event::Stop);
    assert_eq!(event("goose/in_stop.json"), Event::Stop);
    assert_eq!(event("opencode/event_session_idle.json"), Event::Stop);
    assert_eq!(event("opencode/event_session_status.json"), Event::Stop);
    assert_eq!(event("kilo/event_session_idle.json"), Event::Stop);
    assert_eq!(event("pi/in_agent_end.json"), Event::Stop);
    assert_eq!(event("antigravity/in_stop.json"), Event::Stop);
    let started = Event::SessionStart { source: None };
    assert_eq!(event("antigravity/in_session_start.json"), started);
    assert_eq!(event("openclaw/plugin_before_agent_finalize_event.json"), Event::Stop);
    for sample in ["claude_code", "codex", "cursor", "droid"] {
        assert_eq!(event(&format!("{sample}/in_subagent_stop.json")), Event::SubagentStop);
    }
    assert_eq!(event("copilot/in_subagent_stop_pascal.json"), Event::SubagentStop);
    assert_eq!(event("codex/in_interrupt.json"), Event::Interrupt);
    assert_eq!(event("opencode/event_session_error.json"), Event::Interrupt);
    for (sample, code) in [("claude_code", "rate_limit"), ("qwen", "loop_detected")] {
        let event = event(&format!("{sample}/in_stop_failure.json"));
        assert!(matches!(&event, Event::StopFailure { error, .. } if error == code), "{event:?}");
    }
    let said = Some("API Error: Rate limit reached".to_owned());
    let failure = Event::StopFailure { error: "rate_limit".to_owned(), said };
    assert_eq!(event("claude_code/in_stop_failure.json"), failure);
    let start = |source: &str| Event::SessionStart { source: Some(source.to_owned()) };
    assert_eq!(event("claude_code/in_session_start.json"), start("resume"));
    assert_eq!(event("codex/in_session_start.json"), start("startup"));
    assert_eq!(event("gemini/in_session_start.json"), start("startup"));
    let end = |reason: &str| Event::SessionEnd { reason: Some(reason.to_owned()) };
    assert_eq!(event("claude_code/in_session_end.json"), end("prompt_input_exit"));
    assert_eq!(event("gemini/in_session_end.json"), end("exit"));
    let text = "Port the retry module".to_owned();
    assert_eq!(event("gemini/in_before_agent.json"), Event::Prompt { text, source: None });
    let Event::Prompt { text, source } = event("claude_code/in_user_prompt_submit.json") else {
        panic!("no prompt");
    };
    assert!(text.starts_with("Port") && source.as_deref() == Some("user"));
    let Event::AgentResponse { text } = event("cursor/in_after_agent_response.json") else {
        panic!("no response");
    };
    assert!(text.ends_with("SIGNAL: AUTO_COMPLETE"));
    assert_eq!(event("claude_code/in_notification.json"), Event::Other("Notification".to_owned()));
    let other = Event::Other("message:sent".to_owned());
    assert_eq!(event("openclaw/internal_message_sent.json"), other);
}
