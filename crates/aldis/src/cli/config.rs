//! `aldis config`: what is set, by whom, and whether files can be used.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueHint};

use super::run::Flags;
use super::{Outcome, check_files, report};
use crate::error::CommandError;
use crate::io::Io;
use crate::settings::catalog::Catalog;
use crate::settings::config::{self, Document, Layered, Node, NodeKind, Origin, annotated};
use crate::settings::home;
use crate::settings::project::{self, Place};
use crate::settings::store;
use crate::settings::trust::Trusted;
use crate::view::display;
use crate::view::json;
use crate::view::paint::Paint;
use crate::view::wire::config::{SettingLine, SettingOrigin};

/// Check and show the settings
///
/// Settings come from `aldis.toml` or `aldis.yaml`: first the user's, in `$XDG_CONFIG_HOME/aldis` or
/// `~/.config/aldis`, then the project's, from the current directory up to its root. Variables such
/// as ALDIS_RUN_TIMEOUT override both, and options override all.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  aldis config init
  aldis config check
  aldis config show --origin
  aldis config show --origin --timeout 10m run.timeout")]
pub(super) enum ConfigCommand {
    Check(ConfigCheckArgs),
    Init(ConfigInitArgs),
    Show(Box<ShowArgs>),
}

/// Check files with settings
///
/// Says for each file whether it can be used, and if not, what to change on which line. Exits with 1
/// if one cannot. Without a file, checks all files that apply here.
#[derive(Debug, Args)]
pub(super) struct ConfigCheckArgs {
    /// Files to check
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    files: Vec<PathBuf>,
}

/// Write a file with every setting
///
/// Writes `aldis.toml` at the root of the project: every key with its default and what it does, as a
/// comment, so that nothing changes until you take a `#` away. An existing file is not overwritten.
/// For completion in an editor, write the schema beside it and name it in the first line:
/// aldis schema config-file > aldis.schema.json, then `#:schema ./aldis.schema.json`.
#[derive(Debug, Args)]
pub(super) struct ConfigInitArgs {
    /// Write your own file, which counts in every project
    #[arg(long)]
    user: bool,

    /// Print the file and write nothing
    #[arg(long, conflicts_with = "user")]
    print: bool,
}

/// Show the settings
///
/// Prints all settings that apply here, in the form of `aldis.toml`. Takes the options of `aldis run`
/// that override settings, to show what they would change.
#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// Keys or tables to show, such as run or run.timeout; default: all
    #[arg(value_name = "KEY")]
    keys: Vec<String>,

    /// Say where each value comes from
    #[arg(long)]
    origin: bool,

    /// Print one JSON object per line
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    flags: Flags,
}

pub(super) fn run(io: &mut Io, command: &ConfigCommand) -> Result<Outcome, CommandError> {
    match command {
        ConfigCommand::Check(args) => check(io, args),
        ConfigCommand::Init(args) => init(io, args),
        ConfigCommand::Show(args) => show(io, args),
    }
}

fn init(io: &mut Io, args: &ConfigInitArgs) -> Result<Outcome, CommandError> {
    let text = annotated::all_off();
    if args.print {
        io.stdout.write_all(text.as_bytes())?;
        return Ok(Outcome::Yes);
    }
    let directory = match args.user {
        true => home::config_directory().ok_or_else(|| {
            CommandError::new("the home directory is not known").with_help("set HOME")
        })?,
        false => project::here()?.root().to_owned(),
    };
    let file = config::create(&directory, &text)?;
    let shown = display::line(&file.display().to_string());
    writeln!(io.stdout, "Wrote {shown}. Nothing is set yet: every key is a comment.")?;
    Ok(Outcome::Yes)
}

fn check(io: &mut Io, args: &ConfigCheckArgs) -> Result<Outcome, CommandError> {
    if args.files.is_empty() {
        let directory = project::current()?;
        let checked = Layered::load(&Place::of(&directory, None), None).and_then(|layered| {
            let found = check_names(&layered, &Catalog::load(&directory)?)?;
            Ok((found, untrusted(io, &layered)))
        });
        return Ok(match checked {
            Ok((found, untrusted)) => {
                writeln!(io.stdout, "settings: ok, {found}")?;
                if !untrusted.is_empty() {
                    let keys = untrusted.join(", ");
                    writeln!(
                        io.stdout,
                        "  not trusted yet: {keys}; review the file, then: aldis trust"
                    )?;
                }
                Outcome::Yes
            }
            Err(error) => {
                report(io, &error);
                Outcome::No
            }
        });
    }
    check_files(io, &args.files, check_file)
}

/// Checks a file alone. Returns how many values it sets.
fn check_file(path: &Path) -> Result<String, CommandError> {
    let document = Document::read(path, true)?;
    let mut catalog = Catalog::builtin();
    catalog.add_all(&document)?;
    check_names(&Layered::of_document(&document)?, &catalog)
}

