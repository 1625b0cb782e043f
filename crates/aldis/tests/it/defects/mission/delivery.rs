//! Deliveries: what agents are told, what of their words counts, and what a human is asked.

use std::fs;

use serde_json::{Value, json};

use super::{Stage, Stepper, effect, pin_all};
use crate::defects::{Seen, pin};

const READY: &str = "READY_FOR_REVIEW: t1\n\nSummary: ok\n";
const CHECKPOINT: &str = "CHECKPOINT: t1\n\nProgress: 50%\n";

/// A delivery of the task `t1`, and the agent that works on it.
struct Delivery {
    step: Stepper,
    agent: Value,
    role: String,
    prompt: String,
}

impl Delivery {
    /// Its first agent has been started.
    #[track_caller]
    fn begun(config: &Value) -> Self {
        let mut step = Stepper::new("delivery");
        let plan = json!({ "tasks": [{ "id": "t1", "acceptance": ["it works"] }] });
        step.send("start", &json!({ "plan": plan, "config": config }));
        let answer = step.send("begin", &json!({}));
        let (role, prompt) = (String::new(), String::new());
        let mut delivery = Self { step, agent: Value::Null, role, prompt };
        assert!(delivery.notes_dispatch(&answer), "{answer}");
        delivery
    }

    fn notes_dispatch(&mut self, answer: &Value) -> bool {
        let Some(dispatch) = effect(answer, "dispatch") else { return false };
        let text = |member: &str| dispatch[member].as_str().unwrap().to_owned();
        (self.role, self.prompt) = (text("role"), text("prompt"));
        self.agent = dispatch["agent"].clone();
        true
    }

    /// Something happens a second later; whoever is started then is the agent at work.
    #[track_caller]
    fn send(&mut self, event: &str, members: &Value) -> Value {
        let answer = self.step.later(1).send(event, members);
        self.notes_dispatch(&answer);
        answer
    }

    /// The agent ends with these words.
    #[track_caller]
    fn finish(&mut self, text: &str) -> Value {
        self.send("finished", &json!({ "agent": self.agent, "text": text }))
    }

    /// The agent says something and works on.
    #[track_caller]
    fn hear(&mut self, text: &str) -> Value {
        self.send("heard", &json!({ "agent": self.agent, "text": text }))
    }

    /// The agent ends with these words, and one of this role goes on.
    #[track_caller]
    fn hands_over(&mut self, text: &str, role: &str) -> &mut Self {
        let (before, answer) = (self.agent.clone(), self.finish(text));
        assert_eq!(self.role, role, "{answer}");
        assert_ne!(self.agent, before, "{answer}");
        self
    }

    /// The agent is asked for something.
    #[track_caller]
    fn assert_asked(&self, answer: &Value) {
        let request = effect(answer, "request").unwrap_or_else(|| panic!("not asked: {answer}"));
        assert_eq!(request["agent"], self.agent, "{answer}");
    }

    /// Lets time pass; returns whether the agent is ended because of it.
    fn ended_after(&mut self, seconds: u32) -> bool {
        let agent = self.agent.clone();
        let answer = self.step.later(seconds).send("tick", &json!({}));
        effect(&answer, "end").is_some_and(|end| end["agent"] == agent)
    }
}

fn failed_review(findings: &[&str]) -> String {
    format!("REVIEW_FAILED: t1\n\nIssues Found:\n- {}\n", findings.join("\n- "))
}

/// A delivery in which an agent of this role is at work.
fn with_role_at_work(role: &str) -> Delivery {
    let mut delivery = Delivery::begun(&json!({}));
    match role {
        "critic" => delivery.hands_over(READY, role),
        "auditor" => delivery.hands_over(READY, "critic").hands_over("REVIEW_PASSED: t1", role),
        "remediation" => delivery.hands_over("INFRA_BLOCKED: t1\n\nIssue: no disk\n", role),
        "health_auditor" => delivery
            .hands_over("INFRA_BLOCKED: t1\n\nIssue: no disk\n", "remediation")
            .hands_over("REMEDIATION_COMPLETE", role),
        _ => panic!("{role}"),
    };
    delivery
}

