//! Traces, as a collector gets them from the real program.

mod collector;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::time::Duration;

use aldis_store::{DecisionFilter, RunId, SqliteStore, Store as _};
use nix::sys::signal::Signal;
use opentelemetry_proto::tonic::trace::v1::Span;

use self::collector::{Collector, hex, text};
use crate::phases::project::{Project, feed};
use crate::sandbox::{ALDIS, Done};
use crate::serve::client::{self, Server};

const CALLER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
/// What no collector may get, unless somebody asks for bodies.
const SECRETIVE: &str = "the words of an agent";

/// A project with an agent, and a collector.
struct Stage {
    project: Project,
    collector: Collector,
}

impl Stage {
    fn new(agent: &str) -> Self {
        let stage = Self { project: Project::new(), collector: Collector::start() };
        let path = stage.project.path().join("agent.sh");
        fs::write(&path, format!("#!/bin/sh\n{agent}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        stage
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.project.command(ALDIS);
        command.env("OTEL_EXPORTER_OTLP_ENDPOINT", &self.collector.address);
        command.env("PATH", "/usr/bin:/bin").args(args);
        command
    }

    fn run(&self, options: &[&str]) -> Done {
        let args = [&["run", "--task", "Add CSV export"], options, &["--", "./agent.sh"]].concat();
        feed(self.command(&args), b"")
    }

    fn id(&self) -> String {
        let status = self.project.run(&["status", "--all", "--json"]).json();
        status[0]["run"].as_str().unwrap().to_owned()
    }

    /// Every decision that a span tells of was committed, and every one that was committed is told of.
    fn assert_committed(&self, spans: &[Span]) {
        let store = SqliteStore::open(&self.project.state_dir()).unwrap();
        let run = RunId::new(self.id()).unwrap();
        let filter = DecisionFilter { run: Some(run), ..DecisionFilter::default() };
        let stored = store.decisions(&filter).unwrap();
        let mut stored: Vec<String> = stored
            .iter()
            .map(|decision| {
                let body: serde_json::Value = serde_json::from_str(&decision.body).unwrap();
                format!("{} {}", decision.at.as_millis(), body["rule"].as_str().unwrap())
            })
            .collect();
        let events = spans.iter().flat_map(|span| &span.events);
        let mut told: Vec<String> = events
            .filter(|event| event.name == "aldis.decision")
            .map(|event| {
                let rule = text(&event.attributes, "aldis.rule").unwrap();
                format!("{} {rule}", event.time_unix_nano / 1_000_000)
            })
            .collect();
        stored.sort();
        told.sort();
        assert_eq!(told, stored);
    }
}

/// Ids are valid and unique, times are in order, each span lies within its parent.
fn assert_nested(spans: &[Span]) {
    let traces: BTreeSet<_> = spans.iter().map(|span| &span.trace_id).collect();
    assert_eq!(traces.len(), 1, "one run is one trace");
    for span in spans {
        assert_eq!((span.trace_id.len(), span.span_id.len()), (16, 8), "{}", span.name);
        assert!(span.span_id != [0; 8] && span.trace_id != [0; 16], "{}", span.name);
        assert!(span.start_time_unix_nano <= span.end_time_unix_nano, "{}", span.name);
        assert!(span.start_time_unix_nano > 0);
        let Some(parent) = spans.iter().find(|it| it.span_id == span.parent_span_id) else {
            assert!(span.name.starts_with("invoke_workflow "), "{} hangs below nothing", span.name);
            continue;
        };
        assert!(parent.start_time_unix_nano <= span.start_time_unix_nano, "{}", span.name);
        assert!(parent.end_time_unix_nano >= span.end_time_unix_nano, "{}", span.name);
    }
}

fn names(spans: &[Span]) -> Vec<&str> {
    spans.iter().map(|span| &*span.name).collect()
}

/// Says something twice before it is done, and writes down what it was told of traces.
const TWICE: &str = r#"cat > /dev/null
n=$(($(cat count 2>/dev/null || echo 0) + 1)); echo $n > count
echo "$TRACEPARENT" >> parents
echo "the words of an agent"
[ $n = 1 ] && exit 0
printf '<chorus>COMPLETE</chorus>\n'"#;
const CHECK: &str = "echo $TRACEPARENT >> checks; echo the words of an agent; test -e count";

#[test]
fn a_run_is_one_trace_below_its_caller() {
    let stage = Stage::new(TWICE);
    let mut command = stage.command(&[
        "run",
        "--task",
        "Add CSV export",
        "--verify",
        CHECK,
        "--quiet",
        "--",
        "./agent.sh",
    ]);
    command.env("TRACEPARENT", CALLER);
    command.env("OTEL_EXPORTER_OTLP_HEADERS", "api-key=k%20y");
    command.env("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test");
    let done = feed(command, b"");
    assert_eq!(done.code, 0, "{}", done.text());
    let spans = stage.collector.spans();
    assert_nested(&spans);
    let mut sorted = names(&spans);
    sorted.sort_unstable();
    let expected = [
        "execute_tool verify",
        "invoke_agent agent",
        "invoke_agent agent",
        "invoke_workflow Add CSV export",
    ];
    assert_eq!(sorted, expected);
    // It hangs below the caller, and what agents and checks report hangs below it.
    let fields: Vec<&str> = CALLER.split('-').collect();
    let root = spans.iter().find(|span| span.name.starts_with("invoke_workflow")).unwrap();
    assert_eq!(
        (hex(&root.trace_id), hex(&root.parent_span_id)),
        (fields[1].into(), fields[2].into())
    );
    let told = |file: &str, name: &str| {
        let told = fs::read_to_string(stage.project.path().join(file)).unwrap();
        let spans = spans.iter().filter(|span| span.name.starts_with(name));
        let expected: Vec<String> = spans
            .map(|span| format!("00-{}-{}-01", hex(&span.trace_id), hex(&span.span_id)))
            .collect();
        assert_eq!(told.lines().collect::<Vec<_>>(), expected, "{file}");
    };
    told("parents", "invoke_agent");
    told("checks", "execute_tool");
    let check = spans.iter().find(|span| span.name.starts_with("execute_tool")).unwrap();
    let evaluation = check.events.iter().find(|it| it.name == "gen_ai.evaluation.result").unwrap();
    assert_eq!(text(&evaluation.attributes, "gen_ai.evaluation.score.label").unwrap(), "passed");
    assert_eq!(text(&root.attributes, "aldis.ending").unwrap(), "done");
    let iterations = spans.iter().filter_map(|span| text(&span.attributes, "aldis.iteration"));
    assert_eq!(iterations.collect::<Vec<_>>(), ["1", "2"]);
    stage.assert_committed(&spans);
    // As the variables say, with the version of the conventions, and without anybody's words.
    for taken in stage.collector.taken() {
        assert_eq!(taken.headers["api-key"], "k y");
        let spans = &taken.request.resource_spans[0];
        let resource = &spans.resource.as_ref().unwrap().attributes;
        assert_eq!(text(resource, "service.name").unwrap(), "aldis");
        assert_eq!(text(resource, "deployment.environment.name").unwrap(), "test");
        assert!(spans.scope_spans[0].schema_url.starts_with("https://opentelemetry.io/schemas/1."));
        assert!(!format!("{:?}", taken.request).contains(SECRETIVE));
    }
}

#[test]
fn the_past_is_exported_with_the_same_ids() {
    let stage = Stage::new(TWICE);
    assert_eq!(stage.run(&["--quiet"]).code, 0);
    let live = stage.collector.spans();
    let other = Collector::start();
    let mut command = stage.command(&["log", &stage.id(), "--otlp"]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", &other.address);
    let done = feed(command, b"");
    assert_eq!(done.code, 0, "{}", done.text());
    let said = format!("exported {} spans of run {}", live.len(), stage.id());
    assert!(done.stdout.starts_with(&said), "{}", done.stdout);
    assert_eq!(other.spans(), live);
    // Nowhere to send it, or nobody there.
    let nowhere = stage.project.run(&["log", &stage.id(), "--otlp"]);
    assert_eq!(nowhere.code, 2);
    assert!(nowhere.stderr.contains("no collector is set"), "{}", nowhere.text());
    let mut command = stage.command(&["log", &stage.id(), "--otlp"]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1");
    let refused = feed(command, b"");
    assert_eq!(refused.code, 2, "{}", refused.text());
}

#[test]
fn bodies_are_exported_only_on_request() {
    let stage = Stage::new(TWICE);
    let directory = stage.project.home().join(".config/aldis");
    fs::create_dir_all(&directory).unwrap();
    let settings = format!("[telemetry]\notlp = \"{}\"\nbodies = true\n", stage.collector.address);
    fs::write(directory.join("aldis.toml"), settings).unwrap();
    let mut command = stage.command(&[
        "run",
        "--task",
        "Add CSV export",
        "--verify",
        CHECK,
        "--quiet",
        "--",
        "./agent.sh",
    ]);
    command.env_remove("OTEL_EXPORTER_OTLP_ENDPOINT");
    let done = feed(command, b"");
    assert_eq!(done.code, 0, "{}", done.text());
    let spans = stage.collector.spans();
    let check = spans.iter().find(|span| span.name.starts_with("execute_tool")).unwrap();
    assert!(text(&check.attributes, "aldis.check.output").unwrap().contains(SECRETIVE));
    let agent = spans.iter().find(|span| span.name.starts_with("invoke_agent")).unwrap();
    assert!(text(&agent.attributes, "gen_ai.input.messages").unwrap().contains("Add CSV export"));
}

/// A file in the repository does not say where traces of all projects go.
#[test]
fn a_project_names_no_collector() {
    let stage = Stage::new(TWICE);
    let settings = format!("[telemetry]\notlp = \"{}\"\n", stage.collector.address);
    fs::write(stage.project.path().join("aldis.toml"), settings).unwrap();
    let done = stage.project.run(&["run", "--task", "x", "--", "./agent.sh"]);
    assert_eq!(done.code, 2, "{}", done.text());
    assert!(done.stderr.contains("telemetry.otlp"), "{}", done.text());
}

#[test]
fn a_collector_that_fails_fails_no_run() {
    for (status, words) in [(503, "does not take traces now"), (401, "refuses the traces")] {
        let stage = Stage::new(TWICE);
        stage.collector.answer(status);
        let done = stage.run(&["--quiet"]);
        assert_eq!(done.code, 0, "{}", done.text());
        let failures = stage.project.alarms();
        assert!(failures.contains("telemetry") && failures.contains(words), "{failures}");
        let doctor = feed(stage.command(&["doctor", "claude-code"]), b"");
        assert!(doctor.stdout.contains("traces go to http://127.0.0.1"), "{}", doctor.text());
        assert!(doctor.stdout.contains("the last failure"), "{}", doctor.text());
    }
    // What cannot be used is said, and the run goes on.
    let stage = Stage::new(TWICE);
    let mut command = stage.command(&["run", "--task", "x", "--quiet", "--", "./agent.sh"]);
    command.env("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
    let done = feed(command, b"");
    assert_eq!(done.code, 0, "{}", done.text());
    assert!(stage.project.alarms().contains("http/protobuf"), "{}", stage.project.alarms());
    assert!(stage.collector.spans().is_empty());
}

#[test]
fn a_caller_that_records_nothing_is_not_joined() {
    let stage = Stage::new(TWICE);
    let mut command = stage.command(&["run", "--task", "x", "--quiet", "--", "./agent.sh"]);
    command.env("TRACEPARENT", CALLER.replace("-01", "-00"));
    assert_eq!(feed(command, b"").code, 0);
    assert!(stage.collector.spans().is_empty());
    let told = fs::read_to_string(stage.project.path().join("parents")).unwrap();
    assert!(told.lines().all(|line| line.ends_with("-00")), "{told}");
}

#[test]
fn a_delivery_has_a_span_for_each_agent() {
    let agent = r#"cat > /dev/null; echo "$ALDIS_ROLE $TRACEPARENT" >> parents
case $ALDIS_ROLE in
developer) printf 'the words of an agent\n\nREADY_FOR_REVIEW: %s\nSummary: done\n' "$ALDIS_TASK";;
critic) printf 'REVIEW_PASSED: %s\n' "$ALDIS_TASK";;
auditor) printf 'AUDIT_PASSED: %s\n' "$ALDIS_TASK";;
esac"#;
    let stage = Stage::new(agent);
    let plan = "# One\n\n- [ ] csv: Write the CSV\n  - [ ] quotes are escaped\n";
    fs::write(stage.project.path().join("plan.md"), plan).unwrap();
    let done = feed(stage.command(&["deliver", "plan.md", "--quiet", "--", "./agent.sh"]), b"");
    assert_eq!(done.code, 0, "{}", done.text());
    let spans = stage.collector.spans();
    assert_nested(&spans);
    let told = fs::read_to_string(stage.project.path().join("parents")).unwrap();
    let mut expected: Vec<String> = Vec::new();
    for span in spans.iter().filter(|span| span.name.starts_with("invoke_agent ")) {
        let role = text(&span.attributes, "gen_ai.agent.name").unwrap();
        assert_eq!(span.name, format!("invoke_agent {role}"));
        assert_eq!(text(&span.attributes, "aldis.task").unwrap(), "csv");
        expected.push(format!("{role} 00-{}-{}-01", hex(&span.trace_id), hex(&span.span_id)));
    }
    let mut told: Vec<String> = told.lines().map(str::to_owned).collect();
    told.sort();
    expected.sort();
    assert_eq!(told, expected);
    assert_eq!(expected.len(), 3);
    stage.assert_committed(&spans);
    let all =
        format!("{:?}", stage.collector.taken().iter().map(|it| &it.request).collect::<Vec<_>>());
    assert!(!all.contains(SECRETIVE));
}

#[test]
fn a_server_exports_what_hooks_do() {
    let collector = Collector::start();
    let project = Project::new().patient();
    let state = project.state_dir();
    let mut command = client::command(&state, &[]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.address);
    let server = Server::start_command(&state, command);
    let run = project.start(&[])["run"].as_str().unwrap().to_owned();
    project.stop(SECRETIVE);
    assert_eq!(project.run(&["abort", &run]).code, 0);
    let ended = || collector.spans().iter().any(|span| span.name.starts_with("invoke_workflow"));
    for _ in 0..600 {
        if ended() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let spans = collector.spans();
    assert!(ended(), "{:?}", names(&spans));
    assert_nested(&spans);
    let root = spans.iter().find(|span| span.name.starts_with("invoke_workflow")).unwrap();
    assert_eq!(text(&root.attributes, "aldis.run.id").unwrap(), run);
    assert_eq!(text(&root.attributes, "aldis.machine").unwrap(), "phases");
    let all = format!("{:?}", collector.taken().iter().map(|it| &it.request).collect::<Vec<_>>());
    assert!(!all.contains(SECRETIVE));
    server.signal(Signal::SIGTERM);
    assert!(server.end().success());
}
