//! A client of `aldis mcp` that writes lines and reads lines.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::phases::project::Project;
use crate::sandbox::ALDIS;

/// The protocol's era.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Era {
    /// `initialize`, then requests without metadata.
    Old,
    /// Every request says what the client speaks.
    New,
}

pub(crate) struct Client {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    era: Era,
    last: u64,
}

impl Client {
    pub(crate) fn start(project: &Project, era: Era, variables: &[(&str, &str)]) -> Self {
        let mut command = project.command(ALDIS);
        command.env_remove("ALDIS_NOW").args(["mcp"]).envs(variables.iter().copied());
        Self::spawn(command, era)
    }

    pub(crate) fn spawn(mut command: Command, era: Era) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut client = Self { child, stdin, stdout, era, last: 0 };
        if era == Era::Old {
            let about = json!({ "protocolVersion": "2025-06-18", "capabilities": {},
                                "clientInfo": { "name": "test", "version": "1" } });
            let answer = client.request("initialize", about);
            assert_eq!(answer["result"]["protocolVersion"], "2025-06-18", "{answer}");
            client.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        }
        client
    }

    pub(crate) fn write(&mut self, line: &Value) {
        writeln!(self.stdin, "{line}").unwrap();
    }

    /// Sends a request and returns its number.
    pub(crate) fn send(&mut self, method: &str, mut params: Value) -> u64 {
        self.last += 1;
        if self.era == Era::New {
            let meta = &mut params["_meta"];
            meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
            meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
        }
        let last = self.last;
        self.write(&json!({"jsonrpc": "2.0", "id": last, "method": method, "params": params}));
        last
    }

    /// Calls a tool many times at once, and returns what is told in whatever order.
    pub(crate) fn call_at_once(&mut self, calls: &[Value]) -> Vec<Value> {
        let Self { stdin, stdout, .. } = self;
        // Written while answers are read, as hosts do: pipes are short.
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for (id, params) in calls.iter().enumerate() {
                    let call = json!({"jsonrpc": "2.0", "id": id + 1_000_000,
                                      "method": "tools/call", "params": params});
                    writeln!(stdin, "{call}").unwrap();
                }
            });
            let mut lines = stdout.lines();
            calls
                .iter()
                .map(|_| serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap())
                .collect()
        })
    }

    /// Reads the next line, which must be JSON.
    pub(crate) fn read(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.stdout.read_line(&mut line).unwrap() > 0, "the server has gone");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line}: {error}"))
    }

    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        let answer = self.read();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Calls a tool under this id of the host's.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value, call_id: &str) -> Value {
        let params = json!({ "name": tool, "arguments": arguments,
                             "_meta": { "claudecode/toolUseId": call_id } });
        let answer = self.request("tools/call", params);
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str().unwrap();
        let told: Value = serde_json::from_str(text).unwrap();
        assert_eq!(told, result["structuredContent"], "{answer}");
        told
    }

    /// Closes the input: the server must end, and have written nothing but answers.
    pub(crate) fn end(mut self) {
        drop(self.stdin);
        let mut rest = String::new();
        while self.stdout.read_line(&mut rest).unwrap() > 0 {}
        assert_eq!(rest, "");
        assert!(self.child.wait().unwrap().success());
    }
}
