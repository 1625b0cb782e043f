//! A real browser without a window, told what to do over a pipe.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::{fs, thread, time::Duration};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// How often the page is looked at before it counts as broken.
const LOOKS_MAX: usize = 600;
/// How often a key is pressed at most to get somewhere.
const KEYS_MAX: usize = 200;
/// Where a browser may be.
const PLACES: [&str; 3] =
    ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
/// Counts what the page's own policy forbade, before any script of the page runs.
const WITNESS: &str = "window.forbidden = []; document.addEventListener('securitypolicyviolation', \
    (event) => window.forbidden.push(`${event.violatedDirective} ${event.blockedURI}`));";

/// A browser with one page.
pub(super) struct Browser {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
    session: Option<String>,
    number: u64,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Opens an address, on a desk and in the light; nothing if there is no browser.
    pub(super) fn open(address: &str) -> Option<Self> {
        let Some(program) = PLACES.into_iter().map(PathBuf::from).find(|path| path.exists()) else {
            skip();
            return None;
        };
        let profile = tempfile::tempdir().unwrap();
        let mut browser = Self::start(&program, profile);
        let target = browser.call("Target.createTarget", &json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = browser.call("Target.attachToTarget", &attach);
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        browser.call("Page.enable", &json!({}));
        let witness = json!({ "source": WITNESS });
        browser.call("Page.addScriptToEvaluateOnNewDocument", &witness);
        browser.light_and_width("light", 1400);
        browser.go(address);
        Some(browser)
    }

    /// Goes to an address, from an empty page: one that differs in its fragment only is loaded again, too.
    pub(super) fn go(&mut self, address: &str) {
        self.call("Page.navigate", &json!({ "url": "about:blank" }));
        self.call("Page.navigate", &json!({ "url": address }));
    }

    fn start(program: &Path, profile: tempfile::TempDir) -> Self {
        // The browser listens on descriptor 3 and answers on 4.
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$@\" 3<&0 4>&1 1>&2", "sh"])
            .arg(program)
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
            // It looks for nothing on its own: there may be no network.
            .args(["--no-first-run", "--disable-background-networking", "--disable-sync"])
            .args(["--disable-component-update", "--disable-quic"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .args(["--remote-debugging-pipe", "about:blank"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let orders = child.stdin.take().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        Self { child, orders, answers, session: None, number: 0, _profile: profile }
    }

    /// Gives an order and returns the answer. What the browser tells besides is left alone.
    fn call(&mut self, method: &str, params: &Value) -> Value {
        self.number += 1;
        let mut order = json!({ "id": self.number, "method": method, "params": params });
        if let Some(session) = &self.session {
            order["sessionId"] = json!(session);
        }
        self.orders.write_all(order.to_string().as_bytes()).unwrap();
        self.orders.write_all(&[0]).unwrap();
        loop {
            let mut bytes = Vec::new();
            assert!(self.answers.read_until(0, &mut bytes).unwrap() > 0, "the browser is gone");
            bytes.pop();
            let answer: Value = serde_json::from_slice(&bytes).unwrap();
            if answer["id"] == self.number {
                return answer["result"].clone();
            }
        }
    }

    /// Evaluates an expression in the page. Nothing while the page changes.
    pub(super) fn evaluate(&mut self, expression: &str) -> Value {
        let params = json!({ "expression": expression, "returnByValue": true });
        self.call("Runtime.evaluate", &params)["result"]["value"].clone()
    }

    /// What a person reads on the page.
    pub(super) fn text(&mut self) -> String {
        // Before that its scripts have not run, and what is typed goes nowhere.
        let text =
            self.evaluate("document.readyState === 'complete' ? document.body.innerText : ''");
        text.as_str().unwrap_or_default().to_owned()
    }

    /// Looks at the page until it shows all of these.
    #[track_caller]
    pub(super) fn wait_for(&mut self, wanted: &[&str]) {
        for _ in 0..LOOKS_MAX {
            let text = self.text();
            if wanted.iter().all(|words| text.contains(words)) {
                return;
            }
            thread::sleep(Duration::from_millis(50));
        }
        let text = self.text();
        panic!("{wanted:?} do not come up in:\n{text}");
    }

    /// Looks at the page until an expression is true in it.
    #[track_caller]
    pub(super) fn wait_until(&mut self, expression: &str) {
        let expression = &format!("document.readyState === 'complete' && ({expression})");
        for _ in 0..LOOKS_MAX {
            if self.evaluate(expression) == json!(true) {
                return;
            }
            thread::sleep(Duration::from_millis(50));
        }
        let text = self.text();
        panic!("never: {expression}\n{text}");
    }

    /// Presses a key.
    pub(super) fn press(&mut self, key: &str) {
        let code = match key {
            "Tab" => 9,
            "Enter" => 13,
            "Escape" => 27,
            "End" => 35,
            "ArrowRight" => 39,
            letter if letter.len() == 1 => 0,
            other => panic!("no such key: {other}"),
        };
        let text = match key {
            "Enter" => "\r",
            letter if letter.len() == 1 => letter,
            _ => "",
        };
        for kind in ["keyDown", "keyUp"] {
            let event = json!({
                "type": kind, "key": key, "code": key, "text": text, "windowsVirtualKeyCode": code,
            });
            self.call("Input.dispatchKeyEvent", &event);
        }
    }

    /// Presses Tab until whatever has this label is focused.
    #[track_caller]
    pub(super) fn tab_to(&mut self, label: &str) {
        let focused = "document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent";
        for _ in 0..KEYS_MAX {
            if self.evaluate(focused) == json!(label) {
                return;
            }
            self.press("Tab");
        }
        panic!("no key leads to `{label}`");
    }

    pub(super) fn type_in(&mut self, text: &str) {
        self.call("Input.insertText", &json!({ "text": text }));
    }

    /// What a checker of accessibility finds wrong with the page as it is; nothing if it is not installed.
    pub(super) fn violations(&mut self) -> Option<String> {
        let script = fs::read_to_string(axe()?).unwrap();
        self.evaluate(&script);
        let run = "axe.run(document, { resultTypes: ['violations'] }).then((found) => found.violations.map((one) => \
            `${one.id}: ${one.help}: ${one.nodes.map((node) => node.html.slice(0, 200)).join(' | ')}`).join('\\n'))";
        let params = json!({ "expression": run, "returnByValue": true, "awaitPromise": true });
        let found = self.call("Runtime.evaluate", &params)["result"]["value"].clone();
        Some(found.as_str().unwrap_or_else(|| panic!("axe did not run: {found}")).to_owned())
    }

    /// Measures one visit: from the beginning of the navigation until the page is ready, in milliseconds.
    pub(super) fn first_view(&mut self, path: &str) -> f64 {
        // Else the page that is left could be taken for the one that comes.
        self.evaluate(&format!("window.left = true; location.assign('{path}')"));
        let when = "performance.getEntriesByName('first-view')[0]?.startTime ?? null";
        self.wait_until(&format!("window.left === undefined && ({when}) !== null"));
        self.evaluate(when).as_f64().unwrap_or_else(|| panic!("no first view of {path}"))
    }

    /// Clicks with the mouse on whatever the expression finds.
    pub(super) fn click(&mut self, element: &str) {
        let place = self.evaluate(&format!(
            "(() => {{ const one = {element}; one.scrollIntoView({{ block: 'center' }}); \
             const box = one.getBoundingClientRect(); \
             return [box.x + box.width / 2, box.y + box.height / 2]; }})()"
        ));
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({
                "type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1,
            });
            self.call("Input.dispatchMouseEvent", &event);
        }
    }

    /// Changes the light and the width; a narrow page is one on a phone.
    pub(super) fn light_and_width(&mut self, light: &str, width: u32) {
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": light }] });
        self.call("Emulation.setEmulatedMedia", &features);
        let mobile = width < 600;
        let size =
            json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": mobile });
        self.call("Emulation.setDeviceMetricsOverride", &size);
    }

    /// Keeps a picture among the artefacts of the tests.
    pub(super) fn picture(&mut self, name: &str) {
        self.scaled_picture(name, 1.0);
    }

    /// Keeps a picture, smaller or larger, and returns it.
    pub(super) fn scaled_picture(&mut self, name: &str, scale: f64) -> Vec<u8> {
        let size = self.evaluate("[document.documentElement.clientWidth, innerHeight, scrollY]");
        let clip =
            json!({ "x": 0, "y": size[2], "width": size[0], "height": size[1], "scale": scale });
        let shot = self.call("Page.captureScreenshot", &json!({ "format": "png", "clip": clip }));
        let image = STANDARD.decode(shot["data"].as_str().unwrap()).unwrap();
        fs::write(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name), &image).unwrap();
        image
    }

    /// What the page's policy forbade.
    pub(super) fn forbidden(&mut self) -> Value {
        self.evaluate("window.forbidden")
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Where the checker is, once it is installed.
fn axe() -> Option<PathBuf> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/install-axe");
    let output = Command::new(script).output().unwrap();
    if !output.status.success() {
        skip_for("axe-core could not be installed");
        return None;
    }
    Some(PathBuf::from(String::from_utf8(output.stdout).unwrap().trim()))
}

fn skip() {
    skip_for("chromium is not installed");
}

#[expect(clippy::print_stderr, reason = "a test that was skipped must say so")]
fn skip_for(what: &str) {
    assert!(std::env::var_os("CI").is_none(), "{what}");
    eprintln!("skipped: {what}");
}
