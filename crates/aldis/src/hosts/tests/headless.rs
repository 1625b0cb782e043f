//! How hosts run without a person.

use crate::agents::command::SESSION;
use crate::hosts::Host;
use crate::hosts::headless::{Headless, HostOption, HostOptions};

fn headless(name: &str) -> Headless {
    Host::headless(name).unwrap().1
}

fn options(allow: &[&str]) -> HostOptions {
    HostOptions {
        allow: allow.iter().map(|tool| (*tool).to_owned()).collect(),
        model: Some("large".to_owned()),
        extra: vec!["--extra".to_owned()],
        yolo: false,
        calls: false,
    }
}

#[test]
fn every_host_that_people_run_is_there() {
    let names: Vec<&str> = Host::all_headless().iter().map(|host| host.name()).collect();
    let wanted = "amp antigravity claude-code codex copilot cursor droid gemini goose kilo kimi \
                  kiro opencode pi qwen";
    assert_eq!(names.join(" "), wanted);
    for name in names {
        let (host, headless) = Host::headless(name).unwrap();
        let spec = host.spec();
        assert!(spec.programs.contains(&headless.program()), "{name}");
        assert_eq!(Host::of_program(headless.program()), Some(host));
        assert!(!spec.get_program.is_empty(), "{name}");
        let resume = headless.resume(&HostOptions::default());
        let names_it = |words: Vec<String>| words.iter().any(|word| word.contains(SESSION));
        assert!(resume.is_none_or(names_it), "{name}");
        // Either there is an option, or words about what to do instead.
        for (told, wanted) in [
            (headless.allow, options(&["Bash"])),
            (headless.model, HostOptions { allow: Vec::new(), ..options(&[]) }),
        ] {
            let refused = host.check_options(&wanted).is_err();
            assert_eq!(refused, matches!(told, HostOption::Instead(_)), "{name} {wanted:?}");
        }
    }
    assert_eq!(Host::headless("claude").unwrap().0.name(), "claude-code");
    assert!(Host::headless("openclaw").is_err());
}

#[test]
fn options_stand_where_the_host_reads_them() {
    let of = |name: &str, allow: &[&str]| headless(name).command(&options(allow)).join(" ");
    assert_eq!(
        of("claude-code", &["Bash", "Bash(npm test:*)"]),
        "claude -p --output-format stream-json --verbose --permission-mode acceptEdits \
         --model=large --allowedTools=Bash --allowedTools=Bash(npm test:*) --extra"
    );
    // What a resumed session reads comes last.
    assert_eq!(
        of("codex", &[]),
        "codex exec --json --skip-git-repo-check --sandbox workspace-write --model=large --extra -"
    );
    assert_eq!(
        of("copilot", &["shell"]),
        "copilot --output-format json --allow-tool=write --model=large --allow-tool=shell --extra -p"
    );
}

#[test]
fn sessions_are_continued_by_their_hosts_own_command() {
    let plain = HostOptions::default();
    for (host, words) in [
        (
            "claude-code",
            "claude -p --output-format stream-json --verbose --permission-mode acceptEdits \
             --resume {session}",
        ),
        (
            "codex",
            "codex exec --json --skip-git-repo-check --sandbox workspace-write resume {session} -",
        ),
        ("droid", "droid exec -o stream-json --auto low -s {session} -f"),
        ("kimi", "kimi --output-format stream-json --session {session} -p"),
        ("copilot", "copilot --output-format json --allow-tool=write --resume={session} -p"),
        ("antigravity", "agy --output-format stream-json --add-dir . --conversation={session} -p"),
        ("kilo", "kilo run --format json --session {session}"),
        ("pi", "pi --mode json --session {session} -p"),
    ] {
        assert_eq!(headless(host).resume(&plain).unwrap().join(" "), words);
    }
    assert_eq!(headless("goose").resume(&plain), None);
    assert_eq!(headless("kiro").resume(&plain), None);
}

/// A folder that nobody trusted yet is no reason to deny what the prompt asks for.
#[test]
fn tools_of_our_server_are_allowed_where_it_is_registered() {
    let calls = HostOptions { calls: true, ..HostOptions::default() };
    let of = |name: &str| headless(name).command(&calls).join(" ");
    assert_eq!(
        of("claude-code"),
        "claude -p --output-format stream-json --verbose --permission-mode acceptEdits \
         --allowedTools=mcp__aldis --allowedTools=mcp__plugin_aldis_aldis"
    );
    assert!(of("copilot").contains(" --allow-tool=aldis "), "{}", of("copilot"));
    assert_eq!(of("codex"), headless("codex").command(&HostOptions::default()).join(" "));
    let yolo = HostOptions { yolo: true, ..calls.clone() };
    assert!(!headless("claude-code").command(&yolo).join(" ").contains("allowedTools"));
}

#[test]
fn everything_takes_the_place_of_edits() {
    let yolo = HostOptions { yolo: true, ..HostOptions::default() };
    for (host, words) in [
        (
            "claude-code",
            "claude -p --output-format stream-json --verbose --dangerously-skip-permissions",
        ),
        (
            "codex",
            "codex exec --json --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox -",
        ),
        ("opencode", "opencode run --format json --auto"),
    ] {
        assert_eq!(headless(host).command(&yolo).join(" "), words);
    }
}

#[test]
fn a_denied_tool_has_a_cure_that_a_shell_reads() {
    let claude = headless("claude-code");
    assert_eq!(claude.cure("Bash").unwrap(), "--allow Bash");
    assert_eq!(claude.cure("mcp__a; rm -rf ~").unwrap(), "--allow 'mcp__a; rm -rf ~'");
    assert_eq!(claude.cure("it's").unwrap(), r"--allow 'it'\''s'");
    assert_eq!(claude.permit("Write").unwrap(), "`--permission-mode acceptEdits`");
    assert_eq!(claude.permit("WebFetch").unwrap(), "`--allowedTools=WebFetch`");
    assert_eq!(headless("codex").cure("shell").unwrap(), "--yolo");
    assert_eq!(headless("codex").permit("shell").unwrap(), "`--sandbox workspace-write`");
    // Nothing more can be allowed.
    assert_eq!(headless("cursor").cure("shell"), None);
}
