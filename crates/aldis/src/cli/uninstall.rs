//! `aldis uninstall`: takes the hook out of a host's configuration.

use clap::Args;

use super::Outcome;
use super::install::{InstallJob, PROGRAM, TargetArgs, carry_out};
use crate::error::CommandError;
use crate::hosts::install::invocation::Invocation;
use crate::hosts::install::locations::Locations;
use crate::hosts::install::plan;
use crate::io::Io;

/// Take the hook and the MCP server out of a host's configuration
///
/// Removes what `aldis install` added and nothing else. Where only aldis changed a file, it is byte
/// for byte what it was before; a file and folders that aldis created go away.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  aldis uninstall claude-code
  aldis uninstall codex --user --dry-run")]
pub(super) struct UninstallArgs {
    #[command(flatten)]
    target: TargetArgs,
}

pub(super) fn run(io: &mut Io, args: &UninstallArgs) -> Result<Outcome, CommandError> {
    let locations = Locations::new()?;
    let args = &args.target;
    let location = locations.of(args.host, args.scope())?;
    let changes = plan::uninstall(&locations, args.host, &location)?;
    let invocation = Invocation::new(args.host.name(), PROGRAM);
    let (server, notes) = (None, Vec::new());
    let job =
        InstallJob { kind: "uninstall", args, location: &location, invocation, server, notes };
    carry_out(io, &locations, &job, &changes)
}
