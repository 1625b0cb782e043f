//! Every sentence that the machine says about a decision, in one place to be read.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::*;
use crate::proof::{
    ChangeKind, CheckResult, CheckStatus, FileChange, FileClass, Inspection, OnChange,
    OpinionVerdict, RedFirst,
};
use crate::run::Usage;
use crate::{proof, stagnation};

/// A scene whose outcomes are kept.
struct Kept(Scene, Vec<Outcome>);

impl Kept {
    fn new(scene: Scene) -> Self {
        let first = scene.outcome.clone();
        Self(scene, vec![first])
    }

    fn happens(&mut self, event: &Event) -> &mut Self {
        self.1.push(self.0.happens(event).clone());
        self
    }

    /// The only agent at work ends with each of these replies in turn.
    fn says(&mut self, replies: &[&str]) -> &mut Self {
        for text in replies {
            self.0.says(text);
            self.1.push(self.0.outcome.clone());
        }
        self
    }

    fn task_says(&mut self, id: &str, text: &str) -> &mut Self {
        self.0.says_as(self.0.agent_of(id), text);
        self.1.push(self.0.outcome.clone());
        self
    }

    fn crashes(&mut self) -> &mut Self {
        self.0.crashes(self.0.only_agent().0);
        self.1.push(self.0.outcome.clone());
        self
    }

    fn answers(&mut self, text: &str) -> &mut Self {
        self.0.answers(text);
        self.1.push(self.0.outcome.clone());
        self
    }

    fn waits(&mut self, seconds: i64) -> &mut Self {
        self.1.push(self.0.waits(seconds).clone());
        self
    }
}

fn all_of(change: impl FnOnce(&mut Config)) -> Kept {
    Kept::new(Scene::one(change))
}

const READY: &str = "READY_FOR_REVIEW: task-1\n\nSummary: done";
const REVIEW_FAILED: &str = "REVIEW_FAILED: task-1\n\nIssues Found:\n- a.rs:1: wrong";
const AUDIT_FAILED: &str = "AUDIT_FAILED: task-1\n\nFailed Criteria:\n- the tests pass";

/// Tasks from hand to hand.
fn tasks() -> Vec<Kept> {
    let mut plain = Kept::new(Scene::of(vec![spec("task-1", &[]), spec("b", &["task-1"])], |_| {}));
    plain.says(&[READY, REVIEW_FAILED, READY, "REVIEW_PASSED: task-1", AUDIT_FAILED, READY]);
    plain.says(&["REVIEW_PASSED: task-1", "AUDIT_PASSED: task-1"]);
    plain.says(&["READY_FOR_REVIEW: b", "REVIEW_PASSED: b", "AUDIT_PASSED: b"]);
    let mut reviews = all_of(|_| {});
    reviews.says(&[READY, "REVIEW_FAILED: task-1"].repeat(3));
    let mut audits = all_of(|_| {});
    audits.says(&[READY, "REVIEW_PASSED: task-1", "AUDIT_FAILED: task-1"].repeat(3));
    let plateau = |config: &mut Config| (config.failure_limit, config.plateau_rounds) = (9, 2);
    let mut review_plateau = all_of(plateau);
    review_plateau.says(&[READY, REVIEW_FAILED].repeat(2));
    let mut audit_plateau = all_of(plateau);
    audit_plateau.says(&[READY, "REVIEW_PASSED: task-1", AUDIT_FAILED].repeat(2));
    let mut merges = all_of(|config| (config.worktrees, config.failure_limit) = (true, 2));
    for ok in [false, false] {
        merges.says(&[READY, "REVIEW_PASSED: task-1", "AUDIT_PASSED: task-1"]);
        let detail = "both changed a.rs".to_owned();
        merges.happens(&Event::Merged { task: "task-1".to_owned(), ok, detail });
    }
    let mut incomplete = all_of(|config| config.incomplete_limit = 2);
    incomplete.says(&["TASK_INCOMPLETE: task-1\nBlocker: no key\nNeeded: an API key"; 2]);
    let matrix = |config: &mut Config| config.require_environment_matrix = true;
    let mut matrix = all_of(matrix);
    matrix.says(&[READY, "READY_FOR_REVIEW: task-1\nVerification Results:\n- lint (CI): FAIL"]);
    matrix.says(&["READY_FOR_REVIEW: task-1\nVerification Results:\n- lint (CI): PASS"]);
    matrix.says(&["REVIEW_PASSED: task-1"]);
    matrix.says(&["AUDIT_PASSED: task-1\nCommands Executed:\n- lint (CI): FAIL"]);
    vec![plain, reviews, audits, review_plateau, audit_plateau, merges, incomplete, matrix]
}

