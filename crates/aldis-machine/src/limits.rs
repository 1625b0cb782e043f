//! What the limits of several machines have in common: every one is finite.

/// A limit that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{key}` is 0, which is no limit; give it at least 1")]
pub struct ConfigError {
    /// The setting.
    pub key: &'static str,
}
