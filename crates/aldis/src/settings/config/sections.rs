//! The tables of a file with settings, with types and defaults.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use aldis_machine::delivery::Role;
use aldis_machine::phases::{self, AfterTransition, MAX_ITERATIONS, TokenPolicy};
use aldis_machine::run::Config;
use aldis_machine::stagnation;
use aldis_transcript::Input;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::deliver::{Deliver, ExpertTable, RoleTable};
use super::proof::Proof;
use super::table::{Setting, table};
use super::values::{CollectorUrl, Count, Dollars, Seconds, SecondsOrNever, StoreUrl};
use crate::settings::notice_kind::Events;
use crate::settings::prompt_by::PromptBy;
use crate::settings::public_url::PublicUrl;
use aldis_signal::signal::Via;

/// Everything that can be set. Every key has its default here and nowhere else.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Settings {
    /// How one agent is supervised.
    pub(super) run: Run,
    /// What makes a claim count.
    pub(super) proof: Proof,
    /// When its work is thought not to move.
    pub(super) stagnation: Stagnation,
    /// Who is told what.
    pub(super) notify: Notify,
    /// How plans are delivered.
    pub(super) deliver: Deliver,
    /// How the agents of some roles are started.
    #[serde(serialize_with = "no_names")]
    #[schemars(schema_with = "roles")]
    pub(super) roles: BTreeMap<Role, RoleTable>,
    /// Who can be asked.
    #[serde(serialize_with = "no_names")]
    pub(super) experts: BTreeMap<String, ExpertTable>,
    /// How phases run.
    pub(crate) phases: Phases,
    /// How signals are heard.
    pub(crate) signals: Signals,
    /// How the server is reached.
    pub(crate) serve: Serve,
    /// How long what is stored is kept.
    pub(crate) store: Keep,
    /// Where traces go.
    pub(crate) telemetry: Telemetry,
    /// The user's own pipelines.
    #[serde(serialize_with = "no_names")]
    pub(super) pipelines: BTreeMap<String, PipelineTable>,
    /// Read elsewhere, by the catalogue of dialects.
    #[serde(rename = "dialects", serialize_with = "no_names")]
    #[schemars(with = "BTreeMap<String, Map<String, Value>>")]
    _dialects: BTreeMap<String, IgnoredAny>,
}

/// Returns what editors are told of `[roles]`.
fn roles(generator: &mut SchemaGenerator) -> Schema {
    let table = generator.subschema_for::<RoleTable>();
    let names: Vec<&str> = Role::ALL.iter().map(|role| role.as_str()).collect();
    json_schema!({
        "type": "object", "propertyNames": { "enum": names }, "additionalProperties": table
    })
}

/// Names of the user's own have no defaults.
fn no_names<T, S: Serializer>(_: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(std::iter::empty::<((), ())>())
}

/// What a supervised run goes by, as the store keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Supervision {
    pub(crate) run: Run,
    #[serde(default)]
    pub(crate) accept: Via,
    pub(crate) stagnation: Stagnation,
    pub(crate) notify: Notify,
    #[serde(default)]
    pub(crate) proof: Proof,
    /// Whether nothing may follow a claim.
    #[serde(default)]
    pub(crate) strict: bool,
}

table! {
    /// `[run]`
    struct Run sets Config, usually Config::default();
    own {
        host: Option<String> = None,
        dialect: String = "chorus".to_owned(),
        prompt_by: PromptBy = PromptBy::Stdin,
        #[serde(deserialize_with = "input")]
        input: String = "auto".to_owned(),
        verify: Option<String> = None,
        pty: bool = false,
    }
    sets {
        max_iterations: Count<1, 1000> = max_iterations,
        timeout: Seconds<1> = iteration_timeout,
        total_timeout: Seconds<1> = timeout,
        max_tokens: Option<Tokens> = max_tokens,
        max_cost: Option<Dollars> = max_micro_dollars,
        require_commit: bool = require_commit,
        require_clean: bool = require_clean,
        no_wait: bool = no_wait,
        limit_wait: Seconds<1> = limit_wait,
        max_limit_waits: Count<1, 1000> = max_limit_waits,
        max_crashes: Count<0, 1000> = max_crashes,
        crash_wait: Seconds<1> = crash_wait,
        max_attempts: Count<1, 1000> = max_attempts,
    }
}

/// As many tokens as the formats can write.
pub(crate) type Tokens = Count<1, { i64::MAX.cast_unsigned() }>;

fn input<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let name = String::deserialize(deserializer)?;
    match Input::from_name(&name) {
        Some(_) => Ok(name),
        None => Err(de::Error::custom(format!(
            "unknown input format `{name}`; use auto, text or the name of a host"
        ))),
    }
}

