//! How the agents of a delivery are started: as it is stored, and as it is meant.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use aldis_engine::{Handle, LAUNCH};
use aldis_machine::delivery::{DIALECT, Role, State};
use aldis_signal::{Dialect, Rules};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agents::command::AgentCommand;
use crate::cli::host_flags::HostLaunch;
use crate::cli::run::input_format;
use crate::coordinate::delivery::{DeliveryPlan, PlanBoxes};
use crate::coordinate::remote::SharedRepository;
use crate::error::CommandError;
use crate::settings::clock;
use crate::settings::config::{Notify, RoleTable};
use crate::settings::project;
use crate::settings::prompt_by::PromptBy;

/// How long to wait for a service that does not say when it will work again.
const LIMIT_WAIT: Duration = Duration::from_secs(15 * 60);

/// How agents are started, as the store keeps it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::cli) struct DeliveryLaunch {
    pub(in crate::cli) command: Vec<String>,
    /// Where it was started; the root of the project where nothing is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::cli) directory: Option<PathBuf>,
    /// The host that this command starts, so that it can be changed later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::cli) host: Option<HostLaunch>,
    #[serde(default)]
    pub(in crate::cli) prompt_by: PromptBy,
    #[serde(default)]
    pub(in crate::cli) input: String,
    /// The command that goes on with an earlier session.
    #[serde(default)]
    pub(in crate::cli) resume: Option<Vec<String>>,
    /// Who is told of notices.
    #[serde(default)]
    pub(in crate::cli) notify: Notify,
    /// What is different for some roles.
    #[serde(default)]
    pub(in crate::cli) roles: BTreeMap<Role, RoleTable>,
    /// Whether nothing may follow a claim.
    #[serde(default)]
    pub(in crate::cli) strict: bool,
    /// The boxes of the plan that are ticked when their tasks are complete.
    #[serde(default)]
    pub(in crate::cli) boxes: Option<PlanBoxes>,
    /// The labels that workers must have, where they run the agents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::cli) labels: Vec<String>,
    /// Variables that must be set where an agent runs. Their values are those of its worker.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::cli) environment: Vec<String>,
    /// The repository from which workers get the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::cli) repository: Option<SharedRepository>,
}

impl DeliveryLaunch {
    /// Returns where the delivery works, wherever it is continued from.
    ///
    /// # Errors
    ///
    /// Fails if that directory is gone.
    pub(in crate::cli) fn directory(&self, project: &str) -> Result<PathBuf, CommandError> {
        project::still_there(self.directory.as_deref(), project)
    }
}

/// Returns how the agents of a stored delivery are started.
pub(in crate::cli) fn launch(run: &Handle<State>) -> Result<DeliveryLaunch, CommandError> {
    read(run.note(LAUNCH)?.unwrap_or_default())
}

/// Reads how agents are started, as it is stored.
pub(in crate::cli) fn read(launch: Value) -> Result<DeliveryLaunch, CommandError> {
    let launch = match launch {
        // 0.1.0 kept it as a text within the text.
        Value::String(text) => serde_json::from_str(&text),
        launch => serde_json::from_value(launch),
    };
    launch.map_err(|error| CommandError::new(format!("the stored command: {error}")))
}

/// Returns how a stored delivery is driven.
pub(in crate::cli) fn plan(
    state: PathBuf,
    launch: &DeliveryLaunch,
    project: PathBuf,
) -> Result<DeliveryPlan, CommandError> {
    let input = input_format(&launch.input)?;
    let words = |words: &[String]| words.iter().map(OsString::from).collect::<Vec<_>>();
    let agent = |command: &[String], resume: Option<&Vec<String>>, prompt: PromptBy| AgentCommand {
        command: words(command),
        prompt,
        pty: false,
        input,
        resume: resume.map(|resume| words(resume)),
    };
    let role = |table: &RoleTable| {
        // Who has another command goes on in another way too.
        let (command, resume) = match &table.command {
            Some(command) => (command, table.resume.as_ref()),
            None => (&launch.command, table.resume.as_ref().or(launch.resume.as_ref())),
        };
        let preface = table.prompt.clone().unwrap_or_default();
        (agent(command, resume, table.prompt_by.unwrap_or(launch.prompt_by)), preface)
    };
    Ok(DeliveryPlan {
        roles: launch.roles.iter().map(|(name, table)| (*name, role(table))).collect(),
        command: agent(&launch.command, launch.resume.as_ref(), launch.prompt_by),
        project,
        state,
        rules: Rules::new(Dialect::builtin(DIALECT).cloned()).strict(launch.strict),
        zone: clock::local_zone(),
        ask_here: false,
        no_wait: false,
        limit_wait: LIMIT_WAIT,
        boxes: launch.boxes.clone(),
        shared: launch.repository.clone(),
        answer: None,
    })
}
