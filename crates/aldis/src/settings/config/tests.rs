//! What is accepted in either format, what wins, and how mistakes are explained.

use std::fs;
use std::path::Path;

use aldis_machine::phases::TokenPolicy;
use aldis_machine::run::Config;
use aldis_machine::stagnation;

use super::*;

/// Reads a file of this name with this text.
fn read(name: &str, text: &str) -> Result<Layered, String> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join(name);
    fs::write(&file, text).unwrap();
    let read = Document::read(&file, true).and_then(|document| Layered::of_document(&document));
    read.map_err(|error| said(&error, directory.path()))
}

/// An error as it is shown, without the place of the test.
fn said(error: &CommandError, directory: &Path) -> String {
    let CommandError::Failed { message, help } = error else { panic!("reading writes nothing") };
    let message = message.replace(&format!("{}/", directory.display()), "");
    match help {
        Some(help) => format!("{message} / {help}"),
        None => message,
    }
}

fn limits(layered: Layered) -> Config {
    let Settings { run, stagnation, notify, signals, .. } = layered.settings;
    let proof = Default::default();
    Supervision { run, accept: signals.accept, stagnation, notify, proof, strict: false }.limits()
}

#[test]
fn nothing_said_means_the_defaults_of_the_machines() {
    let usual = limits(read("aldis.toml", "").unwrap());
    assert_eq!(usual, Config::default());
    assert_eq!(usual.stagnation, stagnation::Config::supervised());
    assert_eq!(limits(read("aldis.yaml", "# nothing\n").unwrap()), usual);
}

const EVERYTHING_TOML: &str = r#"
[run]
verify = "npm test"
max_iterations = 5
timeout = "10m"
total_timeout = 3600
max_tokens = 1_000_000
max_cost = 2.5
require_commit = true

[stagnation]
warn_timeout = 0
abort_at_iteration = 40

[notify]
webhook = "https://example.org/hook"
webhook_secret_file = "secret"
events.question = ["desktop", "webhook"]
events.rate_limit = false

[phases]
stale_after = "90m"
after_transition = "stop"

[signals]
token = "require"
strict = true

[pipelines.small]
phases = [{ name = "do", signal = "EXECUTION_COMPLETE" }]
"#;

const EVERYTHING_YAML: &str = r"
run:
  verify: npm test
  max_iterations: 5
  timeout: 10m
  total_timeout: 3600
  max_tokens: 1000000
  max_cost: 2.5
  require_commit: true
stagnation: {warn_timeout: 0, abort_at_iteration: 40}
notify:
  webhook: https://example.org/hook
  webhook_secret_file: secret
  events:
    question: [desktop, webhook]
    rate_limit: false
phases:
  stale_after: 90m
  after_transition: stop
signals:
  token: require
  strict: true
pipelines:
  small:
    phases:
      - name: do
        signal: EXECUTION_COMPLETE
";

#[test]
fn both_formats_say_the_same() {
    let toml = read("aldis.toml", EVERYTHING_TOML).unwrap().settings;
    let yaml = read("aldis.yaml", EVERYTHING_YAML).unwrap().settings;
    assert_eq!(format!("{toml:?}"), format!("{yaml:?}"));
    assert_eq!(toml.signals.token, TokenPolicy::Require);
    assert!(toml.signals.strict && toml.phases_config().strict);
    assert_eq!(toml.phases.stale_after, Seconds(5400));
    assert_eq!(toml.pipeline("small").unwrap().phases.len(), 1);
    assert_eq!(toml.pipeline("caw").unwrap().phases.len(), 9);
    assert!(toml.pipeline("large").is_err());
    let limits = limits(read("aldis.yml", EVERYTHING_YAML).unwrap());
    assert_eq!((limits.max_micro_dollars, limits.max_tokens), (Some(2_500_000), Some(1_000_000)));
    assert_eq!((limits.iteration_timeout, limits.timeout, limits.verify), (600, 3600, true));
    assert_eq!((limits.stagnation.warn_timeout, limits.stagnation.abort_at_iteration), (0, 40));
}

