//! What simulated agents and checks do: real bytes of real hosts, in pieces, with real signals.

use std::collections::VecDeque;

use aldis::coordinate::simulated::{JobLaunch, Program};
use aldis_signal::time::Timestamp;
use serde_json::json;

use crate::corpus::rng::Rng;

/// What a process will do, unless it is asked to stop.
#[derive(Debug, Default)]
pub(super) struct SimScript {
    /// What, and how many milliseconds after what was before. Without an end it says nothing more,
    /// for ever.
    pub(super) acts: VecDeque<(u64, Act)>,
    /// Whether it takes no notice of being asked to stop.
    pub(super) stubborn: bool,
    /// How many tokens it has reported so far.
    tokens: u64,
    messages: u64,
    plain: bool,
}

#[derive(Debug)]
pub(super) enum Act {
    /// Writes this, and has then reported so many tokens in all.
    Write(Vec<u8>, u64),
    WriteError(&'static str),
    /// Changes files.
    Work,
    /// Stops itself, as by Ctrl-Z.
    Stop,
    Exit(i32),
}

impl SimScript {
    /// Returns what a process does. One that is `good` does its duty, at once.
    pub(super) fn of(rng: &mut Rng, now: Timestamp, launch: &JobLaunch, good: bool) -> Self {
        let mut script = Self { stubborn: !good && rng.chance(15), ..Self::default() };
        match &launch.what {
            // A judge that says nothing which can be read counts for nothing.
            Program::Check(_) | Program::Judge { .. } => script.check(rng, good),
            Program::Agent { prompt, .. } => {
                let variable = |name: &str| {
                    let found = launch.variables.iter().find(|(known, _)| *known == name);
                    found.map(|(_, value)| value.as_str())
                };
                script.plain = rng.chance(20);
                script.begin();
                script.work(rng, good);
                match variable("ALDIS_ROLE") {
                    Some(role) => {
                        let task = variable("ALDIS_TASK").unwrap_or_default();
                        script.deliver(rng, good, role, task, prompt);
                    }
                    None => script.report(rng, good),
                }
                script.end(rng, now, good);
            }
        }
        script
    }

    fn check(&mut self, rng: &mut Rng, good: bool) {
        let passes = good || rng.chance(50);
        if !good && rng.chance(10) {
            return; // It hangs.
        }
        self.later(rng, Act::WriteError("1 test\n"));
        self.later(rng, Act::Exit(i32::from(!passes)));
    }

    fn later(&mut self, rng: &mut Rng, act: Act) {
        let pause = match rng.below(20) {
            0 => rng.between(5_000, 90_000),
            1..5 => rng.between(1_000, 5_000),
            _ => rng.below(1_000),
        };
        self.acts.push_back((pause as u64, act));
    }

    fn begin(&mut self) {
        if !self.plain {
            let line = json!({"type": "system", "subtype": "init", "session_id": "s1"});
            self.acts.push_back((10, Act::Write(format!("{line}\n").into_bytes(), 0)));
        }
    }

    /// Writes bytes, often in pieces.
    fn write(&mut self, rng: &mut Rng, bytes: Vec<u8>, tokens: u64) {
        let before = self.tokens;
        if rng.chance(30) {
            // A line counts without its end, too, if nothing follows: then it is not cut.
            let (head, tail) = bytes.split_at(rng.below(bytes.len().saturating_sub(2)));
            self.later(rng, Act::Write(head.to_vec(), before));
            self.later(rng, Act::Write(tail.to_vec(), tokens));
        } else {
            self.later(rng, Act::Write(bytes, tokens));
        }
        self.tokens = tokens;
    }

    fn say(&mut self, rng: &mut Rng, text: &str) {
        if self.plain {
            return self.write(rng, format!("{text}\n").into_bytes(), 0);
        }
        self.message(rng, &json!({"type": "text", "text": text}));
    }

    fn message(&mut self, rng: &mut Rng, block: &serde_json::Value) {
        self.messages += 1;
        let spent = 1 + rng.below(50) as u64;
        let line = json!({
            "type": "assistant",
            "message": {
                "id": format!("m{}", self.messages), "type": "message", "role": "assistant",
                "model": "simulated", "content": [block], "usage": {"input_tokens": spent},
            },
            "parent_tool_use_id": null, "session_id": "s1",
        });
        self.write(rng, format!("{line}\n").into_bytes(), self.tokens + spent);
    }

    fn work(&mut self, rng: &mut Rng, good: bool) {
        for _ in 0..rng.below(if good { 2 } else { 5 }) {
            match rng.below(8) {
                0..3 if !self.plain => {
                    self.message(rng, &json!({"type": "tool_use", "id": "t", "name": "Edit"}));
                    self.later(rng, Act::Work);
                }
                3 => self.later(rng, Act::WriteError("note: something\n")),
                4 if !good => self.later(rng, Act::Stop),
                5 => self.say(rng, "I shall write `<chorus>COMPLETE</chorus>` when I am done."),
                _ => {
                    let percent = rng.below(100);
                    self.say(rng, &format!("<chorus>PROGRESS: {percent}</chorus>"));
                }
            }
        }
    }

