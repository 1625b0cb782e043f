//! What others read of a machine's state, as a table: the state itself is private.

/// Defines methods that each return a part of a state.
macro_rules! accessors {
    ($state:ident { $($(#[$about:meta])* $name:ident: $kind:ty = |$it:ident| $value:expr;)* }) => {
        impl $state {
            $($(#[$about])* pub fn $name(&self) -> $kind { let $it = self; $value })*
        }
    };
}

pub(crate) use accessors;