#[test]
fn mistakes_name_the_line_and_the_remedy() {
    for (name, text, wrong) in [
        (
            "aldis.toml",
            "\n[run]\nmax_iteration = 5\n",
            "`aldis.toml` line 3: unknown key `max_iteration` in [run] / did you mean `max_iterations`?",
        ),
        (
            "aldis.yaml",
            "run:\n  timeout: 5\n\n  max_iteration: 5\n",
            "`aldis.yaml` line 4: unknown key `max_iteration` in [run] / did you mean `max_iterations`?",
        ),
        (
            "aldis.toml",
            "[notfy]\n",
            "`aldis.toml` line 1: unknown key `notfy` / did you mean `notify`?",
        ),
        (
            "aldis.yaml",
            "notify:\n  events:\n    questions: true\n",
            "`aldis.yaml` line 3: unknown key `questions` in [notify.events] / did you mean `question`?",
        ),
        (
            "aldis.toml",
            "[signals]\ncompletely_else = 1\n",
            "`aldis.toml` line 2: unknown key `completely_else` in [signals] / the keys are token, strict, accept",
        ),
        (
            "aldis.toml",
            "run.timeout = 'soon'",
            "`aldis.toml` line 1: `run.timeout`: expected a span of time such as `90s`, `10m` or `2h`, at most 366 days; 0 is not unlimited, found `soon`",
        ),
        (
            "aldis.yaml",
            "run:\n  require_commit: no\n",
            "`aldis.yaml` line 2: `run.require_commit`: expected a boolean, found string \"no\"",
        ),
        (
            "aldis.toml",
            "[run]\nprompt_by = \"pigeon\"\n",
            "`aldis.toml` line 2: `run.prompt_by`: expected argument or file or stdin",
        ),
        (
            "aldis.toml",
            "[run]\ninput = \"nope\"\n",
            "`aldis.toml` line 2: `run.input`: unknown input format `nope`; use auto, text or the name of a host",
        ),
        (
            "aldis.toml",
            "run = 5\n",
            "`aldis.toml` line 1: `run`: expected struct Run, found integer `5`",
        ),
        (
            "aldis.toml",
            "[notify.events]\nquestion = [\"pager\"]\n",
            "`aldis.toml` line 2: `notify.events.question`: expected terminal or desktop or command or webhook",
        ),
        ("aldis.toml", "[run\n", "`aldis.toml` line 1: "),
        ("aldis.toml", "a = 1\na = 2\n", "`aldis.toml` line 2: duplicate key"),
    ] {
        let said = read(name, text).unwrap_err();
        assert!(said == wrong || wrong.len() < 40 && said.starts_with(wrong), "{text:?}\n{said}");
    }
}

#[test]
fn zero_is_never_unlimited() {
    for key in [
        "run.max_iterations",
        "run.timeout",
        "run.total_timeout",
        "run.max_tokens",
        "run.max_cost",
        "run.limit_wait",
        "run.max_limit_waits",
        "run.crash_wait",
        "stagnation.pause_limit",
        "phases.max_iterations",
        "phases.stale_after",
    ] {
        for value in ["0", "-1", "\"\"", "true", "\"unlimited\""] {
            assert!(read("aldis.toml", &format!("{key} = {value}\n")).is_err(), "{key} = {value}");
        }
        assert!(read("aldis.toml", &format!("{key} = 1\n")).is_ok(), "{key}");
    }
    for key in ["run.max_iterations", "stagnation.warn_repeats", "phases.max_iterations"] {
        assert!(read("aldis.toml", &format!("{key} = 1001\n")).is_err(), "{key}");
    }
    assert!(read("aldis.toml", "stagnation.warn_repeats = 0").is_ok(), "0 switches it off");
}

#[test]
fn yaml_is_taken_as_data_only() {
    for (text, word) in [
        ("run: &r {timeout: 5}\nphases: *r\n", "anchors are not taken"),
        ("run: *r\n", "line 1"),
        ("run: !!map {timeout: 5}\n", "the tag"),
        ("run: {verify: !!python/object/apply:os.system [id]}\n", "the tag"),
        ("run: {verify: !run id}\n", "the tag"),
        ("run:\n  timeout: 5\n  timeout: 6\n", "`timeout` is already set"),
        ("run: {timeout: 5}\nrun: {timeout: 6}\n", "line 2: `run` is already set"),
        ("run: {timeout: 5}\n---\nrun: {timeout: 6}\n", "a second document is not read"),
        ("<<: {run: {timeout: 5}}\n", "unknown key `<<`"),
        ("? [a, b]\n: 1\n", "a key must be a word"),
        ("- run\n", "expected keys and values"),
        ("just words\n", "expected keys and values"),
        ("run: [\n", "line"),
    ] {
        let said = read("aldis.yaml", text).unwrap_err();
        assert!(said.contains(word), "{text:?}: {said}");
    }
    let deep = format!("run: {}{}", "[".repeat(5_000), "]".repeat(5_000));
    assert!(read("aldis.yaml", &deep).is_err());
    assert!(
        read("aldis.toml", &format!("run = {}{}", "[".repeat(5_000), "]".repeat(5_000))).is_err()
    );
}

#[test]
fn words_stay_what_was_written() {
    for (text, verify) in [
        ("verify: no", Some("no")),
        ("verify: 1.10", Some("1.10")),
        ("verify: true", Some("true")),
        ("verify: 'null'", Some("null")),
        ("verify: |\n    make\n    test\n", Some("make\ntest\n")),
        ("verify: ~", None),
        ("verify:", None),
    ] {
        let read = read("aldis.yaml", &format!("run:\n  {text}\n")).unwrap();
        assert_eq!(read.settings.run.verify.as_deref(), verify, "{text}");
    }
}