#[test]
fn b5_whoever_is_asked_for_a_checkpoint_may_send_one() {
    let mut symptoms = Vec::new();
    for role in ["critic", "auditor", "remediation", "health_auditor"] {
        let mut delivery = with_role_at_work(role);
        let asked = delivery.finish("hm");
        delivery.assert_asked(&asked);
        // In time for the request; what it may be asked for after that is not late yet.
        delivery.step.later(20);
        delivery.hear(CHECKPOINT);
        if delivery.ended_after(20) {
            symptoms.push(format!("the {role} was ended for its checkpoint"));
        }
    }
    // Asked for a sign of life every minute.
    let mut delivery = Delivery::begun(&json!({ "checkpoint_every": 60 }));
    delivery.hands_over(READY, "critic");
    for _ in 0..4 {
        let asked = delivery.step.later(61).send("tick", &json!({}));
        delivery.assert_asked(&asked);
        delivery.step.later(20);
        delivery.hear(CHECKPOINT);
        if delivery.ended_after(20) {
            symptoms.push("the critic was ended although it answered every request".to_owned());
            break;
        }
    }
    pin_all("mission/B5", &symptoms);
}

#[test]
fn b6_the_third_unknown_reply_replaces_the_agent_although_it_sent_checkpoints() {
    let replaced = |answers: bool| {
        let mut delivery = Delivery::begun(&json!({}));
        let first = delivery.agent.clone();
        let asked = delivery.finish("hm");
        delivery.assert_asked(&asked);
        for _ in 0..2 {
            assert_eq!(delivery.agent, first);
            if answers {
                delivery.hear(CHECKPOINT);
            }
            delivery.finish("hm");
        }
        assert_eq!(delivery.role, "developer");
        delivery.agent != first
    };
    assert!(replaced(false), "an agent that sends none is replaced");
    let seen = match replaced(true) {
        true => Seen::Right,
        false => Seen::Wrong("the agent's checkpoints reset the count".to_owned()),
    };
    pin("mission/B6", seen);
}

const REQUEST: &str = "SEEKING_DIVINE_CLARIFICATION\n\nTask: t1\nQuestion: QUESTION-ALPHA?\n\
    Context: CONTEXT-BETA\nOptions Considered:\n- OPTION-GAMMA\n- OPTION-DELTA\n\
    Attempts Made:\n- ATTEMPT-EPSILON\nWhat Would Help: HELP-ZETA\n";
const PARTS: [&str; 5] =
    ["CONTEXT-BETA", "OPTION-GAMMA", "OPTION-DELTA", "ATTEMPT-EPSILON", "HELP-ZETA"];

/// What of the request is not shown.
fn missing(shown: &str) -> Vec<&'static str> {
    PARTS.into_iter().filter(|part| !shown.contains(part)).collect()
}

#[test]
fn b7_a_human_sees_the_whole_request_and_the_agent_gets_it_back() {
    let mut symptoms = Vec::new();
    let mut note = |place: &str, missing: &[&str]| {
        if !missing.is_empty() {
            symptoms.push(format!("{place}: {missing:?}"));
        }
    };
    let mut delivery = Delivery::begun(&json!({}));
    let asked = delivery.finish(REQUEST);
    let question = effect(&asked, "ask").unwrap_or_else(|| panic!("not asked: {asked}"));
    assert!(question.to_string().contains("QUESTION-ALPHA"), "{question}");
    note("the effect `ask`", &missing(&question.to_string()));
    let id = question["id"].clone();
    delivery.send("answer", &json!({ "id": id, "text": "ANSWER-ETA" }));
    assert!(delivery.prompt.contains("ANSWER-ETA"), "{}", delivery.prompt);
    note("the prompt after the answer", &missing(&delivery.prompt));

    // The question is in the words below the signal, without a key.
    let mut delivery = Delivery::begun(&json!({}));
    let asked = delivery.finish("SEEKING_DIVINE_CLARIFICATION\n\nIs it to be WORDS-THETA?\n");
    let question = effect(&asked, "ask").unwrap_or_else(|| panic!("not asked: {asked}"));
    if !question.to_string().contains("WORDS-THETA") {
        note("the effect `ask` without a key", &["WORDS-THETA"]);
    }

    // The same with processes, wherever a human would look.
    let stage = Stage::new(&format!("cat <<'END'\n{REQUEST}END"));
    fs::write(stage.0.path().join("plan.md"), "# Plan\n\n- [ ] t1: Task\n  - [ ] it works\n")
        .unwrap();
    let done = stage.supervise(&["deliver", "plan.md", "--no-wait"]);
    assert_eq!(done.code, 3, "{}", done.text());
    let mut shown = done.stdout;
    for args in [&["status"][..], &["status", "--json"], &["tasks"], &["tasks", "--json"]] {
        let done = stage.aldis(args);
        assert_eq!(done.code, 0, "{args:?}: {}", done.text());
        shown.push_str(&done.stdout);
    }
    assert!(shown.contains("QUESTION-ALPHA"), "{shown}");
    note("the commands", &missing(&shown));
    pin_all("mission/B7", &symptoms);
}

