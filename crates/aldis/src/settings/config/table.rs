//! Tables that set a machine's configuration: what may be written, the defaults, the way back.

use super::values::{Count, Dollars, Seconds, SecondsOrNever};

/// A value as people write it, of what the machine counts with.
pub(super) trait Setting<T> {
    fn of(value: T) -> Self;

    fn value(&self) -> T;
}

/// What is written as the machine has it.
macro_rules! as_it_is {
    ($($type:ty),*) => {$(
        impl Setting<Self> for $type {
            fn of(value: Self) -> Self {
                value
            }

            fn value(&self) -> Self {
                Clone::clone(self)
            }
        }
    )*};
}

as_it_is!(bool, Vec<String>);

impl<const LEAST: u64, const MOST: u64> Setting<u32> for Count<LEAST, MOST> {
    fn of(value: u32) -> Self {
        Self(value.into())
    }

    fn value(&self) -> u32 {
        self.small()
    }
}

/// Numbers that only say so otherwise.
macro_rules! numbers {
    ($([$($limits:tt)*] $type:ty: $number:ty;)*) => {$(
        impl<$($limits)*> Setting<$number> for $type {
            fn of(value: $number) -> Self {
                Self(value)
            }

            fn value(&self) -> $number {
                self.0
            }
        }
    )*};
}

numbers! {
    [const LEAST: u64, const MOST: u64] Count<LEAST, MOST>: u64;
    [const LEAST: u64] Seconds<LEAST>: u64;
    [] Dollars: u64;
    [] SecondsOrNever: Option<u64>;
}

impl<S: Setting<T>, T> Setting<Option<T>> for Option<S> {
    fn of(value: Option<T>) -> Self {
        value.map(S::of)
    }

    fn value(&self) -> Option<T> {
        self.as_ref().map(S::value)
    }
}

/// Defines a table: keys of its own with their defaults, and keys that set a member of a machine's
/// configuration. What a stored table lacks has its default.
macro_rules! table {
    (
        $(#[$about:meta])*
        struct $name:ident sets $config:ty, usually $usual:expr;
        own { $($(#[$own_about:meta])* $own:ident: $own_type:ty = $default:expr,)* }
        sets { $($key:ident: $type:ty = $member:ident,)* }
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub(crate) struct $name {
            $($(#[$own_about])* pub(crate) $own: $own_type,)*
            $(pub(crate) $key: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                let usual: $config = $usual;
                Self { $($own: $default,)* $($key: Setting::of(usual.$member),)* }
            }
        }

        impl $name {
            /// Sets what the table says.
            pub(super) fn set(&self, config: &mut $config) {
                $(config.$member = self.$key.value();)*
            }
        }
    };
}

pub(super) use table;
