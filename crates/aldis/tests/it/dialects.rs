//! Dialects: listing, showing, checking, and the user's own.

use crate::sandbox::Sandbox;

const DEPLOY: &str = include_str!("../../../../examples/dialects/deploy.toml");

#[test]
fn built_in_dialects_can_be_shown_and_checked() {
    let sandbox = Sandbox::new();
    let listed = sandbox.run(&["dialects", "list", "--json"]).json();
    assert_eq!(listed.len(), 10);
    for line in listed {
        let name = line["name"].as_str().unwrap();
        let shown = sandbox.run(&["dialects", "show", name]);
        let file = format!("{name}.toml");
        // Only the name is in its way.
        let own = format!("my-{name}");
        let text =
            shown.stdout.replacen(&format!("name = \"{name}\""), &format!("name = \"{own}\""), 1);
        sandbox.write(&file, text);
        let checked = sandbox.run(&["dialects", "check", &file]);
        assert_eq!(checked.code, 0, "{}", checked.text());
        let count = line["signals"].as_array().unwrap().len();
        let signals = if count == 1 { "signal" } else { "signals" };
        assert_eq!(checked.stdout, format!("{file}: ok, `{own}`, {count} {signals}\n"));
    }
}

#[test]
fn mistakes_are_shown_where_they_are() {
    let sandbox = Sandbox::new();
    let wrong = DEPLOY.replace("meaning = \"failed\"", "meanign = \"failed\"");
    sandbox.write("wrong.toml", wrong);
    sandbox.write("right.toml", DEPLOY);
    let done = sandbox.run(&["dialects", "check", "wrong.toml", "right.toml"]);
    assert_eq!(done.code, 1);
    assert_eq!(done.stdout, "right.toml: ok, `deploy`, 4 signals\n");
    let lines: Vec<&str> = done.stderr.lines().collect();
    assert!(lines[0].starts_with("error: wrong.toml line "), "{}", done.stderr);
    assert!(lines[0].contains("unknown field `meanign`"), "{}", done.stderr);
    assert!(lines[2].contains("| meanign = \"failed\""), "{}", done.stderr);
    assert!(lines[3].ends_with("| ^^^^^^^"), "{}", done.stderr);
    assert_eq!(lines[4].trim(), "help: did you mean `meaning`?", "{}", done.stderr);
    sandbox.write("wrong.toml", DEPLOY.replace("family =", "famly ="));
    let done = sandbox.run(&["dialects", "check", "wrong.toml"]);
    let help = "help: did you mean `family` where `famly` stands?";
    assert!(done.stderr.contains(help), "{}", done.stderr);
}

#[test]
fn a_dialect_that_could_hang_is_refused() {
    let sandbox = Sandbox::new();
    let text = "v = 1\nname = \"mine\"\nabout = \"x\"\n[syntax]\nfamily = \"trailer\"\n\
        keyword = \"OVER\"\nalternative_signals = [\"\"]\n\
        [[signals]]\nname = \"OVER\"\nmeaning = \"handoff\"\n";
    sandbox.write("mine.toml", text);
    let done = sandbox.run(&["dialects", "check", "mine.toml"]);
    assert_eq!(done.code, 1);
    assert!(done.stderr.contains("mine.toml line 7: `` cannot be a keyword"), "{}", done.stderr);
}

#[test]
fn prompts_say_what_was_agreed_and_say_nothing() {
    let sandbox = Sandbox::new();
    for (dialect, words) in [
        ("promise", "\n    <promise>COMPLETE</promise>\n"),
        ("promise=ALL DONE", "\n    <promise>ALL DONE</promise>\n"),
        ("turn=OVER_TO_YOU", "\n    OVER_TO_YOU\n"),
    ] {
        let prompt = sandbox.run(&["prompt", dialect]).stdout;
        assert!(prompt.contains(words), "{prompt}");
        let args = ["scan", "--json", "--near-misses", "-d", dialect];
        let scanned = sandbox.run_with(&args, prompt.as_bytes());
        let reasons: Vec<_> =
            scanned.json().into_iter().map(|line| line["reason"].clone()).collect();
        assert_eq!((scanned.code, reasons), (1, vec!["quoted".into()]), "{}", scanned.text());
    }
}

#[test]
fn keywords_take_no_tokens() {
    let sandbox = Sandbox::new();
    let done = sandbox.run_with(&["scan", "-d", "turn", "--token", "k3y9"], b"TURN_COMPLETE");
    assert_eq!(done.code, 2);
    assert!(done.stderr.contains("--token does not work with keywords"), "{}", done.stderr);
    let both = ["scan", "-d", "turn", "-d", "chorus", "--token", "k3y9"];
    assert_eq!(sandbox.run_with(&both, b"TURN_COMPLETE").code, 0);
}

