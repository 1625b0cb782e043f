//! The server under test, as a process of its own.

use std::fs;
use std::io::{self, BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use aldis_store::{RunId, SqliteStore, Store as _};

use crate::http::Address;

/// A directory, and the server in it.
pub(crate) struct Server {
    directory: tempfile::TempDir,
    child: Child,
    pub(crate) address: Address,
}

impl Server {
    pub(crate) fn start() -> io::Result<Self> {
        Self::start_on(None)
    }

    /// Starts a server on a database that others use, too.
    pub(crate) fn start_on(store: Option<&str>) -> io::Result<Self> {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
        fs::write(
            directory.path().join("serve.toml"),
            "connections = 1024\nconnections_per_peer = 1024\n",
        )?;
        // One that is free now: after a crash the clients find the server where it was.
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let host = format!("127.0.0.1:{port}");
        let child = start(directory.path(), &host, store)?;
        let token = fs::read_to_string(state(directory.path()).join("serve.token"))?;
        let address = Address { host, token: token.trim().to_owned() };
        Ok(Self { directory, child, address })
    }

    /// Kills it, as a power failure would as far as it can tell.
    pub(crate) fn kill(&mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait().map(drop)
    }

    pub(crate) fn start_again(&mut self) -> io::Result<()> {
        self.child = start(self.directory.path(), &self.address.host, None)?;
        Ok(())
    }

    /// A place for the notes of clients.
    pub(crate) fn note(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The most memory it has had so far, in MiB.
    pub(crate) fn memory(&self) -> io::Result<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let most = most.and_then(|most| most.trim().trim_end_matches(" kB").parse::<f64>().ok());
        Ok(most.unwrap_or(f64::INFINITY) / 1_024.0)
    }

    /// The processor time it has taken so far, in seconds.
    pub(crate) fn spent(&self) -> io::Result<f64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // After the name, which may hold anything: user and system time, in hundredths of a second.
        let after = stat.rsplit_once(") ").ok_or(io::ErrorKind::InvalidData)?.1;
        let ticks = after.split(' ').skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok());
        Ok(ticks.sum::<f64>() / 100.0)
    }

    /// What is on the disk. The server must not run.
    pub(crate) fn store(&self) -> io::Result<SqliteStore> {
        SqliteStore::open(&state(self.directory.path())).map_err(io::Error::other)
    }

    /// How many of the messages that were answered are not on the disk.
    pub(crate) fn lost(&self, log: &Path) -> io::Result<usize> {
        let store = self.store()?;
        let mut lost = 0;
        for line in fs::read_to_string(log)?.lines() {
            let (channel, key) = line.split_once(' ').ok_or(io::ErrorKind::InvalidData)?;
            let run = RunId::new(channel).map_err(io::Error::other)?;
            let found = store.event_by_source(&run, &format!("api:{key}"));
            lost += usize::from(found.map_err(io::Error::other)?.is_none());
        }
        Ok(lost)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill().ok();
    }
}

fn state(directory: &Path) -> PathBuf {
    directory.join("state")
}

fn start(directory: &Path, host: &str, store: Option<&str>) -> io::Result<Child> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_aldis"))
        .env_clear()
        .envs(store.map(|store| ("ALDIS_STORE", store)))
        .current_dir(directory)
        .arg("--state-dir")
        .arg(state(directory))
        .args(["serve", "--listen", host, "--config"])
        .arg(directory.join("serve.toml"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let stdout = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    // The address and the link: closing the pipe before would end it.
    match BufReader::new(stdout).lines().take(2).collect::<io::Result<Vec<_>>>()?.len() {
        2 => Ok(child),
        _ => Err(io::Error::other("the server does not start")),
    }
}
