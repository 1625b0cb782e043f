//! The decoders, one per host: what a line of each format says.

mod acp;
mod antigravity;
mod claude_code;
mod claude_stream;
mod cline;
mod codex;
mod copilot;
mod cursor;
mod droid;
mod gemini;
mod goose;
mod kimi;
mod kiro;
mod opencode;
mod pi;

use super::Format;
use super::item::Decode;

/// Returns the decoder of a format; plain text has none.
pub(crate) fn decoder(format: Format) -> Option<Box<dyn Decode>> {
    Some(match format {
        Format::Acp => Box::new(acp::Acp::default()),
        Format::Antigravity => Box::new(antigravity::AntigravityTranscript::default()),
        Format::AntigravityStream => Box::new(antigravity::AntigravityStream::default()),
        Format::ClaudeCode => Box::new(claude_code::ClaudeCode),
        Format::ClaudeStream => Box::new(claude_stream::ClaudeStream::default()),
        Format::Cline => Box::new(cline::Cline),
        Format::CodexExec => Box::new(codex::Exec),
        Format::CodexRollout => Box::new(codex::Rollout),
        Format::Copilot => Box::new(copilot::Copilot),
        Format::CursorStream => Box::new(cursor::CursorStream::default()),
        Format::CursorTranscript => Box::new(cursor::Transcript),
        Format::Droid => Box::new(droid::Transcript::default()),
        Format::DroidStream => Box::new(droid::DroidStream),
        Format::GeminiSession => Box::new(gemini::Session),
        Format::GeminiStream => Box::new(gemini::Stream),
        Format::Goose => Box::new(goose::Goose::default()),
        Format::KimiStream => Box::new(kimi::Stream),
        Format::KimiWire => Box::new(kimi::Wire),
        Format::Kiro => Box::new(kiro::Kiro),
        Format::OpenCode => Box::new(opencode::OpenCode::default()),
        Format::Pi => Box::new(pi::Pi::default()),
        Format::Text => return None,
    })
}
