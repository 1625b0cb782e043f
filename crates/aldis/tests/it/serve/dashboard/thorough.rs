//! Every page of the dashboard in every light and width, with everything on it; long lists; what it costs.

mod fleet;

use std::time::{Duration, Instant};

use super::*;

/// How many runs there are on an overview of many, and how much longer than of none it may take to see.
const MANY: usize = 1_000;
const TIMES_MAX: f64 = 10.0;
/// How many decisions there are in a long journal.
const DECISIONS: usize = 100_000;

/// Lets everything happen that the dashboard can show. Returns it when it shows it.
fn everything(stage: &mut Stage, task: &str) -> Option<Browser> {
    let mut browser = Browser::open(&stage.server.link)?;
    mark(&mut browser);
    stage.channel("release", 600);
    let said = json!({ "agent": "pm", "text": "The scope is settled: CSV and JSON, no XML.\nTURN_COMPLETE" });
    stage.server.post("/v1/channels/release/messages", &said);
    stage
        .server
        .post("/v1/channels/release/human", &json!({ "text": "Please keep the old endpoint." }));
    stage.deliver();
    stage.let_through("developer-writer");
    stage.let_through("critic-writer");
    browser.wait_for(&["Billing export", "# release", "dev's turn"]);
    open_run(&mut browser, "Billing export");
    browser.wait_for(&["round 2"]);
    let claim = "{ say = '<chorus>PROGRESS: 25</chorus>' }, { tool = { name = 'Bash' } }, { say = '<chorus>COMPLETE</chorus>' }";
    let ask = "{ say = '<chorus>PROGRESS: 60</chorus>' }, { say = '<chorus>NEEDS_HUMAN: Keep or drop the old endpoint? It is still called twice a day.</chorus>' }";
    stage.write("aldis.toml", "[run]\nverify = \"test -e checked\"\n");
    let trust = Command::new(ALDIS)
        .env_clear()
        .env("HOME", &stage.project)
        .current_dir(&stage.project)
        .arg("--state-dir")
        .arg(&stage.state)
        .arg("trust")
        .output()
        .unwrap();
    assert!(trust.status.success());
    stage.run(task, &[claim, ask, "{ say = '<chorus>COMPLETE</chorus>' }"]);
    go(&mut browser, "/");
    browser.wait_for(&[task, "Keep or drop the old endpoint?", "60 %"]);
    Some(browser)
}

/// Returns the page of the run with this title.
fn page_of(browser: &mut Browser, title: &str) -> String {
    go(browser, "/");
    let link = format!(
        "[...document.querySelectorAll('main a.title')].find((one) => one.textContent.includes('{title}'))?.getAttribute('href')"
    );
    browser.wait_until(&format!("Boolean({link})"));
    browser.evaluate(&link).as_str().unwrap().to_owned()
}

/// All pages with a name for their pictures, and what shows that they are there.
fn pages(browser: &mut Browser, task: &str) -> Vec<(&'static str, String, &'static str)> {
    let run = page_of(browser, task);
    let plan = page_of(browser, "Billing export");
    vec![
        ("overview", "/".to_owned(), "Running"),
        ("inbox", "/inbox".to_owned(), "Keep or drop"),
        ("run", run.clone(), "Claims, and what became of each"),
        ("output", format!("{run}?tab=output"), "lines"),
        ("journal", format!("{run}?tab=journal"), "decisions"),
        ("plan", plan, "round 2"),
        ("channel", "/runs/release".to_owned(), "has the turn"),
    ]
}

