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
pub(crate) use self::sections::{Keep, Notify, Settings, Sink, Supervision, Tokens, Where};
pub(crate) use self::tree::{Node, NodeKind, Origin, SourceFile};
pub(crate) use self::values::{Count, Dollars, Seconds};
use crate::error::CommandError;
use crate::settings::home;
use crate::settings::project::Place;
use crate::settings::trust::Trusted;
use crate::settings::web_address;

/// What every variable of ours begins with.
const VARIABLE_PREFIX: &str = "ALDIS_";

/// What runs something, or sends something somewhere: a repository may not decide it alone.
const NEEDS_TRUST: [&str; 5] = [
    "run.verify",
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
            decode::<Settings>(&alone)?;
            tree.overlay(layer);
        }
        let layered = Self { settings: decode(&tree)?, tree };
        layered.check_webhook()?;
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
        let Settings { run, stagnation, .. } = self.settings;
        Ok(Supervision { run, stagnation, notify })
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
        // A file names another as seen from itself.
        let place = self.at("notify.webhook_secret_file").map(|node| &node.origin);
        if let Some(Origin::File { file, .. }) = place
            && let (Some(secret), Some(directory)) =
                (&mut notify.webhook_secret_file, file.path.parent())
        {
            *secret = directory.join(&*secret);
        }
        notify
    }

    /// Returns what a delivery goes by.
    ///
    /// # Errors
    ///
    /// As [`supervision`](Self::supervision).
    pub(crate) fn delivering(self, trusted: &Trusted) -> Result<Delivering, CommandError> {
        self.check_trust(trusted, "")?;
        let notify = self.notify();
        let Settings { deliver, roles, experts, stagnation, .. } = self.settings;
        Ok(Delivering { deliver, roles, experts, stagnation: stagnation.config(), notify })
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

    /// Returns every value, with its path.
    pub(crate) fn values(&self) -> Vec<(String, &Node)> {
        self.tree.leaves()
    }

    /// Returns what was said at a path such as `run.timeout`.
    pub(crate) fn at(&self, path: &str) -> Option<&Node> {
        self.tree.at(path)
    }
}

/// Refuses a repository that wants to change how long the runs of all projects are kept.
fn check_store(project: &Node, user: Option<&Node>) -> Result<(), CommandError> {
    let mut own = defaults()?;
    user.into_iter().for_each(|user| own.overlay(user.clone()));
    let keys = ["store.keep_ended", "store.keep_output"];
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
        if value.is_empty() || !prefixes.iter().any(|prefix| name.starts_with(prefix)) {
            continue;
        }
        let Some((_, path)) = known.iter().find(|(known, _)| known == name) else {
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
            skip: Default::default(),
            verbose: self.phases.verbose,
            no_questions: self.phases.no_questions,
            parallel_validation: self.phases.parallel_validation,
            after_transition: self.phases.after_transition,
            stale_after: self.phases.stale_after.0,
            token: self.signals.token,
        }
    }
}

#[cfg(test)]
mod tests;
