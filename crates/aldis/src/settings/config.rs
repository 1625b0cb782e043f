//! What is set, by whom: defaults, the user's file, the project's file, the environment, the command
//! line, each over the one before.
//!
//! Files are `aldis.toml` or `aldis.yaml` with the same keys. Unknown keys are refused with a
//! suggestion: a misspelled limit must not silently be no limit.

pub(crate) mod annotated;
mod decode;
mod deliver;
mod from_toml;
mod from_yaml;
mod proof;
mod read;
mod sections;
mod table;
mod tree;
mod values;

use std::env;
use std::path::PathBuf;
use std::sync::Arc;

use aldis_machine::phases::{self, Pipeline};
use aldis_signal::Dialect;

pub(crate) use self::decode::{decode, nearest};
pub(crate) use self::deliver::{Delivering, RoleTable};
pub(crate) use self::read::{Document, NAMES, create, file_in, text};
use self::sections::PipelineTable;
pub(crate) use self::sections::{Keep, Notify, Serve, Settings, Sink, Supervision, Tokens, Where};
pub(crate) use self::tree::{Node, NodeKind, Origin, SourceFile};
pub(crate) use self::values::{Count, Dollars, Seconds};
use crate::error::CommandError;
use crate::settings::home;
use crate::settings::project::Place;
use crate::settings::trust::Trusted;
use crate::settings::web_address;
use aldis_signal::signal::Via;

/// What every variable of ours begins with.
const VARIABLE_PREFIX: &str = "ALDIS_";

/// A short name of one setting.
const STORE_VARIABLE: &str = "ALDIS_STORE";

/// What runs something, or sends something somewhere: a repository may not decide it alone.
const NEEDS_TRUST: [&str; 7] = [
    "run.verify",
    "proof.check",
    "proof.judge",
    "notify.command",
    "notify.webhook",
    "notify.webhook_secret_file",
    "notify.webhook_private",
];

/// Settings, and where each of them comes from.
#[derive(Debug)]
pub(crate) struct Layered {
    pub(crate) settings: Settings,
    tree: Node,
}

impl Layered {
    /// Loads what counts in the project around `place`, under what the command line says.
    ///
    /// # Errors
    ///
    /// Fails with the place of what is wrong, also where something else overrules it.
    pub(crate) fn load(place: &Place, flags: Option<Node>) -> Result<Self, CommandError> {
        let mut layers = Vec::new();
        if let Some(document) = user_document()? {
            layers.push(document.tree);
        }
        if let Some(file) = project_file(place)? {
            let tree = Document::read(&file, true)?.tree;
            check_store(&tree, layers.first())?;
            layers.push(tree);
        }
        layers.extend(environment(&defaults()?)?);
        layers.extend(flags);
        Self::new(layers)
    }

