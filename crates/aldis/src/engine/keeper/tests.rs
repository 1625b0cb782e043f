//! Two keepers of one store, each of which remembers: what the other did counts all the same.

use aldis_store::MemoryStore;

use super::*;
use crate::engine::machines::{TURNS, Wish};

fn keeper(store: &Arc<dyn Store>) -> Keeper {
    Keeper::new(store.clone(), Box::new(|_, _| Vec::new()), Arc::new(|_| {}))
}

fn members(value: Value) -> Members {
    value.as_object().unwrap().clone()
}

fn now() -> Timestamp {
    Timestamp::from_millis(1_772_445_600_000)
}

fn channel() -> RunId {
    RunId::new("c").unwrap()
}

fn said(agent: &str, text: &str) -> Members {
    members(json!({ "event": "said", "agent": agent, "text": text }))
}

fn say(keeper: &Keeper, agent: &str, text: &str, source: Option<&str>) -> Answer {
    keeper.advance(now(), &channel(), &said(agent, text), source).unwrap()
}

/// The same, if it needs nobody who waits.
fn say_soon(keeper: &Keeper, agent: &str, text: &str, source: Option<&str>) -> Option<Answer> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (id, event) = (channel(), said(agent, text));
    runtime.block_on(keeper.advance_soon(TURNS, now(), &id, &event, source)).map(Result::unwrap)
}

/// Two keepers that both know the channel as it was opened.
fn two() -> [Keeper; 2] {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let [one, other] = [keeper(&store), keeper(&store)];
    let start = members(json!({ "channel": "c", "agents": ["pm", "dev"] }));
    one.begin(now(), TURNS, Some(RunId::new("c").unwrap()), start, None).unwrap();
    assert_eq!(say(&other, "pm", "Hello.", None).replies[0]["posted"], true);
    assert_eq!(say(&one, "pm", "Hello again.", None).replies[0]["posted"], true);
    [one, other]
}

#[test]
fn a_step_follows_what_another_process_stored() {
    let [one, other] = two();
    assert_eq!(say(&one, "pm", "TURN_COMPLETE", None).replies[0]["nextAgent"], "dev");
    // As far as the other remembers, it is not yet the turn of dev.
    assert_eq!(say(&other, "dev", "TURN_COMPLETE", None).replies[0]["nextAgent"], "pm");
    // And here it still is.
    let late = say(&one, "dev", "More.", None);
    assert_eq!(late.replies[0]["posted"], false);
    assert_eq!(late.decision["rule"], "turns/not-active");
    assert_eq!(say(&one, "pm", "TURN_COMPLETE", None).replies[0]["nextAgent"], "dev");
}

#[test]
fn a_repeat_at_another_process_has_the_first_answer() {
    let [one, other] = two();
    let first = say(&one, "pm", "TURN_COMPLETE", Some("k"));
    let second = say(&other, "pm", "TURN_COMPLETE", Some("k"));
    assert!(!first.repeated && second.repeated);
    assert_eq!(first.replies, second.replies);
}

#[test]
fn a_late_repeat_has_the_first_answer() {
    let [one, _] = two();
    let first = say(&one, "pm", "TURN_COMPLETE", Some("k"));
    for _ in 0..LOOK_BACK {
        say(&one, "pm", "Not my turn.", None);
    }
    let second = say(&one, "pm", "TURN_COMPLETE", Some("k"));
    assert!(second.repeated);
    assert_eq!(first.replies, second.replies);
}

#[test]
fn what_another_process_closed_is_closed() {
    let [one, other] = two();
    one.wish(now(), &RunId::new("c").unwrap(), &Wish::Abort, None).unwrap();
    assert_eq!(say(&other, "pm", "More.", None).replies[0]["posted"], false);
}

#[test]
fn what_is_remembered_steps_without_waiting() {
    let [one, _] = two();
    for (agent, next) in [("pm", "dev"), ("dev", "pm"), ("pm", "dev")] {
        let before = one.load(&channel()).unwrap();
        let answer = say_soon(&one, agent, "TURN_COMPLETE", None).unwrap();
        assert_eq!(answer.replies[0]["nextAgent"], next);
        assert_eq!(answer.decision["rule"], "turns/turn-complete");
        assert_eq!(answer.run, one.load(&channel()).unwrap());
        assert_eq!(answer.run.revision.0, before.revision.0 + 1);
    }
    let decisions = one.store().decisions(&DecisionFilter { limit: 1, ..Default::default() });
    let stored = body(&decisions.unwrap()[0]).unwrap();
    assert_eq!(stored["replies"][0]["nextAgent"], "dev");
}

#[test]
fn what_is_not_as_usual_is_left_to_whoever_can_wait() {
    let [one, other] = two();
    let stored = || one.load(&channel()).unwrap().revision;
    let before = stored();
    // What it remembers is old; then it remembers nothing.
    assert!(say_soon(&other, "pm", "TURN_COMPLETE", None).is_none());
    assert!(say_soon(&other, "pm", "TURN_COMPLETE", None).is_none());
    assert!(say_soon(&one, "pm", &"x".repeat(100_000), None).is_none());
    assert_eq!(stored(), before);
    let first = say_soon(&one, "pm", "TURN_COMPLETE", Some("k")).unwrap();
    assert!(say_soon(&one, "pm", "TURN_COMPLETE", Some("k")).is_none());
    let second = say(&one, "pm", "TURN_COMPLETE", Some("k"));
    assert!(!first.repeated && second.repeated);
    assert_eq!(first.replies, second.replies);
}
