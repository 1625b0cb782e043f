//! `aldis mcp`: the MCP server on standard input and output.

use clap::Args;

use super::Outcome;
use crate::error::CommandError;
use crate::io::Io;
use crate::mcp;

/// Serve tools by which agents report, over MCP
///
/// Hosts start it: `aldis install HOST` registers it. It speaks MCP on standard input and output and
/// ends when its input does. docs/mcp.md says which signal each tool stands for.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  npx @modelcontextprotocol/inspector --cli aldis mcp --method tools/list")]
pub(super) struct McpArgs {}

pub(super) fn run(io: &Io, _: &McpArgs) -> Result<Outcome, CommandError> {
    mcp::serve_stdio(io.state_dir.clone())?;
    Ok(Outcome::Yes)
}
