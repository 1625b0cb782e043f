//! What happened in a run: the store, the agents' logs and the repository, put together.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use aldis_engine::{Engine, Snapshot, State};
use aldis_machine::run::Usage;
use aldis_signal::redact::redact;
use aldis_signal::time::Timestamp;
use aldis_signal::{Role, Rules};
use aldis_store::{DecisionFilter, RunId, Store, StoreError};
use aldis_transcript::Input;
use aldis_transcript::events::{HostEvent, Zone};

use crate::agents::git::Git;
use crate::agents::listener::{Listener, Listening, Report};
use crate::agents::output_log::LoggedAgent;
use crate::receipts;
use crate::view::live::tools::tool_name;
use crate::view::report::History;
use crate::view::run_view::RunView;
use crate::view::timeline::Timeline;
use crate::view::wire::report::{ReportAgent, ReportCommit, ReportFile, ReportForm};
use crate::view::wire::run::DecisionForm;

/// How many decisions and events are looked at; a run has fewer.
const LOOK_BACK: usize = 100_000;
/// How many events are read at once, and how much of a log.
const PAGE: usize = 1_000;
const PIECE: usize = 64 * 1024;
/// How much of an agent's last words is told.
const WORDS_MAX: usize = 4_000;
/// How many commits and files are told.
const CHANGES_MAX: usize = 200;

/// Reports a run. Nothing if there is none of this name.
///
/// # Errors
///
/// Fails if the store does.
pub(crate) fn report(
    engine: &Engine,
    state: &Path,
    id: &RunId,
    now: Timestamp,
) -> Result<Option<(ReportForm, Timeline)>, StoreError> {
    let Some(snapshot) = engine.snapshot(id)? else { return Ok(None) };
    let store = engine.store();
    let view = RunView::new(&snapshot, now);
    let filter =
        DecisionFilter { run: Some(id.clone()), limit: LOOK_BACK, ..DecisionFilter::default() };
    let mut history = History::default();
    let decisions = store.decisions(&filter)?;
    decisions.iter().rev().filter_map(DecisionForm::new).for_each(|form| history.add(form));
    let ended = if view.live && !view.unsupervised { now } else { snapshot.run.updated };
    let mut history = history.finish(ended, &answers(store, id)?);
    let mut form = form(&snapshot, &view, ended);
    form.receipts = receipts::count(state, id) as u64;
    form.agents =
        LoggedAgent::all_of(state, id).iter().map(|agent| worked(state, id, agent)).collect();
    changes(&mut form, &snapshot, (!view.live).then_some(ended));
    form.claims = std::mem::take(&mut history.claims);
    form.waits = std::mem::take(&mut history.waits);
    form.decisions = std::mem::take(&mut history.decisions);
    form.questions = std::mem::take(&mut history.questions);
    for question in form.questions.iter_mut().filter(|question| question.answered.is_none()) {
        let open = view.questions.iter().find(|open| {
            open.asked_at == question.at && (open.task.is_none() || open.task == question.task)
        });
        question.id = open.map(|open| open.id.clone());
    }
    if form.worked_seconds == 0 {
        form.worked_seconds = history.worked_seconds;
    }
    form.waited_seconds = form.waits.iter().map(|wait| wait.until.since(wait.from).as_secs()).sum();
    let timeline = history.timeline(&form);
    Ok(Some((form, timeline)))
}

/// What the run itself knows.
fn form(snapshot: &Snapshot, view: &RunView, ended: Timestamp) -> ReportForm {
    let (asked, iterations, worked, cost) = match &snapshot.state {
        State::Run(state) => {
            let worked = state.worked(ended) / 1_000;
            (state.setup().task.clone(), Some(state.iteration()), worked, state.cost())
        }
        State::Phases(state) => {
            // They are counted anew in each phase: a run that is complete has none.
            let iterations = Some(state.iteration()).filter(|count| *count > 0);
            (state.task().to_owned(), iterations, 0, Usage::default())
        }
        State::Delivery(state) => {
            let run = state.run();
            (run.title.clone(), None, run.spending.worked_millis / 1_000, run.spending.spent)
        }
        State::Turns(_) | State::Unreadable(_) => {
            (snapshot.run.record.title.clone(), None, 0, Usage::default())
        }
    };
    let clean = |text: &str| redact(text).into_owned();
    let title = if view.title.trim().is_empty() { view.id.as_str() } else { &view.title };
    ReportForm {
        v: 1,
        kind: "report".to_owned(),
        run: view.id.to_string(),
        machine: snapshot.run.record.machine.clone(),
        project: view.project.clone(),
        title: clean(title),
        asked: clean(&asked),
        outcome: clean(&view.summary()),
        tone: view.status.0.as_str().to_owned(),
        active: view.live,
        refused: view.refused.as_deref().map(clean),
        next: view.remedy.clone(),
        began: snapshot.run.created,
        ended,
        worked_seconds: worked,
        waited_seconds: 0,
        iterations,
        tokens: cost.tokens,
        micro_dollars: cost.micro_dollars,
        tasks: view.tasks.clone(),
        agents: Vec::new(),
        claims: Vec::new(),
        questions: Vec::new(),
        waits: Vec::new(),
        commits: Vec::new(),
        files: Vec::new(),
        receipts: 0,
        decisions: Vec::new(),
    }
}