/// Replies that do not count, and agents that fail.
fn failures() -> Vec<Kept> {
    let mut refused = all_of(|_| {});
    refused.says(&["AUDIT_PASSED: task-1"; 5]);
    let mut others = all_of(|_| {});
    others
        .says(&["READY_FOR_REVIEW: task-9\n\nTASK_INCOMPLETE: task-1\n\nREADY_FOR_REVIEW: task-1"]);
    let mut both = all_of(|_| {});
    both.says(&[READY, "REVIEW_FAILED: task-1\n\nREVIEW_PASSED: task-1"]);
    let mut unknown = all_of(|config| config.timeout_limit = 2);
    unknown.says(&["**READY_FOR_REVIEW: task-1**", "Done!", "", "a", "b", "c"]);
    let mut crashes = all_of(|_| {});
    crashes.crashes().waits(900);
    let agent = 1;
    let reply = AgentReply::read(Rules::builtin(), &aldis_signal::Token::Off, READY);
    crashes.happens(&Event::Finished { agent, exit: None, reply }).crashes();
    let mut asked = all_of(|config| config.requests = true);
    let reply = "CHECKPOINT: task-1\n\nProgress: 40 %";
    let reply = AgentReply::read(Rules::builtin(), &aldis_signal::Token::Off, reply);
    asked.waits(301).happens(&Event::Reported { agent, reply }).says(&["Hm."]).waits(31);
    let mut stalls = all_of(|config| config.timeouts.developer = 9_000);
    for _ in 0..3 {
        stalls.waits(301).waits(31);
    }
    let mut stagnates = all_of(|config| {
        config.timeouts.developer = 9_000;
        config.checkpoint_every = 9_000;
        let stagnation = stagnation::Config::supervised();
        config.stagnation =
            stagnation::Config { warn_timeout: 60, pause_timeout: 120, ..stagnation };
    });
    stagnates.waits(61).waits(60);
    let mut limited = all_of(|_| {});
    limited.happens(&Event::RateLimited { agent, until: at(901) });
    let mut dispatches = all_of(|config| config.dispatch_limit = 2);
    dispatches.says(&["FILE CONFLICT: a.rs", "AUDIT_PASSED: task-1"]);
    vec![refused, others, both, unknown, crashes, asked, stalls, stagnates, limited, dispatches]
}