    /// Loads what counts in every project.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    pub(crate) fn of_user() -> Result<Self, CommandError> {
        let own = user_document()?.map(|document| document.tree);
        Self::new(own.into_iter().chain(environment(&defaults()?)?).collect())
    }

    /// Takes one file, with nothing but the defaults under it.
    ///
    /// # Errors
    ///
    /// Fails with the line of what is wrong.
    pub(crate) fn of_document(document: &Document) -> Result<Self, CommandError> {
        Self::new(vec![document.tree.clone()])
    }

    fn new(layers: Vec<Node>) -> Result<Self, CommandError> {
        let mut tree = defaults()?;
        for layer in layers {
            // A mistake is one even where a later layer says something else.
            let mut alone = defaults()?;
            alone.overlay(layer.clone());
            decode::check::<Settings>(alone)?;
            tree.overlay(layer);
        }
        let layered = Self { settings: decode(&tree)?, tree };
        layered.check_webhook()?;
        layered.check_proof()?;
        Ok(layered)
    }

    /// Returns what a supervised run goes by.
    ///
    /// # Errors
    ///
    /// Fails if the project's file names commands, or places to send to, that the user has not
    /// trusted.
    pub(crate) fn supervision(self, trusted: &Trusted) -> Result<Supervision, CommandError> {
        self.check_trust(trusted, "")?;
        let notify = self.notify();
        let Settings { run, stagnation, signals, proof, .. } = self.settings;
        let accept = match signals.accept {
            Via::Token => {
                return Err(CommandError::new("signals.accept: `aldis run` uses no run tokens")
                    .with_help("accept said, receipt or call"));
            }
            accept => accept,
        };
        Ok(Supervision { run, accept, stagnation, notify, proof, strict: signals.strict })
    }

    /// Returns who is told of a run under a hook; nothing if only a terminal would be.
    ///
    /// # Errors
    ///
    /// Fails if the project's file names a command, or places to send to, that the user has not
    /// trusted.
    pub(crate) fn notices(&self, trusted: &Trusted) -> Result<Option<Notify>, CommandError> {
        let Notify { desktop, command, webhook, .. } = &self.settings.notify;
        if !desktop && command.is_none() && webhook.is_none() {
            return Ok(None);
        }
        self.check_trust(trusted, "notify.")?;
        Ok(Some(self.notify()))
    }

    /// Who is told what.
    fn notify(&self) -> Notify {
        let mut notify = self.settings.notify.clone();
        self.find("notify.webhook_secret_file", &mut notify.webhook_secret_file);
        notify
    }

    /// Returns how the server is reached, with the files of its certificate found.
    pub(crate) fn serve(&self) -> Serve {
        let mut serve = self.settings.serve.clone();
        self.find("serve.tls_cert", &mut serve.tls_cert);
        self.find("serve.tls_key", &mut serve.tls_key);
        serve
    }

    /// Finds a file that a setting names: one file names another as seen from itself.
    fn find(&self, setting: &str, named: &mut Option<PathBuf>) {
        let place = self.at(setting).map(|node| &node.origin);
        if let Some(Origin::File { file, .. }) = place
            && let (Some(named), Some(directory)) = (named, file.path.parent())
        {
            *named = directory.join(&*named);
        }
    }

    /// Returns what a delivery goes by.
    ///
    /// # Errors
    ///
    /// As [`supervision`](Self::supervision).
    pub(crate) fn delivering(self, trusted: &Trusted) -> Result<Delivering, CommandError> {
        self.check_trust(trusted, "")?;
        let notify = self.notify();
        let Settings { run, deliver, roles, experts, stagnation, signals, proof, .. } =
            self.settings;
        let (stagnation, accept, strict) = (stagnation.config(), signals.accept, signals.strict);
        let (host, proof) = (run.host, proof.config(run.verify.as_deref()));
        Ok(Delivering { host, deliver, roles, experts, stagnation, notify, accept, strict, proof })
    }

    /// Returns what makes a claim under a hook count.
    ///
    /// # Errors
    ///
    /// Fails if the project's file names a command that the user has not trusted.
    pub(crate) fn checks(
        &self,
        trusted: &Trusted,
    ) -> Result<aldis_machine::proof::Config, CommandError> {
        self.check_trust(trusted, "run.verify")?;
        self.check_trust(trusted, "proof.")?;
        Ok(self.settings.proof.config(self.settings.run.verify.as_deref()))
    }

    /// Fails if something of the project's file under this path is not trusted.
    fn check_trust(&self, trusted: &Trusted, under: &str) -> Result<(), CommandError> {
        let untrusted = self.untrusted(trusted);
        let Some((path, origin)) = untrusted.into_iter().find(|(it, _)| it.starts_with(under))
        else {
            return Ok(());
        };
        let place = decode::in_words(origin);
        Err(CommandError::new(format!(
            "{place}`{path}` is set by the repository, and this version of the file is not trusted"
        ))
        .with_help("review the file, then run: aldis trust"))
    }

    /// Returns the paths of what runs something, or sends something somewhere.
    pub(crate) fn powers(&self) -> Vec<String> {
        let roles = self.settings.roles.keys().flat_map(|role| {
            ["command", "resume"].map(|key| format!("roles.{}.{key}", role.as_str()))
        });
        NEEDS_TRUST.iter().map(|&path| path.to_owned()).chain(roles).collect()
    }

    /// Returns what the project's file says and only the user may decide, as long as the user has
    /// not.
    pub(crate) fn untrusted(&self, trusted: &Trusted) -> Vec<(String, &Origin)> {
        let needs = |path: String| {
            let node = self.at(&path).filter(|node| node.kind != NodeKind::Unset)?;
            match &node.origin {
                Origin::File { file, .. } if file.of_project && !trusted.includes(file) => {
                    Some((path, &node.origin))
                }
                _ => None,
            }
        };
        self.powers().into_iter().filter_map(needs).collect()
    }

    fn check_webhook(&self) -> Result<(), CommandError> {
        let place = self.at("notify.webhook").map(|node| decode::in_words(&node.origin));
        web_address::check_target(&self.settings.notify).map_err(|wrong| {
            CommandError::new(format!("{}`notify.webhook`: {wrong}", place.unwrap_or_default()))
        })
    }

    /// Fails if the checks cannot run in an order.
    fn check_proof(&self) -> Result<(), CommandError> {
        let place = self.at("proof.check").map(|node| decode::in_words(&node.origin));
        self.settings.proof.config(None).validate().map_err(|wrong| {
            CommandError::new(format!("{}`proof.check`: {wrong}", place.unwrap_or_default()))
        })
    }

    /// Returns every value, with its path.
    pub(crate) fn values(&self) -> Vec<(String, &Node)> {
        self.tree.leaves()
    }

    /// Returns what was said at a path such as `run.timeout`.
    pub(crate) fn at(&self, path: &str) -> Option<&Node> {
        self.tree.at(path)
    }
}

