//! Which sinks an effect goes to, decided with the step that it belongs to.
//!
//! What a sink is to be told is stored in the same transaction as the decision, so that no crash loses
//! it, and whoever commits the step (a supervisor, a hook, `aldis tell`, a server), any
//! [`Courier`](super::courier::Courier) delivers it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use aldis_engine::{Direct, NOTICE, OutboundEffect, RECEIPT, Route, RoutedRun, SINK};
use aldis_machine::{Decision, Machine as _, delivery, run, turns};
use aldis_signal::redact::redact;
use aldis_store::{Driver, Effect};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::discord;
use crate::receipts;
use crate::receipts::build::Wanted;
use crate::settings::config::{Notify, Sink as SinkName};
use crate::settings::item_link::ItemLinks;
use crate::settings::notice_kind::Kind;
use crate::view::display;
use crate::view::wire::notice::{Notice, NoticeData};

/// Where a server writes down what its sinks want, for other processes that take steps of its runs.
const FILE: &str = "serve.sinks.json";
/// Effects that answer whoever asked, and nobody else.
const ANSWERS: [&str; 2] = ["reply", "warning"];
/// How many characters of a text are told.
const TEXT_MAX: usize = 4_000;

/// A notice on its way to a sink, as the outbox keeps it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct QueuedNotice {
    pub(super) sink: String,
    pub(super) notice: Notice,
}

impl QueuedNotice {
    /// Reads what the outbox keeps. 0.1.0 kept the effect of a channel alone.
    pub(super) fn read(stored: &Effect) -> Option<Self> {
        let mut body: Value = serde_json::from_str(&stored.body).ok()?;
        if let Some(effect) = body.get("effect").cloned() {
            let text = effect.get("text").and_then(Value::as_str).unwrap_or_default();
            let data = json!({
                "run": stored.run.as_str(), "machine": turns::State::NAME, "project": "",
                "title": "", "active": true, "text": text,
                "effect": effect,
            });
            let (kind, at) = (kind_of(&effect), stored.due);
            body["notice"] =
                json!({ "v": 1, "id": "", "type": kind, "timestamp": at, "data": data });
        }
        serde_json::from_value(body).ok()
    }
}

/// What a sink of a server wants to be told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SinkRoute {
    pub(super) name: String,
    pub(super) kind: SinkKind,
    /// Of these channels only; of all where none is named.
    pub(super) channels: Vec<String>,
    /// These effects only.
    pub(super) effects: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SinkKind {
    Discord,
    Webhook,
}

/// Routes effects of runs: those of a server's runs to its sinks, notices of others to the sinks that
/// their own settings name.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    file: Option<PathBuf>,
    /// Where the server of these runs wrote down how it is reached.
    state: Option<PathBuf>,
    sinks: OnceLock<Vec<SinkRoute>>,
}

impl Routes {
    /// Routes for the sinks of the server that uses this directory, as it wrote them down last.
    pub(crate) fn of(state: &Path) -> Self {
        let (file, state) = (Some(state.join(FILE)), Some(state.to_owned()));
        Self { file, state, sinks: OnceLock::new() }
    }

    /// Routes for these sinks.
    pub(super) fn to(sinks: Vec<SinkRoute>) -> Self {
        Self { file: None, state: None, sinks: OnceLock::from(sinks) }
    }

    /// Puts links into notices that lead to the server of this directory.
    pub(crate) fn with_links(self, state: &Path) -> Self {
        Self { state: Some(state.to_owned()), ..self }
    }

    /// Returns how links are made: read each time, because a server may start later than a run.
    fn links(&self) -> Option<ItemLinks> {
        self.state.as_deref().and_then(ItemLinks::read)
    }

