//! What is read and not reported: status, resources and prompts.

use std::fmt::Write as _;

use aldis_engine::{AnyHandle, Engine, Snapshot};
use aldis_machine::calls::TABLE;
use aldis_store::DecisionFilter;
use rmcp::ErrorData;
use rmcp::model::{
    GetPromptResult, Prompt, PromptMessage, ReadResourceResult, Resource, ResourceContents, Role,
};
use serde_json::{Value, json};

use crate::app::calls::answer::CallReply;
use crate::app::calls::caller::Caller;
use crate::app::calls::checked;
use crate::app::calls::refusal_of;
use crate::settings::clock;
use crate::view::run_view::RunView;
use crate::view::wire;
use crate::view::wire::run::DecisionForm;

const CURRENT: &str = "aldis://run/current";
const LAST: &str = "aldis://why/last";
const START: &str = "start";
const HANDOVER: &str = "handover";
/// How many decisions a hand-over tells of.
const DECISIONS: usize = 8;

/// Returns how the caller's run is, and what it may report.
pub(super) fn status(engine: &Engine, caller: &Caller) -> Value {
    let run = match run_of(engine, caller) {
        Ok(run) => run,
        Err(reply) => return json!(reply),
    };
    let now = clock::wall();
    let view = RunView::new(&Snapshot::from(&run), now);
    let facts =
        view.all_facts(now).into_iter().map(|(label, value)| (label.to_owned(), json!(value)));
    let asked = view.questions.iter().map(|it| json!({ "id": it.id, "text": it.text }));
    json!({
        "v": 1,
        "accepted": true,
        "run": run.id().as_str(),
        "title": view.title,
        "status": view.summary(),
        "facts": facts.collect::<serde_json::Map<_, _>>(),
        "questions": asked.collect::<Vec<_>>(),
        "check": engine.claim_check(run.id()).ok().flatten().map(|check| checked::form(&check)),
        "tools": tools_of(&run, caller),
        "next": view.remedy.unwrap_or_else(|| "continue to work, and report at milestones".to_owned()),
    })
}

/// The tools by which the caller may report.
fn tools_of(run: &AnyHandle, caller: &Caller) -> Vec<&'static str> {
    let role = match run {
        AnyHandle::Delivery(run) => {
            caller.agent.and_then(|agent| Some(run.state().agent(agent)?.role))
        }
        _ => None,
    };
    let may = TABLE
        .iter()
        .filter(|row| row.machine == run.machine())
        .filter(|row| row.roles.is_empty() || role.is_none_or(|role| row.roles.contains(&role)));
    let mut tools: Vec<&str> = may.map(|row| row.tool).collect();
    tools.sort_unstable();
    tools.dedup();
    tools
}

/// Returns what can be read.
pub(super) fn resources() -> Vec<Resource> {
    let json = |uri: &str, name: &str, about: &str| {
        Resource::new(uri, name).with_description(about).with_mime_type("application/json")
    };
    vec![
        json(CURRENT, "run", "The run that you work for, as the API shows it."),
        json(LAST, "why", "The last decision about that run: rule, evidence, remedy."),
    ]
}

/// Reads one of them.
pub(super) fn resource(
    engine: &Engine,
    caller: &Caller,
    uri: &str,
) -> Result<ReadResourceResult, ErrorData> {
    let value = match uri {
        CURRENT => match run_of(engine, caller) {
            Ok(run) => wire::run_form(&Snapshot::from(&run), clock::wall()),
            Err(reply) => json!(reply),
        },
        LAST => match run_of(engine, caller) {
            Ok(run) => json!(decisions(engine, &run, 1)?.pop()),
            Err(reply) => json!(reply),
        },
        other => {
            let message = format!("there is no resource `{other}`");
            return Err(ErrorData::resource_not_found(message, None));
        }
    };
    let contents = ResourceContents::text(value.to_string(), uri);
    Ok(ReadResourceResult::new(vec![contents.with_mime_type("application/json")]))
}

/// Returns the prompts that there are.
pub(super) fn prompts() -> Vec<Prompt> {
    vec![
        Prompt::new(START, Some("What you work on, and how you report."), None),
        Prompt::new(HANDOVER, Some("Where the work stands, for whoever continues it."), None),
    ]
}

/// Returns one of them, filled in.
pub(super) fn prompt(
    engine: &Engine,
    caller: &Caller,
    name: &str,
) -> Result<GetPromptResult, ErrorData> {
    if ![START, HANDOVER].contains(&name) {
        return Err(ErrorData::invalid_params(format!("there is no prompt `{name}`"), None));
    }
    let text = match run_of(engine, caller) {
        Err(reply) => format!("{}. {}", reply.reason.unwrap_or_default(), reply.next),
        Ok(run) if name == START => start(&run, caller),
        Ok(run) => handover(engine, &run)?,
    };
    Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]))
}

fn start(run: &AnyHandle, caller: &Caller) -> String {
    let task = match run {
        AnyHandle::Phases(run) => run.state().start_prompt(),
        _ => Snapshot::from(run).run.record.title,
    };
    let tools = tools_of(run, caller).join(", ");
    format!(
        "{task}\n\nReport by the tools of the MCP server aldis: {tools}. `status` shows what is expected."
    )
}

fn handover(engine: &Engine, run: &AnyHandle) -> Result<String, ErrorData> {
    let now = clock::wall();
    let view = RunView::new(&Snapshot::from(run), now);
    let mut text = format!("Run {}: {}\n", view.name(), view.summary());
    for (label, value) in view.all_facts(now) {
        let _ = writeln!(text, "- {label}: {value}");
    }
    text.push_str("\nWhat was decided, the latest first:\n");
    for decision in decisions(engine, run, DECISIONS)? {
        let _ = writeln!(text, "- {}: {}", decision.summary, decision.because);
    }
    text.push_str("\nContinue the work from there. Check what is done before you rely on it.");
    Ok(text)
}

/// The last decisions about a run, the latest first.
fn decisions(
    engine: &Engine,
    run: &AnyHandle,
    limit: usize,
) -> Result<Vec<DecisionForm>, ErrorData> {
    let run = Some(run.id().clone());
    let filter = DecisionFilter { run, limit, ..DecisionFilter::default() };
    let found = engine.store().decisions(&filter);
    let found = found.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    Ok(found.iter().filter_map(DecisionForm::new).collect())
}

fn run_of(engine: &Engine, caller: &Caller) -> Result<AnyHandle, Box<CallReply>> {
    caller.run(engine).map_err(|error| Box::new(CallReply::refused(None, refusal_of(error))))
}
