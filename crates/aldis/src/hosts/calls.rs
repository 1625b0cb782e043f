//! Calls of agents, as far as every driver knows of them: how an agent names its run, and why a signal
//! does not count that came in another way.

use aldis_signal::signal::Via;

/// The variable that tells an agent and what it starts which run it works for.
pub(crate) const RUN: &str = "ALDIS_RUN";
/// The variable that tells an agent of a delivery its number.
pub(crate) const AGENT: &str = "ALDIS_AGENT";

/// Says why a signal that came one way does not count where another is demanded.
pub(crate) fn hint(name: &str, via: Via, accept: Via) -> String {
    let how = match accept {
        Via::Said | Via::Token => "write it with the run token",
        Via::Receipt => "report it with `aldis signal`, or by a tool of the MCP server aldis",
        Via::Call => "report it by a tool of the MCP server aldis",
    };
    format!("{name} came as `{via}`, and only `{accept}` counts here; {how}")
}
