//! Runs of every kind in one store, read and controlled by every surface.
//!
//! Each cell of the table (surface, what is asked, kind) states what is right. Cells that are wrong
//! today are listed with the number of their defect; all others must be right. Three defects have no
//! number in the review:
//!
//! - K1: `status --json` shows a channel without `run`, `machine` and `active`.
//! - K2: `tasks RUN` says of a run without tasks that its state is damaged.
//! - K3: `watch` shows channels and cannot control them.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};

use super::installation::{Installation, PLAN, Started, wait_until, within};
use super::{PATIENCE, patience, pin, seen};
use crate::sandbox::{ALDIS, Done};
use crate::serve::client::{Got, Server};
use crate::watch::Watched;

const KINDS: [&str; 4] = ["phases", "run", "delivery", "turns"];
const SURFACES: [&str; 3] = ["command", "http", "watch"];

/// The defects of cells, by how the cell's name begins and ends.
const DEFECTS: [(&str, &str, &str); 15] = [
    ("B1", "command why here", "run"),
    ("B1", "command why here", "delivery"),
    ("B2", "command pause", "phases"),
    ("B2", "command pause", "turns"),
    ("B2", "command resume", "phases"),
    ("B2", "command resume", "turns"),
    ("B2", "command abort", "phases"),
    ("B2", "command abort", "turns"),
    ("B2", "command answer", "phases"),
    ("B2", "command answer", "turns"),
    ("K1", "command status", "turns"),
    ("K2", "command tasks", "phases"),
    ("K2", "command tasks", "run"),
    ("K2", "command tasks", "turns"),
    ("K3", "watch", "turns"),
];

/// An agent that asks once, and then works until it is ended.
const ASKS: &str = r#"#!/bin/sh
cat > /dev/null
if [ ! -e asked ]; then touch asked
    case $ALDIS_TASK in
    '') echo '<chorus>NEEDS_HUMAN: keep or drop?</chorus>';;
    *) printf 'SEEKING_DIVINE_CLARIFICATION\nTask: %s\nQuestion: keep or drop?\n' "$ALDIS_TASK";;
    esac
    exit 0
fi
trap 'exit 0' INT TERM
touch here
while :; do sleep 0.05; done
"#;

/// One run.
struct Member {
    surface: &'static str,
    kind: &'static str,
    project: String,
    id: String,
    /// Whoever supervises it.
    process: Option<Started>,
}

/// What became of a word, and how the run stands then.
type Reference = BTreeMap<(&'static str, &'static str), (Outcome, &'static str)>;

/// What became of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Outcome {
    Accepted,
    Refused,
    Failed,
}

impl Outcome {
    fn of_command(done: &Done) -> Self {
        match done.code {
            0 => Self::Accepted,
            1 => Self::Refused,
            _ => Self::Failed,
        }
    }

    fn of_request(got: &Got) -> Self {
        match got.status {
            200 if got.json()["warnings"] == json!([]) => Self::Accepted,
            200..500 => Self::Refused,
            _ => Self::Failed,
        }
    }
}

/// All runs, and what was seen of them.
struct Table {
    installation: Installation,
    server: Server,
    /// Each cell, and what is wrong with it.
    cells: Vec<(String, Option<String>)>,
}

#[test]
fn every_surface_reads_and_controls_runs_of_every_kind_in_one_store() {
    let installation = Installation::new();
    let server = installation.serve();
    let mut table = Table { installation, server, cells: Vec::new() };
    let mut members: Vec<Member> = SURFACES
        .into_iter()
        .flat_map(|surface| KINDS.map(|kind| (surface, kind)))
        .map(|(surface, kind)| table.begin(surface, kind))
        .collect();
    members.iter_mut().for_each(|member| table.wait_for_question(member));
    for member in members.iter().filter(|member| member.surface == "command") {
        table.read(member);
    }
    let (by_http, others): (Vec<_>, Vec<_>) =
        members.into_iter().partition(|member| member.surface == "http");
    let mut reference = Reference::new();
    for member in by_http {
        table.control_by_http(member, &mut reference);
    }
    for member in others {
        assert_eq!(table.stands(&member), "on", "nobody touched {}", member.project);
        match member.surface {
            "command" => table.control_by_command(member, &reference),
            _ => table.control_by_watch(member, &reference),
        }
    }
    table.settle();
}

