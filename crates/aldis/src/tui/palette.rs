//! Styles by what they are for. Whatever is made into a span here is made harmless first, so that no
//! line of the view can forget to.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Span;

use crate::view::display;
use crate::view::paint::Tone;

/// Makes spans, with colour or without. Without, weight still tells what matters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Palette {
    pub(crate) color: bool,
}

impl Palette {
    /// Words as they are.
    pub(super) fn plain(self, text: impl AsRef<str>) -> Span<'static> {
        Self::span(text, Style::new())
    }

    /// What went well.
    pub(super) fn good(self, text: impl AsRef<str>) -> Span<'static> {
        Self::span(text, self.tinted(Color::Green))
    }

    /// What somebody should look at.
    pub(super) fn warn(self, text: impl AsRef<str>) -> Span<'static> {
        Self::span(text, self.tinted(Color::Yellow).add_modifier(Modifier::BOLD))
    }

    /// What is wrong.
    pub(super) fn bad(self, text: impl AsRef<str>) -> Span<'static> {
        Self::span(text, self.tinted(Color::Red).add_modifier(Modifier::BOLD))
    }

    /// What matters most in a line.
    pub(super) fn strong(self, text: impl AsRef<str>) -> Span<'static> {
        Self::span(text, Style::new().add_modifier(Modifier::BOLD))
    }

    /// What may be passed over.
    pub(super) fn dim(self, text: impl AsRef<str>) -> Span<'static> {
        Self::span(text, Style::new().add_modifier(Modifier::DIM))
    }

    /// What is meant so.
    pub(super) fn tone(self, tone: Tone, text: impl AsRef<str>) -> Span<'static> {
        match tone {
            Tone::Strong => self.strong(text),
            Tone::Good => self.good(text),
            Tone::Warn => self.warn(text),
            Tone::Bad => self.bad(text),
            Tone::Dim => self.dim(text),
        }
    }

    /// The frame of the pane that has the keys, and of the others.
    pub(super) fn frame(self, focused: bool) -> Style {
        if focused {
            self.tinted(Color::Cyan).add_modifier(Modifier::BOLD)
        } else {
            Style::new().add_modifier(Modifier::DIM)
        }
    }

    /// What is chosen.
    pub(super) fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    fn tinted(self, color: Color) -> Style {
        if self.color { Style::new().fg(color) } else { Style::new() }
    }

    fn span(text: impl AsRef<str>, style: Style) -> Span<'static> {
        Span::styled(display::line(text.as_ref()), style)
    }
}
