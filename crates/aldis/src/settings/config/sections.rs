//! The tables of a file with settings, with types and defaults.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use aldis_machine::delivery::Role;
use aldis_machine::phases::{self, AfterTransition, MAX_ITERATIONS, TokenPolicy};
use aldis_machine::run::Config;
use aldis_machine::stagnation;
use aldis_transcript::Input;
use serde::de::{self, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::deliver::{Deliver, ExpertTable, RoleTable};
use super::values::{Count, Dollars, Seconds, SecondsOrNever};
use crate::settings::notice_kind::Kind;
use crate::settings::prompt_by::PromptBy;

/// Everything that can be set. Every key has its default here and nowhere else.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    /// How one agent is supervised.
    pub(super) run: Run,
    /// When its work is thought not to move.
    pub(super) stagnation: Stagnation,
    /// Who is told what.
    pub(super) notify: Notify,
    /// How plans are delivered.
    pub(super) deliver: Deliver,
    /// How the agents of some roles are started.
    #[serde(serialize_with = "no_names")]
    pub(super) roles: BTreeMap<Role, RoleTable>,
    /// Who can be asked.
    #[serde(serialize_with = "no_names")]
    pub(super) experts: BTreeMap<String, ExpertTable>,
    /// How phases run.
    pub(crate) phases: Phases,
    /// How signals are heard.
    pub(crate) signals: Signals,
    /// The user's own pipelines.
    #[serde(serialize_with = "no_names")]
    pub(super) pipelines: BTreeMap<String, PipelineTable>,
    /// Read elsewhere, by the catalogue of dialects.
    #[serde(rename = "dialects", serialize_with = "no_names")]
    _dialects: BTreeMap<String, IgnoredAny>,
}

/// Names of the user's own have no defaults.
fn no_names<T, S: Serializer>(_: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(std::iter::empty::<((), ())>())
}

/// What a supervised run goes by, as the store keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Supervision {
    pub(crate) run: Run,
    pub(crate) stagnation: Stagnation,
    pub(crate) notify: Notify,
}

/// `[run]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Run {
    pub(crate) dialect: String,
    pub(crate) prompt_by: PromptBy,
    #[serde(deserialize_with = "input")]
    pub(crate) input: String,
    pub(crate) verify: Option<String>,
    pub(crate) max_iterations: Count<1, 1000>,
    pub(crate) timeout: Seconds<1>,
    pub(crate) total_timeout: Seconds<1>,
    pub(crate) max_tokens: Option<Tokens>,
    pub(crate) max_cost: Option<Dollars>,
    pub(crate) require_commit: bool,
    pub(crate) require_clean: bool,
    pub(crate) no_wait: bool,
    pub(crate) pty: bool,
    pub(crate) limit_wait: Seconds<1>,
    pub(crate) max_limit_waits: Count<1, 1000>,
    // Runs that 0.1.0 stored have neither.
    #[serde(default = "max_crashes")]
    pub(crate) max_crashes: Count<0, 1000>,
    #[serde(default = "crash_wait")]
    pub(crate) crash_wait: Seconds<1>,
    pub(crate) max_attempts: Count<1, 1000>,
}

fn max_crashes() -> Count<0, 1000> {
    Count(Config::default().max_crashes.into())
}

fn crash_wait() -> Seconds<1> {
    Seconds(Config::default().crash_wait)
}

/// As many tokens as the formats can write.
pub(crate) type Tokens = Count<1, { i64::MAX.cast_unsigned() }>;

impl Default for Run {
    fn default() -> Self {
        let usual = Config::default();
        Self {
            dialect: "chorus".to_owned(),
            prompt_by: PromptBy::Stdin,
            input: "auto".to_owned(),
            verify: None,
            max_iterations: Count(usual.max_iterations.into()),
            timeout: Seconds(usual.iteration_timeout),
            total_timeout: Seconds(usual.timeout),
            max_tokens: usual.max_tokens.map(Count),
            max_cost: usual.max_micro_dollars.map(Dollars),
            require_commit: usual.require_commit,
            require_clean: usual.require_clean,
            no_wait: usual.no_wait,
            pty: false,
            limit_wait: Seconds(usual.limit_wait),
            max_limit_waits: Count(usual.max_limit_waits.into()),
            max_crashes: max_crashes(),
            crash_wait: crash_wait(),
            max_attempts: Count(usual.max_attempts.into()),
        }
    }
}

fn input<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let name = String::deserialize(deserializer)?;
    match Input::from_name(&name) {
        Some(_) => Ok(name),
        None => Err(de::Error::custom(format!(
            "unknown input format `{name}`; use auto, text or the name of a host"
        ))),
    }
}