    /// What the agent of a supervised run says in the end.
    fn report(&mut self, rng: &mut Rng, good: bool) {
        let words = match if good { 0 } else { rng.below(20) } {
            0..8 => "<chorus>COMPLETE</chorus>",
            8 => "<chorus>BLOCKED: no network</chorus>",
            9..11 => "<chorus>NEEDS_HELP: which one?</chorus>",
            11 => "<chorus>RESOLVED</chorus>",
            12 => "<chorus>complete</chorus>",
            13 => "<chorus>NEEDS_HUMAN: a decision</chorus>",
            _ => "That is all for now.",
        };
        self.say(rng, words);
    }

    /// What an agent of a delivery says in the end.
    fn deliver(&mut self, rng: &mut Rng, good: bool, role: &str, task: &str, prompt: &str) {
        let form = |name: &str| {
            let line = prompt.lines().find_map(|line| line.trim().strip_prefix(name));
            line.map(|id| id.trim_start_matches(':').trim().to_owned()).unwrap_or_default()
        };
        let token = match form("TOKEN:") {
            token if token.is_empty() => token,
            token => format!("\nTOKEN: {token}"),
        };
        let duty = || match role {
            "developer" => format!("READY_FOR_REVIEW: {task}{token}\nSummary: done"),
            "critic" => format!("REVIEW_PASSED: {task}{token}\nSummary: good"),
            "auditor" => format!("AUDIT_PASSED: {task}{token}\nSummary: good"),
            "business_analyst" => format!(
                "EXPANDED_TASK_SPECIFICATION: {task}{token}\nConfidence: HIGH\n\
                 Expanded Specification:\nMore words.\nAcceptance Criteria:\n- [ ] it works"
            ),
            "remediation" => format!("REMEDIATION_COMPLETE{token}\nIssues Fixed:\n- disk: freed"),
            "health_auditor" => {
                format!("HEALTH_AUDIT: HEALTHY{token}\nVerification Results:\n- all (here): PASS")
            }
            "expert" => {
                let id = form("EXPERT_ADVICE");
                format!("EXPERT_ADVICE: {id}{token}\nRecommendation: do it")
            }
            _ => format!("EXPERT_CREATED: crypto{token}\nGap Filled: keys\nFile: agents/crypto.md"),
        };
        let issue = rng.pick(&["no test", "wrong name", "too long"]);
        let words = match if good { 0 } else { rng.below(24) } {
            0..13 => duty(),
            13..16 => match role {
                "critic" => {
                    format!("REVIEW_FAILED: {task}{token}\nIssues Found:\n- a.rs:3: {issue}")
                }
                "auditor" => {
                    format!("AUDIT_FAILED: {task}{token}\nIssues Found:\n- a.rs:3: {issue}")
                }
                "health_auditor" => {
                    format!("HEALTH_AUDIT: UNHEALTHY{token}\nFailed Checks:\n- x: FAIL")
                }
                _ => format!("TASK_INCOMPLETE: {task}{token}\nBlocker: {issue}"),
            },
            16 => format!("INFRA_BLOCKED: {task}{token}\nIssue: the disk is full\nCommand: ls"),
            17 => format!("SEEKING_CLARIFICATION{token}\nQuestion: which?\nContext: {task}"),
            18 => format!("CHECKPOINT: {task}{token}\nProgress: 40%"),
            19 => "READY_FOR_REVIEW: another\nSummary: done".to_owned(),
            20 => format!("EXPERT_REQUEST{token}\nExpert: crypto\nQuestion: which key?"),
            21 => format!("FILE_CONFLICT{token}\nFile: src/a.rs"),
            _ => "That is all for now.".to_owned(),
        };
        self.say(rng, &words);
    }

    fn end(&mut self, rng: &mut Rng, now: Timestamp, good: bool) {
        let kind = if good { 0 } else { rng.below(20) };
        if !self.plain && (kind < 15 || kind == 17) {
            let tokens = self.tokens;
            let limited = kind == 17;
            let mut line = json!({
                "type": "result", "subtype": "success", "is_error": limited, "result": "",
                "total_cost_usd": 0.01, "usage": {"input_tokens": tokens}, "session_id": "s1",
            });
            if limited {
                line["result"] = json!("API Error: 429 too many requests");
                line["api_error_status"] = json!(429);
                if rng.chance(50) {
                    let at = now.as_millis() / 1_000 + 30 + rng.below(300) as i64;
                    let event = json!({"type": "rate_limit_event", "rate_limit_info":
                        {"status": "rejected", "resetsAt": at, "rateLimitType": "five_hour"}});
                    self.write(rng, format!("{event}\n").into_bytes(), tokens);
                }
            }
            self.write(rng, format!("{line}\n").into_bytes(), tokens);
            // Whoever has reported its end goes soon: until then a delivery holds back its last costs.
            let pause = rng.below(500) as u64;
            return self.acts.push_back((pause, Act::Exit(i32::from(limited))));
        }
        match kind {
            15 => self.later(rng, Act::Exit(1)),
            16 => {
                self.later(rng, Act::WriteError("thread 'main' panicked\n"));
                self.later(rng, Act::Exit(101));
            }
            // It hangs, perhaps after it has said everything.
            18 => {}
            _ => self.later(rng, Act::Exit(0)),
        }
    }
}
