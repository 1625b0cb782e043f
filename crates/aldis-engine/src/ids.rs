//! Names and codes that nobody can guess.

use aldis_store::RunId;

/// Letters that are easy to read and to say: no vowels, nothing that looks like something else.
const LETTERS: &[u8; 32] = b"23456789bcdfghjkmnpqrstvwxyzBCDF";
/// The letters of a run's name.
const ID_LENGTH: usize = 8;
/// The letters of a run token: 60 bits.
const TOKEN_LENGTH: usize = 12;

/// The operating system returned no random bytes.
#[derive(Debug, thiserror::Error)]
#[error("the operating system returned no random bytes: {0}")]
pub struct RandomError(#[from] getrandom::Error);

/// Makes a name for a new run.
///
/// # Errors
///
/// [`RandomError`] if the operating system returns no random bytes.
pub fn run_id() -> Result<RunId, RandomError> {
    // The letters are a subset of those that names may have.
    let unexpected = |_| RandomError(getrandom::Error::UNEXPECTED);
    RunId::new(word(ID_LENGTH)?.to_ascii_lowercase()).map_err(unexpected)
}

/// Makes a run token.
///
/// # Errors
///
/// [`RandomError`] if the operating system returns no random bytes.
pub fn token() -> Result<String, RandomError> {
    word(TOKEN_LENGTH)
}

fn word(length: usize) -> Result<String, RandomError> {
    let mut bytes = vec![0; length];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect())
}