/// `[stagnation]`; 0 switches a threshold off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Stagnation {
    enabled: bool,
    warn_repeats: Threshold,
    pause_repeats: Threshold,
    abort_repeats: Threshold,
    warn_timeout: Seconds<0>,
    pause_timeout: Seconds<0>,
    abort_timeout: Seconds<0>,
    warn_at_iteration: Threshold,
    pause_at_iteration: Threshold,
    abort_at_iteration: Threshold,
    grace_period: Seconds<0>,
    // Runs that 0.1.0 stored have none.
    #[serde(default = "pause_limit")]
    pause_limit: SecondsOrNever,
    commit_partial_work: bool,
    state_history_size: Threshold,
}

type Threshold = Count<0, 1000>;

fn pause_limit() -> SecondsOrNever {
    SecondsOrNever(stagnation::Config::supervised().pause_limit)
}

impl Default for Stagnation {
    fn default() -> Self {
        let usual = stagnation::Config::supervised();
        Self {
            enabled: usual.enabled,
            warn_repeats: Count(usual.warn_repeats.into()),
            pause_repeats: Count(usual.pause_repeats.into()),
            abort_repeats: Count(usual.abort_repeats.into()),
            warn_timeout: Seconds(usual.warn_timeout),
            pause_timeout: Seconds(usual.pause_timeout),
            abort_timeout: Seconds(usual.abort_timeout),
            warn_at_iteration: Count(usual.warn_at_iteration.into()),
            pause_at_iteration: Count(usual.pause_at_iteration.into()),
            abort_at_iteration: Count(usual.abort_at_iteration.into()),
            grace_period: Seconds(usual.grace_period),
            pause_limit: pause_limit(),
            commit_partial_work: usual.commit_partial_work,
            state_history_size: Count(usual.state_history_size.into()),
        }
    }
}

impl Stagnation {
    /// Returns what the monitor of an agent goes by.
    pub(super) fn config(&self) -> stagnation::Config {
        stagnation::Config {
            enabled: self.enabled,
            warn_repeats: self.warn_repeats.small(),
            pause_repeats: self.pause_repeats.small(),
            abort_repeats: self.abort_repeats.small(),
            warn_timeout: self.warn_timeout.0,
            pause_timeout: self.pause_timeout.0,
            abort_timeout: self.abort_timeout.0,
            warn_at_iteration: self.warn_at_iteration.small(),
            pause_at_iteration: self.pause_at_iteration.small(),
            abort_at_iteration: self.abort_at_iteration.small(),
            grace_period: self.grace_period.0,
            pause_limit: self.pause_limit.0,
            commit_partial_work: self.commit_partial_work,
            state_history_size: self.state_history_size.small(),
        }
    }
}

impl Supervision {
    /// Returns the limits of the run.
    pub(crate) fn limits(&self) -> Config {
        let Self { run, stagnation: watched, .. } = self;
        Config {
            max_iterations: run.max_iterations.small(),
            iteration_timeout: run.timeout.0,
            timeout: run.total_timeout.0,
            max_tokens: run.max_tokens.map(|tokens| tokens.0),
            max_micro_dollars: run.max_cost.map(|cost| cost.0),
            verify: run.verify.is_some(),
            require_commit: run.require_commit,
            require_clean: run.require_clean,
            no_wait: run.no_wait,
            limit_wait: run.limit_wait.0,
            max_limit_waits: run.max_limit_waits.small(),
            max_crashes: run.max_crashes.small(),
            crash_wait: run.crash_wait.0,
            max_attempts: run.max_attempts.small(),
            stagnation: watched.config(),
        }
    }
}

/// `[notify]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Notify {
    pub(crate) terminal: bool,
    pub(crate) desktop: bool,
    pub(crate) command: Option<String>,
    pub(crate) webhook: Option<String>,
    pub(crate) webhook_secret_file: Option<PathBuf>,
    pub(crate) webhook_private: bool,
    pub(crate) events: Events,
}

impl Default for Notify {
    fn default() -> Self {
        Self {
            terminal: true,
            desktop: false,
            command: None,
            webhook: None,
            webhook_secret_file: None,
            webhook_private: false,
            events: Events::default(),
        }
    }
}

/// `[notify.events]`: where each kind of notice goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Events {
    question: Where,
    rate_limit: Where,
    run_ended: Where,
    stagnation_warn: Where,
    stagnation_pause: Where,
    stagnation_abort: Where,
    budget_soon: Where,
    task_blocked: Where,
    task_complete: Where,
    task_failed: Where,
}

