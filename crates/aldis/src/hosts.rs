//! The programs that run agents: one file with every fact about each, and what is done with them.
//!
//! `spec` says what can differ. `hook` turns what a host tells its hook into an answer, `install`
//! registers the hook in the host's settings and checks that it works. Neither names a host: they
//! ask its `HostSpec`.

mod antigravity;
pub(crate) mod calls;
mod claude_code;
mod cline;
mod codex;
mod copilot;
mod cursor;
mod droid;
mod earendil_pi;
mod env;
mod gemini;
mod goose;
pub(crate) mod headless;
pub(crate) mod hook;
mod host;
pub(crate) mod install;
mod kilo;
mod kimi;
mod kiro;
mod openclaw;
mod opencode;
mod qwen;
pub(crate) mod receipt;
mod sourcegraph_amp;
pub(crate) mod spec;
pub(crate) mod spool;

pub use env::Env;
pub(crate) use hook::answer::woken;
pub use hook::answer::{Answer, TEXT_MAX, answer};
/// For the simulator, which edits state files.
#[doc(hidden)]
pub use hook::auto_state;
pub use hook::call::{CutShort, Event, HookCall, PAYLOAD_MAX, PayloadError, parse};
#[doc(hidden)] // For the simulator.
pub use hook::live;
pub(crate) use hook::queue;
pub use hook::state_file;
pub use host::{BlockCap, Host, UnknownHost};

/// Every host, by name. A new one is its file and a line here.
pub(crate) static ALL: [Host; 13] = [
    Host(&antigravity::SPEC),
    Host(&claude_code::SPEC),
    Host(&codex::SPEC),
    Host(&copilot::SPEC),
    Host(&cursor::SPEC),
    Host(&droid::SPEC),
    Host(&gemini::SPEC),
    Host(&goose::SPEC),
    Host(&kilo::SPEC),
    Host(&openclaw::SPEC),
    Host(&opencode::SPEC),
    Host(&earendil_pi::SPEC),
    Host(&qwen::SPEC),
];

/// Hosts without hooks that could hold a session: they can be run, and not registered with.
static HEADLESS_ONLY: [Host; 3] =
    [Host(&kimi::SPEC), Host(&kiro::SPEC), Host(&sourcegraph_amp::SPEC)];

#[cfg(test)]
mod tests;