#[test]
fn whoever_is_asked_later_wins_and_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let document = |name: &str, text: &str| {
        let path = directory.path().join(name);
        fs::write(&path, text).unwrap();
        Document::read(&path, true).unwrap().tree
    };
    let pipeline = |name: &str| format!("phases = [{{ name = \"{name}\" }}]\n");
    let lower = format!(
        "[run]\ntimeout = 1\nmax_iterations = 2\n[pipelines.p]\nfinish = \"X\"\n{}",
        pipeline("low")
    );
    let upper = format!("[run]\ntimeout = 2\n[pipelines.p]\n{}", pipeline("high"));
    let mut flags = Node::empty(Origin::Default);
    let flag = Node { origin: Origin::Flag("--max-tokens"), kind: NodeKind::Word("7".to_owned()) };
    flags.put("run.max_tokens", flag);
    let layers = vec![document("low.toml", &lower), document("high.toml", &upper), flags];
    let layered = Layered::new(layers).unwrap();
    let origin = |path: &str| {
        let origin = layered.at(path).unwrap().origin.to_string();
        origin.rsplit('/').next().unwrap().to_owned()
    };
    assert_eq!(layered.settings.run.timeout, Seconds(2));
    assert_eq!(layered.settings.run.max_iterations, Count(2));
    assert_eq!(origin("run.timeout"), "high.toml:2");
    assert_eq!(origin("run.max_iterations"), "low.toml:3");
    assert_eq!(origin("run.max_tokens"), "command line --max-tokens");
    assert_eq!(origin("run.pty"), "default");
    let replaced = layered.settings.pipeline("p").unwrap();
    assert_eq!((replaced.finish, &*replaced.phases[0].name), (None, "high"), "replaced whole");

    let bad = document("low.toml", "run.timeout = 0");
    let wrong = Layered::new(vec![bad, document("high.toml", "run.timeout = 2")]).unwrap_err();
    assert!(said(&wrong, directory.path()).contains("low.toml"), "a mistake stays one: {wrong}");
}

#[test]
fn one_directory_has_one_file() {
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(file_in(directory.path()).unwrap(), None);
    fs::write(directory.path().join("aldis.yaml"), "").unwrap();
    assert_eq!(file_in(directory.path()).unwrap(), Some(directory.path().join("aldis.yaml")));
    fs::write(directory.path().join("aldis.toml"), "").unwrap();
    let wrong = file_in(directory.path()).unwrap_err();
    assert!(wrong.to_string().ends_with("has both `aldis.toml` and `aldis.yaml`"), "{wrong}");
}

#[test]
fn what_is_no_plain_text_file_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("aldis.toml");
    fs::create_dir(&path).unwrap();
    assert!(Document::read(&path, true).unwrap_err().to_string().ends_with("is not a file"));
    fs::remove_dir(&path).unwrap();
    fs::write(&path, [0xff, 0xfe]).unwrap();
    assert!(Document::read(&path, true).unwrap_err().to_string().ends_with("is not UTF-8 text"));
    fs::write(&path, "#".repeat(1024 * 1024 + 1)).unwrap();
    assert!(Document::read(&path, true).unwrap_err().to_string().ends_with("is too large"));
}

proptest::proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "[-a-z:\\[\\]{}&*!|>'\"#=.0-9 \n]{0,80}") {
        for name in ["aldis.toml", "aldis.yaml"] {
            // What is taken sets at least nothing; what is refused says where.
            if let Err(said) = read(name, &text) {
                assert!(said.contains(name), "{said}");
            }
        }
    }
}

#[test]
fn a_role_may_have_a_time_of_its_own() {
    for (name, text) in [
        (
            "aldis.toml",
            "[deliver.timeouts]\ncritic = \"3m\"\n[roles.developer]\ntimeout = \"20m\"\n",
        ),
        (
            "aldis.yaml",
            "deliver:\n  timeouts:\n    critic: 3m\nroles:\n  developer:\n    timeout: 20m\n",
        ),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let trusted = Trusted::of_user(Some(directory.path())).unwrap();
        let limits = read(name, text).unwrap().delivering(&trusted).unwrap().limits();
        let times = (limits.timeouts.developer, limits.timeouts.critic, limits.timeouts.auditor);
        assert_eq!(times, (1_200, 180, 600), "{name}");
    }
    let wrong = read("aldis.toml", "[roles.develper]\ntimeout = 5\n").unwrap_err();
    assert!(wrong.contains("did you mean `developer`?"), "{wrong}");
    let wrong = read("aldis.toml", "url = 5\n").unwrap_err();
    assert!(!wrong.contains("did you mean"), "{wrong}");
}
