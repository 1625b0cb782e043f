//! What effects and beginnings of runs look like, for clients. The machines own these types and know
//! nothing of schemas; a test holds these forms against what machines really say.

#![expect(dead_code, reason = "only the schemas are used")]

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde_json::{Map, Value};

/// What must now be done. The members depend on `effect`.
#[derive(JsonSchema)]
#[schemars(rename = "Effect", untagged)]
pub(crate) enum EffectForm {
    /// Of a channel.
    Turns(TurnsEffect),
    /// Of a workflow under a Stop hook.
    Phases(PhasesEffect),
    /// Of a supervised agent.
    Run(RunEffect),
    /// Of a delivery.
    Delivery(DeliveryEffect),
}

/// What must be done for a channel.
#[derive(JsonSchema)]
#[schemars(tag = "effect", rename_all = "snake_case")]
pub(crate) enum TurnsEffect {
    /// Give a message to agents.
    Deliver {
        /// To whom.
        to: Vec<String>,
        /// Who sent it.
        from: String,
        /// Its text.
        text: String,
    },
    /// Notify an agent that it has the turn.
    Notify {
        /// Whom.
        agent: String,
        /// The number of its turn, to be named in its messages.
        turn: u64,
        /// When the turn is over.
        deadline: String,
        /// Messages from humans that waited for this turn.
        #[schemars(default, skip_serializing_if = "is_absent")]
        held: Vec<HeldMessage>,
    },
    /// Show something in the channel.
    Post {
        /// Who posts it; `system` for a notice.
        agent: String,
        /// What it is called.
        #[schemars(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// Where its picture is.
        #[schemars(skip_serializing_if = "Option::is_none")]
        avatar: Option<String>,
        /// The text, without keywords.
        text: String,
    },
    /// Warn an agent that its time is over, and when its turn ends.
    Warn {
        /// Whom.
        agent: String,
        /// The number of its turn.
        turn: u64,
        /// When the turn ends.
        until: String,
    },
}

/// A message and who sent it.
#[derive(JsonSchema)]
pub(crate) struct HeldMessage {
    /// Who sent it.
    from: String,
    /// Its text.
    text: String,
}

/// What became of one message.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub(crate) struct ReplyForm {
    /// Whether it is shown in the channel.
    posted: bool,
    /// Whether it ended the turn.
    turn_advanced: bool,
    /// Who has the turn then.
    #[schemars(skip_serializing_if = "Option::is_none")]
    next_agent: Option<String>,
    /// Why it did not count: a stable code.
    #[schemars(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// What is shown.
    #[schemars(skip_serializing_if = "Option::is_none")]
    display: Option<String>,
}

/// What a hook must do.
#[derive(JsonSchema)]
#[schemars(tag = "effect", rename_all = "snake_case")]
pub(crate) enum PhasesEffect {
    /// Let the agent stop.
    Allow,
    /// Do not let it stop, and give it this prompt.
    Block {
        /// The agent's next input.
        reason: String,
    },
    /// Give the agent this text beside its prompt.
    Context {
        /// The text.
        text: String,
    },
    /// Write the state file anew.
    WriteView,
    /// Run the checks of a claim.
    Check {
        /// Which start of checks it is.
        check: u32,
    },
}

/// What whoever supervises an agent must do.
#[derive(JsonSchema)]
#[schemars(tag = "effect", rename_all = "snake_case")]
pub(crate) enum RunEffect {
    /// Start the agent.
    Start {
        /// The iteration, from 1.
        iteration: u32,
        /// The whole prompt.
        prompt: String,
    },
    /// Ask the agent to stop, and end it after so many seconds.
    End {
        /// How long it has.
        grace: u64,
    },
    /// Suspend the agent.
    Suspend,
    /// Resume the suspended agent.
    Continue,
    /// Run the check, of runs that began before checks had names.
    Check,
    /// Pin the files of the checks, or compare them with their pins.
    Inspect {
        /// `start` pins, `claim` compares.
        stage: String,
        /// Of a clean checkout of this commit.
        #[schemars(skip_serializing_if = "Option::is_none")]
        commit: Option<String>,
        /// Whether what was pinned before stays pinned as it was then.
        #[schemars(default, skip_serializing_if = "is_absent")]
        keep: bool,
    },
    /// Run a check.
    RunCheck {
        /// Its name.
        #[schemars(default, skip_serializing_if = "is_absent")]
        check: String,
        /// The how manieth time in this round, from 1.
        attempt: u32,
    },
    /// Ask for a second opinion.
    AskJudge,
    /// Inspect the work tree.
    Look,
    /// Ask a human.
    Ask {
        /// The question's id.
        id: String,
        /// The question.
        text: String,
        /// Answers that the agent suggests.
        #[schemars(default, skip_serializing_if = "is_absent")]
        options: Vec<String>,
        /// What the agent would do without an answer.
        #[schemars(skip_serializing_if = "Option::is_none")]
        default: Option<String>,
    },
    /// Keep uncommitted work on a branch of its own.
    KeepWork {
        /// The fingerprint of the work tree when the run began.
        #[schemars(skip_serializing_if = "Option::is_none")]
        base: Option<String>,
    },
    /// Notify people.
    Notice {
        /// What kind of notice.
        notice: String,
        /// The sentence.
        text: String,
    },
    /// The run has ended.
    Finish {
        /// How.
        ending: String,
    },
}

