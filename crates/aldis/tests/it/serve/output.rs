//! What agents write, over HTTP, while they write it.

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::{fs, thread, time::Duration};

use super::client::{Server, place};
use super::generated::Generated;
use super::stream::{Event, Stream};
use crate::sandbox::ALDIS;

/// Says something, and something secret; waits; says the rest.
const AGENT: &str = "#!/bin/sh
cat > /dev/null
echo 'I begin with the parser.'
echo 'The key is ghp_A1b2A1b2A1b2A1b2A1b2A1b2A1b2A1b2A1b2, by the way.'
while [ ! -e go ]; do sleep 0.05; done
echo 'All of it works.'
echo
echo '<chorus>COMPLETE</chorus>'
";

#[test]
fn output_can_be_followed_until_the_run_ends() {
    let (directory, state) = place();
    let agent = directory.path().join("agent.sh");
    fs::write(&agent, AGENT).unwrap();
    fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
    let server = Server::start(&state);
    let mut run = Command::new(ALDIS)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .current_dir(directory.path())
        .args(["--state-dir", state.to_str().unwrap(), "run", "--task", "x", "--", "./agent.sh"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let id = loop {
        let runs = server.get("/v1/runs").json();
        if let Some(id) = runs["runs"][0]["run"].as_str() {
            break id.to_owned();
        }
        thread::sleep(Duration::from_millis(20));
    };
    let path = format!("/v1/runs/{id}/output");
    let client = Generated::new(&server);
    let mut stream = Stream::at(&server, &format!("{path}?follow=true"), None);
    let (mut text, mut last) = (String::new(), String::new());
    let mut read_until = |words: &str| {
        while !text.contains(words) {
            let event = stream.next();
            assert_eq!(event.kind, "output", "{:?}", event.data);
            client.check_event("/v1/runs/{run}/output", &event.data);
            text += event.data["text"].as_str().unwrap();
            last = event.id;
        }
        (text.clone(), last.clone())
    };
    let (seen, last_seen) = read_until("by the way");
    assert!(seen.contains("the parser") && !seen.contains("ghp_"), "{seen}");
    fs::write(directory.path().join("go"), "").unwrap();
    let (followed, last_followed) = read_until("COMPLETE");
    while stream.next().kind != "end" {}
    run.wait().unwrap();
    // All of it is there afterwards, and nothing of other agents.
    let whole = server.get(&path).text;
    for line in followed.lines().filter(|line| !line.is_empty()) {
        assert!(whole.contains(line), "{line}: {whole}");
    }
    // Whoever comes back gets the rest, and nothing twice.
    let rest = |path: &str, last: Option<&str>| {
        let mut stream = Stream::at(&server, path, last);
        let text = |event: &Event| event.data["text"].as_str().unwrap().to_owned();
        let events = std::iter::from_fn(|| Some(stream.next()).filter(|it| it.kind != "end"));
        events.map(|event| text(&event)).collect::<String>()
    };
    let all = rest(&path, None);
    assert!(all.starts_with(&followed));
    assert_eq!(rest(&path, Some(&last_seen)), all[seen.len()..]);
    assert_eq!(rest(&format!("{path}?after={last_followed}"), None), all[followed.len()..]);
    assert_eq!(server.get(&format!("{path}?after=4711")).status, 400);
    assert!(!server.get(&format!("{path}?agent=7")).text.contains("parser"));
    assert_eq!(server.get("/v1/runs/none/output").status, 404);
}
