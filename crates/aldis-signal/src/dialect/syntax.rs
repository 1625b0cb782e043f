//! The six grammar families. Each file holds a family's data and the functions that read one signal
//! of it from bytes; where in a message such bytes may stand is the business of [`mod@crate::scan`].

pub mod block;
pub(crate) mod body;
pub mod fence;
pub(crate) mod json;
pub mod line;
pub mod status;
pub mod tag;
pub mod trailer;