/// What whoever coordinates a delivery must do.
#[derive(JsonSchema)]
#[schemars(tag = "effect", rename_all = "snake_case")]
pub(crate) enum DeliveryEffect {
    /// Start an agent.
    Dispatch {
        /// Its number.
        agent: u64,
        /// Its role.
        role: String,
        /// The task it works on.
        #[schemars(skip_serializing_if = "Option::is_none")]
        task: Option<String>,
        /// What people call that task.
        #[schemars(skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// The expert it is.
        #[schemars(skip_serializing_if = "Option::is_none")]
        expert: Option<String>,
        /// The agent whose session it continues.
        #[schemars(skip_serializing_if = "Option::is_none")]
        resume: Option<u64>,
        /// How many seconds it has.
        #[schemars(default, skip_serializing_if = "is_absent")]
        timeout: u64,
        /// Its prompt.
        prompt: String,
    },
    /// Ask an agent that is at work something.
    Request {
        /// Which.
        agent: u64,
        /// `checkpoint` or `resend`.
        request: String,
        /// The text for the agent.
        text: String,
    },
    /// End an agent and everything it started.
    End {
        /// Which.
        agent: u64,
    },
    /// Ask a human.
    Ask {
        /// The question's id.
        id: String,
        /// The task it is about.
        #[schemars(skip_serializing_if = "Option::is_none")]
        task: Option<String>,
        /// What people call that task.
        #[schemars(skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// The question in one line.
        #[schemars(default, skip_serializing_if = "is_absent")]
        question: String,
        /// The whole request.
        text: String,
        /// Answers with a meaning of their own, besides any text.
        options: Vec<String>,
    },
    /// Merge a task's work.
    Merge {
        /// The task.
        task: String,
    },
    /// Pin the files of a task's checks, or compare them with their pins.
    Inspect {
        /// The task.
        task: String,
        /// `start` pins, `claim` compares.
        stage: String,
    },
    /// Run a check of a task.
    RunCheck {
        /// The task.
        task: String,
        /// The name of the check.
        #[schemars(default, skip_serializing_if = "is_absent")]
        check: String,
        /// The how manieth time in this round, from 1.
        attempt: u32,
    },
    /// Ask for a second opinion about the work of a task.
    AskJudge {
        /// The task.
        task: String,
    },
    /// Look whether an expert's file is there.
    CheckExpert {
        /// The expert.
        name: String,
        /// The file.
        file: String,
    },
    /// Notify whoever wants to know.
    Notice {
        /// What kind of notice.
        notice: String,
        /// `info`, `warning` or `error`.
        level: String,
        /// The task it is about.
        #[schemars(skip_serializing_if = "Option::is_none")]
        task: Option<String>,
        /// The text. It names the task.
        text: String,
        /// How many replies in a row held no signal.
        #[schemars(skip_serializing_if = "Option::is_none")]
        attempt: Option<u32>,
        /// The beginning of such a reply.
        #[schemars(skip_serializing_if = "Option::is_none")]
        output_preview: Option<String>,
    },
    /// The delivery is over.
    Finish {
        /// How.
        ending: String,
    },
}