impl Default for Events {
    fn default() -> Self {
        let all = Where::All(true);
        Self {
            question: all.clone(),
            rate_limit: all.clone(),
            run_ended: all.clone(),
            stagnation_warn: all.clone(),
            stagnation_pause: all.clone(),
            stagnation_abort: all.clone(),
            budget_soon: all.clone(),
            task_blocked: all.clone(),
            // A plan has many tasks, and that they become complete is what is expected.
            task_complete: Where::All(false),
            task_failed: all,
        }
    }
}

impl Events {
    /// Returns where notices of a kind go.
    pub(crate) fn of(&self, kind: Kind) -> &Where {
        match kind {
            Kind::Question => &self.question,
            Kind::RateLimit => &self.rate_limit,
            Kind::RunEnded => &self.run_ended,
            Kind::StagnationWarn => &self.stagnation_warn,
            Kind::StagnationPause => &self.stagnation_pause,
            Kind::StagnationAbort => &self.stagnation_abort,
            Kind::BudgetSoon => &self.budget_soon,
            Kind::TaskBlocked => &self.task_blocked,
            Kind::TaskComplete => &self.task_complete,
            Kind::TaskFailed => &self.task_failed,
        }
    }
}

/// Where a notice goes: to every sink that is switched on, to none, or to some.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(crate) enum Where {
    All(bool),
    Only(Vec<Sink>),
}

/// What can be told of notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Sink {
    Terminal,
    Desktop,
    Command,
    Webhook,
}

impl fmt::Display for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Terminal => "terminal",
            Self::Desktop => "desktop",
            Self::Command => "command",
            Self::Webhook => "webhook",
        })
    }
}

impl Where {
    /// Returns whether a sink is told.
    pub(crate) fn includes(&self, sink: Sink) -> bool {
        match self {
            Self::All(all) => *all,
            Self::Only(sinks) => sinks.contains(&sink),
        }
    }
}

impl<'de> Deserialize<'de> for Where {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SectionVisitor;

        impl<'de> Visitor<'de> for SectionVisitor {
            type Value = Where;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false, or a list of terminal, desktop, command, webhook")
            }

            fn visit_bool<E: de::Error>(self, all: bool) -> Result<Where, E> {
                Ok(Where::All(all))
            }

            /// A variable of the environment has no lists.
            fn visit_str<E: de::Error>(self, names: &str) -> Result<Where, E> {
                let sink = |name: &str| Sink::deserialize(de::value::StrDeserializer::new(name));
                let sinks: Result<_, E> = names.split(',').map(str::trim).map(sink).collect();
                sinks
                    .map(Where::Only)
                    .map_err(|_| E::invalid_value(de::Unexpected::Str(names), &self))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Where, A::Error> {
                let mut sinks = Vec::new();
                while let Some(sink) = seq.next_element()? {
                    sinks.push(sink);
                }
                Ok(Where::Only(sinks))
            }
        }

        deserializer.deserialize_any(SectionVisitor)
    }
}

/// `[phases]`
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Phases {
    /// Which pipeline `aldis auto start` uses.
    pub(crate) pipeline: String,
    /// What follows a completed phase.
    pub(crate) after_transition: AfterTransition,
    /// How long a silence makes a run stale.
    pub(crate) stale_after: Seconds<1>,
    /// Refusals per phase.
    pub(crate) max_iterations: PhaseIterations,
    /// Whether prompts show the counters.
    pub(crate) verbose: bool,
    /// Whether the agent is to decide for itself.
    pub(crate) no_questions: bool,
    /// Whether the review asks for three verdicts.
    pub(crate) parallel_validation: bool,
}

/// The limits of the machine.
type PhaseIterations = Count<{ MAX_ITERATIONS.0 as u64 }, { MAX_ITERATIONS.1 as u64 }>;

impl Default for Phases {
    fn default() -> Self {
        let usual = phases::Config::default();
        Self {
            pipeline: "caw".to_owned(),
            after_transition: usual.after_transition,
            stale_after: Seconds(usual.stale_after),
            max_iterations: Count(MAX_ITERATIONS.2.into()),
            verbose: false,
            no_questions: false,
            parallel_validation: false,
        }
    }
}

/// `[signals]`
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Signals {
    /// What is done about run tokens.
    pub(crate) token: TokenPolicy,
}

/// `[pipelines.NAME]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PipelineTable {
    #[serde(default = "caw")]
    pub(super) dialect: String,
    #[serde(default)]
    pub(super) finish: Option<String>,
    pub(super) phases: Vec<phases::Phase>,
}

fn caw() -> String {
    "caw".to_owned()
}
