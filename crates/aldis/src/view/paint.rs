//! Colours by what they are for. Without colour every style writes nothing.

use std::fmt;

use anstyle::{AnsiColor, Style};

/// How a piece of text is meant; each surface has its own colours for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// What matters most in a line.
    Strong,
    /// What went well.
    Good,
    /// What somebody should look at.
    Warn,
    /// What is wrong.
    Bad,
    /// What may be passed over.
    Dim,
}

impl Tone {
    /// Returns the name that programs know.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Strong | Self::Dim => "neutral",
            Self::Good => "good",
            Self::Warn => "warn",
            Self::Bad => "bad",
        }
    }
}

/// Colours text, or leaves it alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint {
    pub(crate) on: bool,
}

impl Paint {
    /// What counts.
    pub(crate) fn good<T: fmt::Display>(self, text: T) -> Painted<T> {
        self.with(AnsiColor::Green.on_default().bold(), text)
    }

    /// What nearly counted.
    pub(crate) fn warn<T: fmt::Display>(self, text: T) -> Painted<T> {
        self.with(AnsiColor::Yellow.on_default().bold(), text)
    }

    /// What is wrong.
    pub(crate) fn bad<T: fmt::Display>(self, text: T) -> Painted<T> {
        self.with(AnsiColor::Red.on_default().bold(), text)
    }

    /// Places and line numbers.
    pub(crate) fn place<T: fmt::Display>(self, text: T) -> Painted<T> {
        self.with(AnsiColor::Blue.on_default(), text)
    }

    /// What matters most in a line.
    pub(crate) fn strong<T: fmt::Display>(self, text: T) -> Painted<T> {
        self.with(Style::new().bold(), text)
    }

    /// What may be passed over.
    pub(crate) fn dim<T: fmt::Display>(self, text: T) -> Painted<T> {
        self.with(Style::new().dimmed(), text)
    }

    /// What is meant so.
    pub(crate) fn tone<T: fmt::Display>(self, tone: Tone, text: T) -> Painted<T> {
        match tone {
            Tone::Strong => self.strong(text),
            Tone::Good => self.good(text),
            Tone::Warn => self.warn(text),
            Tone::Bad => self.bad(text),
            Tone::Dim => self.dim(text),
        }
    }

    fn with<T>(self, style: Style, text: T) -> Painted<T> {
        Painted { style: if self.on { style } else { Style::new() }, text }
    }
}

/// Text with its colour. Padding applies to the text inside the colour.
#[derive(Debug)]
pub(crate) struct Painted<T> {
    style: Style,
    text: T,
}

impl<T: fmt::Display> fmt::Display for Painted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.style)?;
        self.text.fmt(f)?;
        write!(f, "{:#}", self.style)
    }
}
