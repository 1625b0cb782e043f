//! The dashboard in a real browser: it shows what there is, and agents' words as words.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::client::{Server, place};

/// What an agent may write, and a careless page would run.
const HOSTILE: &str =
    "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>";

/// What the page shows when it has asked for everything.
const WANTED: [&str; 4] = ["# c1", "pm (held)", "Posted what pm said", "&lt;img src=x onerror="];

fn chromium() -> Option<PathBuf> {
    let places = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
    places.into_iter().map(PathBuf::from).find(|path| path.exists())
}

#[expect(clippy::print_stderr, reason = "a test that was skipped must say so")]
fn skip() {
    assert!(std::env::var_os("CI").is_none(), "chromium is not installed");
    eprintln!("skipped: chromium is not installed");
}

/// Opens an address on a desk and as on a phone, keeps pictures, and returns what it has become.
fn look(browser: &Path, profile: &Path, address: &str) -> Vec<Value> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/serve/browse.mjs");
    let output = Command::new("node")
        .arg(script)
        .args([browser, profile])
        .arg(address)
        .arg(Path::new(env!("CARGO_TARGET_TMPDIR")).join("dashboard"))
        .args(WANTED)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_dashboard_shows_channels_and_runs_nothing_that_agents_write() {
    let Some(browser) = chromium() else { return skip() };
    let (directory, state) = place();
    let server = Server::start(&state);
    server.post("/v1/channels", &json!({ "channel": "c1", "agents": ["pm", "dev"] }));
    server.post("/v1/channels/c1/messages", &json!({ "agent": "pm", "text": HOSTILE }));
    let views = look(&browser, &directory.path().join("profile"), &server.link);
    for (view, width) in views.iter().zip([1400, 400]) {
        let page = view["html"].as_str().unwrap();
        for wanted in WANTED {
            assert!(page.contains(wanted), "{wanted}: {page}");
        }
        assert!(page.contains("<title>Aldis</title>"), "what agents write was run: {page}");
        assert!(view["width"].as_u64().unwrap() <= width, "it is too wide for {width} px: {view}");
    }
    assert_eq!(views.len(), 2);
}
