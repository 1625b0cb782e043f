//! The engine over real machines and real stores.

mod histories;