#[test]
fn every_page_fits_a_phone_in_any_light_and_anybody_can_use_it() {
    let mut stage = Stage::new();
    let endless = "AVeryLongWordWithoutASingleSpace".repeat(6);
    let Some(mut browser) = everything(&mut stage, &endless) else { return };
    let pages = pages(&mut browser, &endless);
    // What scrolls within its own frame may be wider than that.
    let wide = "[...document.querySelectorAll('body *')].filter((one) => !one.closest('.scroll, .sr, .skip, .virtual') && \
        one.getBoundingClientRect().right > innerWidth + 1).map((one) => one.tagName + '.' + one.getAttribute('class')).join()";
    let mut papers = Vec::new();
    for light in ["light", "dark"] {
        for width in [400, 1400] {
            browser.light_and_width(light, width);
            for (name, path, shows) in &pages {
                go(&mut browser, path);
                browser.wait_for(&[shows]);
                browser.evaluate(
                    "document.querySelectorAll('details').forEach((one) => { one.open = true; })",
                );
                let fits = "document.documentElement.scrollWidth <= innerWidth";
                assert_eq!(browser.evaluate(fits), json!(true), "{name}, {width} px, {light}");
                assert_eq!(browser.evaluate(wide), json!(""), "{name}, {width} px, {light}");
                let small = "[...document.querySelectorAll('main button, main input, main select')].filter((one) => one.offsetParent && !one.closest('.virtual') && one.getBoundingClientRect().height < 43).map((one) => one.outerHTML).join()";
                assert_eq!(browser.evaluate(small), json!(""), "{name}: a finger needs 44 px");
                browser.picture(&format!("{name}-{light}-{width}.png"));
                if let Some(wrong) = browser.violations() {
                    assert_eq!(wrong, "", "{name}, {width} px, {light}");
                }
                assert_eq!(browser.forbidden(), json!([]), "{name}");
            }
        }
        papers.push(browser.evaluate("getComputedStyle(document.body).backgroundColor"));
    }
    assert_ne!(papers[0], papers[1], "it is dark in the dark");
    // On a phone, what needs somebody comes first.
    browser.light_and_width("light", 400);
    go(&mut browser, "/");
    browser.wait_for(&["Keep or drop"]);
    let first = "document.querySelector('#needs .item').getBoundingClientRect().top < 200";
    assert_eq!(browser.evaluate(first), json!(true));
}

/// One picture of each page, for README and book. Set `ALDIS_BLESS=1` to take them anew.
#[test]
fn the_pictures_of_the_docs_show_what_there_is() {
    let mut stage = Stage::new();
    let Some(mut browser) = everything(&mut stage, "Drop the old endpoint") else { return };
    let pages = pages(&mut browser, "Drop the old endpoint");
    browser.light_and_width("light", 1200);
    for (name, path, shows) in pages {
        go(&mut browser, &path);
        browser.wait_for(&[shows]);
        let file = if name == "overview" {
            "dashboard.png".to_owned()
        } else {
            format!("dashboard-{name}.png")
        };
        // Below what is the same on all of them.
        browser.evaluate("document.querySelector('.tabs')?.scrollIntoView()");
        keep_picture(&mut browser, &file);
    }
}

