//! A server that runs as long as the test, and the plainest client.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::sandbox::ALDIS;

/// A running server.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
    pub(crate) link: String,
    pub(crate) token: String,
}

/// An answer.
pub(crate) struct Got {
    pub(crate) status: u16,
    pub(crate) text: String,
}

impl Got {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("no JSON: {}", self.text))
    }
}

impl Server {
    pub(crate) fn start(state: &Path) -> Self {
        Self::start_with(state, &[])
    }

    pub(crate) fn start_with(state: &Path, args: &[&str]) -> Self {
        Self::start_command(state, command(state, args))
    }

    /// Starts a server by a command that was made ready otherwise.
    pub(crate) fn start_command(state: &Path, mut command: Command) -> Self {
        Self::started(command.spawn().unwrap(), state)
    }

    /// A server that was started in another way; `state` is where its files are seen from here.
    pub(crate) fn started(mut child: Child, state: &Path) -> Self {
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut line = || lines.next().map(Result::unwrap).unwrap_or_default();
        let first = line();
        let address = first.strip_prefix("listening on http://").unwrap_or_else(|| {
            let mut said = String::new();
            child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            panic!("{first}{said}")
        });
        // A server that logs must not wait for somebody to read it.
        if let Some(mut log) = child.stderr.take() {
            std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        }
        let second = line();
        let link = second.split_whitespace().nth(1).unwrap().to_owned();
        let token = fs::read_to_string(state.join("serve.token")).unwrap().trim().to_owned();
        Self { address: address.to_owned(), link, token, child }
    }

    pub(crate) fn get(&self, path: &str) -> Got {
        self.request("GET", path, &[], None).unwrap()
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Got {
        self.request("POST", path, &[], Some(body)).unwrap()
    }

    /// Sends a request with the token; fails if the server goes away meanwhile.
    pub(crate) fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> std::io::Result<Got> {
        let body = body.map(Value::to_string).unwrap_or_default();
        let mut head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\
             connection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n",
            self.address,
            self.token,
            body.len()
        );
        for (name, value) in headers {
            head.extend([name, ": ", value, "\r\n"]);
        }
        self.raw(format!("{head}\r\n{body}").as_bytes())
    }

    /// Sends bytes and reads the answer to its end.
    pub(crate) fn raw(&self, bytes: &[u8]) -> std::io::Result<Got> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        stream.write_all(bytes)?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let gone = || std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
        let (head, text) = answer.split_once("\r\n\r\n").ok_or_else(gone)?;
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or_else(gone)?;
        Ok(Got { status, text: text.to_owned() })
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), signal).unwrap();
    }

    /// Returns the number of the process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the process to end.
    pub(crate) fn end(mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    /// Ends it as a crash would.
    pub(crate) fn crash(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A server process, not started yet.
pub(crate) fn command(state: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(ALDIS);
    command
        .env_clear()
        .current_dir(state.parent().unwrap())
        .args(["--state-dir", state.to_str().unwrap(), "serve"])
        .args(if args.contains(&"--listen") { &[][..] } else { &["--listen", "127.0.0.1:0"] })
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// A directory for the state of a server.
pub(crate) fn place() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state");
    (directory, state)
}
