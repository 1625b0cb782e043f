//! Run tokens from end to end: minted, told, demanded, rotated, never shown.

use super::project::{Project, block};

fn token(prompt: &str) -> String {
    prompt.lines().find_map(|line| line.strip_prefix("    TOKEN: ")).unwrap().to_owned()
}

fn with_token(text: &str, token: &str) -> String {
    text.replace("STATUS:", &format!("TOKEN: {token}\nSTATUS:"))
}

#[test]
fn only_who_was_told_the_code_completes_a_phase() {
    let project = Project::new();
    let started = project.start(&["--token", "require"]);
    let first = token(started["prompt"].as_str().unwrap());
    assert_eq!(project.stop(&block("expansion")).word(), "block");
    assert_eq!(project.status()["phase"], "expansion");
    assert_eq!(project.why()["evidence"][0]["reason"], "wrong_token");

    let answer = project.stop(&with_token(&block("expansion"), &first));
    let second = token(answer.reason());
    assert_eq!(project.status()["phase"], "init");
    assert_ne!(first, second, "each phase has its own");

    // Said where everybody can read it, a code is worth nothing: there is a new one.
    let answer = project.stop(&format!("The code is {second}."));
    let third = token(answer.reason());
    assert_ne!(second, third);
    assert_eq!(project.stop(&with_token(&block("init"), &second)).word(), "block");
    assert_eq!(project.status()["phase"], "init");

    for shown in [project.run(&["log", "--json"]).stdout, project.run(&["why"]).stdout] {
        for code in [&first, &second, &third] {
            assert!(!shown.contains(&**code), "{shown}");
        }
    }
}

#[test]
fn a_wrong_code_is_refused_where_none_is_needed() {
    let project = Project::new();
    project.start(&["--token", "accept"]);
    assert_eq!(project.stop(&with_token(&block("expansion"), "wrong")).word(), "block");
    assert_eq!(project.status()["phase"], "expansion");
    project.stop(&block("expansion"));
    assert_eq!(project.status()["phase"], "init");
}