/// Experts, the business analyst, the planner, files and the infrastructure.
fn helpers() -> Vec<Kept> {
    let expert = || {
        let mut scene = all_of(|config| {
            config.experts.insert("crypto".to_owned(), "keys".to_owned());
        });
        scene.says(&[REQUEST]);
        scene
    };
    let (mut advised, mut unsuccessful, mut useless) = (expert(), expert(), expert());
    advised.says(&["EXPERT_ADVICE: req-1\n\nRecommendation: argon2id"]);
    unsuccessful.says(&["EXPERT_UNSUCCESSFUL: req-1\n\nReason: needs product input"]);
    useless.says(&["Hm."; 3]);
    let mut nobody = all_of(|_| {});
    nobody.says(&[REQUEST]);
    let mut planner = all_of(|config| config.planner = true);
    planner.says(&["EXPERT_CREATED: crypto\nGap Filled: keys\nFile: a/crypto.md\n\n\
        EXPERT_CREATED: ghost\nFile: a/ghost.md\n\nEXPERT_CREATED: thief\nFile: /etc/x"]);
    planner.happens(&Event::ExpertChecked { name: "crypto".to_owned(), present: true });
    planner.happens(&Event::ExpertChecked { name: "ghost".to_owned(), present: false });
    let mut no_planner = all_of(|config| config.planner = true);
    no_planner.crashes();
    let analyst = || Kept::new(Scene::with(Role::BusinessAnalyst, |_| {}));
    let expansion = |confidence: &str| {
        format!(
            "EXPANDED_TASK_SPECIFICATION: task-1\nConfidence: {confidence}\nExpanded \
             Specification:\nA CSV.\nAcceptance Criteria:\n- [ ] it has a header"
        )
    };
    let (mut sure, mut unsure) = (analyst(), analyst());
    sure.says(&[&expansion("HIGH")]);
    unsure.says(&[&expansion("LOW")]).answers("accept");
    let with_file = TaskSpec { files: vec!["x".to_owned()], ..spec("a", &[]) };
    let files = || {
        Kept::new(Scene::of(vec![with_file.clone(), spec("b", &[])], |config| {
            config.conflict_retries = 1;
            (config.timeouts.developer, config.checkpoint_every) = (90_000, 90_000);
        }))
    };
    let wants = "FILE CONFLICT: x\n\nCan Wait: YES";
    let (mut queued, mut shared) = (files(), files());
    queued.task_says("b", wants).waits(1_800).task_says("b", wants).waits(1_800);
    shared.task_says("b", "FILE CONFLICT: x\n\nCan Wait: NO");
    shared.task_says("a", "FILE CONFLICT: y");
    let mut broken = Kept::new(Scene::of(vec![spec("task-1", &[]), spec("b", &[])], |config| {
        config.remediation_attempts = 2;
    }));
    broken.task_says("task-1", "INFRA_BLOCKED: task-1\nIssue: no disk");
    broken.task_says("b", "INFRA_BLOCKED: b");
    broken.says(&["REMEDIATION_COMPLETE", "HEALTH_AUDIT: UNHEALTHY", "REMEDIATION_COMPLETE"]);
    broken.says(&["HEALTH_AUDIT: UNHEALTHY"]).answers("retry");
    broken.says(&["REMEDIATION_COMPLETE", "HEALTH_AUDIT: HEALTHY"]);
    vec![
        advised,
        unsuccessful,
        useless,
        nobody,
        planner,
        no_planner,
        sure,
        unsure,
        queued,
        shared,
        broken,
    ]
}

/// What the checks of a task say.
fn checks() -> Vec<Kept> {
    let task = || "task-1".to_owned();
    let seen = |changes: Vec<FileChange>| {
        let seen = Box::new(Inspection { changes, ..Inspection::default() });
        Event::Inspected { task: task(), head: None, dirty: false, seen }
    };
    let bent = || {
        vec![FileChange {
            path: "scripts/test".to_owned(),
            part: None,
            class: FileClass::Own,
            kind: ChangeKind::Changed,
            before: None,
            after: None,
        }]
    };
    let ended = |status| {
        let result = Box::new(CheckResult::new("", "make", status));
        Event::CheckEnded { task: task(), result }
    };
    let check = |red_first, on_change| {
        move |config: &mut Config| {
            config.failure_limit = 2;
            let make = proof::Config::unnamed("make");
            config.proof = proof::Config { red_first, on_change, ..make };
        }
    };
    let mut red = all_of(check(RedFirst::Warn, None));
    red.happens(&seen(vec![])).happens(&ended(CheckStatus::Passed));
    for _ in 0..2 {
        red.says(&[READY]).happens(&seen(vec![])).happens(&ended(CheckStatus::Failed));
    }
    red.answers("try again").says(&[READY]).happens(&seen(bent()));
    let mut asked = all_of(check(RedFirst::Off, Some(OnChange::Ask)));
    asked.happens(&seen(vec![])).says(&[READY]).happens(&seen(bent()));
    asked.happens(&ended(CheckStatus::Passed)).answers("put it back");
    asked.says(&[READY]).happens(&seen(bent())).happens(&ended(CheckStatus::Passed));
    asked.answers("accept");
    let mut judged = all_of(|config| {
        let judge = Some("./judge".to_owned());
        config.proof = proof::Config { judge, ..proof::Config::unnamed("make") };
    });
    judged.happens(&seen(vec![]));
    for verdict in [OpinionVerdict::Refuse, OpinionVerdict::Accept] {
        let opinion = proof::Opinion::new("./judge", verdict, "export.rs has no test");
        judged.says(&[READY]).happens(&seen(vec![])).happens(&ended(CheckStatus::Passed));
        judged.happens(&Event::OpinionGiven { task: task(), opinion });
    }
    vec![red, asked, judged]
}

