//! The dashboard in a real browser: it shows what there is, and agents' words as words.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;

use super::client::{Server, place};

/// What an agent may write, and a careless page would run.
const HOSTILE: &str =
    "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>";

fn chromium() -> Option<PathBuf> {
    let places = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
    places.into_iter().map(PathBuf::from).find(|path| path.exists())
}

#[expect(clippy::print_stderr, reason = "a test that was skipped must say so")]
fn skip() {
    assert!(std::env::var_os("CI").is_none(), "chromium is not installed");
    eprintln!("skipped: chromium is not installed");
}

/// Opens an address, lets the page work, and returns what it has become.
fn look(browser: &Path, profile: &Path, address: &str, more: &[&str]) -> String {
    let output = Command::new(browser)
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .args(["--timeout=10000", "--window-size=1400,1000"])
        .args(more)
        .arg("--dump-dom")
        .arg(address)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_dashboard_shows_channels_and_runs_nothing_that_agents_write() {
    let Some(browser) = chromium() else { return skip() };
    let (directory, state) = place();
    let server = Server::start(&state);
    server.post("/v1/channels", &json!({ "channel": "c1", "agents": ["pm", "dev"] }));
    server.post("/v1/channels/c1/messages", &json!({ "agent": "pm", "text": HOSTILE }));
    let profile = directory.path().join("profile");
    let artefacts = Path::new(env!("CARGO_TARGET_TMPDIR")).join("dashboard.png");
    let shot = format!("--screenshot={}", artefacts.display());
    let page = look(&browser, &profile, &server.link, &[&shot]);
    assert!(page.contains("# c1"), "{page}");
    assert!(page.contains("pm (held)"), "{page}");
    assert!(page.contains("Posted what pm said"), "{page}");
    assert!(page.contains("&lt;img src=x onerror="), "the words are there, as words: {page}");
    assert!(page.contains("<title>Aldis</title>"), "{page}");
    // The link was for one visit; the next needs the cookie that it left.
    let page = look(
        &browser,
        &profile,
        &format!("http://{}/", server.address),
        &["--blink-settings=preferredColorScheme=0"],
    );
    assert!(!page.contains("unauthorized"), "{page}");
}