/// Refuses a repository that wants to decide about the runs of all projects: where and how long they are
/// kept, and where traces of them go.
fn check_store(project: &Node, user: Option<&Node>) -> Result<(), CommandError> {
    let mut own = defaults()?;
    user.into_iter().for_each(|user| own.overlay(user.clone()));
    let keys = [
        "store.keep_ended",
        "store.keep_output",
        "store.url",
        "store.direct_url",
        "telemetry.otlp",
        "telemetry.bodies",
    ];
    for (path, node) in keys.iter().filter_map(|path| Some((path, project.at(path)?))) {
        if own.at(path).is_none_or(|own| own.to_json() != node.to_json()) {
            let place = decode::in_words(&node.origin);
            let what = format!("{place}`{path}` is about the runs of all projects");
            return Err(CommandError::new(what)
                .with_help("set it in your own file, `aldis.toml` in ~/.config/aldis"));
        }
    }
    Ok(())
}

/// Returns the user's own file.
///
/// # Errors
///
/// Fails if there are two, or it cannot be read.
pub(crate) fn user_document() -> Result<Option<Document>, CommandError> {
    let Some(directory) = home::config_directory() else { return Ok(None) };
    file_in(&directory)?.map(|file| Document::read(&file, false)).transpose()
}

/// Returns what the environment or the user's own file says of one setting, whatever else is said: for
/// what must be known before settings are.
///
/// # Errors
///
/// Fails if the file cannot be read.
pub(crate) fn of_user_alone(
    path: &str,
    variables: &[&str],
) -> Result<Option<String>, CommandError> {
    let said = |name: &&str| env::var(name).ok().filter(|value| !value.is_empty());
    if let Some(value) = variables.iter().find_map(said) {
        return Ok(Some(value));
    }
    let document = user_document()?;
    let node = document.as_ref().and_then(|document| document.tree.at(path));
    Ok(node.and_then(|node| node.to_json().as_str().map(str::to_owned)))
}

/// Returns the project's file: the nearest one from the place up to its root.
///
/// # Errors
///
/// Fails if there are two in one directory.
pub(crate) fn project_file(place: &Place) -> Result<Option<PathBuf>, CommandError> {
    place.inside().map(file_in).find_map(Result::transpose).transpose()
}

fn defaults() -> serde_json::Result<Node> {
    Node::of(&Settings::default())
}

