//! What the limits of several machines have in common: every one is finite.

/// A limit that does not limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{key}` must be at least 1; 0 is not unlimited")]
pub struct ConfigError {
    /// The setting.
    pub key: &'static str,
}
