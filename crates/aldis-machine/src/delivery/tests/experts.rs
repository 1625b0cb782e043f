//! Experts: asked, answering, failing, made.

use super::*;

#[test]
fn an_expert_answers_the_agent_that_asked() {
    for role in [Role::Developer, Role::Critic, Role::Auditor] {
        let mut scene = Scene::with(role, |config| {
            config.experts.insert("Crypto".to_owned(), "keys and hashes".to_owned());
        });
        let asking = scene.only_agent().0;
        let before = scene.status();
        scene.says(REQUEST);
        let started = scene.started();
        assert_eq!((started.role, started.expert.as_deref()), (Role::Expert, Some("Crypto")));
        for part in ["> Which KDF?", "notes/kdf.md", "keys and hashes", "req-1"] {
            assert!(started.prompt.contains(part), "{part} in {}", started.prompt);
        }
        assert_eq!(scene.status(), before);
        scene.says("EXPERT_ADVICE: req-1\n\nRecommendation: argon2id");
        let started = scene.started();
        assert_eq!((started.role, started.resume), (role, Some(asking)));
        assert!(started.prompt.contains("argon2id"), "{}", started.prompt);
        assert!(scene.state.run.experts.consultations.is_empty());
    }
}

#[test]
fn an_expert_that_cannot_help_leads_to_a_human() {
    let mut scene = Scene::with(Role::Expert, |_| {});
    scene.says("EXPERT_UNSUCCESSFUL: req-1\n\nReason: needs product input");
    let question = &scene.state.run.questions["q1"];
    assert!(question.text.contains("needs product input") && question.text.contains("Which KDF?"));
    scene.answers("argon2id");
    assert_eq!(scene.started().role, Role::Developer);
}

#[test]
fn an_expert_has_three_tries() {
    for end in 0..4 {
        let mut scene = Scene::with(Role::Expert, |_| {});
        for attempt in 1..=3 {
            assert_eq!(scene.state.run.experts.consultations["req-1"].tries, attempt);
            let agent = scene.only_agent().0;
            match end {
                0 => scene.says("Hm."),
                1 => scene.crashes(agent),
                2 => drop(scene.waits(600).clone()),
                // An expert may not ask a human, nor answer somebody else.
                _ => scene.says("SEEKING_DIVINE_CLARIFICATION\n\nEXPERT_ADVICE: req-9"),
            }
        }
        assert_eq!(scene.status(), Status::AwaitingGuidance, "{end}");
        assert!(scene.state.run.experts.consultations.is_empty());
    }
}

#[test]
fn a_request_for_nobody_is_refused() {
    let mut scene = Scene::one(|_| {});
    scene.says(REQUEST);
    assert_eq!(scene.rules()[0], Rule::ReplyRefused);
    assert!(scene.started().prompt.contains("unknown_expert"), "{}", scene.started().prompt);
}

#[test]
fn the_planner_makes_experts_whose_files_are_there() {
    let mut scene = Scene::one(|config| config.planner = true);
    assert_eq!(scene.started().role, Role::Planner);
    scene.says(
        "EXPERT_CREATED: crypto\n\nGap Filled: key handling\nFile: agents/crypto.md\n\n\
         EXPERT_CREATED: ghost\n\nFile: agents/ghost.md\n\nEXPERT_CREATED: thief\n\nFile: /etc/x\n",
    );
    let checks = scene.outcome.effects.iter().filter_map(|effect| match effect {
        Effect::CheckExpert { name, file } => Some((&**name, &**file)),
        _ => None,
    });
    assert_eq!(
        checks.collect::<Vec<_>>(),
        [("crypto", "agents/crypto.md"), ("ghost", "agents/ghost.md")]
    );
    assert!(scene.dispatches().is_empty(), "the work waits until the experts are known");
    scene.happens(&Event::ExpertChecked { name: "crypto".into(), present: true });
    assert!(scene.dispatches().is_empty());
    scene.happens(&Event::ExpertChecked { name: "ghost".into(), present: false });
    assert_eq!(scene.notices(), [(Notice::ExpertLeftOut, Severity::Warning)]);
    let prompt = &scene.started().prompt;
    assert_eq!(scene.started().role, Role::Developer, "the work begins");
    assert!(prompt.contains("crypto") && !prompt.contains("ghost"), "{prompt}");
    scene.happens(&Event::ExpertChecked { name: "nobody".into(), present: true });
    assert!(scene.outcome.is_nothing());
    assert_eq!(scene.state.run.experts.known.keys().collect::<Vec<_>>(), ["crypto"]);
    scene.says(REQUEST);
    assert_eq!(scene.started().role, Role::Expert);
}

/// Nobody waits for ever for somebody who looks for files.
#[test]
fn the_work_begins_although_nobody_looks_for_the_files() {
    let mut scene = Scene::one(|config| config.planner = true);
    scene.says("EXPERT_CREATED: crypto\n\nFile: agents/crypto.md\n");
    let began = scene.seconds;
    assert_eq!(scene.woken(), Some(at(began + 60)));
    scene.waits(30);
    scene.happens(&Event::Recovered);
    assert!(scene.dispatches().is_empty(), "the files are looked for again");
    scene.waits(59);
    assert!(scene.dispatches().is_empty());
    scene.waits(1);
    assert_eq!(scene.rules()[0], Rule::ExpertLeftOut);
    assert_eq!(scene.started().role, Role::Developer);
}

#[test]
fn the_work_begins_without_a_planner_that_fails() {
    for end in 0..3 {
        let mut scene = Scene::one(|config| config.planner = true);
        let agent = scene.only_agent().0;
        match end {
            0 => scene.says("No experts are needed."),
            1 => scene.crashes(agent),
            _ => drop(scene.waits(600).clone()),
        }
        assert_eq!(scene.started().role, Role::Developer, "{end}");
    }
}
