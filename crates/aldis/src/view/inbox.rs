//! What needs a person, in all runs: one list for the dashboard, links in notices and `watch`.

use std::time::Duration;

use aldis_engine::{OpenQuestion, Snapshot, State};
use aldis_machine::stagnation::Level;
use aldis_machine::turns::TurnHolder;
use aldis_machine::{delivery, phases, run};
use aldis_signal::time::Timestamp;

use super::ending::ending_reason;
use super::run_view::{RunView, continue_command};
use super::wire::card::{Fact, InboxAction, InboxItem, Need, clean, clean_lines, title};

/// How long a bad end is news.
const NEWS: Duration = Duration::from_secs(24 * 60 * 60);
/// What the names of failed checks begin with; the number of the iteration follows.
pub(crate) const CHECK: &str = "check-";
/// How much of what a check printed is shown.
const OUTPUT_LINES: usize = 12;

/// Returns what of a run needs a person, the most urgent first.
pub(crate) fn items(snapshot: &Snapshot, view: &RunView, now: Timestamp) -> Vec<InboxItem> {
    let inbox = Inbox { snapshot, view, now };
    // Whoever aborted a run has seen what it asked.
    let aborted = match &snapshot.state {
        State::Run(state) => state.ending() == Some(run::Ending::Aborted),
        State::Delivery(state) => state.ending() == Some(delivery::Ending::Aborted),
        State::Phases(_) | State::Turns(_) | State::Unreadable(_) => false,
    };
    let asked = view.questions.iter().filter(|_| !aborted);
    let mut items: Vec<InboxItem> = asked.map(|question| inbox.question(question)).collect();
    if view.unsupervised {
        items.push(inbox.unsupervised());
        return items;
    }
    match &snapshot.state {
        State::Run(state) => items.extend(inbox.of_run(state)),
        State::Delivery(state) => items.extend(inbox.of_delivery(state)),
        State::Phases(state) => items.extend(inbox.of_phases(state)),
        State::Turns(state) => items.extend(match state.holder() {
            TurnHolder::Paused { .. } if view.live => Some(inbox.paused()),
            TurnHolder::Nobody if view.live => {
                let text = "Nobody has the turn";
                Some(inbox.item("turn", Need::Paused, text, vec![InboxAction::Abort]))
            }
            _ => None,
        }),
        State::Unreadable(_) => {}
    }
    items.sort_by_key(|item| item.need);
    items
}

struct Inbox<'r> {
    snapshot: &'r Snapshot,
    view: &'r RunView,
    now: Timestamp,
}