/// Reads variables such as `ALDIS_RUN_TIMEOUT`.
fn environment(defaults: &Node) -> Result<Option<Node>, CommandError> {
    let variable =
        |path: &str| format!("{VARIABLE_PREFIX}{}", path.replace('.', "_").to_uppercase());
    let known: Vec<(String, String)> =
        defaults.leaves().into_iter().map(|(path, _)| (variable(&path), path)).collect();
    let NodeKind::Table(tables) = &defaults.kind else { return Ok(None) };
    let prefixes: Vec<String> = tables.iter().map(|(name, _)| variable(name) + "_").collect();
    let mut tree = None;
    for (name, value) in env::vars_os() {
        let Some(name) = name.to_str().filter(|name| name.starts_with(VARIABLE_PREFIX)) else {
            continue;
        };
        let alias = (name == STORE_VARIABLE).then_some("ALDIS_STORE_URL");
        let is_setting = |prefix: &String| name.starts_with(prefix);
        if value.is_empty() || alias.is_none() && !prefixes.iter().any(is_setting) {
            continue;
        }
        let full = alias.unwrap_or(name);
        let Some((_, path)) = known.iter().find(|(known, _)| known == full) else {
            let names: Vec<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
            let failed = CommandError::new(format!("{name}: there is no such setting"));
            return Err(match nearest(name, &names) {
                Some(near) => failed.with_help(format!("did you mean {near}?")),
                None => failed.with_help("aldis config show lists the settings"),
            });
        };
        let origin = Origin::Environment(name.to_owned());
        let value = value
            .into_string()
            .map_err(|_| CommandError::new(format!("{name}: the value is not UTF-8 text")))?;
        let tree = tree.get_or_insert_with(|| Node::empty(origin.clone()));
        tree.put(path, Node { origin, kind: NodeKind::Word(value) });
    }
    Ok(tree)
}

impl Settings {
    /// Loads the settings of the project around `place`; the usual ones where nothing is said.
    ///
    /// # Errors
    ///
    /// Fails with the line of what is wrong.
    pub(crate) fn load(place: &Place) -> Result<Self, CommandError> {
        Layered::load(place, None).map(|layered| layered.settings)
    }

    /// Returns the pipeline of this name.
    ///
    /// # Errors
    ///
    /// Fails with the names there are.
    pub(crate) fn pipeline(&self, name: &str) -> Result<Pipeline, CommandError> {
        if let Some(table) = self.pipelines.get(name) {
            let PipelineTable { dialect, finish, phases } = table.clone();
            return Ok(Pipeline { name: name.to_owned(), dialect, finish, phases });
        }
        match name {
            "caw" => return Ok(Pipeline::caw()),
            "loop" => return Ok(Pipeline::looping("promise")),
            _ => {}
        }
        let own = self.pipelines.keys().map(String::as_str);
        let names: Vec<&str> = ["caw", "loop"].into_iter().chain(own).collect();
        Err(CommandError::new(format!("there is no pipeline `{name}`"))
            .with_help(format!("the pipelines are {}", names.join(", "))))
    }

    /// Checks every pipeline against the dialect it names.
    ///
    /// # Errors
    ///
    /// Fails with what is wrong with the first bad one.
    pub(crate) fn check_pipelines(
        &self,
        dialect: impl Fn(&str) -> Result<Arc<Dialect>, CommandError>,
    ) -> Result<(), CommandError> {
        for name in self.pipelines.keys() {
            let pipeline = self.pipeline(name)?;
            let wrong = |error| CommandError::new(format!("pipeline `{name}`: {error}"));
            pipeline.check(&*dialect(&pipeline.dialect)?).map_err(wrong)?;
        }
        self.pipeline(&self.phases.pipeline).map(|_| ())
    }

    /// Returns what a run starts with where nothing else is said.
    pub(crate) fn phases_config(&self) -> phases::Config {
        phases::Config {
            proof: aldis_machine::proof::Config::default(),
            skip: Default::default(),
            verbose: self.phases.verbose,
            no_questions: self.phases.no_questions,
            parallel_validation: self.phases.parallel_validation,
            after_transition: self.phases.after_transition,
            stale_after: self.phases.stale_after.0,
            // A signal that came with the token is the least that counts then.
            token: match self.signals.accept {
                Via::Token => phases::TokenPolicy::Require,
                _ => self.signals.token,
            },
            strict: self.signals.strict,
            accept: self.signals.accept,
            // Whether the agent has the tools is known where it is started.
            prefer_calls: false,
        }
    }
}

#[cfg(test)]
mod tests;
