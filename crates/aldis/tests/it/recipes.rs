//! The recipes and examples, run as a user would: notices reach a service in the form that it accepts,
//! plans are good, and the blocks of the recipes work when pasted.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::phases::project::{Project, feed};
use crate::sandbox::{ALDIS, Done};
use crate::serve::receiver::{Act, Inbox};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A service on this machine that answers like Slack, and all others do not care.
fn service() -> Inbox {
    Inbox::open(&[Act::Answer(200, r#"{"ok":true}"#)])
}

/// What an agent might ask to be let into a channel, a shell or a file.
const WORDS: &str =
    "@/etc/passwd keep or drop? @everyone <!channel> \"a\" 'b' $(touch pwned) & more";

/// Where a run is shown.
const LINK: &str = "https://aldis.example.org/runs/";

/// Runs an agent that asks a human, with a script for notices and its variables.
fn ask(script: &str, variables: &[(&str, &str)], programs: Option<&Path>) -> (Project, Done) {
    let project = Project::new();
    let settings = project.home().join(".config/aldis");
    fs::create_dir_all(&settings).unwrap();
    let script = fs::canonicalize(root().join("examples/notify").join(script)).unwrap();
    let text = format!(
        "[notify]\ncommand = \"sh '{}'\"\n[notify.events]\nquestion = false\nrun_ended = [\"command\"]\n",
        script.display()
    );
    fs::write(settings.join("aldis.toml"), text).unwrap();
    // As a server of this state directory leaves it behind.
    let state = project.state_dir();
    fs::create_dir_all(&state).unwrap();
    fs::set_permissions(&state, fs::Permissions::from_mode(0o700)).unwrap();
    let links = json!({ "base": "https://aldis.example.org", "key": "0".repeat(64) });
    fs::write(state.join("serve.links.json"), links.to_string()).unwrap();
    let path = std::env::var_os("PATH").unwrap();
    let own = programs.map(Path::to_owned).into_iter();
    let path = std::env::join_paths(own.chain(std::env::split_paths(&path))).unwrap();
    fs::write(project.path().join("words"), WORDS).unwrap();
    let mut command = project.command(ALDIS);
    command.env("PATH", path).envs(variables.iter().copied());
    command.args(["run", "--task", "x", "--no-wait", "--", "/bin/sh", "-c"]);
    command.arg("echo \"<chorus>NEEDS_HUMAN: $(cat words)</chorus>\"");
    let done = feed(command, b"");
    assert_eq!(done.code, 3, "{}", done.text());
    assert!(!done.stdout.contains("command failed"), "{}", done.text());
    assert!(!project.path().join("pwned").exists());
    (project, done)
}

/// The fields of a form, decoded.
fn fields(body: &str) -> Vec<(String, String)> {
    let decode = |text: &str| {
        let text = text.replace('+', " ");
        let mut bytes = Vec::new();
        let mut parts = text.split('%');
        bytes.extend(parts.next().unwrap().bytes());
        for part in parts {
            bytes.push(u8::from_str_radix(&part[..2], 16).unwrap());
            bytes.extend(part[2..].bytes());
        }
        String::from_utf8(bytes).unwrap()
    };
    let pairs = body.split('&').map(|pair| pair.split_once('=').unwrap());
    pairs.map(|(name, value)| (name.to_owned(), decode(value))).collect()
}

#[test]
fn ntfy_gets_the_words_as_the_body() {
    let inbox = service();
    ask("ntfy.sh", &[("NTFY_URL", &inbox.url), ("NTFY_TOKEN", "tk_1")], None);
    let arrived = inbox.next();
    assert_eq!(arrived.request(), "POST /hook");
    assert_eq!(arrived.header("authorization"), "Bearer tk_1");
    assert_eq!(arrived.header("priority"), "high");
    assert!(arrived.header("click").starts_with(LINK), "{}", arrived.header("click"));
    assert!(arrived.body.contains(WORDS), "{}", arrived.body);
}

#[test]
fn slack_gets_a_form_whose_text_calls_nobody() {
    let inbox = service();
    let variables =
        [("SLACK_URL", &*inbox.url), ("SLACK_TOKEN", "xoxb-1"), ("SLACK_CHANNEL", "C1")];
    ask("slack.sh", &variables, None);
    let arrived = inbox.next();
    assert_eq!(arrived.header("authorization"), "Bearer xoxb-1");
    let fields = fields(&arrived.body);
    assert_eq!(fields[0], ("channel".to_owned(), "C1".to_owned()));
    assert_eq!(fields[1].0, "text");
    assert!(fields[1].1.contains("&lt;!channel&gt;"), "{}", fields[1].1);
    assert!(fields[1].1.contains(LINK), "{}", fields[1].1);
    assert!(!fields[1].1.contains('<'), "{}", fields[1].1);
}

#[test]
fn telegram_gets_a_form_without_markup() {
    let inbox = service();
    let variables =
        [("TELEGRAM_URL", &*inbox.url), ("TELEGRAM_TOKEN", "1:a"), ("TELEGRAM_CHAT", "-7")];
    ask("telegram.sh", &variables, None);
    let arrived = inbox.next();
    assert_eq!(arrived.request(), "POST /hook/bot1:a/sendMessage");
    let fields = fields(&arrived.body);
    assert_eq!(fields[0], ("chat_id".to_owned(), "-7".to_owned()));
    assert!(fields[1].1.contains(WORDS) && fields[1].1.contains(LINK), "{}", fields[1].1);
    assert_eq!(fields.len(), 2, "parse_mode would make the words markup");
}

#[test]
fn discord_gets_json_that_calls_nobody() {
    let inbox = service();
    ask("discord.sh", &[("DISCORD_WEBHOOK", &inbox.url)], None);
    let arrived = inbox.next();
    assert_eq!(arrived.request(), "POST /hook");
    assert_eq!(arrived.header("content-type"), "application/json");
    let body = arrived.json();
    let content = body["content"].as_str().unwrap();
    assert!(content.contains(WORDS) && content.contains(LINK), "{body}");
    assert!(body["content"].as_str().unwrap().chars().count() <= 2_000);
    assert_eq!(body["allowed_mentions"], json!({"parse": []}));
}

#[test]
fn mail_is_handed_to_sendmail() {
    let programs = tempfile::TempDir::new().unwrap();
    let sendmail = programs.path().join("sendmail");
    let mail = programs.path().join("mail");
    fs::write(&sendmail, format!("#!/bin/sh\n{{ echo \"$@\"; cat; }} > '{}'\n", mail.display()))
        .unwrap();
    fs::set_permissions(&sendmail, fs::Permissions::from_mode(0o755)).unwrap();
    ask("mail.sh", &[("MAIL_TO", "me@example.org")], Some(programs.path()));
    let mail = fs::read_to_string(mail).unwrap();
    let (head, body) = mail.split_once("\n\n").unwrap();
    assert!(head.starts_with("-i me@example.org\nTo: me@example.org\nSubject: aldis "), "{head}");
    assert!(body.contains(WORDS) && body.contains(LINK), "{body}");
}

#[test]
fn example_plans_are_good() {
    let mut checked = 0;
    for entry in fs::read_dir(root().join("examples/plans")).unwrap() {
        let plan = fs::canonicalize(entry.unwrap().path()).unwrap();
        let done = Project::new().run(&["plan", "check", plan.to_str().unwrap()]);
        assert_eq!((done.code, &*done.stderr), (0, ""), "{}", done.text());
        assert!(!done.stdout.contains("warning"), "{}", done.text());
        checked += 1;
    }
    assert_eq!(checked, 3);
}

/// What a recipe shows in a shell block works when pasted; what starts an agent says why it is not run.
#[test]
fn the_blocks_of_the_recipes_run() {
    let mut run = 0;
    for entry in fs::read_dir(root().join("docs/recipes")).unwrap() {
        let path = entry.unwrap().path();
        let page = fs::read_to_string(&path).unwrap();
        let mut script = String::new();
        for (before, block) in page.split("```sh\n").zip(page.split("```sh\n").skip(1)) {
            let block = block.split("```").next().unwrap();
            match before.trim_end().ends_with("-->") {
                true => assert!(before.contains("<!-- not run: "), "{}", path.display()),
                false => script.push_str(block),
            }
        }
        if script.is_empty() {
            continue;
        }
        let project = Project::new();
        let programs = project.root().join("programs");
        fs::create_dir(&programs).unwrap();
        symlink(ALDIS, programs.join("aldis")).unwrap();
        let inherited = std::env::var_os("PATH").unwrap();
        let all = [programs].into_iter().chain(std::env::split_paths(&inherited));
        let mut command = project.command("bash");
        command.env("PATH", std::env::join_paths(all).unwrap());
        command.args(["-e", "-o", "pipefail", "-c", &script]);
        let done = feed(command, b"");
        assert_eq!(done.code, 0, "{}: {}", path.display(), done.text());
        run += 1;
    }
    assert_eq!(run, 2);
}

/// A program in the place of every host, which notes how it was called and says nothing that counts.
fn fake_hosts(folder: &Path) {
    let script = "#!/bin/sh\nread -r first || first=\nfor word in \"$@\"; do\n\
        if [ -f \"$word\" ]; then word=\"file with $(cat \"$word\")\"; fi\n\
        printf '%s\\n' \"$word\" >> \"$NOTED\"\ndone\necho \"input: $first\" >> \"$NOTED\"\n";
    let programs = [
        "agy",
        "amp",
        "claude",
        "codex",
        "copilot",
        "cursor-agent",
        "droid",
        "gemini",
        "goose",
        "kilo",
        "kimi",
        "kiro-cli",
        "opencode",
        "pi",
        "qwen",
    ];
    for program in programs {
        let path = folder.join(program);
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// What each of the scripts starts is what `--host` of its name starts.
#[test]
fn the_agent_scripts_start_what_the_hosts_do() {
    let project = Project::new();
    let folder = project.path().join("bin");
    fs::create_dir_all(&folder).unwrap();
    fake_hosts(&folder);
    let path = std::env::join_paths([&*folder, Path::new("/usr/bin"), Path::new("/bin")]).unwrap();
    let noted = |options: &[&str]| {
        let file = project.path().join("noted");
        drop(fs::remove_file(&file));
        let mut command = project.command(ALDIS);
        command.env("PATH", &path).env("NOTED", &file);
        command.args(["run", "--max-iterations", "1", "--max-crashes", "0", "Add CSV export"]);
        let done = feed(command_with(command, options), b"");
        let noted = fs::read_to_string(&file).unwrap_or_else(|_| panic!("{}", done.text()));
        // A shell leaves out the line ends at the end of what it puts into an argument.
        noted.replace("\n\ninput: ", "\ninput: ")
    };
    let scripts = fs::read_dir(root().join("examples/agents")).unwrap();
    let mut count = 0;
    for script in scripts {
        let script = fs::canonicalize(script.unwrap().path()).unwrap();
        let host = script.file_stem().unwrap().to_str().unwrap();
        let own = noted(&["--", script.to_str().unwrap()]);
        assert_eq!(own, noted(&["--host", host]), "{host}");
        assert!(own.contains("Add CSV export"), "{host}: {own}");
        count += 1;
    }
    // One for each host that the help lists.
    let help = project.run(&["run", "--help"]).stdout;
    let (_, hosts) = help.split_once("[possible values: ").unwrap();
    let (hosts, _) = hosts.split_once(']').unwrap();
    assert_eq!(count, hosts.split(',').count(), "{hosts}");
}

fn command_with(mut command: std::process::Command, options: &[&str]) -> std::process::Command {
    command.args(options);
    command
}

/// What the CI job types works, with an agent that is done at once.
#[test]
fn the_job_for_ci_works() {
    let job = fs::read_to_string(root().join("examples/ci/github.yml")).unwrap();
    let lines: Vec<&str> =
        job.lines().map(str::trim).filter(|line| line.starts_with("aldis ")).collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    let project = Project::new();
    let folder = project.path().join("bin");
    fs::create_dir_all(&folder).unwrap();
    fs::write(project.path().join("task.md"), "Add CSV export").unwrap();
    fs::write(project.path().join("package.json"), "{\"scripts\": {\"test\": \"true\"}}").unwrap();
    let text = r#"{"type":"text","text":"<chorus>COMPLETE</chorus>"}"#;
    let says = format!(
        r#"{{"type":"assistant","message":{{"id":"m","role":"assistant","content":[{text}]}}}}"#
    );
    let result = r#"{"type":"result","subtype":"success","is_error":false,"total_cost_usd":0.5}"#;
    let programs = [
        ("claude", format!("cat > /dev/null; echo '{says}'; echo '{result}'")),
        ("npm", "true".to_owned()),
        ("aldis", format!("exec '{ALDIS}' \"$@\"")),
    ];
    for (name, body) in programs {
        let path = folder.join(name);
        fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = project.command("/bin/sh");
    let path = std::env::join_paths([&*folder, Path::new("/usr/bin"), Path::new("/bin")]).unwrap();
    command.env("PATH", path).env("GITHUB_STEP_SUMMARY", project.path().join("summary"));
    command.args(["-ec", &lines.join("\n")]);
    let done = feed(command, b"");
    assert_eq!(done.code, 0, "{}", done.text());
    let summary = fs::read_to_string(project.path().join("summary")).unwrap();
    assert!(summary.contains("Done and verified"), "{summary}");
    let report = fs::read_to_string(project.path().join("report.html")).unwrap();
    assert!(report.contains("Add CSV export"), "{report}");
}
