//! Does the MCP server really work: is it named, may its tools be called, does it list them?

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{CheckStatus, Checks, plan, unresponsive};
use crate::hosts::Host;
use crate::hosts::install::locations::{Locations, Scope};
use crate::hosts::install::probe::{self, ProbeOutcome, in_scratch};
use crate::hosts::install::server::{SERVER, ServerPart, started_by};

/// The tool without which nothing can be completed.
const TOOL: &str = "complete";

/// A server that a host was told of.
struct NamedServer {
    scope: Scope,
    file: PathBuf,
    program: String,
    off: bool,
}

/// Examines the server of a host whose hook is registered in `scope`. `programs` are those that were
/// found to be this program.
pub(super) fn examine(
    locations: &Locations,
    host: Host,
    scope: Scope,
    programs: &[(String, PathBuf)],
    checks: &mut Checks,
) {
    let scopes = [Scope::Project, Scope::Local, Scope::User];
    let parts = scopes.map(|scope| (scope, locations.server_parts(host, scope)));
    if parts.iter().all(|(_, parts)| parts.is_empty()) {
        return;
    }
    let named: Vec<NamedServer> = parts
        .iter()
        .flat_map(|(scope, parts)| parts.iter().filter_map(|part| named(*scope, part)))
        .collect();
    let Some(first) = named.first() else {
        let message = format!("{} does not start it; agents report by text", host.title());
        let fix = format!("aldis install {} --{}", host.name(), scope.name());
        return checks.add("server", CheckStatus::Note, message, Some(fix));
    };
    for server in &named {
        let file = locations.shown(&server.file);
        if server.off {
            let message = format!("`{SERVER}` is switched off in `{file}`");
            checks.failed("server", message, "switch it on there");
        } else {
            checks.ok("server", format!("`{file}`: {} mcp", server.program));
        }
        allowed(locations, host, server.scope, checks);
    }
    let path = programs.iter().find(|(program, _)| *program == first.program);
    match path {
        Some((_, path)) => lists(locations, path, checks),
        None => {
            let message = "its program was not examined above".to_owned();
            checks.add("tools", CheckStatus::Skipped, message, None);
        }
    }
}

fn named(scope: Scope, (file, part): &(PathBuf, ServerPart)) -> Option<NamedServer> {
    let bytes = plan::read(file).ok()??;
    let entry = part.entry(&bytes).ok()??;
    let program = started_by(Some(&entry))?;
    let off = entry["enabled"] == false || entry["disabled"] == true;
    Some(NamedServer { scope, file: file.clone(), program, off })
}

/// Checks that a host without a person may call the tools.
fn allowed(locations: &Locations, host: Host, scope: Scope, checks: &mut Checks) {
    for (file, part) in locations.server_parts(host, scope) {
        let ServerPart::Item { item, .. } = part else { continue };
        let bytes = plan::read(&file).ok().flatten().unwrap_or_default();
        let (file, there) = (locations.shown(&file), part.program(&bytes));
        if matches!(there, Ok(Some(_))) {
            checks.ok("allowed", format!("`{file}`: {item}"));
        } else {
            let fix = format!("aldis install {} --{}", host.name(), scope.name());
            checks.failed("allowed", format!("`{item}` is not in `{file}`"), fix);
        }
    }
}

/// Asks the server for its tools.
fn lists(locations: &Locations, path: &Path, checks: &mut Checks) {
    let client = json!({ "name": "aldis-doctor", "version": env!("CARGO_PKG_VERSION") });
    let hello =
        json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    let requests = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }),
    ];
    let stdin: String = requests.iter().map(|request| format!("{request}\n")).collect();
    let answer = in_scratch(|folder| probe::run(path, &["mcp"], &stdin, folder, &locations.path));
    let fix = "update aldis and run `aldis doctor` again";
    let ProbeOutcome::Ended { stdout, .. } = &answer else {
        return checks.failed("tools", unresponsive(path, &answer), fix);
    };
    let lines = stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let list = lines.into_iter().find(|line| line["id"] == 2).unwrap_or_default();
    let tools = list["result"]["tools"].as_array().into_iter().flatten();
    let names: Vec<&str> = tools.filter_map(|tool| tool["name"].as_str()).collect();
    if names.contains(&TOOL) {
        checks.ok("tools", names.join(", "));
    } else {
        let said = match crate::view::display::excerpt(stdout.trim(), 80) {
            said if said.is_empty() => "it printed nothing".to_owned(),
            said => format!("it printed `{said}`"),
        };
        checks.failed("tools", format!("`aldis mcp` did not list `{TOOL}`: {said}"), fix);
    }
}