/// What humans do, and endings.
fn humans() -> Vec<Kept> {
    let by = || "`aldis abort`".to_owned();
    let asks = "SEEKING_DIVINE_CLARIFICATION\n\nQuestion: keep or drop?";
    let mut steered = all_of(|_| {});
    steered.happens(&Event::Pause { by: by() }).happens(&Event::Resume { by: String::new() });
    let text = "mind the quotes".to_owned();
    steered.happens(&Event::Tell { text, to: None, by: String::new() });
    steered.happens(&Event::Recovered).says(&[asks]).happens(&Event::Abort { by: by() });
    steered.answers("drop").happens(&Event::Reopen { config: Box::default() });
    let mut given_up =
        Kept::new(Scene::of(vec![spec("task-1", &[]), spec("b", &["task-1"])], |_| {}));
    given_up.says(&["**SEEKING_DIVINE_CLARIFICATION**\n\nQuestion: how?"]).answers("fail");
    let budget = |config: &mut Config| config.max_tokens = Some(100);
    let mut budget = all_of(budget);
    budget.says(&["AUDIT_PASSED: task-1"]);
    for tokens in [70, 40] {
        let usage = Usage { tokens, micro_dollars: 0 };
        budget.happens(&Event::Spent { agent: 1, usage });
    }
    let mut time = all_of(|config| config.max_time = Some(600));
    time.says(&[READY, REVIEW_FAILED]).waits(700);
    vec![steered, given_up, budget, time]
}

/// Agents that workers claim, and lose.
fn workers() -> Vec<Kept> {
    let mut claimed = all_of(|config| config.workers = true);
    for fence in 1..=5 {
        let (agent, worker) = (claimed.0.only_agent().0, format!("w{fence}"));
        claimed.happens(&Event::Claimed { agent, worker, fence });
    }
    vec![claimed]
}

#[test]
fn every_rule_is_written_and_reads_well() {
    let mut said: BTreeMap<Rule, BTreeSet<String>> = BTreeMap::new();
    let mut notices = BTreeSet::new();
    for Kept(_, outcomes) in
        [tasks(), checks(), failures(), helpers(), humans(), workers()].into_iter().flatten()
    {
        for outcome in outcomes {
            for decision in &outcome.decisions {
                let text = format!(
                    "  {}\n    because {}\n    next    {}\n",
                    decision.summary, decision.because, decision.remedy
                );
                said.entry(rule(&decision.rule)).or_default().insert(text);
            }
            for effect in &outcome.effects {
                match effect {
                    Effect::Notice { notice, level, text, .. } => {
                        notices.insert(format!("{notice:?} {level:?}: {text}\n"));
                    }
                    Effect::Ask { question, text, options, .. } => {
                        notices.insert(format!("Ask: {question}\n{text}\n{options:?}\n"));
                    }
                    _ => {}
                }
            }
        }
    }
    for rule in Rule::ALL {
        let old = matches!(rule, Rule::Ended | Rule::HumanAsked);
        assert_eq!(said.contains_key(rule), !old, "{}", rule.as_str());
    }
    let mut text = String::new();
    for (rule, sentences) in said {
        writeln!(text, "{}", rule.as_str()).unwrap();
        sentences.iter().for_each(|sentence| text.push_str(sentence));
    }
    text.push_str("\n# Notices and questions\n\n");
    notices.iter().for_each(|notice| text.push_str(notice));
    insta::assert_snapshot!(text);
}
