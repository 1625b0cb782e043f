//! Two keepers of one store, each of which remembers: what the other did counts all the same.

use aldis_store::MemoryStore;

use super::*;
use crate::machines::{TURNS, Wish};

fn keeper(store: &Arc<dyn Store>) -> Keeper {
    Keeper::new(store.clone(), Box::new(|_, _| Vec::new()), Box::new(|_| {}))
}

fn members(value: Value) -> Members {
    value.as_object().unwrap().clone()
}

fn now() -> Timestamp {
    Timestamp::from_millis(1_772_445_600_000)
}

fn say(keeper: &Keeper, agent: &str, text: &str, source: Option<&str>) -> Answer {
    let event = members(json!({ "event": "said", "agent": agent, "text": text }));
    keeper.advance(now(), &RunId::new("c").unwrap(), &event, source).unwrap()
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
    assert_eq!(late.decision["rule"], "turns/not_active");
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
fn what_another_process_closed_is_closed() {
    let [one, other] = two();
    one.wish(now(), &RunId::new("c").unwrap(), &Wish::Abort, None).unwrap();
    assert_eq!(say(&other, "pm", "More.", None).replies[0]["posted"], false);
}
