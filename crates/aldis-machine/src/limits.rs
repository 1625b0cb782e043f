//! Settings of machines: each with its default, and whether it is a limit. Every limit is finite: 0 is
//! refused.

/// A limit that does not limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{key}` must be at least 1; 0 is not unlimited")]
pub struct ConfigError {
    /// The setting.
    pub key: String,
}

/// Something that limits, unless it is 0.
pub(crate) trait LimitSetting {
    /// Returns the key of what does not limit, below `key`.
    fn unlimited(&self, key: &str) -> Option<String>;
}

impl LimitSetting for u32 {
    fn unlimited(&self, key: &str) -> Option<String> {
        (*self == 0).then(|| key.to_owned())
    }
}

impl LimitSetting for u64 {
    fn unlimited(&self, key: &str) -> Option<String> {
        (*self == 0).then(|| key.to_owned())
    }
}

/// A limit that may be absent.
impl<T: LimitSetting> LimitSetting for Option<T> {
    fn unlimited(&self, key: &str) -> Option<String> {
        self.as_ref()?.unlimited(key)
    }
}

/// Defines settings, each with its default. What is marked as a `limit` must not be 0.
macro_rules! settings {
    ($(#[$meta:meta])* pub struct $name:ident {
        $($(#[$about:meta])* $setting:ident: $kind:ty = $default:expr $(, $limit:ident)?;)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct $name { $($(#[$about])* pub $setting: $kind,)* }

        impl Default for $name {
            fn default() -> Self {
                Self { $($setting: $default,)* }
            }
        }

        impl crate::limits::LimitSetting for $name {
            fn unlimited(&self, within: &str) -> Option<String> {
                // Not used where no setting is a limit.
                let _ = within;
                None $($(.or_else(|| {
                    crate::limits::$limit(&self.$setting, within, stringify!($setting))
                }))?)*
            }
        }
    };
}

pub(crate) use settings;

/// Checks that every limit limits something. The error names the first that is 0.
pub(crate) fn check(settings: &impl LimitSetting) -> Result<(), ConfigError> {
    settings.unlimited("").map_or(Ok(()), |key| Err(ConfigError { key }))
}

/// Checks one setting that is a limit.
pub(crate) fn limit(value: &impl LimitSetting, within: &str, setting: &str) -> Option<String> {
    match within {
        "" => value.unlimited(setting),
        within => value.unlimited(&format!("{within}.{setting}")),
    }
}
