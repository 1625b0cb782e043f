//! Questions: what a human sees, what the agent gets back, and what an abort leaves of them.

use super::*;
use crate::{HumanCommand, Machine as _, NotPossible};

const REQUEST: &str = "SEEKING_DIVINE_CLARIFICATION\n\nTask: task-1\nAgent: developer\n\
    Question: keep or drop?\nWhat Would Help: one word\nContext: two clients\n\
    Options Considered:\n- keep: slow\n- drop: breaks them\nAttempts Made:\n- I asked the docs\n";
const WHOLE: &str = "keep or drop?\n\nWhat Would Help: one word\nContext: two clients\n\
    Options Considered:\n- keep: slow\n- drop: breaks them\nAttempts Made:\n- I asked the docs";

/// What the last event asks a human: in one line, and in full.
fn asked(scene: &Scene) -> Vec<(String, String)> {
    let ask = |effect: &Effect| match effect {
        Effect::Ask { question, text, .. } => Some((question.clone(), text.clone())),
        _ => None,
    };
    scene.outcome.effects.iter().filter_map(ask).collect()
}

fn notice(scene: &Scene) -> &str {
    let text =
        |effect: &'_ Effect| matches!(effect, Effect::Notice { notice: Notice::Question, .. });
    let Some(Effect::Notice { text, .. }) = scene.outcome.effects.iter().find(|it| text(it)) else {
        panic!("{:#?}", scene.outcome)
    };
    text
}

#[test]
fn a_human_sees_the_whole_request_and_the_agent_gets_it_back() {
    for role in [Role::Developer, Role::Critic, Role::HealthAuditor] {
        let mut scene = Scene::with(role, |_| {});
        scene.says(REQUEST);
        assert_eq!(asked(&scene), [("keep or drop?".to_owned(), WHOLE.to_owned())], "{role:?}");
        assert!(notice(&scene).ends_with(WHOLE), "{}", notice(&scene));
        assert_eq!(scene.question().text, WHOLE);
        assert_eq!(scene.question().in_one_line(), "keep or drop?");
        scene.answers("drop");
        let prompt = &scene.started().prompt;
        for part in ["> keep or drop?", "> Context: two clients", "> - keep: slow", "> drop"] {
            assert!(prompt.contains(part), "{part} in {prompt}");
        }
    }
}

#[test]
fn a_question_needs_no_key() {
    for (body, question, text) in [
        ("Is it this one?", "Is it this one?", "Is it this one?"),
        (
            "Is it this one?\nOr that?\n\nContext: both exist",
            "Is it this one?",
            "Is it this one?\n\nOr that?\nContext: both exist",
        ),
        (
            "Context: both exist",
            "The developer asks for guidance without a question.",
            "The developer asks for guidance without a question.\n\nContext: both exist",
        ),
    ] {
        let mut scene = Scene::one(|_| {});
        scene.says(&format!("SEEKING_DIVINE_CLARIFICATION\n\n{body}\n"));
        assert_eq!(asked(&scene), [(question.to_owned(), text.to_owned())]);
    }
}

/// A question in a form that is no signal reaches the human at once.
#[test]
fn a_near_miss_of_a_question_is_asked() {
    for name in ["SEEKING_DIVINE_CLARIFICATION: task-1", "**SEEKING_DIVINE_CLARIFICATION**"] {
        for requests in [false, true] {
            let mut scene = Scene::one(|config| config.requests = requests);
            let agent = scene.only_agent().0;
            scene.says(&format!("I am stuck.\n\n{name}\n\nQuestion: keep or drop?\nContext: two"));
            assert_eq!(scene.rules(), [Rule::QuestionRecovered]);
            let evidence = &scene.outcome.decisions[0].evidence[0];
            assert_eq!(evidence.name.as_deref(), Some("SEEKING_DIVINE_CLARIFICATION"));
            let (question, text) = asked(&scene).remove(0);
            assert_eq!(question, "keep or drop?");
            assert!(text.contains("Context: two"), "{text}");
            assert_eq!(
                scene.task("task-1").counters,
                Counters { dispatches: 1, ..Counters::default() }
            );
            scene.answers("drop");
            assert_eq!(scene.started().resume, Some(agent));
        }
    }
    let mut scene = Scene::with(Role::Remediation, |_| {});
    scene.says("SEEKING_DIVINE_CLARIFICATION: which disk?");
    assert_eq!(asked(&scene), [("which disk?".to_owned(), "which disk?".to_owned())]);
    scene.answers("the first");
    assert_eq!(scene.started().role, Role::Remediation);
}

#[test]
fn what_counts_goes_before_a_near_miss_of_a_question() {
    let question = "\n\n**SEEKING_DIVINE_CLARIFICATION**\n\nQuestion: keep or drop?";
    let mut scene = Scene::one(|_| {});
    scene.says(&format!("READY_FOR_REVIEW: task-1{question}"));
    assert_eq!(scene.rules()[0], Rule::ReadyForReview);
    let mut scene = Scene::one(|_| {});
    scene.says(&format!("AUDIT_PASSED: task-1{question}"));
    assert_eq!(scene.rules()[0], Rule::ReplyRefused);
    let mut scene = Scene::with(Role::Expert, |_| {});
    scene.says(question);
    assert!(scene.state.run.questions.is_empty(), "an expert may not ask a human");
}

