//! `aldis trust`: let a repository's file with settings run what it names.

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};

use super::Outcome;
use crate::error::CommandError;
use crate::io::Io;
use crate::settings::clock;
use crate::settings::config;
use crate::settings::config::{Document, Layered, NodeKind};
use crate::settings::project;
use crate::settings::trust::{TrustRecord, Trusted};
use crate::view::display;
use crate::view::json;
use crate::view::time::local;
use crate::view::wire::config::TrustLine;

/// Trust the commands of this project's settings
///
/// `aldis.toml` or `aldis.yaml` of a repository may name commands to run and places to send notices
/// to. They count only after you have trusted the file, exactly as it is now: after any change you
/// are asked again. What is trusted is kept in your state directory, never in the repository.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  aldis trust
  aldis trust --list
  aldis trust --revoke")]
pub(super) struct TrustArgs {
    /// The file (default: the project's)
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "list")]
    file: Option<PathBuf>,

    /// List what is trusted
    #[arg(long)]
    list: bool,

    /// Trust no version of the file any more
    #[arg(long, conflicts_with = "list")]
    revoke: bool,

    /// With --list: print one JSON object per line
    #[arg(long, requires = "list")]
    json: bool,
}

pub(super) fn run(io: &mut Io, args: &TrustArgs) -> Result<Outcome, CommandError> {
    let trusted = Trusted::of_user(io.state_dir.as_deref())?;
    if args.list {
        return list(io, &trusted, args.json);
    }
    let file = match &args.file {
        Some(file) => file.clone(),
        None => config::project_file(&project::here()?)?.ok_or_else(|| {
            CommandError::new("this project has no file with settings")
                .with_help("name one: aldis trust FILE")
        })?,
    };
    if args.revoke { revoke(io, &trusted, &file) } else { trust(io, &trusted, &file) }
}

fn trust(io: &mut Io, trusted: &Trusted, path: &Path) -> Result<Outcome, CommandError> {
    let document = Document::read(path, true)?;
    let layered = Layered::of_document(&document)?;
    trusted.add(&document.file, clock::now()?)?;
    writeln!(io.stdout, "Trusted {} as it is now.", display::line(&path.display().to_string()))?;
    for key in layered.powers() {
        let set = |kind: &NodeKind| match kind {
            NodeKind::Unset | NodeKind::Bool(false) => false,
            NodeKind::List(items) => !items.is_empty(),
            _ => true,
        };
        if let Some(node) = layered.at(&key).filter(|node| set(&node.kind)) {
            let value = display::excerpt(&node.to_json().to_string(), 200);
            writeln!(io.stdout, "  {key} = {value}")?;
        }
    }
    Ok(Outcome::Yes)
}

fn revoke(io: &mut Io, trusted: &Trusted, path: &Path) -> Result<Outcome, CommandError> {
    let shown = display::line(&path.display().to_string());
    if trusted.revoke(path)? == 0 {
        writeln!(io.stdout, "{shown} was not trusted.")?;
        return Ok(Outcome::No);
    }
    writeln!(io.stdout, "{shown} is not trusted any more.")?;
    Ok(Outcome::Yes)
}

fn list(io: &mut Io, trusted: &Trusted, as_json: bool) -> Result<Outcome, CommandError> {
    for record in trusted.list()? {
        let status = status(&record);
        let TrustRecord { path, digest, at, .. } = record;
        let path = path.display().to_string();
        if as_json {
            let (kind, status, at) = ("trust".to_owned(), status.to_owned(), at.to_string());
            json::write_line(&mut io.stdout, &TrustLine { v: 1, kind, path, digest, at, status })?;
        } else {
            writeln!(io.stdout, "{}  {status:<8} {}", local(at), display::line(&path))?;
        }
    }
    Ok(Outcome::Yes)
}

/// How a trusted file stands today.
fn status(record: &TrustRecord) -> &'static str {
    if !record.path.exists() {
        return "missing";
    }
    let same = |document: Document| document.file.digest == record.digest;
    if Document::read(&record.path, true).is_ok_and(same) { "current" } else { "changed" }
}