    /// Writes them down for other processes.
    pub(crate) fn publish(&self, state: &Path) -> io::Result<()> {
        let path = state.join(FILE);
        let sinks = self.sinks();
        if sinks.is_empty() && !path.exists() {
            return Ok(());
        }
        // Whoever reads it meanwhile must not see half of it.
        let mut file = tempfile::NamedTempFile::new_in(state)?;
        serde_json::to_writer(&mut file, sinks)?;
        file.persist(path).map(drop).map_err(|error| error.error)
    }

    fn sinks(&self) -> &[SinkRoute] {
        self.sinks.get_or_init(|| {
            let text = self.file.as_ref().and_then(|file| fs::read(file).ok());
            text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
        })
    }
}

impl Route for Routes {
    fn route(&self, run: &RoutedRun<'_>, effect: &Value) -> Vec<OutboundEffect> {
        let mut outbound = Direct.route(run, effect);
        match run.driver {
            Driver::Server => {
                let wanted = self.sinks().iter().filter(|sink| sink.wants(run, effect));
                let links = self.links();
                let links = links.as_ref();
                outbound.extend(wanted.flat_map(|sink| sink.notices(run, effect, links)));
            }
            Driver::Hook | Driver::Process | Driver::Worker => {
                outbound.extend(to_people(run, effect, || self.links()));
            }
        }
        outbound
    }

    /// Whatever is done gets a receipt. A server's runs are driven by programs, which check for
    /// themselves.
    fn follow(&self, run: &RoutedRun<'_>, decisions: &[Decision]) -> Vec<OutboundEffect> {
        if run.driver == Driver::Server {
            return Vec::new();
        }
        let done = decisions.iter().filter(|decision| receipts::is_done(&decision.rule));
        let wanted = done.map(|decision| OutboundEffect {
            kind: RECEIPT,
            lane: String::new(),
            requires: Vec::new(),
            body: json!(Wanted { rule: decision.rule.clone(), task: decision.task.clone() }),
        });
        wanted.collect()
    }
}

impl SinkRoute {
    fn wants(&self, run: &RoutedRun<'_>, effect: &Value) -> bool {
        let kind = kind_of(effect);
        let here = self.channels.is_empty() || self.channels.iter().any(|it| it == run.id.as_str());
        here && match self.kind {
            // A channel of people gets what is said; everything else is for programs.
            SinkKind::Discord => kind == "post",
            SinkKind::Webhook => {
                let is_wanted = self.effects.iter().any(|wanted| wanted == kind);
                is_wanted || self.effects.is_empty() && !ANSWERS.contains(&kind)
            }
        }
    }

    fn notices(
        &self,
        run: &RoutedRun<'_>,
        effect: &Value,
        links: Option<&ItemLinks>,
    ) -> Vec<OutboundEffect> {
        let pieces = match self.kind {
            SinkKind::Discord => discord::pieces(effect),
            SinkKind::Webhook => vec![effect.clone()],
        };
        let queued = |effect: Value| {
            let text = effect.get("text").and_then(Value::as_str).unwrap_or_default();
            let kind = told(run.machine, &effect).map(|(kind, _)| kind.as_str());
            let kind = kind.unwrap_or_else(|| kind_of(&effect)).to_owned();
            let mut notice = notice(run, kind, display::lines(text), Some(effect.clone()));
            notice.data.link = links.map(|links| link(links, run, &notice.kind, &effect));
            // One after the other: a receiver that is down is asked by one of them, not by all.
            outbound(SINK, format!("sink/{}", self.name), &self.name, notice)
        };
        pieces.into_iter().map(queued).collect()
    }
}