/// What humans answered, by the time at which they did.
fn answers(store: &dyn Store, id: &RunId) -> Result<BTreeMap<Timestamp, String>, StoreError> {
    let (mut answers, mut after) = (BTreeMap::new(), 0);
    loop {
        let events = store.events(id, after, PAGE)?;
        let Some(last) = events.last() else { return Ok(answers) };
        after = last.seq;
        for event in events.iter().filter(|event| event.kind == "answer") {
            let body: Option<serde_json::Value> = serde_json::from_str(&event.body).ok();
            let text = body.and_then(|body| Some(body.get("text")?.as_str()?.to_owned()));
            answers.extend(text.map(|text| (event.at, text)));
        }
    }
}

/// What an agent did, from its log: the tools it used, and its last words.
fn worked(state: &Path, id: &RunId, agent: &LoggedAgent) -> ReportAgent {
    let role = Some(agent.role.clone()).filter(|role| !role.is_empty());
    let mut worked = ReportAgent {
        agent: agent.agent,
        role,
        task: agent.task.clone(),
        ..ReportAgent::default()
    };
    let rules = Rules::new([]);
    let listening = Listening::live(&rules, Input::Auto, true);
    let mut listener = Listener::new(listening, Some(&Zone::utc()));
    let mut take = |report| match report {
        Report::Host(HostEvent::Tool { name, is_command, .. }) => {
            *worked.tools.entry(tool_name(&name, is_command)).or_default() += 1;
        }
        Report::Host(HostEvent::ToolEnded { failed: true, .. }) => worked.failed += 1,
        Report::Text { origin, text, whole }
            if origin.role == Role::Assistant && !origin.sidechain =>
        {
            let last = worked.last_words.get_or_insert_default();
            if whole {
                last.clear();
            }
            last.push_str(&text);
            if last.len() > 2 * WORDS_MAX {
                let cut = last.char_indices().rev().nth(WORDS_MAX).map_or(0, |(at, _)| at);
                last.drain(..cut);
            }
        }
        _ => {}
    };
    let files: Vec<PathBuf> = agent.files(state, id).collect();
    for file in files.iter().rev() {
        // What is gone, or cannot be read, is left out: the rest is told all the same.
        let _read = read(file, |bytes| listener.push(bytes, NO_TIME, &mut take));
    }
    listener.finish(NO_TIME, &mut take);
    worked.last_words = worked.last_words.map(|words| redact(words.trim()).into_owned());
    worked.last_words.take_if(|words| words.is_empty());
    worked
}

fn read(file: &Path, mut each: impl FnMut(&[u8])) -> io::Result<()> {
    let (mut file, mut piece) = (File::open(file)?, vec![0; PIECE]);
    loop {
        let length = file.read(&mut piece)?;
        if length == 0 {
            return Ok(());
        }
        each(&piece[..length]);
    }
}

/// What changed in the repository from the beginning of the run to its end.
fn changes(form: &mut ReportForm, snapshot: &Snapshot, ended: Option<Timestamp>) {
    let Some(git) = Git::around(Path::new(&form.project)) else { return };
    let base = match &snapshot.state {
        State::Run(state) => state.base().map(str::to_owned),
        _ => None,
    };
    let changes = git.changes_since(base.as_deref(), (form.began, ended), CHANGES_MAX);
    let commits = changes.commits.into_iter();
    form.commits = commits
        .map(|(id, at, subject)| ReportCommit { id, at, subject: redact(&subject).into_owned() })
        .collect();
    let files = changes.files.into_iter();
    form.files = files.map(|(path, added, removed)| ReportFile { path, added, removed }).collect();
}

/// The time matters only to what hosts report about limits.
const NO_TIME: Timestamp = Timestamp::from_millis(0);
