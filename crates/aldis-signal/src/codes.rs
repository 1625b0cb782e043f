//! Enums whose variants have stable names: in JSON, in dialect files, in what is stored.

/// Defines an enum with a stable name for each variant, which is also its form in JSON.
///
/// ```
/// aldis_signal::codes! {
///     /// How bad something is.
///     pub enum Severity {
///         /// Worth a look.
///         Warning = "warning",
///         /// Wrong.
///         Error = "error",
///     }
/// }
///
/// assert_eq!(Severity::named("error"), Some(Severity::Error));
/// assert_eq!(Severity::ALL.iter().map(|it| it.as_str()).collect::<Vec<_>>(), ["warning", "error"]);
/// ```
#[macro_export]
macro_rules! codes {
    ($(#[$meta:meta])* $vis:vis enum $name:ident {
        $($(#[$about:meta])* $variant:ident = $code:literal,)*
    }) => {
        $(#[$meta])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord,
            serde::Serialize, serde::Deserialize,
        )]
        $vis enum $name { $($(#[$about])* #[serde(rename = $code)] $variant,)* }

        impl $name {
            /// Every one, in order.
            $vis const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Returns the stable name.
            $vis fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $code,)* }
            }

            /// Returns the one of this stable name.
            $vis fn named(name: &str) -> Option<Self> {
                match name { $($code => Some(Self::$variant),)* _ => None }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
