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
    to_id(word(ID_LENGTH)?)
}

fn to_id(word: String) -> Result<RunId, RandomError> {
    // The letters are a subset of those that names may have.
    let unexpected = |_| RandomError(getrandom::Error::UNEXPECTED);
    RunId::new(word.to_ascii_lowercase()).map_err(unexpected)
}

/// Returns the name of the run that a request with this key begins; the next one that is free where
/// others have the name. The same request leads to the same run, whenever it comes again.
///
/// # Errors
///
/// None that can happen: see [`run_id`].
pub(crate) fn run_id_of(key: &str, number: usize) -> Result<RunId, RandomError> {
    // FNV-1a: the same in every build.
    let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let bytes = key.bytes().chain(number.to_le_bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325, hash);
    let letter = |at: usize| char::from(LETTERS[(hash >> (5 * at)) as usize % LETTERS.len()]);
    to_id((0..ID_LENGTH).map(letter).collect())
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