impl Inbox<'_> {
    fn item(&self, id: &str, need: Need, text: &str, actions: Vec<InboxAction>) -> InboxItem {
        let view = self.view;
        let mut context = vec![fact("status", &view.summary())];
        context.extend(view.refused.as_deref().map(|refused| fact("refused", refused)));
        context.extend(view.remedy.as_deref().map(|next| fact("next", next)));
        InboxItem {
            id: id.to_owned(),
            need,
            run: view.id.to_string(),
            title: title(view),
            project: view.project.clone(),
            host: view.host.as_deref().map(clean),
            task: None,
            at: self.snapshot.run.updated,
            text: clean_lines(text.trim()),
            context,
            output: None,
            options: Vec::new(),
            actions,
        }
    }

    fn question(&self, asked: &OpenQuestion) -> InboxItem {
        let mut actions = vec![InboxAction::Answer { question: asked.id.clone() }];
        if self.view.live {
            actions.push(InboxAction::Abort);
        } else {
            actions.extend([self.command(), InboxAction::Dismiss]);
        }
        let task = asked.task.as_ref();
        let task = task.and_then(|id| self.view.tasks.iter().find(|task| task.task == *id));
        let mut item = self.item(&asked.id, Need::Question, &asked.text, actions);
        item.context.extend(task.map(|task| {
            fact("task", &format!("{}: {}, round {}", task.title, task.status, task.round))
        }));
        item.task.clone_from(&asked.task);
        item.options = asked.options.iter().map(|option| clean(option)).collect();
        item.at = asked.asked_at;
        item
    }

    fn unsupervised(&self) -> InboxItem {
        let text = match &self.snapshot.state {
            State::Turns(_) => "No server is running",
            _ => "Its process is gone",
        };
        let actions = vec![self.command(), InboxAction::Abort];
        let mut item = self.item("unsupervised", Need::Unsupervised, text, actions);
        item.at = self.view.last_activity.unwrap_or(item.at);
        item
    }

    fn paused(&self) -> InboxItem {
        let actions = vec![InboxAction::Resume, InboxAction::Abort];
        self.item("paused", Need::Paused, "Paused", actions)
    }

    fn stalled(&self, level: Level) -> InboxItem {
        let (text, actions) = match level {
            Level::Pause | Level::Abort => {
                ("Paused: no progress", vec![InboxAction::Resume, InboxAction::Abort])
            }
            Level::Warn | Level::None => {
                ("No progress for a while", vec![InboxAction::Pause, InboxAction::Abort])
            }
        };
        let mut item = self.item("stalled", Need::Stalled, text, actions);
        item.at = self.view.last_activity.unwrap_or(item.at);
        item
    }

    /// What continues the run, on the command line.
    fn command(&self) -> InboxAction {
        InboxAction::Command { command: continue_command(&self.snapshot.run) }
    }

    /// A bad end, as long as it is news.
    fn ended(&self, need: Need, actions: Vec<InboxAction>) -> Option<InboxItem> {
        let is_news = self.now.since(self.snapshot.run.updated) < NEWS;
        is_news.then(|| self.item("ended", need, &self.view.summary(), actions))
    }

    fn of_run(&self, state: &run::State) -> Vec<InboxItem> {
        if let Some(ending) = state.ending() {
            return self.run_ended(state, ending).into_iter().collect();
        }
        let mut items = Vec::new();
        let level = state.monitor().level();
        match state.status() {
            run::Status::Paused { stagnated: true } => items.push(self.stalled(Level::Pause)),
            run::Status::Paused { stagnated: false } => items.push(self.paused()),
            _ if level != Level::None => items.push(self.stalled(level)),
            _ => {}
        }
        items.extend(state.denials().last().map(|denial| self.denied(denial, Vec::new())));
        let refused = state.last_refusal().filter(|_| state.question().is_none());
        let since = state.iteration_started_at();
        items.extend(refused.and_then(|refused| self.check_failed(refused, since)));
        items
    }

    fn run_ended(&self, state: &run::State, ending: run::Ending) -> Option<InboxItem> {
        let continued = || vec![self.command(), InboxAction::Dismiss];
        let need = match ending {
            run::Ending::Done | run::Ending::Aborted | run::Ending::NeedsHuman => return None,
            run::Ending::PermissionDenied => {
                let item = self.ended(Need::Permission, continued())?;
                let Some(denial) = state.denials().last() else { return Some(item) };
                let actions = vec![self.allowed(denial), InboxAction::Dismiss];
                return Some(self.denied(denial, actions));
            }
            run::Ending::IterationsUsedUp | run::Ending::TimedOut | run::Ending::OverBudget => {
                Need::Capped
            }
            run::Ending::Stagnated => Need::Stalled,
            run::Ending::Blocked | run::Ending::Crashed | run::Ending::Failed => Need::Failed,
        };
        let mut item = self.ended(need, continued())?;
        // Why, first of all: else it takes a look at the context to know what to do.
        if let Some(why) = ending_reason(state, ending) {
            item.text = format!("{}: {}", item.text, clean(&why));
        } else if let Some(refused) = state.last_refusal() {
            item.text = format!("{}. Last claim: {}", item.text, clean(&refused.because));
        }
        Some(item)
    }

    /// What continues the run with what was denied: without it, the host would deny it again.
    fn allowed(&self, denial: &run::Denial) -> InboxAction {
        let plain = continue_command(&self.snapshot.run);
        let cure =
            denial.cure.split('`').find(|part| part.starts_with(&format!("{plain} --allow ")));
        cure.map_or_else(|| self.command(), |cure| InboxAction::Command { command: clean(cure) })
    }

    fn denied(&self, denial: &run::Denial, mut actions: Vec<InboxAction>) -> InboxItem {
        if actions.is_empty() {
            actions.extend([InboxAction::Pause, InboxAction::Abort]);
        }
        let text = format!("The host denied: {} {}", denial.tool, denial.what);
        let mut item = self.item("permission", Need::Permission, &text, actions);
        if !denial.cure.trim().is_empty() {
            item.context.push(fact("to allow it", &denial.cure));
        }
        item
    }

    fn check_failed(&self, refused: &run::ClaimRefusal, since: Timestamp) -> Option<InboxItem> {
        // What a check said, or what it rests on; not what the work tree lacks.
        let of_checks = |what: &str| matches!(what, "output" | "check" | "finding");
        let said = refused.evidence.iter().rfind(|seen| of_checks(&seen.what))?;
        let text = format!("Done was claimed, and did not hold: {}", refused.because);
        let id = format!("{CHECK}{}", refused.iteration);
        let actions = vec![InboxAction::Dismiss, InboxAction::Pause, InboxAction::Abort];
        let mut item = self.item(&id, Need::CheckFailed, &text, actions);
        item.at = since;
        item.output = Some(clean_lines(&last_lines(&said.quote)));
        Some(item)
    }

    fn of_delivery(&self, state: &delivery::State) -> Option<InboxItem> {
        let need = match state.ending() {
            None if state.run().paused => return Some(self.paused()),
            None | Some(delivery::Ending::Complete | delivery::Ending::Aborted) => return None,
            Some(delivery::Ending::OverBudget | delivery::Ending::TimedOut) => Need::Capped,
            Some(delivery::Ending::Failed | delivery::Ending::Halted) => Need::Failed,
        };
        let continued = state.ending().is_some_and(delivery::Ending::can_be_continued);
        let command = continued.then(|| self.command());
        self.ended(need, command.into_iter().chain([InboxAction::Dismiss]).collect())
    }

    fn of_phases(&self, state: &phases::State) -> Option<InboxItem> {
        if state.is_live() {
            if state.is_paused() {
                return Some(self.paused());
            }
            let command = InboxAction::Command { command: "aldis auto resume".to_owned() };
            let text = "The host gave up: too many blocked stops in a row";
            let actions = vec![command, InboxAction::Abort];
            return state
                .block_limit()
                .capped
                .then(|| self.item("capped", Need::Capped, text, actions));
        }
        let need = match state.exit_reason()? {
            phases::ExitReason::AllPhasesComplete
            | phases::ExitReason::AutoCompleteSignal
            | phases::ExitReason::UserCancelled => return None,
            phases::ExitReason::MaxIterationsReached => Need::Capped,
            phases::ExitReason::StaleState => Need::Stalled,
            phases::ExitReason::CriticalError => Need::Failed,
        };
        let command = InboxAction::Command { command: "aldis auto resume".to_owned() };
        self.ended(need, vec![command, InboxAction::Dismiss])
    }
}

