//! Two servers on one store, each of which remembers: what the other did counts all the same.

use aldis_machine::turns;
use aldis_store::{DecisionFilter, Driver, MemoryStore, Store};
use serde_json::json;

use super::*;
use crate::server::api::EffectParts;

fn runs(store: &Arc<dyn Store>) -> Runs {
    Runs::new(Engine::new(Arc::clone(store)), Arc::default())
}

fn now() -> Timestamp {
    Timestamp::from_millis(1_772_445_600_000)
}

fn channel() -> RunId {
    RunId::new("c").unwrap()
}

fn members(value: Value) -> Members {
    value.as_object().unwrap().clone()
}

fn message(agent: &str, text: &str, source: Option<&str>) -> RunInput {
    let event = members(json!({ "event": "message", "agent": agent, "text": text }));
    let source = source.map(Source::new);
    RunInput { now: now(), run: channel(), machine: Some("turns"), event, source }
}

/// Returns what became of a message, and whether that was known.
async fn say(runs: &Runs, agent: &str, text: &str, source: Option<&str>) -> (Value, bool) {
    let taken = runs.step(message(agent, text, source)).await.unwrap();
    (EffectParts::of(taken.effects).replies.remove(0), taken.repeated)
}

/// Returns the agent that is next after this message.
async fn next_agent(runs: &Runs, agent: &str) -> Value {
    say(runs, agent, "TURN_COMPLETE", None).await.0["nextAgent"].clone()
}

/// Two servers that both remember the channel as it was opened.
async fn two() -> ([Runs; 2], Arc<dyn Store>) {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let [one, other] = [runs(&store), runs(&store)];
    let start = members(json!({ "channel": "c", "agents": ["pm", "dev"] }));
    let new = NewRun { id: Some(channel()), ..NewRun::of("", Driver::Server) };
    one.begin(now(), "turns".to_owned(), new, start).await.unwrap();
    assert_eq!(say(&other, "pm", "Hello.", None).await.0["posted"], true);
    assert_eq!(say(&one, "pm", "Hello again.", None).await.0["posted"], true);
    ([one, other], store)
}

async fn is_remembered(runs: &Runs) -> bool {
    let mut slot = runs.slots.lock(&channel()).await;
    slot.take().is_some()
}

#[tokio::test]
async fn a_step_follows_what_another_process_stored() {
    let ([one, other], _) = two().await;
    assert_eq!(next_agent(&one, "pm").await, "dev");
    // As far as the other remembers, it is not yet the turn of dev.
    assert_eq!(next_agent(&other, "dev").await, "pm");
    // And here it still is.
    let late = one.step(message("dev", "More.", None)).await.unwrap();
    assert_eq!(late.decisions[0].rule, "turns/not-active");
    assert_eq!(EffectParts::of(late.effects).replies[0]["posted"], false);
    assert_eq!(next_agent(&one, "pm").await, "dev");
}

#[tokio::test]
async fn a_repeat_at_another_process_has_the_first_answer() {
    let ([one, other], _) = two().await;
    let (first, _) = say(&one, "pm", "TURN_COMPLETE", Some("k")).await;
    for runs in [&one, &other, &one] {
        assert_eq!(say(runs, "pm", "TURN_COMPLETE", Some("k")).await, (first.clone(), true));
    }
}

#[tokio::test]
async fn a_late_repeat_has_the_first_answer() {
    let ([one, _], _) = two().await;
    let (first, _) = say(&one, "pm", "TURN_COMPLETE", Some("k")).await;
    for _ in 0..1_001 {
        say(&one, "pm", "Not my turn.", None).await;
    }
    assert_eq!(say(&one, "pm", "TURN_COMPLETE", Some("k")).await, (first, true));
}

#[tokio::test]
async fn a_key_belongs_to_one_request() {
    let ([one, _], _) = two().await;
    let mut input = message("pm", "words", None);
    input.source = Some(Source { key: "k".to_owned(), digest: "1".to_owned() });
    one.step(input.clone()).await.unwrap();
    assert!(one.step(input.clone()).await.unwrap().repeated);
    input.source = Some(Source { key: "k".to_owned(), digest: "2".to_owned() });
    let error = one.step(input).await.unwrap_err().to_string();
    assert_eq!(error, "this Idempotency-Key was already used for another request");
}

#[tokio::test]
async fn what_another_process_closed_is_closed() {
    let ([one, other], _) = two().await;
    one.command(now(), channel(), HumanCommand::Abort, ("a test", None)).await.unwrap();
    assert_eq!(say(&other, "pm", "More.", None).await.0["posted"], false);
}

#[tokio::test]
async fn what_is_remembered_is_what_is_stored() {
    let ([one, _], store) = two().await;
    let engine = Engine::new(Arc::clone(&store));
    let long = format!("{} TURN_COMPLETE", "x".repeat(2 * SHORT));
    for (agent, text, next) in
        [("pm", "TURN_COMPLETE", "dev"), ("dev", &*long, "pm"), ("pm", "TURN_COMPLETE", "dev")]
    {
        let before = store.run(&channel()).unwrap().unwrap();
        let taken = one.step(message(agent, text, None)).await.unwrap();
        let stored = engine.open::<turns::State>(&channel()).unwrap();
        let AnyHandle::Turns(run) = &*taken.run else { panic!("a channel") };
        assert_eq!(run.state(), stored.state());
        assert_eq!(run.revision(), stored.revision());
        assert_eq!(run.revision().0, before.revision.0 + 1);
        assert_eq!(EffectParts::of(taken.effects).replies[0]["nextAgent"], next);
    }
    let decisions = store.decisions(&DecisionFilter { limit: 1, ..Default::default() }).unwrap();
    assert!(decisions[0].body.contains(r#""nextAgent":"dev""#), "{}", decisions[0].body);
    assert!(is_remembered(&one).await);
    one.command(now(), channel(), HumanCommand::Pause, ("a test", None)).await.unwrap();
    assert!(!is_remembered(&one).await, "a command is read back");
}

#[tokio::test]
async fn timers_fire_whatever_is_remembered() {
    let ([one, other], store) = two().await;
    for (runs, remembered, missed) in
        [(&one, true, false), (&other, true, false), (&one, false, true)]
    {
        if !remembered {
            is_remembered(runs).await;
        }
        let due = store.next_timer().unwrap().unwrap();
        let timer = store.due_timers(due, 1).unwrap().remove(0);
        runs.fire(due, timer, missed).await.unwrap();
        assert!(store.next_timer().unwrap().unwrap() > due, "the next turn has its own timer");
    }
}
