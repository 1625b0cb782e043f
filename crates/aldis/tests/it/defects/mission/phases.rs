//! Phases under a Stop hook: clocks that step back, and what prompts say.

use serde_json::{Value, json};

use super::{Stepper, effect, pin_all};
use crate::defects::{Seen, pin};
use crate::phases::project::{Answer, NOW, Project, block, conversation, prompted, said};

/// A stop whose final message completes `init`, at this time of a phase that began at 10:01.
fn phase_after_stop_at(now: &str, with_transcript: bool) -> Value {
    let mut project = Project::new();
    project.start(&[]);
    let begun = "2026-03-02T10:01:00Z";
    let mut entries = vec![prompted("Go on.", Some(NOW)), said(&block("expansion"), Some(begun))];
    for (phase, now) in [("expansion", begun), ("init", now)] {
        if phase == "init" {
            assert_eq!(project.status()["phase"], "init");
            entries.extend([prompted("Go on.", Some(begun)), said(&block("init"), Some(now))]);
        }
        now.clone_into(&mut project.now);
        let mut payload = project.payload(&block(phase));
        if with_transcript {
            payload["transcript_path"] = json!(project.transcript(&conversation(&entries)));
        }
        let answer = project.hook(&payload);
        assert!(matches!(answer, Answer::Block(_)), "{answer:?}");
    }
    project.status()["phase"].clone()
}

#[test]
fn b15_a_clock_that_steps_back_hides_no_signal() {
    const BACK: &str = "2026-03-02T09:50:00Z";
    for with_transcript in [false, true] {
        assert_eq!(phase_after_stop_at("2026-03-02T10:02:00Z", with_transcript), "planning");
    }
    assert_eq!(phase_after_stop_at(BACK, false), "planning");
    let phase = phase_after_stop_at(BACK, true);
    let seen = match phase == "planning" {
        true => Seen::Right,
        false => Seen::Wrong(format!("still {phase}")),
    };
    pin("mission/B15", seen);
}

#[test]
fn b17e_the_continuation_prompt_shows_the_task_as_it_was_written() {
    let task = r#"Rename "old name" to "new name" everywhere"#;
    let project = Project::new();
    let done = project.run(&["auto", "start", task, "--session", "S1"]);
    assert_eq!(done.code, 0, "{}", done.text());
    let answer = project.stop("Not yet.");
    let prompt = answer.reason();
    assert!(prompt.contains("EXPANSION_COMPLETE") && prompt.contains("old name"), "{prompt}");
    let shown = prompt.split_once(task).is_some_and(|(before, after)| {
        !before.ends_with(['"', '\'', '`']) && !after.starts_with(['"', '\'', '`'])
    });
    pin("mission/B17e", if shown { Seen::Right } else { Seen::Wrong(prompt.to_owned()) });
}

#[test]
fn b17f_phase_prompts_name_what_the_phase_leaves_behind() {
    let mut step = Stepper::new("phases");
    step.send("start", &json!({ "task": "Add CSV export" }));
    let phases =
        ["expansion", "init", "planning", "execution", "qa", "review", "fix", "check", "reflect"];
    let mut symptoms = Vec::new();
    for (number, phase) in phases.iter().enumerate().skip(1) {
        let text = block(phases[number - 1]);
        let answer = step.later(10).send("stop", &json!({ "session": "S1", "text": text }));
        assert_eq!(answer["state"]["phase"], *phase, "{answer}");
        let prompt = effect(&answer, "block").unwrap()["reason"].as_str().unwrap();
        let product = match *phase {
            "init" => ".caw/",
            "planning" => "task_plan.md",
            "reflect" => "Ralph",
            _ => continue,
        };
        if !prompt.contains(product) {
            symptoms.push(format!("{phase} does not name {product}: {prompt}"));
        }
    }
    pin_all("mission/B17f", &symptoms);
}