#[test]
fn the_page_of_a_run_is_looked_at_searched_and_saved() {
    let mut stage = Stage::new();
    let Some(mut browser) = everything(&mut stage, "Drop the old endpoint") else { return };
    open_run(&mut browser, "Drop the old endpoint");
    browser.wait_for(&["did not hold", "Proof"]);
    // Every part of the timeline says what it is and opens its why; it can be zoomed by keys alone.
    browser.wait_until("document.querySelectorAll('.timeline .part').length > 3");
    let range = "document.querySelector('.timeline').textContent";
    let before = browser.evaluate(range);
    browser.click("document.querySelector('[aria-label=\"Zoom in\"]')");
    browser.wait_until(&format!("{range} !== {before}"));
    browser.click("document.querySelector('[aria-label=\"Show all of it\"]')");
    browser.evaluate("document.querySelector('.timeline .part[tabindex=\"0\"]').focus()");
    browser.press("ArrowRight");
    browser.wait_until("document.querySelector('.hint').textContent.length > 10");
    browser.press("Enter");
    browser.wait_until("document.querySelector('dialog').open");
    browser.wait_for(&["rule", "because"]);
    browser.press("Escape");
    browser.wait_until("!document.querySelector('dialog').open");
    // A claim, the output of its check, and why it did not hold.
    browser.click("document.querySelector('.claims button')");
    browser.wait_until("document.querySelector('dialog').open");
    browser.press("Escape");
    // Its output: searched, stopped, saved.
    browser.click(
        "[...document.querySelectorAll('.tabs a')].find((one) => one.textContent === 'Output')",
    );
    browser.wait_for(&["live"]);
    browser.wait_until("document.querySelector('pre.output').textContent.includes('PROGRESS: 60')");
    browser.evaluate("document.querySelector('[aria-label=\"Search the output\"]').focus()");
    browser.type_in("progress: 60");
    browser.wait_until("!document.querySelector('pre.output').textContent.includes('PROGRESS: 25') && document.querySelector('pre.output').textContent.includes('PROGRESS: 60')");
    browser.evaluate("window.saved = []; HTMLAnchorElement.prototype.click = function () { window.saved.push(this.download); }");
    browser.click("[...document.querySelectorAll('button')].find((one) => one.textContent === 'Save as a file')");
    browser.wait_until("window.saved.length === 1 && window.saved[0].endsWith('.txt')");
    browser.click(
        "[...document.querySelectorAll('summary')].find((one) => one.textContent === 'Share')",
    );
    browser.click("[...document.querySelectorAll('button')].find((one) => one.textContent === 'Save report (html)')");
    browser.wait_until("window.saved.length === 2 && window.saved[1].endsWith('.html')");
    // Aborted only when pressed twice.
    browser.evaluate("document.querySelector('.actions [data-label=Abort]').click()");
    browser.wait_for(&["press again to confirm"]);
    assert_eq!(stage.server.get("/v1/runs?machine=run").json()["runs"][0]["active"], true);
    browser.evaluate("document.querySelector('.actions [data-label=Abort]').click()");
    browser.wait_until("document.querySelector('.head .status').textContent.includes('aborted')");
    assert_eq!(browser.forbidden(), json!([]));
}

/// A claim is shown with its checks, and what is done with its receipt.
#[test]
fn what_a_claim_rests_on_is_shown_with_its_receipt() {
    let mut stage = Stage::new();
    let Some(mut browser) = everything(&mut stage, "Drop the old endpoint") else { return };
    open_run(&mut browser, "Drop the old endpoint");
    let proved = |words: &str| {
        format!("document.querySelector('.proved')?.innerText.includes('{words}') === true")
    };
    for words in ["refused", "test -e checked", "failed, exit code 1"] {
        browser.wait_until(&proved(words));
    }
    stage.write("checked", "");
    browser.click("document.querySelector('.item input')");
    browser.type_in("Keep it.");
    browser.press("Enter");
    browser.wait_until("document.querySelector('.head .good:not(.mark)')?.textContent === 'done'");
    for words in ["accepted", "test -e checked", "passed"] {
        browser.wait_until(&proved(words));
    }
    // What was done to compare files is no check.
    let all = ["Receipts", "1 of 1 checks passed", "aldis proof verify", "All checks so far (2)"];
    browser.wait_for(&all);
    browser.picture("run-proof.png");
}