#[test]
fn b8_findings_that_differ_in_a_number_are_different() {
    let mut symptoms = Vec::new();
    // The first finding is settled; then another one, which was never raised, is new.
    let mut delivery = Delivery::begun(&json!({}));
    delivery
        .hands_over(READY, "critic")
        .hands_over(&failed_review(&["a.py:30: no test for case 1"]), "developer")
        .hands_over(READY, "critic")
        .hands_over("REVIEW_PASSED: t1", "auditor")
        .hands_over("AUDIT_FAILED: t1\n\nFailed Criteria:\n- it works\n", "developer")
        .hands_over(READY, "critic");
    let answer = delivery.finish(&failed_review(&["a.py:99: no test for case 2"]));
    // Whether three verdicts are enough to ask a human is another question.
    match (delivery.role.as_str(), effect(&answer, "ask")) {
        ("developer", None) | ("critic", Some(_)) => {}
        ("critic", None) => symptoms.push(format!("a new finding is refused: {answer}")),
        _ => panic!("{answer}"),
    }

    let mut delivery = Delivery::begun(&json!({}));
    let cases = ["a.py:10: no test for case 1", "a.py:20: no test for case 2"];
    delivery.hands_over(READY, "critic").hands_over(&failed_review(&cases), "developer");
    delivery.hands_over(READY, "critic");
    assert!(delivery.prompt.contains("no test for case"), "{}", delivery.prompt);
    for case in ["case 1", "case 2"] {
        if !delivery.prompt.contains(case) {
            symptoms.push(format!("the critic is not reminded of {case}: {}", delivery.prompt));
        }
    }
    pin_all("mission/B8", &symptoms);
}

#[test]
fn b9_two_failed_reviews_and_a_failed_audit_are_reworked() {
    let reviews = [failed_review(&["a.py:1: no tests"]), failed_review(&["a.py:2: wrong name"])];
    let bare = ["REVIEW_FAILED: t1".to_owned(), "REVIEW_FAILED: t1".to_owned()];
    let audit = "AUDIT_FAILED: t1\n\nFailed Criteria:\n- it works\n";
    let mut symptoms = Vec::new();
    for (name, reviews, verdict) in
        [("findings", &reviews, audit), ("no findings", &bare, "AUDIT_FAILED: t1")]
    {
        let mut delivery = Delivery::begun(&json!({}));
        for review in reviews {
            delivery.hands_over(READY, "critic").hands_over(review, "developer");
        }
        delivery.hands_over(READY, "critic").hands_over("REVIEW_PASSED: t1", "auditor");
        let answer = delivery.finish(verdict);
        match (delivery.role.as_str(), effect(&answer, "ask")) {
            ("developer", None) => {}
            ("auditor", Some(question)) => symptoms.push(format!("{name}: {question}")),
            _ => panic!("{answer}"),
        }
    }
    // Three of one kind do ask.
    let mut delivery = Delivery::begun(&json!({}));
    for review in &reviews {
        delivery.hands_over(READY, "critic").hands_over(review, "developer");
    }
    delivery.hands_over(READY, "critic");
    let answer = delivery.finish(&failed_review(&["a.py:3: too slow"]));
    assert!(effect(&answer, "ask").is_some(), "{answer}");
    pin_all("mission/B9", &symptoms);
}