impl Table {
    fn begin(&self, surface: &'static str, kind: &'static str) -> Member {
        let project = format!("{surface}-{kind}");
        let installation = &self.installation;
        let (mut id, mut process) = (String::new(), None);
        match kind {
            "phases" => id = installation.start_phases(&project),
            "turns" => {
                let config = json!({ "default_timeout_seconds": 600 });
                let start = json!({ "channel": project, "agents": ["a", "b"], "config": config });
                let got = self.server.post("/v1/channels", &start);
                assert_eq!(got.status, 201, "{}", got.text);
                id.clone_from(&project);
            }
            "run" => {
                installation.script(&project, "agent.sh", ASKS);
                let args = ["run", "--task", &project, "--", "./agent.sh"];
                process = Some(installation.start(&project, &args));
            }
            _ => {
                installation.script(&project, "agent.sh", ASKS);
                let plan = installation.project(&project).join("plan.md");
                fs::write(plan, PLAN.replace("Export", &project)).unwrap();
                let args = ["deliver", "plan.md", "--", "./agent.sh"];
                process = Some(installation.start(&project, &args));
            }
        }
        Member { surface, kind, project, id, process }
    }

    /// Runs with an agent ask something before anything else.
    fn wait_for_question(&self, member: &mut Member) {
        if member.process.is_none() {
            return;
        }
        wait_until("the run is there", || {
            let found = self.installation.run_of(&member.project);
            found.is_some_and(|found| {
                member.id = found;
                true
            })
        });
        wait_until("the agent asks", || self.asks(member));
    }

    fn asks(&self, member: &Member) -> bool {
        let questions = self.server.get("/v1/questions").json();
        let asked = |question: &Value| {
            question["run"] == member.id
                && question["id"] == "q1"
                && question["text"] == "keep or drop?"
        };
        questions["questions"].as_array().unwrap().iter().any(asked)
    }

    fn shown(&self, member: &Member) -> Value {
        let got = self.server.get(&format!("/v1/runs/{}", member.id));
        assert_eq!(got.status, 200, "{}", got.text);
        got.json()
    }

