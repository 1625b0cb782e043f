//! `[proof] judge` in runs and deliveries: a second opinion about work whose checks passed.

use std::fs;

use serde_json::{Value, json};

use super::Stage;

/// An agent that does the work at once, writes what its host would, and claims to be done.
const AGENT: &str = r#"#!/bin/sh
case "${ALDIS_ROLE:-developer}" in
developer)
    echo needle >> src.txt
    case "$ALDIS_TASK" in '') say='<chorus>COMPLETE</chorus>' ;; *) say="READY_FOR_REVIEW: $ALDIS_TASK\nSummary: done" ;; esac ;;
critic) say="REVIEW_PASSED: $ALDIS_TASK" ;;
auditor) say="AUDIT_PASSED: $ALDIS_TASK" ;;
esac
echo '{"type":"system","subtype":"init","session_id":"s1","cwd":".","tools":["Bash"],"mcp_servers":[],"model":"scripted","permissionMode":"default"}'
echo '{"type":"assistant","message":{"id":"m1","type":"message","role":"assistant","model":"scripted","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"cargo test"}}]},"parent_tool_use_id":null,"session_id":"s1"}'
echo '{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"118 passed"}]},"parent_tool_use_id":null,"session_id":"s1"}'
printf '%s\n' "{\"type\":\"assistant\",\"message\":{\"id\":\"m2\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"scripted\",\"content\":[{\"type\":\"text\",\"text\":\"$say\"}]},\"parent_tool_use_id\":null,\"session_id\":\"s1\"}"
echo '{"type":"result","subtype":"success","is_error":false,"result":"","session_id":"s1"}'
"#;

/// A judge that refuses once, and then answers so.
fn judge(stage: &Stage, then: &str) -> String {
    let root = stage.0.root().display().to_string();
    let refuse = r#"{"verdict":"refuse","reason":"src.txt has no test","cost_usd":0.02}"#;
    format!(
        "n=$(ls {root}/questions | wc -l); cat > {root}/questions/$n; \
         if [ $n = 0 ]; then echo '{refuse}'; else {then}; fi"
    )
}

impl Stage {
    fn judged(then: &str) -> Self {
        let stage = Self::new(AGENT);
        fs::create_dir(stage.0.root().join("questions")).unwrap();
        let home = stage.0.home().join(".config/aldis");
        fs::create_dir_all(&home).unwrap();
        let settings = format!("[proof]\njudge = {}\n", json!(judge(&stage, then)));
        fs::write(home.join("aldis.toml"), settings).unwrap();
        stage.write("plan.md", "- [ ] a: Write needle\n");
        stage.commit("plan");
        stage
    }

    fn question(&self, number: usize) -> Value {
        let path = self.0.root().join("questions").join(number.to_string());
        serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
    }

    fn asked(&self) -> usize {
        fs::read_dir(self.0.root().join("questions")).unwrap().count()
    }
}

const RUN: &[&str] = &["run", "Write needle", "--verify", "./scripts/test", "--", "./agent.sh"];
const DELIVER: &[&str] =
    &["deliver", "plan.md", "--verify", "./scripts/test", "--no-wait", "--", "./agent.sh"];

/// The agent gets the reason and works on; what the judge said and what it cost is evidence, and in the
/// receipt.
#[test]
fn a_judge_refuses_what_its_checks_accept() {
    for (command, machine, refusal) in
        [(RUN, "run", "run/proof-refused"), (DELIVER, "delivery", "delivery/checks-failed")]
    {
        let stage = Stage::judged(r#"echo '{"verdict":"accept","reason":"fine","cost_usd":0.01}'"#);
        let done = stage.aldis(command);
        assert_eq!(done.code, 0, "{machine}: {}", done.text());
        assert_eq!(stage.asked(), 2, "{machine}: {}", done.text());
        let refused = stage.decisions(refusal);
        assert_eq!(refused.len(), 1, "{machine}: {}", done.text());
        let evidence = refused[0]["evidence"].as_array().unwrap();
        let opinion = evidence.iter().find(|seen| seen["what"] == "opinion").unwrap();
        assert_eq!(opinion["quote"], "refuse ($0.0200): \"src.txt has no test\"", "{machine}");
        let finding = evidence.iter().find(|seen| seen["what"] == "finding").unwrap();
        assert_eq!(finding["reason"], "proof/opinion-refused", "{machine}");
        let given = stage.decisions(&format!("{machine}/opinion-given"));
        assert_eq!(given[1]["because"], "accept ($0.0100): \"fine\"", "{machine}");
        let question = stage.question(1);
        assert_eq!(question["checks"][0]["status"], "passed", "{question}");
        assert_eq!(question["tool_results"][0]["output"], "118 passed", "{question}");
        let schema: Value =
            serde_json::from_str(&stage.aldis(&["schema", "judge"]).stdout).unwrap();
        assert!(jsonschema::validator_for(&schema).unwrap().is_valid(&question), "{question}");
        let receipt = stage.aldis(&["proof", "show", "--json"]).json().remove(0);
        let opinions = receipt.to_string();
        assert!(opinions.contains(r#""micro_dollars":10000"#), "{machine}: {opinions}");
    }
}

/// One that fails counts for nothing, and that is said; the check has the last word.
#[test]
fn a_judge_that_fails_counts_for_nothing() {
    for (command, end) in [(RUN, "run/done"), (DELIVER, "delivery/checks-passed")] {
        let stage = Stage::judged("echo no key >&2; exit 3");
        let done = stage.aldis(command);
        assert_eq!(done.code, 0, "{}", done.text());
        let decided = stage.decisions(end);
        let because = decided[0]["because"].as_str().unwrap();
        let reason = "there is no second opinion: \"it failed with exit code 3: no key\"";
        assert!(because.contains(reason), "{because}");
    }
}

/// Where no check speaks for the work, a judge that accepts it is not enough: a person is asked.
#[test]
fn a_judge_never_accepts_alone() {
    for (command, rule) in [
        (&["run", "Write needle", "--no-wait", "--", "./agent.sh"][..], "run/needs-human"),
        (&["deliver", "plan.md", "--no-wait", "--", "./agent.sh"], "delivery/acceptance-asked"),
    ] {
        let stage = Stage::judged(r#"echo '{"verdict":"accept","reason":"fine"}'"#);
        let done = stage.aldis(command);
        assert_eq!(done.code, 3, "{}", done.text());
        assert!(!stage.decisions(rule).is_empty(), "{}", done.text());
        assert!(done.text().contains("no check speaks for the claim"), "{}", done.text());
    }
}