#[test]
fn the_inbox_is_worked_by_keys_alone() {
    let mut stage = Stage::new();
    let Some(mut browser) = Browser::open(&stage.server.link) else { return };
    mark(&mut browser);
    let done = "{ say = '<chorus>COMPLETE</chorus>' }";
    let once = ["--verify", "false", "--max-iterations", "1"];
    stage.run_with("Make the tests pass", &once, &[done]);
    browser.wait_for(&["Limit used up"]);
    let to_inbox = |browser: &mut Browser| {
        browser.press("g");
        browser.press("i");
        browser.wait_until("document.body.dataset.ready === '/inbox'");
    };
    let to_first = |browser: &mut Browser| {
        browser.press("Escape");
        browser.press("j");
        browser.wait_until("document.activeElement.matches('.item')");
    };
    to_inbox(&mut browser);
    // Why it ended is said before anything else, and what to do about it is a key away.
    browser.wait_for(&["iterations used up (iteration 1 of 1). Last claim: the check failed"]);
    to_first(&mut browser);
    browser.press("c");
    let copy = "document.activeElement.getAttribute('aria-label')?.startsWith('Copy: aldis run --continue ')";
    browser.wait_until(copy);
    browser.press("d");
    browser.wait_for(&["Nothing needs you."]);
    let ask = |question: &str| format!("{{ say = '<chorus>NEEDS_HUMAN: {question}</chorus>' }}");
    // The agent of this project has had its first round.
    stage.run("Drop the endpoint", &[done, &ask("keep or drop?"), &ask("really?"), done]);
    browser.wait_for(&["keep or drop?"]);
    to_first(&mut browser);
    browser.press("Enter");
    browser.wait_until("location.pathname.startsWith('/runs/') && document.body.dataset.ready === location.pathname");
    to_inbox(&mut browser);
    browser.wait_for(&["keep or drop?"]);
    to_first(&mut browser);
    browser.press("a");
    browser.type_in("Drop it.");
    browser.press("Enter");
    browser.wait_for(&["really?"]);
    to_first(&mut browser);
    browser.press("x");
    browser.wait_for(&["press again to confirm"]);
    browser.press("x");
    browser.wait_for(&["Nothing needs you."]);
    assert_not_reloaded(&mut browser);
}

#[test]
fn tasks_are_seen_by_state_round_and_finding() {
    let mut stage = Stage::new();
    let Some(mut browser) = Browser::open(&stage.server.link) else { return };
    mark(&mut browser);
    stage.deliver();
    open_run(&mut browser, "Billing export");
    let task = |task: &str| {
        format!(
            "(document.querySelector('.tasks [data-task=\"{task}\"]')?.innerText ?? '').replace(/\\s+/g, ' ')"
        )
    };
    browser
        .wait_until(&format!("{}.includes('CSV writer implementing · developer')", task("writer")));
    browser.wait_until(&format!(
        "{}.includes('pending') && {}.includes('waits for CSV writer')",
        task("docs"),
        task("docs")
    ));
    assert_eq!(browser.evaluate("document.querySelectorAll('.graph .node').length"), json!(2));
    assert_eq!(
        browser.evaluate("document.querySelectorAll('.graph .edge.critical').length"),
        json!(1)
    );
    stage.let_through("developer-writer");
    browser
        .wait_until(&format!("{}.includes('awaiting review · round 1 · critic')", task("writer")));
    stage.let_through("critic-writer");
    browser
        .wait_until(&format!("{}.includes('awaiting review · round 2 · critic')", task("writer")));
    browser.wait_until(&format!("{}.includes('1 finding')", task("writer")));
    browser.click("document.querySelector('.graph [data-task=writer]')");
    browser.wait_for(&["quotes are not escaped"]);
    browser.press("Escape");
    for gate in ["critic-again-writer", "developer-docs", "critic-docs", "critic-again-docs"] {
        stage.let_through(gate);
    }
    browser.wait_until("document.querySelectorAll('.tasks [data-state=complete]').length === 2");
    // What began first is the first row.
    let rows = "[...document.querySelectorAll('.timeline .label title')].map((one) => one.textContent).join()";
    browser.wait_until(&format!("{rows}.startsWith('CSV writer,Describe the format')"));
    browser
        .wait_until("document.querySelector('.head .good:not(.mark)')?.textContent === 'complete'");
    stage.assert_success();
    assert_not_reloaded(&mut browser);
}

