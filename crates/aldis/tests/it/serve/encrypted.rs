//! TLS of the server's own, where it listens, and what its log does not say.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::json;

use super::client::{Server, command, place};
use crate::phases::project::{Project, feed};
use crate::sandbox::ALDIS;

/// Writes a certificate for `localhost`, its key and the authority that signed it.
fn certificates(directory: &Path) {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let server = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let server = server.signed_by(&key, &authority).unwrap();
    fs::write(directory.join("ca.pem"), authority.pem()).unwrap();
    fs::write(directory.join("server.pem"), server.pem()).unwrap();
    fs::write(directory.join("server.key"), key.serialize_pem()).unwrap();
}

/// A child that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[test]
fn agents_elsewhere_come_over_tls() {
    let keeper = Project::new();
    let mut begin = keeper.command(ALDIS);
    begin.env_remove("ALDIS_NOW").args(["auto", "start", "Add CSV export", "--session", "S1"]);
    assert_eq!(feed(begin, b"").code, 0);
    let settings = keeper.home().join(".config/aldis");
    fs::create_dir_all(&settings).unwrap();
    certificates(&settings);
    let text = "[serve]\ntls_cert = \"server.pem\"\ntls_key = \"server.key\"\n";
    fs::write(settings.join("aldis.toml"), text).unwrap();
    let mut serve = keeper.command(ALDIS);
    serve.env_remove("ALDIS_NOW").args(["serve", "--listen", "127.0.0.1:0"]);
    serve.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut server = Running(serve.spawn().unwrap());
    let mut said = String::new();
    let mut out = server.0.stdout.take().unwrap();
    while said.lines().count() < 2 {
        let mut piece = [0; 512];
        let count = out.read(&mut piece).unwrap();
        assert!(count > 0, "{said}");
        said.push_str(std::str::from_utf8(&piece[..count]).unwrap());
    }
    let address = said.lines().next().unwrap().strip_prefix("listening on https://").unwrap();
    let port = address.rsplit(':').next().unwrap();
    let mut make = keeper.command(ALDIS);
    make.env_remove("ALDIS_NOW").args(["token", "new", "--scope", "work", "--json"]);
    let token = feed(make, b"").json()[0]["token"].as_str().unwrap().to_owned();
    let agent = Project::new().patient();
    let report = |roots: Option<&Path>, name: &str| {
        let mut command: Command = agent.command(ALDIS);
        command.env_remove("ALDIS_NOW").args(["signal", "progress", "10"]);
        command.env("ALDIS_SERVER", format!("https://{name}:{port}")).env("ALDIS_TOKEN", &token);
        if let Some(roots) = roots {
            command.env("SSL_CERT_FILE", roots);
        }
        feed(command, b"")
    };
    let done = report(Some(&settings.join("ca.pem")), "localhost");
    assert_eq!(done.code, 0, "{}", done.text());
    assert!(done.stdout.starts_with("Accepted"), "{}", done.text());
    assert!(!done.stdout.contains("waits"), "{}", done.text());
    // Nobody who is not who the certificate says, or whom nobody vouches for, sees the token.
    for (roots, name) in [(None, "localhost"), (Some(&*settings.join("ca.pem")), "127.0.0.1")] {
        let done = report(roots, name);
        assert!(done.stdout.contains("waits on this machine"), "{name}: {}", done.text());
    }
    // Nor does it answer who speaks plainly.
    let mut plain = std::net::TcpStream::connect(address).unwrap();
    std::io::Write::write_all(&mut plain, b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .unwrap();
    let mut answer = Vec::new();
    plain.read_to_end(&mut answer).ok();
    assert!(!String::from_utf8_lossy(&answer).contains("200 OK"));
}

#[test]
fn nobody_is_served_in_the_clear_elsewhere() {
    let (directory, state) = place();
    certificates(directory.path());
    let refused = |args: &[&str], settings: &str| {
        let config = directory.path().join(".config/aldis");
        fs::create_dir_all(&config).unwrap();
        fs::write(config.join("aldis.toml"), settings).unwrap();
        let mut command = command(&state, args);
        command.env("HOME", directory.path());
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let open = ["--listen", "0.0.0.0:0"];
    let said = refused(&open, "");
    assert!(said.contains("is not a loopback address"), "{said}");
    assert!(said.contains("serve.tls_cert") && said.contains("--allow-host NAME"), "{said}");
    let files = format!("{}/", directory.path().display());
    let tls = |cert: &str, key: &str| {
        format!("[serve]\ntls_cert = \"{files}{cert}\"\ntls_key = \"{files}{key}\"\n")
    };
    let said = refused(&open, &tls("server.pem", "server.key"));
    assert!(said.contains("reach a server by a name") && said.contains("--allow-host"), "{said}");
    let said = refused(&open, &format!("[serve]\ntls_cert = \"{files}server.pem\"\n"));
    assert!(said.contains("set both serve.tls_cert and serve.tls_key"), "{said}");
    for (cert, key) in
        [("server.pem", "ca.pem"), ("none.pem", "server.key"), ("ca.pem", "server.key")]
    {
        let said = refused(&open, &tls(cert, key));
        assert!(said.contains("cannot use"), "{cert} {key}: {said}");
    }
}

#[test]
fn a_name_that_is_allowed_is_answered() {
    let (_directory, state) = place();
    let server = Server::start_with(&state, &["--allow-host", "aldis.example.org"]);
    let port = server.address.rsplit(':').next().unwrap();
    let ask = |host: &str, origin: &str| {
        let request = format!(
            "GET /v1/runs HTTP/1.1\r\nhost: {host}\r\n{origin}authorization: Bearer {}\r\nconnection: close\r\n\r\n",
            server.token
        );
        server.raw(request.as_bytes()).unwrap().status
    };
    assert_eq!(ask("aldis.example.org", ""), 200);
    assert_eq!(ask(&format!("aldis.example.org:{port}"), ""), 200);
    assert_eq!(ask("aldis.example.org", "origin: https://aldis.example.org\r\n"), 200);
    assert_eq!(ask("evil.example.org", ""), 403);
    assert_eq!(ask("aldis.example.org", "origin: https://evil.example.org\r\n"), 403);
}

#[test]
fn nothing_secret_is_logged() {
    let (directory, state) = place();
    let mut serve = command(&state, &[]);
    serve.env("ALDIS_LOG", "trace");
    let log = directory.path().join("log");
    serve.stderr(fs::File::create(&log).unwrap());
    let server = Server::start_command(&state, serve);
    let mut make = Command::new(ALDIS);
    make.env_clear().current_dir(directory.path()).args(["--state-dir", state.to_str().unwrap()]);
    make.args(["token", "new", "--scope", "observe", "--all-projects"]);
    let token = String::from_utf8(make.output().unwrap().stdout).unwrap().trim().to_owned();
    let code = server.link.split_once("#code=").unwrap().1.to_owned();
    let forged = format!("aldis_{}", "7".repeat(64));
    let identity = "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJodHRwczovL2V2aWwuZXhhbXBsZSJ9.c2VjcmV0c2VjcmV0";
    for (path, token) in [
        ("/v1/runs", &*token),
        ("/v1/runs", &*forged),
        ("/v1/health", &*token),
        ("/v1/nowhere?token=geheim", &*token),
    ] {
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n",
            server.address
        );
        server.raw(request.as_bytes()).unwrap();
    }
    let logged_in = server.post("/v1/login", &json!({ "code": code }));
    assert_eq!(logged_in.status, 200);
    let key = logged_in.json()["key"].as_str().unwrap().to_owned();
    assert_eq!(server.post("/v1/login", &json!({ "token": token })).status, 200);
    assert_eq!(server.post("/v1/tokens/exchange", &json!({ "token": identity })).status, 401);
    server.signal(nix::sys::signal::Signal::SIGTERM);
    let own = server.token.clone();
    assert!(server.end().success());
    let log = fs::read_to_string(log).unwrap();
    assert!(log.contains("answered"), "{log}");
    for secret in [&*token, &forged, &own, &code, &key, identity, "geheim", "aldis_session="] {
        assert!(!log.contains(secret), "{secret}: {log}");
    }
}
