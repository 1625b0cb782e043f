//! A PostgreSQL server of a test's own: made in a temporary directory, reached by a socket in it, and gone
//! with the test.
//!
//! Servers refuse to run as root, so that one is started as the user `postgres` there. It is a child that
//! the kernel ends with the thread that started it, however that ends. This file is also compiled into
//! the tests of `aldis-store`, which cannot depend on this crate.

use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use std::{env, fs, io, thread};

/// How long a server may take to start.
const START_MAX: Duration = Duration::from_secs(60);

/// A running server, until dropped.
#[derive(Debug)]
pub struct Cluster {
    programs: PathBuf,
    directory: tempfile::TempDir,
    server: Option<Child>,
    schemas: AtomicU32,
    /// More settings, and the port that they make it listen at.
    settings: Vec<String>,
    port: u16,
}

impl Cluster {
    /// Starts a server; none if PostgreSQL is not installed, which is a failure in CI.
    ///
    /// # Errors
    ///
    /// Fails if it does not start.
    pub fn start() -> io::Result<Option<Self>> {
        let Some(programs) = programs() else {
            if env::var_os("CI").is_some_and(|value| value == "true") {
                return Err(io::Error::other("PostgreSQL is not installed"));
            }
            return Ok(None);
        };
        let directory = tempfile::Builder::new().prefix("aldis-pg").tempdir()?;
        let data = directory.path().join("data");
        if let Some((user, group)) = other_user()? {
            chown(directory.path(), Some(user), Some(group))?;
        }
        let mut initdb = command(&programs.join("initdb"))?;
        initdb.arg("-D").arg(&data);
        initdb.args(["-U", "aldis", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]);
        let made = initdb.stdin(Stdio::null()).output()?;
        if !made.status.success() {
            return Err(io::Error::other(String::from_utf8_lossy(&made.stderr).into_owned()));
        }
        let (server, schemas, settings, port) = (None, AtomicU32::new(0), Vec::new(), 5432);
        let mut cluster = Self { programs, directory, server, schemas, settings, port };
        cluster.restart()?;
        Ok(Some(cluster))
    }

    /// Has the server also listen at a port of the loopback interface from the next start on, with these
    /// settings besides. Returns the port.
    ///
    /// # Errors
    ///
    /// Fails if no port is free.
    pub fn listen(&mut self, settings: &[String]) -> io::Result<u16> {
        self.port = std::net::TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        self.settings =
            vec!["listen_addresses=127.0.0.1".to_owned(), format!("port={}", self.port)];
        self.settings.extend_from_slice(settings);
        Ok(self.port)
    }

    /// Writes a file that the server alone may read, and returns where.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be written.
    pub fn write(&self, name: &str, content: &str) -> io::Result<PathBuf> {
        use std::os::unix::fs::PermissionsExt as _;

        let path = self.directory.path().join(name);
        fs::write(&path, content)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        if let Some((user, group)) = other_user()? {
            chown(&path, Some(user), Some(group))?;
        }
        Ok(path)
    }