/// How a run of each machine begins.
#[derive(JsonSchema)]
#[schemars(rename = "Start", untagged)]
pub(crate) enum StartForm {
    /// `turns`.
    Turns {
        /// Its name.
        channel: String,
        /// Who takes part, in order.
        agents: Vec<String>,
        /// How the channel is run; docs/turns.md has the members.
        #[schemars(default, skip_serializing_if = "is_absent")]
        config: Map<String, Value>,
        /// What is known about the agents. Where this is not empty, only these can take part.
        #[schemars(default, skip_serializing_if = "is_absent")]
        personas: BTreeMap<String, Map<String, Value>>,
    },
    /// `phases`.
    Phases {
        /// What is to be done.
        task: String,
        /// The phases; those of `caw` where none are named.
        #[schemars(default, skip_serializing_if = "is_absent")]
        pipeline: Value,
        /// The choices.
        #[schemars(default, skip_serializing_if = "is_absent")]
        config: Map<String, Value>,
        /// The first phase.
        #[schemars(default, skip_serializing_if = "is_absent")]
        phase: String,
        /// How many stops are blocked per phase at most.
        #[schemars(default, skip_serializing_if = "is_absent")]
        max_iterations: u32,
        /// The session it belongs to.
        #[schemars(skip_serializing_if = "Option::is_none")]
        session: Option<String>,
        /// The first run token.
        #[schemars(skip_serializing_if = "Option::is_none")]
        token: Option<String>,
    },
    /// `run`.
    Run {
        /// The task.
        task: String,
        /// The dialect in which the agent reports.
        #[schemars(default, skip_serializing_if = "is_absent")]
        dialect: String,
        /// How to report in it, as every prompt ends.
        #[schemars(default, skip_serializing_if = "is_absent")]
        instructions: String,
        /// How the agent is started, in the driver's own form.
        #[schemars(default, skip_serializing_if = "is_absent")]
        launch: String,
        /// The limits.
        #[schemars(default, skip_serializing_if = "is_absent")]
        config: Map<String, Value>,
    },
    /// `delivery`.
    Delivery {
        /// What is to be delivered, as `aldis plan check --json` shows it.
        plan: Value,
        /// The limits.
        #[schemars(default, skip_serializing_if = "is_absent")]
        config: Map<String, Value>,
        /// What agents' run tokens are made from.
        #[schemars(skip_serializing_if = "Option::is_none")]
        token: Option<String>,
    },
}

/// Only schemas ask this: a member with a default need not be sent.
fn is_absent<T>(_: &T) -> bool {
    true
}

#[cfg(test)]
mod tests {
    //! The forms, against effects that the machines can read.

    use aldis_machine::{delivery, phases, run, turns};
    use serde::Serialize;
    use serde::de::DeserializeOwned;
    use serde_json::json;

    use super::*;

    /// Checks what a machine makes of effects: all of it, and without what it must have.
    fn check<E: DeserializeOwned + Serialize>(effects: &Value) {
        let schema = schemars::schema_for!(EffectForm).to_value();
        let schema = jsonschema::validator_for(&schema).unwrap();
        for effect in effects.as_array().unwrap() {
            let own: E = serde_json::from_value(effect.clone()).unwrap();
            let said = serde_json::to_value(own).unwrap();
            assert_eq!(said, *effect);
            assert!(schema.is_valid(&said), "{said}");
            let mut other = said.clone();
            other["effect"] = "dance".into();
            assert!(!schema.is_valid(&other), "{other}");
        }
    }

    #[test]
    fn effects_are_as_their_schema_says() {
        check::<turns::Effect>(&json!([
            { "effect": "deliver", "to": ["dev"], "from": "pm", "text": "t" },
            { "effect": "notify", "agent": "dev", "turn": 2, "deadline": "2026-03-02T10:01:00Z",
              "held": [{ "from": "a", "text": "b" }] },
            { "effect": "post", "agent": "system", "text": "t" },
            { "effect": "warn", "agent": "dev", "turn": 2, "until": "2026-03-02T10:01:00Z" },
        ]));
        check::<phases::Effect>(&json!([
            { "effect": "allow" },
            { "effect": "block", "reason": "r" },
            { "effect": "context", "text": "t" },
            { "effect": "write_view" },
            { "effect": "check", "check": 1 },
        ]));
        check::<run::Effect>(&json!([
            { "effect": "start", "iteration": 1, "prompt": "p" },
            { "effect": "end", "grace": 5 },
            { "effect": "suspend" },
            { "effect": "continue" },
            { "effect": "check" },
            { "effect": "inspect", "stage": "claim", "commit": "c", "keep": true },
            { "effect": "run_check", "check": "tests", "attempt": 1 },
            { "effect": "ask_judge" },
            { "effect": "look" },
            { "effect": "ask", "id": "q1", "text": "t" },
            { "effect": "keep_work", "base": "b" },
            { "effect": "notice", "notice": "run_ended", "text": "t" },
            { "effect": "finish", "ending": "done" },
        ]));
        check::<delivery::Effect>(&json!([
            { "effect": "dispatch", "agent": 1, "role": "developer", "task": "t1", "timeout": 9,
              "prompt": "p" },
            { "effect": "request", "agent": 1, "request": "resend", "text": "t" },
            { "effect": "end", "agent": 1 },
            { "effect": "ask", "id": "q1", "question": "q", "text": "t", "options": [] },
            { "effect": "merge", "task": "t1" },
            { "effect": "inspect", "task": "t1", "stage": "start" },
            { "effect": "run_check", "task": "t1", "check": "tests", "attempt": 1 },
            { "effect": "ask_judge", "task": "t1" },
            { "effect": "check_expert", "name": "n", "file": "f" },
            { "effect": "notice", "notice": "task_complete", "level": "info", "text": "t" },
            { "effect": "finish", "ending": "complete" },
        ]));
    }
}