/// Routes a notice to the sinks that the run's own settings name.
fn to_people(
    run: &RoutedRun<'_>,
    effect: &Value,
    links: impl FnOnce() -> Option<ItemLinks>,
) -> Vec<OutboundEffect> {
    let settings = run.notify.and_then(|note| serde_json::from_str::<Notify>(note).ok());
    let told = told(run.machine, effect).or_else(|| ended_under_hook(run, effect));
    let (Some(settings), Some((kind, text))) = (settings, told) else { return Vec::new() };
    let mut text = display::lines(&redact(&text));
    if let Some((cut, _)) = text.char_indices().nth(TEXT_MAX) {
        text.truncate(cut);
        text.push('…');
    }
    let is_on = |sink: &SinkName| match sink {
        SinkName::Terminal => false,
        SinkName::Desktop => settings.desktop,
        SinkName::Command => settings.command.is_some(),
        SinkName::Webhook => settings.webhook.is_some(),
    };
    let all = [SinkName::Desktop, SinkName::Command, SinkName::Webhook];
    let wanted = all.into_iter().filter(is_on);
    let wanted = wanted.filter(|sink| settings.events.of(kind).includes(*sink));
    let link = links().map(|links| link(&links, run, kind.as_str(), effect));
    let queued = |sink: SinkName| {
        let mut notice = notice(run, kind.as_str().to_owned(), text.clone(), None);
        notice.data.link.clone_from(&link);
        // Each run has its own settings, so each has its own lanes.
        outbound(NOTICE, format!("{}/{sink}", run.id), &sink.to_string(), notice)
    };
    wanted.map(queued).collect()
}

/// Returns what a notice says to people who are elsewhere, if it is for them.
fn told(machine: &str, effect: &Value) -> Option<(Kind, String)> {
    let notice = effect.get("notice").filter(|_| kind_of(effect) == "notice")?.clone();
    let kind = match machine {
        delivery::State::NAME => Kind::of_delivery(serde_json::from_value(notice).ok()?)?,
        _ => serde_json::from_value::<run::Notice>(notice).ok()?.into(),
    };
    let text = |name: &str| effect.get(name).and_then(Value::as_str);
    Some((kind, about(text("task"), text("text").unwrap_or_default())))
}

/// Returns what is said about the end of a run under a hook: the agent is allowed to stop, and nobody
/// sits there to see it.
fn ended_under_hook(run: &RoutedRun<'_>, effect: &Value) -> Option<(Kind, String)> {
    let ended = run.driver == Driver::Hook && !run.active && kind_of(effect) == "allow";
    let decision = run.decision.filter(|_| ended)?;
    Some((Kind::RunEnded, format!("{}: {}", decision.summary, decision.because)))
}

/// Says which task a notice is about, unless it does so itself.
pub(crate) fn about(task: Option<&str>, text: &str) -> String {
    match task {
        Some(task) if !text.contains(task) => format!("{task}: {text}"),
        _ => text.to_owned(),
    }
}

fn kind_of(effect: &Value) -> &str {
    effect.get("effect").and_then(Value::as_str).unwrap_or("effect")
}

fn notice(run: &RoutedRun<'_>, kind: String, text: String, effect: Option<Value>) -> Notice {
    let project = Path::new(run.project).file_name().unwrap_or_default();
    let data = NoticeData {
        run: run.id.to_string(),
        machine: run.machine.to_owned(),
        project: project.to_string_lossy().into_owned(),
        title: display::line(&redact(run.title)),
        active: run.active,
        text,
        link: None,
        effect,
    };
    // Its name is the key under which the outbox keeps it.
    Notice { v: 1, id: String::new(), kind, timestamp: run.at, data }
}

/// Returns where a browser shows what a notice is about: the thing itself if it can be acted on, signed
/// so that no login is needed; else the run.
fn link(links: &ItemLinks, run: &RoutedRun<'_>, kind: &str, effect: &Value) -> String {
    let need = match kind {
        "question" => "question",
        "stagnation_warn" | "stagnation_pause" => "stalled",
        _ => return links.run(run.id.as_str()),
    };
    let task = effect.get("task").and_then(Value::as_str);
    links.item(run.id.as_str(), need, task, run.at)
}

fn outbound(kind: &'static str, lane: String, sink: &str, notice: Notice) -> OutboundEffect {
    let body = json!(QueuedNotice { sink: sink.to_owned(), notice });
    OutboundEffect { kind, lane, requires: Vec::new(), body }
}