    /// Starts the server, after [`kill`](Self::kill) also again, and waits until it answers.
    ///
    /// # Errors
    ///
    /// Fails if it does not.
    pub fn restart(&mut self) -> io::Result<()> {
        let place = self.directory.path();
        let log = fs::OpenOptions::new().create(true).append(true).open(place.join("log"))?;
        let mut server = command(&self.programs.join("postgres"))?;
        server.arg("-D").arg(place.join("data")).arg("-k").arg(place);
        // Nothing here survives the machine, so nothing is flushed.
        let settings = ["listen_addresses=", "fsync=off", "max_connections=200", "ssl=off"];
        let own = self.settings.iter().map(|setting| &**setting);
        server.args(settings.into_iter().chain(own).flat_map(|setting| ["-c", setting]));
        server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.server = Some(server.spawn()?);
        let began = Instant::now();
        while !self.answers()? {
            if began.elapsed() > START_MAX {
                let log = fs::read_to_string(place.join("log")).unwrap_or_default();
                return Err(io::Error::other(format!("the server does not start:\n{log}")));
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    fn answers(&self) -> io::Result<bool> {
        let mut ready = Command::new(self.installed("pg_isready"));
        ready.arg("-h").arg(self.socket()).args(["-p", &self.port().to_string()]);
        ready.stdout(Stdio::null());
        ready.status().map(|status| status.success())
    }

    /// Kills the server as a crash would, with all that it is doing.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be killed.
    pub fn kill(&mut self) -> io::Result<()> {
        let Some(mut server) = self.server.take() else { return Ok(()) };
        server.kill()?;
        server.wait()?;
        // Its children notice by themselves; the next server refuses to start beside them.
        let began = Instant::now();
        while self.has_children()? && began.elapsed() < START_MAX {
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Whether processes of the server still hold its shared memory.
    fn has_children(&self) -> io::Result<bool> {
        let data = self.directory.path().join("data");
        for entry in fs::read_dir("/proc")? {
            let place = entry?.path().join("cwd");
            if fs::read_link(place).is_ok_and(|cwd| cwd == data) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the address of this server with a schema that nobody used yet.
    pub fn address(&self) -> String {
        let number = self.schemas.fetch_add(1, Ordering::SeqCst);
        self.address_of(&format!("s{number}"))
    }

    /// Returns the address of this server with this schema.
    pub fn address_of(&self, schema: &str) -> String {
        let (socket, port) = (self.socket().display(), self.port);
        format!("postgres://aldis@/postgres?host={socket}&port={port}&schema={schema}")
    }

    /// Returns the command that starts a program beside the server, as its user, and ends it with us.
    ///
    /// # Errors
    ///
    /// Fails if there is no such user.
    pub fn program(&self, name: &str) -> io::Result<Command> {
        command(Path::new(name))
    }

    /// Returns where a program is that came with the server.
    pub fn installed(&self, name: &str) -> PathBuf {
        self.programs.join(name)
    }

    /// Returns the port, which is part of the name of the socket.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the directory of the server's socket.
    pub fn socket(&self) -> &Path {
        self.directory.path()
    }

    /// Has the server do this, and returns what it prints.
    ///
    /// # Errors
    ///
    /// Fails with what the server says.
    pub fn sql(&self, statement: &str) -> io::Result<String> {
        self.sql_in("postgres", statement)
    }

    /// Has the server do this in one of its databases, and returns what it prints.
    ///
    /// # Errors
    ///
    /// Fails with what the server says.
    pub fn sql_in(&self, database: &str, statement: &str) -> io::Result<String> {
        let mut psql = Command::new(self.installed("psql"));
        psql.arg("-h").arg(self.socket()).args(["-p", &self.port().to_string()]);
        psql.args(["-U", "aldis", "-d", database, "-qAt", "-v", "ON_ERROR_STOP=1", "-c"]);
        let done =
            psql.arg(statement).env("PGOPTIONS", "-c client_min_messages=warning").output()?;
        if done.status.success() {
            return Ok(String::from_utf8_lossy(&done.stdout).trim().to_owned());
        }
        Err(io::Error::other(String::from_utf8_lossy(&done.stderr).into_owned()))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(mut server) = self.server.take() {
            server.kill().and_then(|()| server.wait()).ok();
        }
        // The directory can be deleted only when nobody writes into it any more.
        let began = Instant::now();
        while self.has_children().unwrap_or(false) && began.elapsed() < Duration::from_secs(10) {
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The programs of the newest PostgreSQL here.
fn programs() -> Option<PathBuf> {
    let installed = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut versions: Vec<(u32, PathBuf)> = installed
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.parse().ok()?;
            Some((version, entry.path().join("bin")))
        })
        .collect();
    versions.sort();
    let on_path = env::var_os("PATH").unwrap_or_default();
    let on_path = env::split_paths(&on_path).map(|directory| (0, directory));
    let all = versions.into_iter().rev().chain(on_path);
    all.map(|(_, place)| place).find(|place| {
        ["initdb", "postgres", "pg_isready", "psql"].iter().all(|name| place.join(name).exists())
    })
}

/// Starts a program of the server as somebody who is not root, and ends it with us.
fn command(program: &Path) -> io::Result<Command> {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]);
    if let Some((user, group)) = other_user()? {
        command.args([format!("--reuid={user}"), format!("--regid={group}")]);
        command.arg("--clear-groups");
    }
    command.arg("--").arg(program).current_dir("/");
    Ok(command)
}

/// Who runs the server if we are root.
fn other_user() -> io::Result<Option<(u32, u32)>> {
    let number = |argument: &str| -> io::Result<u32> {
        let said = Command::new("id").args([argument, "postgres"]).output()?;
        let said = String::from_utf8_lossy(&said.stdout).trim().parse();
        said.map_err(|_| io::Error::other("there is no user `postgres` to run the server as"))
    };
    let me = Command::new("id").arg("-u").output()?;
    if me.stdout.trim_ascii() != b"0" {
        return Ok(None);
    }
    Ok(Some((number("-u")?, number("-g")?)))
}