    fn stands(&self, member: &Member) -> &'static str {
        let shown = self.shown(member);
        let paused = shown["status"] == "paused" || shown["floor"] == "paused";
        match shown["active"].as_bool().unwrap() {
            false => "ended",
            true if paused => "paused",
            true => "on",
        }
    }

    fn note(&mut self, cell: String, wrong: Option<String>) {
        self.cells.push((cell, wrong));
    }

    /// Reads a run by every command that shows one, and compares with what requests get.
    fn read(&mut self, member: &Member) {
        let Member { kind, project, id, .. } = member;
        let command = |args: &[&str]| self.installation.aldis(project, args);
        let request = |what: &str| self.server.get(&format!("/v1/runs/{id}{what}")).json();

        let listed = self.installation.runs();
        let mut own = listed.iter().filter(|run| run["run"] == **id || run["channel"] == **id);
        let listed = own.next().unwrap_or_else(|| panic!("{project} is not listed"));
        assert!(own.next().is_none(), "{project} is listed once");
        let alone = command(&["status", id, "--json"]);
        assert_eq!(alone.json().iter().collect::<Vec<_>>(), [listed], "{project}");
        let shown = request("");
        for name in ["active", "exit_reason", "floor", "iteration", "phase", "question", "status"] {
            let same = listed.get(name).is_none_or(|value| *value == shown[name]);
            assert!(same, "{project} {name}: {listed} {shown}");
        }
        let known = (&listed["run"], &listed["machine"], &listed["active"]);
        let status =
            (known != (&json!(id), &json!(kind), &json!(true))).then(|| listed.to_string());

        let sequence = |decisions: &[Value]| -> Vec<u64> {
            decisions.iter().map(|decision| decision["seq"].as_u64().unwrap()).collect()
        };
        let mut all = sequence(request("/why?limit=1000")["decisions"].as_array().unwrap());
        all.reverse();
        let log = command(&["log", id, "--json", "-n", "1000"]);
        let log = (sequence(&log.json()) != all).then(|| log.text());
        let why = command(&["why", id, "--json"]);
        let why = (sequence(&why.json()) != all[all.len() - 1..]).then(|| why.text());

        let here = command(&["why", "--json"]).json();
        // A channel has no directory.
        let here = (*kind != "turns" && here[0]["run"] != **id).then(|| format!("{}", here[0]));

        let tasks = command(&["tasks", id, "--json"]);
        let fine = tasks.code < 2 && json!(tasks.json()) == request("/tasks")["tasks"];
        let tasks = (!fine).then(|| tasks.text());
        let rows = [("status", status), ("log", log), ("why", why), ("why here", here)];
        for (what, wrong) in rows.into_iter().chain([("tasks", tasks)]) {
            self.note(format!("command {what} {kind}"), wrong);
        }
    }

    /// What is right is what requests lead to.
    fn control_by_http(&self, mut member: Member, reference: &mut Reference) {
        let kind = member.kind;
        let supervised = member.process.is_some();
        for (word, body, after) in [
            ("answer", json!({ "id": "q1", "text": "Drop it." }), "on"),
            ("pause", json!({}), "paused"),
            ("resume", json!({}), "on"),
            ("abort", json!({}), "ended"),
        ] {
            let got = self.server.post(&format!("/v1/runs/{}/{word}", member.id), &body);
            let outcome = Outcome::of_request(&got);
            let can = match word {
                "answer" => supervised,
                _ => true,
            };
            assert_ne!(outcome, Outcome::Failed, "{word} {kind}: {}", got.text);
            assert!(!can || outcome == Outcome::Accepted, "{word} {kind}: {}", got.text);
            if outcome == Outcome::Accepted {
                wait_until(&format!("{kind} is {after}"), || self.stands(&member) == after);
            }
            if word == "answer" {
                self.wait_for_work(&member);
            }
            reference.insert((word, kind), (outcome, self.stands(&member)));
        }
        end(&mut member);
    }

    /// After its answer an agent works.
    fn wait_for_work(&self, member: &Member) {
        if member.process.is_some() {
            let here = self.installation.project(&member.project).join("here");
            wait_until("the agent works", || here.exists());
            wait_until("the run works", || self.shown(member)["status"] == "working");
        }
    }

    fn control_by_command(&mut self, mut member: Member, reference: &Reference) {
        let (kind, id) = (member.kind, member.id.clone());
        let supervised = member.process.is_some();
        // Where the project has a run, it need not be named.
        let abort = if supervised { vec!["abort"] } else { vec!["abort", &*id] };
        let answer = if supervised {
            vec!["answer", "q1", "Drop it."]
        } else {
            vec!["answer", "q1", "Drop it.", "--run", &id]
        };
        let mut words = vec![answer, vec!["pause", &id], vec!["resume", &id]];
        if kind == "phases" {
            words.extend([vec!["pause", &*id], vec!["resume"]]);
        }
        words.push(abort);
        for args in words {
            let (wanted, after) = &reference[&(args[0], kind)];
            let done = self.installation.aldis(&member.project, &args);
            let good = Outcome::of_command(&done) == *wanted
                && within(PATIENCE, || (self.stands(&member) == *after).then_some(())).is_some();
            self.note(format!("command {} {kind}", args[0]), (!good).then(|| done.text()));
            if args[0] == "answer" {
                self.wait_for_work(&member);
            }
        }
        end(&mut member);
    }

    fn control_by_watch(&mut self, mut member: Member, reference: &Reference) {
        let kind = member.kind;
        let mut command = self.installation.command(&member.project, ALDIS);
        command.args(["watch", &member.id]);
        let mut watched = Watched::start(command, (24, 80));
        let asks = member.process.is_some();
        let title = member.project.clone();
        watched.wait_until("the run and its question", |text| {
            text.contains(&title) && (!asks || text.contains("keep or drop?"))
        });
        let mut before = "on";
        let keys = [("answer", "aDrop it.\r"), ("pause", "py"), ("resume", "ry"), ("abort", "xy")];
        for (word, keys) in keys {
            let (wanted, after) = &reference[&(word, kind)];
            if *wanted != Outcome::Accepted {
                continue;
            }
            watched.press(keys);
            let time = if kind == "turns" { patience("K3") } else { PATIENCE };
            let done = within(time, || {
                let answered = word != "answer" || !self.asks(&member);
                (self.stands(&member) == *after && answered).then_some(())
            });
            // What was not paused cannot be resumed, although it then stands as it should.
            let never = word == "resume" && before != "paused";
            let wrong = (done.is_none() || never)
                .then(|| format!("{before} before, {} after", self.stands(&member)));
            self.note(format!("watch {word} {kind}"), wrong);
            before = self.stands(&member);
            if word == "answer" {
                self.wait_for_work(&member);
            }
        }
        end(&mut member);
    }

    /// Demands that everything is right but for the known defects.
    fn settle(self) {
        let mut wrong: BTreeMap<&str, Vec<String>> =
            DEFECTS.iter().map(|(number, ..)| (*number, Vec::new())).collect();
        let mut unexpected = Vec::new();
        for (cell, what) in self.cells {
            let Some(what) = what else { continue };
            let known = DEFECTS
                .iter()
                .find(|(_, begin, end)| cell.starts_with(begin) && cell.ends_with(end));
            match known {
                Some((number, ..)) => {
                    wrong.entry(number).or_default().push(format!("{cell}: {what}"));
                }
                None => unexpected.push(format!("{cell}: {what}")),
            }
        }
        assert_eq!(unexpected, [""; 0]);
        wrong.into_iter().for_each(|(number, wrong)| pin(number, seen(wrong)));
    }
}

/// Whoever supervises a run that was aborted ends.
fn end(member: &mut Member) {
    if let Some(process) = member.process.take() {
        assert_eq!(process.end(), Some(130), "{}", member.project);
    }
}