table! {
    /// `[stagnation]`; 0 switches a threshold off.
    struct Stagnation sets stagnation::Config, usually stagnation::Config::supervised();
    own {}
    sets {
        enabled: bool = enabled,
        warn_repeats: Threshold = warn_repeats,
        pause_repeats: Threshold = pause_repeats,
        abort_repeats: Threshold = abort_repeats,
        warn_timeout: Seconds<0> = warn_timeout,
        pause_timeout: Seconds<0> = pause_timeout,
        abort_timeout: Seconds<0> = abort_timeout,
        warn_at_iteration: Threshold = warn_at_iteration,
        pause_at_iteration: Threshold = pause_at_iteration,
        abort_at_iteration: Threshold = abort_at_iteration,
        grace_period: Seconds<0> = grace_period,
        pause_limit: SecondsOrNever = pause_limit,
        commit_partial_work: bool = commit_partial_work,
        state_history_size: Threshold = state_history_size,
    }
}

type Threshold = Count<0, 1000>;

impl Stagnation {
    /// Returns what the monitor of an agent goes by.
    pub(super) fn config(&self) -> stagnation::Config {
        let mut config = stagnation::Config::supervised();
        self.set(&mut config);
        config
    }
}

impl Supervision {
    /// Returns the limits of the run.
    pub(crate) fn limits(&self) -> Config {
        let mut config = Config {
            verify: self.run.verify.is_some() || !self.proof.check.is_empty(),
            proof: self.proof.config(self.run.verify.as_deref()),
            stagnation: self.stagnation.config(),
            accept: self.accept,
            ..Config::default()
        };
        self.run.set(&mut config);
        config
    }
}

/// `[notify]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
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

/// Where a notice goes: to every sink that is switched on, to none, or to some.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Where {
    All(bool),
    Only(Vec<Sink>),
}

/// What can be told of notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Phases {
    /// Which pipeline `aldis auto start` uses.
    pub(crate) pipeline: String,
    /// What follows a completed phase.
    #[schemars(with = "String", extend("enum" = ["continue", "stop"]))]
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
    /// How long a session that was let go waits to be woken, half a day at most.
    pub(crate) wake: SecondsOrNever,
    /// The same without a person: the host's process stays for so long.
    pub(crate) wake_headless: SecondsOrNever,
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
            wake: SecondsOrNever(Some(12 * 60 * 60)),
            wake_headless: SecondsOrNever(None),
        }
    }
}

/// `[signals]`
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Signals {
    /// What is done about run tokens.
    #[schemars(with = "String", extend("enum" = ["off", "accept", "require"]))]
    pub(crate) token: TokenPolicy,
    /// Whether nothing but other signals may follow a claim, and no colon may lead into it.
    pub(crate) strict: bool,
    /// How a signal must come at least to count.
    #[schemars(with = "String", extend("enum" = ["said", "token", "receipt", "call"]))]
    pub(crate) accept: Via,
}

/// `[serve]`: of the user's own file.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Serve {
    /// How long a browser stays logged in.
    pub(crate) keep_login: Seconds<60>,
    /// Where browsers elsewhere find the server, through a tunnel or a proxy.
    pub(crate) public_url: Option<PublicUrl>,
    /// The certificate of the server, with those that lead to its authority: a PEM file.
    pub(crate) tls_cert: Option<PathBuf>,
    /// The key of the certificate: a PEM file.
    pub(crate) tls_key: Option<PathBuf>,
}

impl Default for Serve {
    fn default() -> Self {
        let keep_login = Seconds(30 * 24 * 60 * 60);
        Self { keep_login, public_url: None, tls_cert: None, tls_key: None }
    }
}

/// `[store]`: the user's alone, as the store is.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Keep {
    /// A database that many machines share, instead of the user's own.
    pub(crate) url: Option<StoreUrl>,
    /// The same database, without a pooler in between.
    pub(crate) direct_url: Option<StoreUrl>,
    /// Runs, since they ended.
    pub(crate) keep_ended: SecondsOrNever,
    /// What agents wrote, since they wrote it.
    pub(crate) keep_output: SecondsOrNever,
}

impl Default for Keep {
    /// Output is nearly all of what grows, up to 64 MiB per agent, and is looked at while people
    /// remember the run; decisions with their evidence are small, and answer questions for longer.
    fn default() -> Self {
        let days = |days: u64| SecondsOrNever(Some(days * 24 * 60 * 60));
        Self { url: None, direct_url: None, keep_ended: days(90), keep_output: days(30) }
    }
}

/// `[telemetry]`: the user's alone, because it is about all projects.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Telemetry {
    /// The collector that takes traces.
    pub(crate) otlp: Option<CollectorUrl>,
    /// Whether texts of agents, people and checks are exported, too.
    pub(crate) bodies: bool,
}

/// `[pipelines.NAME]`
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PipelineTable {
    #[serde(default = "caw")]
    pub(super) dialect: String,
    #[serde(default)]
    pub(super) finish: Option<String>,
    #[schemars(with = "Vec<Map<String, Value>>")]
    pub(super) phases: Vec<phases::Phase>,
}

fn caw() -> String {
    "caw".to_owned()
}
