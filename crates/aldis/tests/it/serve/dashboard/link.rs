//! The ways in: the token, links, signing out, and links of notices on a phone.

use std::net::TcpListener;
use std::process::Command;

use super::*;
use crate::serve::client::command;

/// Logs in by the token, on the page that asks for it.
fn log_in(browser: &mut Browser, token: &str) {
    browser.wait_until("document.querySelector('#token') !== null");
    browser.evaluate("document.querySelector('#token').focus()");
    browser.type_in(token);
    browser.press("Enter");
}

#[test]
fn a_browser_logs_in_by_the_token_stays_so_and_signs_out() {
    let (_directory, state) = place();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let listen = format!("127.0.0.1:{port}");
    let start = || Server::start_command(&state, command(&state, &["--listen", &listen]));
    let server = start();
    let Some(mut browser) = Browser::open(&format!("http://{listen}/inbox")) else { return };
    log_in(&mut browser, "wrong");
    browser.wait_for(&["wrong token"]);
    browser.evaluate("document.querySelector('#token').value = ''");
    log_in(&mut browser, &server.token);
    browser.wait_until("location.pathname === '/inbox'");
    mark(&mut browser);
    // The server starts again: the page comes back by itself, without a login.
    server.crash();
    browser.wait_until("document.querySelector('#connection').dataset.state === 'lost'");
    let server = start();
    mark(&mut browser);
    browser.wait_for(&["Nothing needs you."]);
    browser.click("document.querySelector('#sign-out')");
    browser.wait_until("location.pathname === '/login'");
    browser.picture("login.png");
    browser.evaluate("location.assign('/')");
    browser
        .wait_until("location.pathname === '/login' && document.querySelector('#token') !== null");
    // A link for one more browser.
    let mut serve = Command::new(ALDIS);
    serve.env_clear().args(["--state-dir", state.to_str().unwrap(), "serve", "--link"]);
    let said = String::from_utf8(serve.output().unwrap().stdout).unwrap();
    let link = said.lines().find(|line| line.starts_with("http://")).unwrap().to_owned();
    browser.evaluate(&format!("location.assign('{link}')"));
    browser.wait_until("location.pathname === '/'");
    mark(&mut browser);
    assert_eq!(browser.forbidden(), json!([]));
    drop(server);
}

/// The whole way: a notice with a link, a phone that is not logged in, the answer, the run goes on.
#[test]
fn a_question_is_answered_on_a_phone_by_the_link_of_its_notice() {
    let mut stage = Stage::new();
    stage.write("notify.sh", "#!/bin/sh\nprintf '%s\\n' \"$ALDIS_LINK\" >> links\n");
    stage.write("aldis.toml", "[notify]\ncommand = \"./notify.sh\"\n");
    let trusted = Command::new(ALDIS)
        .env_clear()
        .env("HOME", &stage.project)
        .current_dir(&stage.project)
        .arg("--state-dir")
        .arg(&stage.state)
        .args(["trust"])
        .output()
        .unwrap();
    assert!(trusted.status.success(), "{}", String::from_utf8_lossy(&trusted.stderr));
    let ask = "{ say = '<chorus>NEEDS_HUMAN: Keep or drop the old endpoint?</chorus>' }";
    stage.run("Drop the endpoint", &[ask, "{ say = '<chorus>COMPLETE</chorus>' }"]);
    let links = stage.project.join("links");
    let link = loop {
        let text = fs::read_to_string(&links).unwrap_or_default();
        if let Some(link) = text.lines().find(|line| line.contains("/answer#")) {
            break link.to_owned();
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    };
    // A program that looks at the link first burns nothing, and learns nothing.
    let preview = stage.server.get("/answer");
    assert!(preview.status == 200 && !preview.text.contains("endpoint"), "{}", preview.text);
    let Some(mut browser) = Browser::open("about:blank") else { return };
    for light in ["light", "dark"] {
        browser.light_and_width(light, 400);
        browser.go(&link);
        browser.wait_for(&["Keep or drop the old endpoint?", "Drop the endpoint"]);
        browser.picture(&format!("answer-{light}-400.png"));
    }
    assert_eq!(browser.evaluate("localStorage.length"), json!(0), "nobody is logged in");
    browser.click("document.querySelector('.item input')");
    browser.type_in("Drop it.");
    browser.click(
        "[...document.querySelectorAll('.item button')].find((one) => one.textContent === 'Send')",
    );
    browser.wait_for(&["Answer sent: Drop the endpoint."]);
    stage.assert_success();
    browser.evaluate("location.reload()");
    browser.wait_for(&["this link was used already"]);
    let told = stage.server.get("/v1/decisions").text;
    assert!(told.contains("run/answered") && told.contains("run/done"), "{told}");
    assert_eq!(browser.forbidden(), json!([]));
}