#[test]
fn b11_the_first_agents_know_the_experts_that_the_planner_made() {
    const CREATED: &str = "EXPERT_CREATED: cryptographer\n\nFile: experts/cryptographer.md\n\
        Gap Filled: keys and ciphers\n";
    let mut symptoms = Vec::new();
    let mut delivery = Delivery::begun(&json!({ "planner": true }));
    assert_eq!(delivery.role, "planner");
    let checks = delivery.finish(CREATED);
    if let Some(check) = effect(&checks, "check_expert") {
        delivery.send("expert_checked", &json!({ "name": check["name"], "present": true }));
    }
    assert_eq!(delivery.role, "developer", "{checks}");
    if !delivery.prompt.contains("cryptographer") {
        symptoms.push(format!("in steps: {}", delivery.prompt));
    }

    let stage = Stage::new(&format!(
        "case $ALDIS_ROLE in\n\
         planner) mkdir experts; echo keys > experts/cryptographer.md; cat <<'END'\n{CREATED}END\n;;\n\
         developer) echo 'READY_FOR_REVIEW: t1';;\ncritic) echo 'REVIEW_PASSED: t1';;\n\
         auditor) echo 'AUDIT_PASSED: t1';;\nesac"
    ));
    stage.settings("[deliver]\nplanner = true\n");
    fs::write(stage.0.path().join("plan.md"), "# Plan\n\n- [ ] t1: Task\n  - [ ] it works\n")
        .unwrap();
    let done = stage.supervise(&["deliver", "plan.md"]);
    assert_eq!(done.code, 0, "{}", done.text());
    let (developer, auditor) = (stage.prompt(2), stage.prompt(4));
    assert!(auditor.contains("cryptographer"), "the expert was never registered: {auditor}");
    if !developer.contains("cryptographer") {
        symptoms.push(format!("with processes: {developer}"));
    }
    pin_all("mission/B11", &symptoms);
}

/// A claim with a table of two checks; the second one ended so.
fn claim(signal: &str, lint: &str) -> String {
    format!(
        "{signal}: t1\n\nSummary: ok\nVerification Results:\n\n\
         | Check | Environment | Exit | Result |\n|---|---|---|---|\n\
         | unit | native | 0 | PASS |\n| lint | native | {lint} |\n"
    )
}

#[test]
fn b12_the_environment_matrix_may_be_a_table() {
    let config = json!({ "require_environment_matrix": true });
    let mut symptoms = Vec::new();
    let mut delivery = Delivery::begun(&config);
    let answer = delivery.finish(&claim("READY_FOR_REVIEW", "0 | PASS"));
    if delivery.role != "critic" {
        symptoms.push(format!("the developer's table: {answer}"));
    }

    let mut delivery = Delivery::begun(&config);
    let list = "READY_FOR_REVIEW: t1\n\nVerification Results:\n- unit (native): PASS\n";
    delivery.hands_over(list, "critic").hands_over("REVIEW_PASSED: t1", "auditor");
    let answer = delivery.finish(&claim("AUDIT_PASSED", "0 | PASS"));
    if answer["state"]["counts"]["complete"] != 1 {
        symptoms.push(format!("the auditor's table: {answer}"));
    }

    // The reason, or the developer's next prompt, names the row that failed and no other.
    let mut delivery = Delivery::begun(&config);
    let answer = delivery.finish(&claim("READY_FOR_REVIEW", "1 | FAIL"));
    assert_eq!(delivery.role, "developer", "a failure is never handed over: {answer}");
    let decisions = answer["decisions"].as_array().unwrap();
    let reasons = decisions.iter().filter_map(|decision| decision["because"].as_str());
    let told: Vec<&str> = reasons.chain([delivery.prompt.as_str()]).collect();
    if !told.iter().any(|told| told.contains("lint") && !told.contains("unit")) {
        symptoms.push(format!("the row that failed is not named: {told:?}"));
    }

    let stage = Stage::new("");
    stage.settings("[deliver]\nrequire_environment_matrix = true\n");
    let done = stage.aldis(&["config", "check"]);
    assert_eq!(done.code, 0, "{}", done.text());
    let settings = "[deliver]\nrequire_environment_matrix = true\nenvironments = [\"native\"]\n";
    stage.settings(settings);
    let done = stage.aldis(&["config", "check"]);
    if done.code != 0 {
        symptoms.push(format!("environments cannot be set: {}", done.text()));
    }
    pin_all("mission/B12", &symptoms);
}

#[test]
fn b17c_a_signal_about_another_task_is_recorded_beside_the_one_that_counts() {
    let mut delivery = Delivery::begun(&json!({}));
    let first = delivery.agent.clone();
    let answer = delivery.finish(&format!("READY_FOR_REVIEW: t-other\n\n{READY}"));
    assert_eq!(delivery.role, "critic", "{answer}");
    assert_ne!(delivery.agent, first);
    let decisions = answer["decisions"].to_string();
    let seen = match decisions.contains("t-other") {
        true => Seen::Right,
        false => Seen::Wrong(decisions),
    };
    pin("mission/B17c", seen);
}
