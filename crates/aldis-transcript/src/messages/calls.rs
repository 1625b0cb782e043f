//! Calls of tools, so that a result can be told by its tool.
//!
//! A result follows its call closely, so a short memory is enough to describe it. Calls of agents
//! are kept for good: they run long, and who spoke depends on them.

use std::collections::{HashSet, VecDeque};

use crate::item::tool;
use aldis_signal::message::{Origin, Role};

/// The calls of one input.
#[derive(Debug, Default)]
pub(super) struct Calls {
    agents: HashSet<String>,
    recent: VecDeque<RecentCall>,
}

#[derive(Debug, Default)]
struct RecentCall {
    id: String,
    name: String,
    path: String,
}

impl Calls {
    /// Remembers a call and the file it is about, if it is about one.
    pub(super) fn note(&mut self, id: &str, name: &str, path: &str) {
        if id.is_empty() {
            return;
        }
        if is_agent(name) {
            self.agents.insert(id.into());
        }
        if self.recent.len() >= RECENT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(RecentCall { id: id.into(), name: name.into(), path: path.into() });
    }

    /// Returns whether any call was one of an agent.
    pub(super) fn has_agents(&self) -> bool {
        !self.agents.is_empty()
    }

    /// Returns the origin of a call's result; `name` is the tool where the result names it.
    pub(super) fn result(&self, id: &str, name: &str, cwd: &str) -> Origin {
        if self.agents.contains(id) || is_agent(name) {
            return Origin::new(Role::Subagent).with_agent(id).with_detail("result of a sub-agent");
        }
        let known = self.recent.iter().rev().find(|call| call.id == id && !id.is_empty());
        let name = known.map_or(name, |call| &call.name);
        let path = known.map_or("", |call| &call.path);
        let inside = path.strip_prefix(cwd).filter(|_| !cwd.is_empty());
        let path = inside.and_then(|path| path.strip_prefix('/')).unwrap_or(path);
        match (name, path) {
            ("", _) => tool("tool result"),
            (name, "") => tool(format!("result of {name}")),
            (name, path) => tool(format!("result of {name} {path}")),
        }
    }
}

/// Returns whether a tool is an agent of its own.
fn is_agent(name: &str) -> bool {
    name.eq_ignore_ascii_case("task") || name.eq_ignore_ascii_case("agent")
}

const RECENT_MAX: usize = 256;
