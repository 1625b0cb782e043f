//! The fleet: what waits for a worker, machines with their slots, and who coordinates what.

use super::*;

fn git(directory: &Path, args: &[&str]) {
    let mut command = Command::new("git");
    command.env_clear().env("HOME", directory).current_dir(directory);
    command.args(["-c", "user.name=t", "-c", "user.email=t@t"]).args(args);
    let done = command.output().unwrap();
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn the_fleet_is_seen_where_there_are_workers() {
    let mut stage = Stage::new();
    let Some(mut browser) = Browser::open(&stage.server.link) else { return };
    mark(&mut browser);
    browser.wait_for(&["Nothing is running."]);
    let hidden = "document.querySelector('#nav-fleet').hidden";
    assert_eq!(browser.evaluate(hidden), json!(true), "nobody has workers yet");
    stage.write("agent.sh", AGENT);
    stage.write("plan.md", PLAN);
    let remote = stage.project.with_file_name("remote.git");
    fs::create_dir(&remote).unwrap();
    git(&remote, &["init", "-q", "--bare", "-b", "main", "."]);
    git(&stage.project, &["init", "-q", "-b", "main", "."]);
    git(&stage.project, &["add", "."]);
    git(&stage.project, &["commit", "-qm", "first"]);
    git(&stage.project, &["remote", "add", "origin", remote.to_str().unwrap()]);
    git(&stage.project, &["push", "-q", "origin", "main"]);
    stage.start(&["deliver", "plan.md", "--workers", "--labels", "linux", "--", "./agent.sh"]);
    go(&mut browser, "/fleet");
    browser.wait_for(&["No workers", "developer of writer", "Billing export", "lease held"]);
    stage.start(&["worker", "--name", "build-1", "--slots", "2", "--labels", "linux"]);
    let worker = "document.querySelector('[data-worker=build-1]')?.innerText ?? ''";
    browser.wait_until(&format!("({worker}).includes('1 of 2 slots')"));
    browser.wait_for(&["Nothing waits for a worker.", "ready", "labels linux", "1 of 2"]);
    browser.wait_until(&format!("!{hidden}"));
    let fits = "document.documentElement.scrollWidth <= innerWidth";
    for light in ["dark", "light"] {
        for width in [400, 1200] {
            browser.light_and_width(light, width);
            assert_eq!(browser.evaluate(fits), json!(true), "{width} px, {light}");
            if let Some(wrong) = browser.violations() {
                assert_eq!(wrong, "", "{width} px, {light}");
            }
            browser.picture(&format!("fleet-{light}-{width}.png"));
        }
    }
    keep_picture(&mut browser, "dashboard-fleet.png");
    // What an agent of a worker belongs to is one click away.
    browser.click("document.querySelector('[data-worker=build-1] a')");
    browser.wait_for(&["Critical path", "CSV writer"]);
    assert_eq!(browser.forbidden(), json!([]));
}
