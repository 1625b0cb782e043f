//! `aldis schema`: JSON Schema of the formats that programs read and write.

use std::io::Write;

use clap::Args;

use super::Outcome;
use crate::error::CommandError;
use crate::io::Io;
use crate::settings::config::annotated;
use crate::view::wire::{Described, SCHEMAS};

/// What people write, beside what programs do.
const CONFIG_FILE: Described = Described {
    name: "config-file",
    about: "`aldis.toml` and `aldis.yaml`, for editors",
    schema: annotated::schema,
};

/// Print the JSON Schema of a format
///
/// Without a name, lists the formats.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  aldis schema
  aldis schema scan > scan.schema.json")]
pub(super) struct SchemaArgs {
    /// The format
    #[arg(value_parser = all().map(|format| format.name).collect::<Vec<_>>())]
    format: Option<String>,
}

pub(super) fn run(io: &mut Io, args: &SchemaArgs) -> Result<Outcome, CommandError> {
    let Some(wanted) = &args.format else {
        for format in all() {
            writeln!(io.stdout, "{:<15} {}", format.name, format.about)?;
        }
        return Ok(Outcome::Yes);
    };
    if let Some(format) = all().find(|format| format.name == wanted) {
        let text =
            serde_json::to_string_pretty(&(format.schema)()).map_err(std::io::Error::from)?;
        writeln!(io.stdout, "{text}")?;
    }
    Ok(Outcome::Yes)
}

fn all() -> impl Iterator<Item = &'static Described> {
    SCHEMAS.iter().chain([&CONFIG_FILE])
}