fn fact(label: &str, text: &str) -> Fact {
    Fact { label: label.to_owned(), text: clean_lines(text) }
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines.get(lines.len().saturating_sub(OUTPUT_LINES)..).unwrap_or_default().join("\n")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use aldis_engine::{Engine, NewRun};
    use aldis_machine::turns;
    use aldis_store::{Driver, MemoryStore, RunId};
    use serde_json::{Value, json};

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(1_772_445_600_000 + seconds * 1_000)
    }

    /// A run under supervision that has taken these events, one a second.
    fn after(driver: Driver, config: run::Config, events: &[Value]) -> Snapshot {
        let engine = Engine::new(Arc::new(MemoryStore::new()));
        let start = run::Start {
            task: "Add CSV export".to_owned(),
            dialect: "chorus".to_owned(),
            instructions: String::new(),
            launch: json!({ "command": ["/usr/bin/my-agent", "-x"] }).to_string(),
            config,
        };
        let new = NewRun { id: RunId::new("7f3k").ok(), ..NewRun::of("/p/shop", driver) };
        let (mut handle, _) = engine.begin::<run::State>(at(0), &new, start).unwrap();
        for (second, event) in (0..).zip(events) {
            let event: run::Event = serde_json::from_value(event.clone()).unwrap();
            let second = if event == run::Event::Tick { 100_000 } else { second };
            handle.advance(&engine, at(second), event).unwrap();
        }
        engine.snapshot(handle.id()).unwrap().unwrap()
    }

    fn found(snapshot: &Snapshot, seconds: i64) -> Vec<InboxItem> {
        items(snapshot, &RunView::new(snapshot, at(seconds)), at(seconds))
    }

    fn signal(name: &str, meaning: &str) -> Value {
        let signal =
            json!({ "name": name, "meaning": meaning, "text": "keep or drop?", "quote": name });
        json!({ "event": "reported", "signals": [signal] })
    }

    /// What comes before each of the rows below.
    fn begun(more: &[Value]) -> Vec<Value> {
        let begin = [json!({ "event": "begin" }), json!({ "event": "launched", "agent": "1" })];
        begin.into_iter().chain(more.iter().cloned()).collect()
    }

    #[test]
    fn each_need_has_one_obvious_action() {
        use Need::{Capped, CheckFailed, Failed, Paused, Permission, Question, Stalled};
        let exited = json!({ "event": "exited", "code": 0, "signal": null });
        let looked = json!({ "event": "looked" });
        let denied = json!({ "event": "permission_denied", "tool": "Bash", "what": "npm publish", "cure": "allow it: `aldis run --continue 7f3k --allow Bash`" });
        let checked = json!({ "event": "checked", "passed": false, "output": "2 of 118 failed" });
        let pause = json!({ "event": "pause" });
        let done = signal("COMPLETE", "done");
        let asks = signal("NEEDS_HUMAN", "needs_human");
        let usual = || run::Config { verify: true, ..run::Config::default() };
        let once = || run::Config { max_iterations: 1, ..usual() };
        let slow = || run::Config {
            stagnation: aldis_machine::stagnation::Config::supervised(),
            timeout: u64::MAX / 2_000,
            iteration_timeout: u64::MAX / 2_000,
            ..usual()
        };
        let plain = "aldis run --continue 7f3k";
        let command = InboxAction::Command { command: plain.to_owned() };
        let answer = InboxAction::Answer { question: "q1".to_owned() };
        for (config, events, want) in [
            (usual(), begun(&[]), vec![]),
            (usual(), begun(&[asks, exited.clone()]), vec![(Question, answer)]),
            (usual(), begun(&[pause]), vec![(Paused, InboxAction::Resume)]),
            (usual(), begun(std::slice::from_ref(&denied)), vec![(Permission, InboxAction::Pause)]),
            (
                usual(),
                begun(&[denied.clone(), denied, exited.clone(), looked.clone()]),
                vec![(
                    Permission,
                    InboxAction::Command { command: format!("{plain} --allow Bash") },
                )],
            ),
            (
                usual(),
                begun(&[done, exited.clone(), looked.clone(), checked]),
                vec![(CheckFailed, InboxAction::Dismiss)],
            ),
            (once(), begun(&[exited, looked]), vec![(Capped, command.clone())]),
            (
                usual(),
                vec![
                    json!({ "event": "begin" }),
                    json!({ "event": "launch_failed", "what": "gone" }),
                ],
                vec![(Failed, command)],
            ),
            (slow(), begun(&[json!({ "event": "tick" })]), vec![(Stalled, InboxAction::Resume)]),
        ] {
            let snapshot = after(Driver::Server, config, &events);
            let found = found(&snapshot, 60);
            let short: Vec<(Need, InboxAction)> =
                found.iter().map(|item| (item.need, item.actions[0].clone())).collect();
            assert_eq!(short, want, "{events:?}");
            for item in found {
                assert_eq!(
                    (&*item.title, item.host.as_deref()),
                    ("Add CSV export", Some("my-agent"))
                );
                assert!(!item.text.is_empty() && item.context[0].label == "status", "{item:?}");
            }
        }
    }

    /// What ended says why, before one opens anything; and what is over, or gone, works no longer.
    #[test]
    fn a_bad_end_says_why_and_its_clock_stands_still() {
        let exited = |code| json!({ "event": "exited", "code": code, "signal": null });
        let checked = json!({ "event": "checked", "passed": false, "output": "2 of 118 failed" });
        let claimed =
            [signal("COMPLETE", "done"), exited(0), json!({ "event": "looked" }), checked];
        let once = run::Config { max_iterations: 1, verify: true, ..run::Config::default() };
        let frail = run::Config { max_crashes: 0, ..run::Config::default() };
        for (driver, config, events, want) in [
            (Driver::Server, once, &claimed[..], "Last claim: the check failed"),
            (Driver::Server, frail.clone(), &[exited(42)], ": the agent exited with code 42"),
            (Driver::Process, frail, &[], "Its process is gone"),
        ] {
            let snapshot = after(driver, config, &begun(events));
            assert!(found(&snapshot, 60)[0].text.ends_with(want), "{:?}", found(&snapshot, 60));
            let worked = |second| {
                let facts = RunView::new(&snapshot, at(second)).facts;
                facts.into_iter().find(|(label, _)| *label == "worked").unwrap().1
            };
            assert_eq!(worked(60), worked(6_000), "{want}");
        }
    }

    #[test]
    fn a_bad_end_is_news_for_a_day() {
        let failed =
            [json!({ "event": "begin" }), json!({ "event": "launch_failed", "what": "gone" })];
        let snapshot = after(Driver::Server, run::Config::default(), &failed);
        assert_eq!(found(&snapshot, 60 * 60 * 23).len(), 1);
        assert_eq!(found(&snapshot, 60 * 60 * 25).len(), 0);
    }

    /// Where nobody is there to do anything, that comes before everything else but a question.
    #[test]
    fn a_run_that_is_gone_can_be_continued_or_ended() {
        let exited = json!({ "event": "exited", "code": 0, "signal": null });
        let events = begun(&[signal("NEEDS_HUMAN", "needs_human"), exited]);
        let snapshot = after(Driver::Process, run::Config::default(), &events);
        let found = found(&snapshot, 60);
        let needs: Vec<Need> = found.iter().map(|item| item.need).collect();
        assert_eq!(needs, [Need::Question, Need::Unsupervised]);
        assert!(matches!(found[1].actions[..], [InboxAction::Command { .. }, InboxAction::Abort]));
    }

    #[test]
    fn a_channel_needs_somebody_when_nobody_has_the_turn_and_when_no_server_ends_it() {
        let engine = Engine::new(Arc::new(MemoryStore::new()));
        let start = json!({ "channel": "c1", "agents": ["pm"] });
        let start: turns::Start = serde_json::from_value(start).unwrap();
        let new = NewRun { id: RunId::new("c1").ok(), ..NewRun::of("", Driver::Server) };
        let (mut handle, _) = engine.begin::<turns::State>(at(0), &new, start).unwrap();
        let look = |engine: &Engine, second| {
            let snapshot = engine.snapshot(&RunId::new("c1").unwrap()).unwrap().unwrap();
            found(&snapshot, second).into_iter().map(|item| item.need).collect::<Vec<_>>()
        };
        assert_eq!(look(&engine, 10), []);
        // Its turn takes a minute, and a server ends it in time.
        assert_eq!(look(&engine, 100), []);
        assert_eq!(look(&engine, 200), [Need::Unsupervised]);
        let pause: turns::Event =
            serde_json::from_value(json!({ "event": "pause", "by": "a human" })).unwrap();
        handle.advance(&engine, at(1), pause).unwrap();
        assert_eq!(look(&engine, 200), [Need::Paused]);
    }
}