/// A limit asks with what is known: which task, why, and what the last agent reported.
#[test]
fn a_limit_names_the_task_the_reason_and_the_last_report() {
    let mut scene = Scene::one(|_| {});
    (0..3).for_each(|_| scene.crashes(scene.only_agent().0));
    assert_eq!(scene.rules(), [Rule::TimeoutLimit]);
    let text = "\"Title of task-1\" (task-1) needs your help: 3 attempts failed. Last: the developer \
        crashed with exit code 1. How should it continue?";
    assert_eq!(scene.question().text, text);
    assert_eq!(notice(&scene), text);
    let decision = &scene.outcome.decisions[0];
    let because = "3 attempts failed. Last: the developer crashed with exit code 1";
    assert_eq!(decision.because, because);
    let remedy = "answer with: aldis answer q1 TEXT (`fail` gives the task up)";
    assert_eq!(decision.remedy, remedy);

    let mut scene = Scene::one(|_| {});
    for round in 0..3 {
        scene.says("READY_FOR_REVIEW: task-1");
        scene.says(&format!("REVIEW_FAILED: task-1\n\nIssues Found:\n- a.rs:{round}: wrong\n"));
    }
    assert_eq!(scene.rules(), [Rule::ReviewLimit]);
    let text = &scene.question().text;
    assert!(text.ends_with("The last review says:\nIssues Found:\n- a.rs:2: wrong"), "{text}");
    assert_eq!(scene.outcome.decisions[0].because, "3 reviews failed");

    // Claims that do not count: the last one is the evidence.
    let mut scene = Scene::one(|_| {});
    (0..5).for_each(|_| scene.says("AUDIT_PASSED: task-1"));
    let decision = &scene.outcome.decisions[0];
    assert_eq!(rule(&decision.rule), Rule::RefusalLimit);
    assert!(decision.because.contains("role_not_allowed"), "{}", decision.because);
    assert_eq!(decision.evidence[0].quote, "AUDIT_PASSED: task-1");
}

/// An abort says which questions are open; they can be answered then, and are asked again.
#[test]
fn questions_outlive_an_abort() {
    let abort = Event::Abort { by: "`aldis abort`".to_owned() };
    let reopen = Event::Reopen { config: Box::default() };
    let mut scene = Scene::one(|_| {});
    scene.says(REQUEST);
    scene.happens(&abort);
    let remedy = &scene.outcome.decisions[0].remedy;
    assert!(remedy.contains("1 question waits for you (q1): aldis answer q1 TEXT"), "{remedy}");
    let answer = HumanCommand::Answer { id: "q1".to_owned(), text: "drop".to_owned() };
    let event = scene.state.command(&answer, "x").unwrap();
    scene.happens(&event);
    assert_eq!(scene.rules(), [Rule::QuestionAnswered]);
    assert!(scene.dispatches().is_empty(), "nobody works while it is over");
    let remedy = &scene.outcome.decisions[0].remedy;
    assert!(
        remedy.ends_with("when the delivery is continued: aldis deliver --continue"),
        "{remedy}"
    );
    assert_eq!(scene.state.command(&answer, "x"), Err(NotPossible::NoSuchQuestion("q1".into())));
    scene.happens(&reopen);
    assert_eq!(scene.started().role, Role::Developer);
    assert!(scene.started().prompt.contains("> drop"));

    // One that was not answered is asked again.
    let mut scene = Scene::one(|_| {});
    scene.says(REQUEST);
    scene.happens(&abort);
    scene.happens(&reopen);
    assert_eq!(asked(&scene), [("keep or drop?".to_owned(), WHOLE.to_owned())]);
    let remedy = "free slots are filled; 1 question waits for you (q1): aldis answer q1 TEXT";
    assert_eq!(scene.outcome.decisions[0].remedy, remedy);
    // What is over for good takes no answer.
    let mut scene = Scene::of(vec![spec("a", &[]), spec("b", &[])], |_| {});
    scene.state.run.ending = Some(Ending::Halted);
    assert!(scene.state.command(&answer, "x").is_err());
}

#[test]
fn the_repair_is_answered_after_an_abort_too() {
    let reopen = Event::Reopen { config: Box::default() };
    let mut scene = Scene::with(Role::HealthAuditor, |_| {});
    scene.says("SEEKING_DIVINE_CLARIFICATION\n\nQuestion: which environment?");
    scene.happens(&Event::Abort { by: String::new() });
    scene.answers("CI");
    assert!(scene.dispatches().is_empty() && scene.state.run.agents.is_empty());
    scene.happens(&reopen);
    assert_eq!(scene.started().role, Role::HealthAuditor);
    assert!(scene.started().prompt.contains("> CI"), "{}", scene.started().prompt);

    let mut scene = Scene::with(Role::Remediation, |config| config.remediation_attempts = 1);
    scene.says("Hm.");
    scene.happens(&Event::Abort { by: String::new() });
    scene.answers("halt");
    assert_eq!(scene.state.ending(), Some(Ending::Halted));
    assert!(scene.happens(&reopen).is_nothing());
}