/// Checks what settings name. Returns how many values are set.
fn check_names(layered: &Layered, catalog: &Catalog) -> Result<String, CommandError> {
    layered.settings.check_pipelines(|dialect| catalog.choose(dialect))?;
    let set = |(_, node): &(String, &Node)| node.origin != Origin::Default;
    let count = layered.values().into_iter().filter(set).count();
    Ok(format!("{count} {} set", if count == 1 { "value is" } else { "values are" }))
}

fn show(io: &mut Io, args: &ShowArgs) -> Result<Outcome, CommandError> {
    let directory = project::current()?;
    let layered = Layered::load(&Place::of(&directory, None), Some(args.flags.layer()))?;
    let untrusted = untrusted(io, &layered);
    let mut values = layered.values();
    for key in &args.keys {
        if !values.iter().any(|(path, _)| is_under(path, key)) {
            return Err(CommandError::new(format!("there is no setting `{key}`"))
                .with_help("aldis config show lists the settings"));
        }
    }
    values.retain(|(path, _)| args.keys.is_empty() || args.keys.iter().any(|k| is_under(path, k)));
    let mut table = None;
    for (path, node) in values {
        let node = &without_secrets(&path, node);
        let needs_trust = untrusted.contains(&path) && of_project(&node.origin);
        if args.json {
            json::write_line(&mut io.stdout, &setting_line(path, node, needs_trust))?;
            continue;
        }
        let (in_table, key) = path.rsplit_once('.').unwrap_or(("", &path));
        if table.as_deref() != Some(in_table) {
            let gap = if table.is_some() { "\n" } else { "" };
            writeln!(io.stdout, "{gap}[{in_table}]")?;
            table = Some(in_table.to_owned());
        }
        let origin = if needs_trust {
            Some(format!("{}, not trusted yet: aldis trust", shown(&node.origin, &directory)))
        } else {
            args.origin.then(|| shown(&node.origin, &directory))
        };
        write_setting(io, key, node, origin)?;
    }
    Ok(Outcome::Yes)
}

/// Returns what the project's file says and the user has not trusted.
fn untrusted(io: &Io, layered: &Layered) -> Vec<String> {
    let set_by_project = |path: &String| {
        layered.at(path).is_some_and(|it| of_project(&it.origin) && it.kind != NodeKind::Unset)
    };
    match Trusted::of_user(io.state_dir.as_deref()) {
        Ok(trusted) => layered.untrusted(&trusted).into_iter().map(|(path, _)| path).collect(),
        // Whoever keeps no state has trusted nothing.
        Err(_) => layered.powers().into_iter().filter(set_by_project).collect(),
    }
}

fn write_setting(
    io: &mut Io,
    key: &str,
    node: &Node,
    origin: Option<String>,
) -> Result<(), CommandError> {
    let paint = Paint { on: io.color_stdout };
    let line = match &node.kind {
        NodeKind::Unset => format!("# {key} is not set"),
        _ => format!("{key} = {}", display::line(&in_toml(node))),
    };
    match origin {
        Some(origin) => {
            let origin = format!("# {}", display::line(&origin));
            writeln!(io.stdout, "{line:<36} {}", paint.dim(origin))?;
        }
        None => writeln!(io.stdout, "{line}")?,
    }
    Ok(())
}

/// Returns a value as it may be shown.
fn without_secrets(path: &str, node: &Node) -> Node {
    let kind = match &node.kind {
        NodeKind::Text(text) => NodeKind::Text(store::shown(path, text).into_owned()),
        NodeKind::Word(text) => NodeKind::Word(store::shown(path, text).into_owned()),
        kind => kind.clone(),
    };
    Node { origin: node.origin.clone(), kind }
}

fn in_toml(node: &Node) -> String {
    toml::Value::try_from(node.to_json()).map(|value| value.to_string()).unwrap_or_default()
}

fn is_under(path: &str, key: &str) -> bool {
    path.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn of_project(origin: &Origin) -> bool {
    matches!(origin, Origin::File { file, .. } if file.of_project)
}

/// An origin in words, with files as seen from here.
fn shown(origin: &Origin, directory: &Path) -> String {
    match origin {
        Origin::File { file, line } => {
            let path = file.path.strip_prefix(directory).unwrap_or(&file.path);
            format!("{}:{line}", path.display())
        }
        _ => origin.to_string(),
    }
}

fn setting_line(key: String, node: &Node, needs_trust: bool) -> SettingLine {
    let source = |source: &str| SettingOrigin {
        source: source.to_owned(),
        file: None,
        line: None,
        name: None,
    };
    let origin = match &node.origin {
        Origin::Default => source("default"),
        Origin::File { file, line } => SettingOrigin {
            file: Some(file.path.display().to_string()),
            line: Some(*line),
            ..source(if file.of_project { "project_file" } else { "user_file" })
        },
        Origin::Environment(name) => {
            SettingOrigin { name: Some(name.clone()), ..source("environment") }
        }
        Origin::Flag(name) => {
            SettingOrigin { name: Some((*name).to_owned()), ..source("command_line") }
        }
    };
    let kind = "setting".to_owned();
    SettingLine { v: 1, kind, key, value: node.to_json(), origin, needs_trust }
}