#[test]
fn a_channel_is_followed_as_a_conversation() {
    let stage = Stage::new();
    let Some(mut browser) = Browser::open(&stage.server.link) else { return };
    mark(&mut browser);
    stage.channel("c1", 5);
    open_run(&mut browser, "c1");
    let left = "parseInt(document.querySelector('.turn [data-deadline]')?.textContent ?? '99', 10)";
    browser.wait_until(&format!("{left} <= 5"));
    let first = browser.evaluate(left).as_i64().unwrap();
    browser.wait_until(&format!("{left} < {first}"));
    browser.wait_until("document.querySelector('.turn b')?.textContent === 'dev'");
    browser.wait_for(&["turn timeout: pm (timeout)"]);
    let said = json!({ "agent": "dev", "text": "The export is done. TURN_COMPLETE" });
    stage.server.post("/v1/channels/c1/messages", &said);
    browser.wait_until(
        "document.querySelector('.talk .agent .words')?.textContent === 'The export is done.'",
    );
    browser.evaluate(
        "document.querySelector('[aria-label=\"Say something to the channel\"]').focus()",
    );
    browser.type_in("Ship it.");
    browser.press("Enter");
    browser.wait_until("document.querySelector('.talk .human .words')?.textContent === 'Ship it.'");
    assert_not_reloaded(&mut browser);
}

/// Opens many channels, of which one in ten stays open.
fn open_many(stage: &Stage) {
    for number in 0..MANY {
        stage.channel(&format!("c{number:04}"), 3_600);
        if number % 10 != 0 {
            stage.server.post(&format!("/v1/runs/c{number:04}/abort"), &json!({}));
        }
    }
}

#[test]
fn a_thousand_runs_and_a_long_journal_are_at_hand() {
    let stage = Stage::new();
    let Some(mut browser) = Browser::open(&stage.server.link) else { return };
    mark(&mut browser);
    open_many(&stage);
    go(&mut browser, "/");
    browser.wait_for(&["Running (100)", "40 more are running", "Show more"]);
    // Further pages, filters, search.
    let rows = "document.querySelectorAll('#ended li.ended').length";
    assert_eq!(browser.evaluate(rows), json!(60));
    browser.click(
        "[...document.querySelectorAll('button')].find((one) => one.textContent === 'Show more')",
    );
    browser.wait_until(&format!("{rows} === 120"));
    browser.evaluate("document.querySelector('[aria-label=Search]').focus()");
    browser.type_in("c0777");
    browser.wait_until(&format!("{rows} === 1"));
    // A journal of many decisions: few rows are made, and the end of it is reached.
    for number in 0..DECISIONS / 50 {
        let texts: Vec<String> = (0..50).map(|at| format!("message {number} {at}")).collect();
        let said = json!({ "agent": "pm", "texts": texts });
        assert_eq!(stage.server.post("/v1/channels/c0000/messages", &said).status, 200);
    }
    go(&mut browser, "/runs/c0000?tab=journal");
    browser.wait_until("document.querySelectorAll('.linelike').length > 10");
    let made = "document.querySelectorAll('.linelike').length < 120";
    assert_eq!(browser.evaluate(made), json!(true));
    let count = "Number(document.querySelector('.journal p').textContent.split(' ')[0])";
    let decisions = browser.evaluate(count).as_u64().unwrap();
    let (began, first) = (
        Instant::now(),
        "[...document.querySelectorAll('.linelike')].some((one) => one.textContent.includes('turns/started'))",
    );
    while browser.evaluate(first) != json!(true) {
        browser.evaluate("document.querySelector('.virtual').scrollTop = 1e9");
        let patience = Duration::from_secs(100);
        assert!(began.elapsed() < patience, "the first of {decisions} decisions is never reached");
    }
    assert_eq!(browser.evaluate(made), json!(true));
}

/// What it costs to see many runs, against none, in one run on one machine.
#[test]
#[ignore = "a measurement: scripts/measure-dashboard"]
#[expect(clippy::print_stderr, reason = "what was measured is said")]
fn the_first_view_of_many_runs_is_measured() {
    let stage = Stage::new();
    let Some(mut browser) = Browser::open(&stage.server.link) else { return };
    mark(&mut browser);
    let best =
        |browser: &mut Browser| (0..10).map(|_| browser.first_view("/")).fold(f64::MAX, f64::min);
    let empty = best(&mut browser);
    open_many(&stage);
    let full = best(&mut browser);
    let times = full / empty;
    eprintln!("first view: {empty:.0} ms with no runs, {full:.0} ms with {MANY}: {times:.1} times");
    assert!(times <= TIMES_MAX, "{times:.1} times, {TIMES_MAX} are enough");
}
