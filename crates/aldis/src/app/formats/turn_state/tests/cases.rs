//! Every turn case of `conformance/cases.jsonl`, at the level of the machine.

use super::*;

/// What is answered elsewhere: the scanner's tests check what is detected.
const PARSE_LEVEL: &[&str] = &["detected", "near_miss"];

#[test]
fn all_cases() {
    let text = include_str!("../../../../../../../testdata/conformance/cases.jsonl");
    let rows = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut checked = 0;
    for row in rows.filter(|row| row["system"] == "turn") {
        let case = Case::play(&row);
        for (key, want) in row["expect"].as_object().unwrap() {
            if !PARSE_LEVEL.contains(&key.as_str()) {
                assert_eq!(&case.answer(key), want, "{}: {key}", row["id"]);
                checked += 1;
            }
        }
    }
    assert!(checked >= 42, "only {checked} expectations were checked");
}

/// A case after its event.
struct Case {
    before: ChannelSet,
    set: ChannelSet,
    outcome: Outcome,
    channel: String,
}

impl Case {
    fn play(row: &Value) -> Self {
        let given = &row["given"];
        let text = |name: &str| given[name].as_str().unwrap_or_default().to_owned();
        let now: Timestamp = text("now").parse().unwrap();
        let config = config(&given["config"]);
        let personas: BTreeMap<String, Persona> =
            serde_json::from_value(given["personas"].clone()).unwrap_or_default();
        let mut set =
            ChannelSet::import(&given["state"].to_string(), &config, &personas, now).unwrap();
        let channel = text("channel");
        fill_history(&mut set, given);
        let before = set.clone();
        let reader = MessageReader::new(&config);
        let input = row["input"].as_str().unwrap();
        let ended = Event::Message {
            agent: text("agent"),
            turn: None,
            messages: vec![reader.read(&format!("{input} TURN_COMPLETE"))],
        };
        let spoken =
            Event::Message { agent: text("agent"), turn: None, messages: vec![reader.read(input)] };
        let event = match &*text("event") {
            "checkTimeouts" => Event::Wake { turn: None },
            "removeAgent" => Event::Remove { agent: text("target") },
            "addAgent" => Event::Add {
                agent: text("target"),
                position: serde_json::from_value(given["position"].clone()).unwrap(),
                persona: None,
            },
            "history" => ended,
            "" => spoken,
            other => panic!("unknown event {other}"),
        };
        let outcome = set.on_event(now, &channel, &event);
        Self { before, set, outcome, channel }
    }

    /// What is posted first, and by whom.
    fn notice(&self) -> Option<String> {
        self.outcome.effects.iter().find_map(|effect| match effect {
            Effect::Post { agent, text, .. } => Some(format!("{agent}: {text}")),
            _ => None,
        })
    }

    fn answer(&self, key: &str) -> Value {
        let state = self.set.channels.get(&self.channel);
        let turn = state.and_then(|state| state.holder().active());
        let replies = self.outcome.replies();
        let reply = replies.first();
        let timed_out = self.outcome.decision().is_some_and(|d| d.rule == "turns/timeout");
        match key {
            "posted" => json!(reply.map(|reply| reply.posted)),
            "display" => json!(reply.and_then(|reply| reply.display.clone())),
            "turnAdvanced" => json!(reply.map(|reply| reply.turn_advanced)),
            "nextAgent" => json!(reply.and_then(|reply| reply.next_agent.clone())),
            "reason" => json!(reply.and_then(|reply| reply.reason)),
            "ignored" => {
                let only_answers =
                    self.outcome.effects.iter().all(|effect| matches!(effect, Effect::Reply(_)));
                json!(self.set == self.before && only_answers)
            }
            "advance_count" => {
                json!(
                    state.map_or(0, |state| state.turn())
                        - self.before.channels[&self.channel].turn()
                )
            }
            "timed_out" => json!(timed_out),
            "notice" => json!(self.notice()),
            "activeAgent" => json!(turn.map(|turn| &turn.agent)),
            "turnStartedAt" => json!(turn.map(|turn| turn.started_at)),
            "turnTimeoutAt" => json!(turn.map(|turn| turn.deadline)),
            "agent_state" | "pm_state" => json!(state.map(|state| state.agent_state("pm"))),
            "queue" => json!(state.map(|state| state.queue())),
            "currentIndex" => json!(state.map(|state| state.index())),
            "history_contains" => {
                let mut names: Vec<&str> = vec!["turn_started", "agent_removed"];
                names.retain(|name| {
                    state.unwrap().history().iter().any(|entry| entry.event == *name)
                });
                json!(names)
            }
            "history_len" => json!(self.set.export(at(0))["history"].as_array().unwrap().len()),
            "oldest_dropped" => {
                let before = self.before.channels[&self.channel].history();
                json!(before.front() != state.unwrap().history().front())
            }
            other => panic!("unknown expectation {other}"),
        }
    }
}

fn config(given: &Value) -> Config {
    if given.is_null() { Config::default() } else { serde_json::from_value(given.clone()).unwrap() }
}

/// Fills the history as the case says.
fn fill_history(set: &mut ChannelSet, given: &Value) {
    let length = given["history_len_before"].as_u64().unwrap_or(0);
    for state in set.channels.values_mut() {
        let mut history = state.history().clone();
        history.extend((0..length).map(|number| HistoryEntry {
            at: at(i64::try_from(number).unwrap()),
            event: "turn_started".to_owned(),
            agent: "pm".to_owned(),
            turn: 0,
            reason: None,
            seconds: None,
            next_agent: None,
        }));
        let mut stored = serde_json::to_value(&*state).unwrap();
        stored["history"] = json!(history);
        *state = serde_json::from_value(stored).unwrap();
    }
}