#[test]
fn an_unknown_family_names_the_known_ones() {
    let sandbox = Sandbox::new();
    let text =
        "v = 1\nname = \"mine\"\nabout = \"x\"\nsignals = []\n\n[syntax]\nfamily = \"sentence\"\n";
    sandbox.write("mine.toml", text);
    insta::assert_snapshot!(sandbox.run(&["dialects", "check", "mine.toml"]).text(), @r#"
    exit 1
    -- stdout
    -- stderr
    error: mine.toml line 7: there is no grammar family `sentence`
      |
    7 | family = "sentence"
      |          ^^^^^^^^^^
     help: the families are block, line, tag, trailer, fence and status
    "#);
}

#[test]
fn user_dialects_are_found_upwards() {
    let sandbox = Sandbox::new();
    sandbox.write(".aldis/dialects/deploy.toml", DEPLOY);
    // What an editor leaves beside it is none.
    sandbox.write(".aldis/dialects/.#deploy.toml", "half a");
    sandbox.write("src/deep/keep", "");
    let mut command = assert_cmd::Command::new(crate::sandbox::ALDIS);
    let output = command
        .env_clear()
        .current_dir(sandbox.path().join("src/deep"))
        .args(["scan"])
        .write_stdin("All set.\n\n<deploy>LIVE: v1.2 on staging</deploy>\n")
        .output()
        .unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(stdout.contains("deploy LIVE"), "{stdout}");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn user_dialects_are_read_from_the_configuration() {
    let sandbox = Sandbox::new();
    let config = "[run]\nmax_iterations = 3\n\n[dialects.ship]\nabout = \"ships\"\n\n\
        [dialects.ship.syntax]\nfamily = \"tag\"\nopen = \"<ship>\"\nclose = \"</ship>\"\n\n\
        [[dialects.ship.signals]]\nname = \"SAILED\"\nmeaning = \"done\"\n";
    sandbox.write("aldis.toml", config);
    let listed = sandbox.run(&["dialects", "list", "--json"]).json();
    let ship = listed.last().unwrap();
    assert_eq!((&ship["name"], &ship["builtin"]), (&"ship".into(), &false.into()));
    let scanned = sandbox.run_with(&["scan", "-d", "ship"], b"Done.\n\n<ship>SAILED</ship>\n");
    assert_eq!(scanned.code, 0, "{}", scanned.text());

    sandbox.write("aldis.toml", config.replace("family = \"tag\"", "family = \"knot\""));
    let broken = sandbox.run(&["dialects", "list"]);
    assert_eq!(broken.code, 2);
    assert!(
        broken
            .stderr
            .contains("aldis.toml` line 8: [dialects.ship]: there is no grammar family `knot`"),
        "{}",
        broken.stderr
    );
    for (from, to, words) in [
        ("meaning =", "meanign =", "line 14: [dialects.ship]: unknown field `meanign`"),
        ("\"<ship>\"", "\"<\"", "line 9: [dialects.ship]: `open` has 3"),
        ("about = \"ships\"\n", "", "line 4: [dialects.ship]: missing field `about`"),
    ] {
        sandbox.write("aldis.toml", config.replace(from, to));
        let broken = sandbox.run(&["dialects", "list"]);
        assert!(broken.stderr.contains(words), "{}", broken.stderr);
    }
}

#[test]
fn a_built_in_dialect_is_not_replaced() {
    let sandbox = Sandbox::new();
    sandbox
        .write(".aldis/dialects/mine.toml", DEPLOY.replace("name = \"deploy\"", "name = \"caw\""));
    let done = sandbox.run_with(&["scan"], b"");
    assert_eq!(done.code, 2);
    assert!(done.stderr.contains("mine.toml`: `caw` is a built-in dialect"), "{}", done.stderr);
    assert!(done.stderr.contains("help: change `name` in the file"), "{}", done.stderr);
    let checked = sandbox.run(&["dialects", "check", ".aldis/dialects/mine.toml"]);
    assert_eq!((checked.code, checked.stdout.as_str()), (1, ""));
    assert!(checked.stderr.contains("mine.toml`: `caw` is a built-in dialect"));
    assert!(checked.stderr.contains("help: change `name` in the file"), "{}", checked.stderr);
}

#[test]
fn a_dialect_file_can_be_named_directly() {
    let sandbox = Sandbox::new();
    sandbox.write("deploy.toml", DEPLOY);
    let text = b"Done.\n\n<deploy>LIVE: v1.2 on staging</deploy>\n";
    let done = sandbox.run_with(&["scan", "--dialect", "deploy.toml"], text);
    assert_eq!(done.code, 0, "{}", done.text());
    assert!(
        sandbox.run(&["prompt", "./deploy.toml"]).stdout.contains("<deploy>STAGED: v1.2</deploy>")
    );
}
